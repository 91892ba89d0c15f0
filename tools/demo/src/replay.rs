//! Plays the session: for each minute, what the collector's schedule would have asked for.

use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::chaos::{self, Chaos};
use crate::lambda;
use crate::progress::Progress;
use crate::rehearsal::Rehearsal;
use crate::report::seconds;
use crate::stack::{self, Stack};

/// A window has to be closed before the next one ends.
pub const BUDGET: Duration = Duration::from_mins(1);

/// Collector runs that may fail before the replay is given up.
const FAILURES_MAX: usize = 10;

/// What the replay came to.
#[derive(Debug, Default)]
pub struct Replayed {
    /// How long each run of the collector took, in the order of the minutes.
    pub took: Vec<Duration>,
    /// What went wrong, one line each; the next run catches up.
    pub failures: Vec<String>,
    /// What the collector answered.
    pub answers: Vec<Value>,
}

/// Why the replay was given up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The made-up publishers could not write their feeds.
    #[error("the feeds can not be written")]
    Publish(#[from] std::io::Error),
    /// The collector is not deployed.
    #[error("the stack is not complete")]
    Stack(#[from] stack::Error),
    /// The collector fails again and again.
    #[error("the collector failed {FAILURES_MAX} times")]
    Collector(#[source] lambda::Error),
    /// Something could not be broken.
    #[error("nothing could be broken on purpose")]
    Chaos(#[from] chaos::Error),
}

/// Closes every window of `rehearsal`, one run of the collector each.
///
/// # Errors
///
/// [`Error`]; windows closed so far stay closed.
pub async fn run(stack: &Stack, rehearsal: &Rehearsal, chaos: &mut Chaos<'_>) -> Result<Replayed, Error> {
    let collector = stack.function("collector")?;
    let mut replayed = Replayed::default();
    let mut progress = Progress::new("windows", rehearsal.windows.len());
    for (minute, window) in rehearsal.windows.iter().enumerate() {
        rehearsal.publish(minute)?;
        let began = Instant::now();
        match lambda::invoke(&stack.aws, collector, &request(&rehearsal.dataset, *window)).await {
            Ok(answer) => {
                replayed.took.push(began.elapsed());
                replayed.answers.push(answer);
            }
            Err(err) if replayed.failures.len() >= FAILURES_MAX => return Err(Error::Collector(err)),
            Err(err) => replayed.failures.push(format!("{window}: {err}")),
        }
        progress.reach(minute + 1);
        if let Some(struck) = chaos.pass(minute).await? {
            progress.say(&struck);
        }
    }
    Ok(replayed)
}

/// What the schedule asks for right after `window` has ended.
fn request(dataset: &str, window: DateTime<Utc>) -> Value {
    let at = window + TimeDelta::minutes(1);
    json!({"dataset": dataset, "at": at.format("%FT%TZ").to_string()})
}

impl Replayed {
    /// Whether every window was closed in time.
    #[must_use]
    pub fn in_time(&self) -> bool {
        self.took.iter().all(|took| *took < BUDGET)
    }
}

impl std::fmt::Display for Replayed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut took = self.took.clone();
        took.sort_unstable();
        let [p50, p99, max] = [50, 99, 100].map(|percent| percentile(&took, percent));
        writeln!(
            f,
            "Closing a window took {} (p50), {} (p99), {} (max) of the {} s there are",
            seconds(p50),
            seconds(p99),
            seconds(max),
            BUDGET.as_secs()
        )?;
        self.failures.iter().try_for_each(|failure| writeln!(f, "  the collector failed: {failure}"))
    }
}

/// The smallest of `sorted` that `percent` of them do not exceed.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedule_asks_when_the_window_has_ended() {
        let window = "2018-04-04T13:30:00Z".parse().unwrap();
        assert_eq!(request("us8", window), json!({"dataset": "us8", "at": "2018-04-04T13:31:00Z"}));
    }

    #[test]
    fn percentile_is_the_nearest_rank() {
        let sorted: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        assert_eq!(percentile(&sorted, 50), Duration::from_millis(100));
        assert_eq!(percentile(&sorted, 99), Duration::from_millis(198));
        assert_eq!(percentile(&sorted, 100), Duration::from_millis(200));
        assert_eq!(percentile(&[], 99), Duration::ZERO);
    }
}
