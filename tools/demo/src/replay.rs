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

/// Remarks about the input that are shown.
const REMARKS_SHOWN: usize = 8;

/// What the replay came to.
#[derive(Debug, Default)]
pub struct Replayed {
    /// How long each run of the collector took, in the order of the minutes.
    pub took: Vec<Duration>,
    /// What went wrong, one line each; the next run catches up.
    pub failures: Vec<String>,
    /// What the collector last had to say about the input: how many remarks, and the first of them.
    pub remarks: (u64, Vec<String>),
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
        let at = *window + TimeDelta::minutes(1);
        if replayed.collect(stack, collector, &request(&rehearsal.dataset, at)).await? {
            replayed.took.push(began.elapsed());
        }
        progress.reach(minute + 1);
        if let Some(struck) = chaos.pass(minute).await? {
            progress.say(&struck);
        }
    }
    if let Some(at) = rehearsal.afterwards {
        replayed.collect(stack, collector, &request(&rehearsal.dataset, at)).await?;
    }
    Ok(replayed)
}

/// What the schedule asks for when it fires at `at`.
fn request(dataset: &str, at: DateTime<Utc>) -> Value {
    json!({"dataset": dataset, "at": at.format("%FT%TZ").to_string()})
}

impl Replayed {
    /// Runs the collector once; whether it ended well.
    async fn collect(&mut self, stack: &Stack, collector: &str, request: &Value) -> Result<bool, Error> {
        match lambda::invoke(&stack.aws, collector, request).await {
            Ok(answer) => {
                self.remarks = remarks(&answer["datasets"][0]);
                Ok(true)
            }
            Err(err) if self.failures.len() >= FAILURES_MAX => Err(Error::Collector(err)),
            Err(err) => {
                self.failures.push(format!("{request}: {err}"));
                Ok(false)
            }
        }
    }

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
        self.failures.iter().try_for_each(|failure| writeln!(f, "  the collector failed: {failure}"))?;
        let (total, shown) = &self.remarks;
        if *total > 0 {
            writeln!(f, "The collector has {total} remarks about the input, the costly first:")?;
        }
        shown.iter().try_for_each(|remark| writeln!(f, "  {remark}"))
    }
}

/// How many faults a dataset's report has, and the first of them as text.
fn remarks(report: &Value) -> (u64, Vec<String>) {
    let faults = report["faults"].as_array().map_or(&[][..], Vec::as_slice);
    let part = |fault: &Value, key: &str, before: &str| match &fault[key] {
        Value::Null => String::new(),
        Value::String(text) => format!("{before}{text}"),
        other => format!("{before}{other}"),
    };
    let text = |fault: &Value| {
        let place = [("source", ""), ("file", "/"), ("line", ", line "), ("field", ", ")];
        let place = place.map(|(key, before)| part(fault, key, before)).concat();
        format!("{place}: {}", part(fault, "message", ""))
    };
    (report["faults_total"].as_u64().unwrap_or(0), faults.iter().take(REMARKS_SHOWN).map(text).collect())
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
        let at = "2018-04-04T13:31:00Z".parse().unwrap();
        assert_eq!(request("us8", at), json!({"dataset": "us8", "at": "2018-04-04T13:31:00Z"}));
    }

    #[test]
    fn remark_names_its_place() {
        let report = json!({"faults_total": 9, "faults": [
            {"source": "bars", "file": "a.csv", "line": 7, "field": "open", "message": "a price is expected"},
            {"source": "news", "message": "took longer than 20 s"},
        ]});
        let expected = ["bars/a.csv, line 7, open: a price is expected", "news: took longer than 20 s"];
        assert_eq!(remarks(&report), (9, expected.map(str::to_owned).to_vec()));
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
