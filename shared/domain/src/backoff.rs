//! How long to wait before the next try: doubling, capped, spread by jitter, never given up by count.

use std::time::Duration;

/// A doubling delay with a ceiling.
///
/// ```
/// use std::time::Duration;
/// use domain::Backoff;
///
/// let patient = Backoff { base: Duration::from_secs(30), cap: Duration::from_mins(10) };
/// assert_eq!(patient.delay(3, 1.0), Duration::from_secs(120));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The delay after the first failure.
    pub base: Duration,
    /// The longest delay.
    pub cap: Duration,
}

impl Default for Backoff {
    /// [`Backoff::DEFAULT`].
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Backoff {
    /// 2 s, doubling, at most 300 s.
    pub const DEFAULT: Self = Self { base: Duration::from_secs(2), cap: Duration::from_mins(5) };

    /// The delay after `failures` failures in a row (at least 1), spread by `jitter`.
    ///
    /// `jitter` lies in `0.0..=1.0`: 0 gives half of the full delay, 1 all of it, so that those who
    /// failed together do not come back together. The result is never above [`Backoff::cap`].
    #[must_use]
    pub fn delay(&self, failures: u32, jitter: f64) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let full = self.base.saturating_mul(1 << doublings).min(self.cap);
        full.mul_f64(0.5 + 0.5 * jitter.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_doubles_from_the_base_up_to_the_cap() {
        let seconds = |failures| Backoff::default().delay(failures, 1.0).as_secs();
        assert_eq!([1, 2, 3, 4, 5, 6, 7, 8, 9].map(seconds), [2, 4, 8, 16, 32, 64, 128, 256, 300]);
        assert_eq!(seconds(u32::MAX), 300);
    }

    #[test]
    fn jitter_spreads_between_half_and_all_of_the_delay() {
        let backoff = Backoff::default();
        assert_eq!(backoff.delay(3, 0.0), Duration::from_secs(4));
        assert_eq!(backoff.delay(3, 0.5), Duration::from_secs(6));
        assert_eq!(backoff.delay(3, 7.0), Duration::from_secs(8));
    }

    #[test]
    fn no_failure_yet_counts_as_the_first() {
        assert_eq!(Backoff::default().delay(0, 1.0), Backoff::default().delay(1, 1.0));
    }
}
