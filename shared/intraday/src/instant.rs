//! Instants as the product writes them: RFC 3339, whole seconds, `Z`. Identities depend on it.

use chrono::{DateTime, SecondsFormat, Utc};

/// `instant` as text, like `2018-04-04T13:30:00Z`.
#[must_use]
pub fn text(instant: DateTime<Utc>) -> String {
    instant.to_rfc3339_opts(SecondsFormat::Secs, true)
}
