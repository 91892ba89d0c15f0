//! How long this invocation may still run.
//!
//! It only decides when to stop taking work, and how long a lease must be at least. Whether a lease has
//! ended is for the database's clock.

use std::time::{Duration, Instant, SystemTime};

use lambda_runtime::Context;

/// The end of an invocation.
#[derive(Clone, Copy, Debug)]
pub struct TimeLeft {
    end: Instant,
}

impl TimeLeft {
    /// The time until the invocation's deadline, at most `timeout`, the function's own.
    ///
    /// A deadline that is missing or has passed (emulators send such) counts as one after `timeout`; so
    /// does one further away than that, since a lease must not grow beyond what the settings allow.
    #[must_use]
    pub fn of(context: &Context, timeout: Duration) -> Self {
        let left = context.deadline().duration_since(SystemTime::now()).unwrap_or_default();
        Self::lasting(if left.is_zero() { timeout } else { left.min(timeout) })
    }

    /// An invocation that ends after `duration`.
    #[must_use]
    pub fn lasting(duration: Duration) -> Self {
        Self { end: Instant::now() + duration }
    }

    /// What is left; zero after the end.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// Whether at least `needed` is left.
    #[must_use]
    pub fn allows(&self, needed: Duration) -> bool {
        self.remaining() >= needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_mins(1);

    fn context(deadline: SystemTime) -> Context {
        let since_epoch = deadline.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let mut context = Context::default();
        context.deadline = u64::try_from(since_epoch.as_millis()).unwrap();
        context
    }

    fn about(left: TimeLeft, expected: Duration) -> bool {
        left.remaining() <= expected && left.remaining() > expected.saturating_sub(Duration::from_secs(5))
    }

    #[test]
    fn deadline_ahead_is_when_it_ends() {
        let context = context(SystemTime::now() + Duration::from_secs(30));
        assert!(about(TimeLeft::of(&context, TIMEOUT), Duration::from_secs(30)));
    }

    #[test]
    fn deadline_that_is_missing_past_or_too_far_counts_as_the_timeout() {
        let now = SystemTime::now();
        for deadline in [SystemTime::UNIX_EPOCH, now - TIMEOUT, now + Duration::from_hours(24)] {
            assert!(about(TimeLeft::of(&context(deadline), TIMEOUT), TIMEOUT), "{deadline:?}");
        }
    }

    #[test]
    fn nothing_is_left_after_the_end() {
        let over = TimeLeft::lasting(Duration::ZERO);
        assert_eq!(over.remaining(), Duration::ZERO);
        assert!(!over.allows(Duration::from_millis(1)));
    }
}
