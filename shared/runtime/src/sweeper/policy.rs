//! How patient and how cautious the sweeper is.

use std::time::Duration;

use chrono::{DateTime, Utc};
use store::sweep::Lap;

use super::keys;

/// So many orphans in a page are never refused by their share: a page may be short, and a writer that
/// failed at each commit for an hour leaves nothing else.
pub const ORPHANS_ALWAYS_ALLOWED: u32 = 100;

/// Settings of the sweeper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// Whether anything is deleted. Otherwise the run says what it would do.
    pub delete: bool,
    /// How old an object without a row must be.
    pub grace: Duration,
    /// The longest an upload and its transaction take together.
    pub longest_write: Duration,
    /// How far back the database may be restored; zero when it is not considered.
    pub backup_window: Duration,
    /// How long after its first look each hour gets a second one.
    pub late: Duration,
    /// Deletions of one run, at most.
    pub max_deletes: usize,
    /// Share of a page's objects that may be orphans before the page is refused, in 0..=1.
    pub max_orphan_ratio: f64,
    /// Listings of one run, at most.
    pub max_pages: u32,
}

impl Default for Policy {
    /// A dry run, with a day of grace.
    fn default() -> Self {
        Self {
            delete: false,
            grace: Duration::from_hours(24),
            longest_write: Duration::from_mins(1),
            backup_window: Duration::ZERO,
            late: Duration::from_hours(7 * 24),
            max_deletes: 1_000,
            max_orphan_ratio: 0.1,
            max_pages: 200,
        }
    }
}

impl Policy {
    /// Why the grace period is too short, if it is.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        if self.grace <= self.longest_write {
            return Some("SWEEP_GRACE_SECONDS must be more than SWEEP_LONGEST_WRITE_SECONDS");
        }
        let restorable = !self.backup_window.is_zero() && self.grace <= self.backup_window;
        restorable.then_some("SWEEP_GRACE_SECONDS must be more than SWEEP_BACKUP_WINDOW_SECONDS")
    }

    /// Whether a page of `listed` objects may lose `orphans` of them.
    #[must_use]
    pub fn allows(&self, orphans: u32, listed: u32) -> bool {
        orphans <= ORPHANS_ALWAYS_ALLOWED || f64::from(orphans) <= self.max_orphan_ratio * f64::from(listed)
    }

    /// Where `lap` ends when it starts at `now`: no object of a later hour can have outlived its delay.
    #[must_use]
    pub fn until_key(&self, lap: Lap, now: DateTime<Utc>) -> String {
        keys::end_of_hour(before(now, self.delay(lap)))
    }

    /// Where the next `lap` begins after one that started at `started_at`: at the first hour whose uploads
    /// may have been too young in this one. A write takes a while, so one may be younger than its key.
    #[must_use]
    pub fn mark(&self, lap: Lap, started_at: DateTime<Utc>) -> String {
        keys::hour(before(started_at, self.delay(lap) + self.longest_write))
    }

    fn delay(&self, lap: Lap) -> Duration {
        match lap {
            Lap::Fresh | Lap::Audit => self.grace,
            Lap::Late => self.grace + self.late,
        }
    }
}

/// `by` before `now`, or the beginning of time.
pub(super) fn before(now: DateTime<Utc>, by: Duration) -> DateTime<Utc> {
    let by = chrono::Duration::from_std(by).unwrap_or(chrono::Duration::MAX);
    now.checked_sub_signed(by).unwrap_or(DateTime::UNIX_EPOCH).max(DateTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn policy() -> Policy {
        Policy { grace: HOUR, ..Policy::default() }
    }

    #[test]
    fn grace_is_longer_than_the_longest_write_and_the_backup_window() {
        assert_eq!(policy().fault(), None);
        assert!(Policy { longest_write: HOUR, ..policy() }.fault().is_some());
        assert!(Policy { backup_window: HOUR, ..policy() }.fault().is_some());
        assert_eq!(Policy { backup_window: Duration::from_mins(59), ..policy() }.fault(), None);
    }

    #[test]
    fn few_orphans_are_allowed_whatever_their_share_and_many_by_their_share() {
        assert!(policy().allows(100, 100));
        assert!(!policy().allows(101, 1_000));
        assert!(policy().allows(101, 1_010));
    }

    #[test]
    fn lap_ends_with_the_hour_that_its_delay_reaches() {
        let now = "2026-12-01T14:30:00Z".parse().unwrap();
        assert_eq!(policy().until_key(Lap::Fresh, now), "artifacts/2026/12/01/14");
        assert_eq!(policy().until_key(Lap::Late, now), "artifacts/2026/11/24/14");
    }

    #[test]
    fn mark_passes_an_hour_only_when_its_latest_upload_was_old_enough() {
        let mark = |now: &str| policy().mark(Lap::Fresh, now.parse().unwrap());
        assert_eq!(mark("2026-12-01T15:00:59Z"), "artifacts/2026/12/01/13");
        assert_eq!(mark("2026-12-01T15:01:00Z"), "artifacts/2026/12/01/14");
    }

    #[test]
    fn delay_longer_than_history_reaches_its_beginning() {
        let endless = Policy { grace: Duration::MAX, late: Duration::ZERO, ..policy() };
        assert_eq!(endless.until_key(Lap::Fresh, DateTime::UNIX_EPOCH), "artifacts/1970/01/01/01");
    }
}
