//! Who a job is: the same logical work has the same id, in any process, on any day.
//!
//! `job_id` is the SHA-256 of canonical JSON, in hex; `event_id` names one wake-up of that job.
//! Nothing random and no clock goes into either.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// A job's primary key: 64 lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JobId(String);

/// Text that is not 64 lower-case hexadecimal digits.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a job id is 64 lower-case hexadecimal digits")]
pub struct NotAJobId;

impl JobId {
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for JobId {
    type Error = NotAJobId;

    fn try_from(text: String) -> Result<Self, NotAJobId> {
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() == 64 && text.bytes().all(hex) { Ok(Self(text)) } else { Err(NotAJobId) }
    }
}

impl From<JobId> for String {
    fn from(id: JobId) -> Self {
        id.0
    }
}

/// The fields that make a job the job it is, in the order they were given.
///
/// The order is part of the identity: a job type states its fields in one place, always alike.
/// A window's job has its `window_generation` among them; `redrive_generation` never is.
///
/// ```
/// use domain::Identity;
///
/// let identity = Identity::new("receipt").text("order_id", "A-17");
/// assert_eq!(identity.canonical_json(), r#"{"job_type":"receipt","order_id":"A-17"}"#);
/// assert_eq!(
///     identity.job_id().as_str(),
///     "66c1d23614b65cefbe5e29c6f72c08aafa012d07f4c652fbefae5b7ba6fd0640"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity(Map<String, Value>);

impl Identity {
    /// Starts the identity of a job of `job_type`; the type is its first field.
    #[must_use]
    pub fn new(job_type: &str) -> Self {
        Self(Map::new()).text("job_type", job_type)
    }

    /// Adds a text field.
    #[must_use]
    pub fn text(self, name: &str, value: &str) -> Self {
        self.with(name, Value::from(value))
    }

    /// Adds a whole number.
    #[must_use]
    pub fn integer(self, name: &str, value: i64) -> Self {
        self.with(name, Value::from(value))
    }

    fn with(mut self, name: &str, value: Value) -> Self {
        self.0.insert(name.to_owned(), value);
        self
    }

    /// The identity as JSON without white space, fields in their fixed order.
    #[must_use]
    pub fn canonical_json(&self) -> String {
        Value::from(self.0.clone()).to_string()
    }

    /// The id of the job with this identity.
    #[must_use]
    pub fn job_id(&self) -> JobId {
        JobId(sha256_hex(self.canonical_json().as_bytes()))
    }
}

/// The SHA-256 of `bytes` in lower-case hexadecimal.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    use fmt::Write;
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// An outbox event's primary key. It holds `:`, so it can never be an SQS batch entry id.
pub type EventId = String;

/// The id of the wake-up of `job_id` in `redrive_generation`.
///
/// Every redelivery repeats it; only a redrive makes a new one.
#[must_use]
pub fn event_id(event_type: &str, job_id: &JobId, redrive_generation: i32) -> EventId {
    format!("{event_type}:{job_id}:{redrive_generation}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price_window() -> Identity {
        Identity::new("price")
            .text("dataset", "us8")
            .text("window_start", "2018-04-04T13:30:00Z")
            .integer("window_generation", 1)
    }

    #[test]
    fn canonical_json_keeps_the_fields_in_their_fixed_order() {
        assert_eq!(
            price_window().canonical_json(),
            r#"{"job_type":"price","dataset":"us8","window_start":"2018-04-04T13:30:00Z","window_generation":1}"#
        );
    }

    #[test]
    fn job_id_of_a_known_window_never_changes() {
        assert_eq!(
            price_window().job_id().as_str(),
            "1195cd8c33d539f946aea8c92166ccce06403f83cd4fdc0bb75e8e3fe6d1051c"
        );
    }

    #[test]
    fn event_id_names_the_type_the_job_and_the_generation() {
        let job_id = price_window().job_id();
        assert_eq!(event_id("price", &job_id, 2), format!("price:{job_id}:2"));
    }

    #[test]
    fn another_generation_of_a_window_is_another_job() {
        assert_ne!(price_window().integer("window_generation", 2).job_id(), price_window().job_id());
    }

    #[test]
    fn text_that_is_not_a_digest_is_not_a_job_id() {
        for text in ["", "abc", &"A".repeat(64), &"g".repeat(64), &"0".repeat(65)] {
            assert_eq!(JobId::try_from(text.to_owned()), Err(NotAJobId), "{text}");
        }
    }
}
