//! What a seed decides: everything that happens to a crowd, and when.
//!
//! Decided before anything runs, so that the same seed decides the same whatever the machine does. How
//! the processes meet what happens to them is theirs and the scheduler's.

use std::fmt;
use std::time::Duration;

use fastrand::Rng;

use crate::sqs_proxy::Weather;

/// The shortest and the longest time between two things that happen, in milliseconds.
const GAP: std::ops::Range<u64> = 40..400;

/// One thing that happens. A number stands for whoever it is by the rest of a division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A process is killed.
    Kill(usize),
    /// A process is frozen for a while.
    Freeze(usize, Duration),
    /// A server process of PostgreSQL is ended, and with it the session.
    EndSession(usize),
    /// The answer to the next COMMIT is lost.
    LoseCommit,
    /// PostgreSQL can not be reached for a while.
    DatabaseAway(Duration),
    /// PostgreSQL crashes and recovers.
    Crash,
    /// Leases, back-offs and delays come this much nearer at once.
    TimePasses(Duration),
    /// Who sends meets this from now on.
    Weather(Weather),
}

impl Happening {
    /// The number of the process that it happens to, if it is one.
    #[must_use]
    pub fn whom(self) -> Option<usize> {
        match self {
            Self::Kill(who) | Self::Freeze(who, _) => Some(who),
            _ => None,
        }
    }
}

/// Something that happens at an instant, to one of several sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Since the start.
    pub at: Duration,
    /// To whom, by the rest of a division.
    pub site: usize,
    /// What.
    pub what: Happening,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:8.3} s  site {}  {:?}", self.at.as_secs_f64(), self.site, self.what)
    }
}

/// Everything that `seed` lets happen within `duration`, in order.
#[must_use]
pub fn plan(seed: u64, duration: Duration) -> Vec<Entry> {
    let mut rng = Rng::with_seed(seed);
    let mut entries = Vec::new();
    let mut at = Duration::ZERO;
    loop {
        at += Duration::from_millis(rng.u64(GAP));
        let entry = Entry { at, site: rng.usize(0..64), what: happening(&mut rng) };
        if at >= duration {
            return entries;
        }
        entries.push(entry);
    }
}

/// Some are rare: a crash costs everybody a second, and a crowd that only recovers does no work.
fn happening(rng: &mut Rng) -> Happening {
    let who = rng.usize(0..1024);
    match rng.u32(0..100) {
        0..25 => Happening::Kill(who),
        25..45 => Happening::Freeze(who, Duration::from_millis(rng.u64(50..3_000))),
        45..53 => Happening::EndSession(who),
        53..61 => Happening::LoseCommit,
        61..64 => Happening::DatabaseAway(Duration::from_millis(rng.u64(50..1_500))),
        64..65 => Happening::Crash,
        65..80 => Happening::TimePasses(Duration::from_secs(leap(rng))),
        _ => Happening::Weather(weather(rng)),
    }
}

/// Mostly just past a lease or a back-off; now and then so far that everything unfinished is rung for.
fn leap(rng: &mut Rng) -> u64 {
    if rng.u32(0..4) == 0 { rng.u64(60..900) } else { rng.u64(2..30) }
}

/// Calm as often as not, so that something is sent at all.
fn weather(rng: &mut Rng) -> Weather {
    match rng.u32(0..14) {
        0 => Weather::Throttle,
        1 => Weather::ServerError,
        2 => Weather::PartialFailure,
        3 => Weather::Forget,
        4 => Weather::LoseAnswer,
        5 => Weather::Twice,
        6 => Weather::Delay(Duration::from_millis(rng.u64(10..2_000))),
        _ => Weather::Calm,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_decides_the_same_each_time_and_another_seed_something_else() {
        let minute = Duration::from_mins(1);

        assert_eq!(plan(7, minute), plan(7, minute));
        assert_ne!(plan(7, minute), plan(8, minute));
    }

    #[test]
    fn longer_run_of_a_seed_begins_as_its_shorter_one() {
        let (short, long) = (plan(7, Duration::from_secs(20)), plan(7, Duration::from_mins(1)));

        assert_eq!(long[..short.len()], short[..]);
        assert!(long.len() > short.len());
    }

    #[test]
    fn everything_happens_in_ten_minutes() {
        let entries = plan(1, Duration::from_mins(10));
        let kinds: std::collections::HashSet<_> =
            entries.iter().map(|entry| std::mem::discriminant(&entry.what)).collect();

        assert_eq!(kinds.len(), 8);
    }
}
