//! Rust values as PostgreSQL takes them.

use std::time::Duration;

use sqlx::postgres::types::PgInterval;

/// The longest error text a row keeps, in characters: enough for a chain of causes.
const ERROR_TEXT_MAX: usize = 2_000;

/// `duration` as an interval, rounded down to microseconds.
pub(crate) fn interval(duration: Duration) -> PgInterval {
    let microseconds = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    PgInterval { months: 0, days: 0, microseconds }
}

/// A whole number of milliseconds from the database; what lies in the past is nothing.
pub(crate) fn milliseconds(count: i64) -> Duration {
    Duration::from_millis(u64::try_from(count).unwrap_or(0))
}

/// Error text that a column accepts: bounded, and without NUL, which `text` refuses. A claim must not
/// stay open because the words about its failure can not be stored.
pub(crate) fn error_text(text: &str) -> String {
    text.chars().filter(|&character| character != '\0').take(ERROR_TEXT_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_text_is_bounded_and_free_of_nul() {
        assert_eq!(error_text("a\0b"), "ab");
        assert_eq!(error_text(&"ü".repeat(ERROR_TEXT_MAX + 1)).chars().count(), ERROR_TEXT_MAX);
    }

    #[test]
    fn interval_longer_than_postgresql_can_count_is_the_longest() {
        assert_eq!(interval(Duration::MAX).microseconds, i64::MAX);
        assert_eq!(interval(Duration::from_nanos(1_999)).microseconds, 1);
    }

    #[test]
    fn wait_that_is_over_is_no_wait() {
        assert_eq!(milliseconds(-5), Duration::ZERO);
    }
}
