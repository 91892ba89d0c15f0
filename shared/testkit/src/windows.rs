//! Windows to tie jobs to.

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use store::window::{Corrected, NewWindow, Opened, WindowRef, correct, open};

/// The first minute of a session long ago.
#[must_use]
pub fn first_minute() -> DateTime<Utc> {
    DateTime::from_timestamp(1_522_848_600, 0).unwrap()
}

/// The content of a minute without data; `digit` makes its digest.
#[must_use]
pub fn empty(start: DateTime<Utc>, digest: &str) -> NewWindow<'_> {
    NewWindow {
        dataset: "us8",
        start,
        session_date: start.date_naive(),
        content_digest: digest,
        bar_count: 0,
        artifact_key: None,
        backfilled: false,
    }
}

/// A digest made of one repeated hexadecimal digit.
#[must_use]
pub fn digest(digit: char) -> String {
    String::from(digit).repeat(64)
}

/// Opens the window that starts at `start`.
pub async fn opened(db: &PgPool, start: DateTime<Utc>) -> WindowRef {
    assert_eq!(open(db, &empty(start, &digest('a'))).await.unwrap(), Opened::Opened);
    WindowRef { dataset: "us8".to_owned(), start, generation: 1 }
}

/// Corrects `window`, which must be in the generation it says; answers the new one.
pub async fn corrected(db: &PgPool, window: &WindowRef) -> WindowRef {
    let content = digest(if window.generation % 2 == 0 { 'a' } else { 'b' });
    let corrected = correct(db, &empty(window.start, &content), window.generation).await.unwrap();
    let generation = window.generation + 1;
    assert_eq!(corrected, Corrected::Corrected { generation });
    WindowRef { generation, ..window.clone() }
}
