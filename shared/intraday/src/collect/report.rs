//! What a run of the collector did, for people and for whoever invoked it.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::decision::Outcome;
use crate::input_fault::{Fault, Severity};

/// The most faults a report shows; their number is always whole. An answer may have 6 MB.
const FAULTS_SHOWN_MAX: usize = 200;

/// What a run did.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// Each dataset asked for, in the order of the configuration.
    pub datasets: Vec<DatasetReport>,
}

/// What a run did for one dataset.
#[derive(Debug, Default, Serialize)]
pub struct DatasetReport {
    /// Its name.
    pub dataset: String,
    /// What became of its windows.
    pub windows: Windows,
    /// Bars written.
    pub bars: usize,
    /// What became of its news.
    pub items: Items,
    /// Jobs made.
    pub jobs: usize,
    /// Events made: one for each job.
    pub events: usize,
    /// What was wrong with the input, the costly first; at most 200 of them.
    pub faults: Vec<Fault>,
    /// How many there were in all.
    pub faults_total: usize,
    /// The first window of the range that there was no time for: ask again from here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<DateTime<Utc>>,
}

/// What became of windows, by their starts.
#[derive(Debug, Default, Serialize)]
pub struct Windows {
    /// Closed for the first time.
    pub opened: Vec<DateTime<Utc>>,
    /// Collected with other content than before.
    pub corrected: Vec<Correction>,
    /// How many were collected with the same content as before.
    pub unchanged: usize,
    /// Neither closed without bars nor corrected, because a source of bars failed; the next runs look
    /// at them again.
    pub postponed: Vec<DateTime<Utc>>,
    /// Asked for as a backfill, there already, and different.
    pub different: Vec<DateTime<Utc>>,
    /// How many were asked for as a backfill and are so recent that the schedule collects them.
    pub too_recent: usize,
    /// Changed by others again and again while this run collected them.
    pub contended: Vec<DateTime<Utc>>,
}

/// A window with new content.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Correction {
    /// Which window.
    pub start: DateTime<Utc>,
    /// The generation it has now.
    pub generation: i32,
}

/// What became of news items.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Items {
    /// Revisions collected for the first time.
    pub new: usize,
    /// Revisions that were there.
    pub known: usize,
    /// Items published after the last window's end.
    pub not_yet_published: usize,
}

impl DatasetReport {
    pub(super) fn of(dataset: &str) -> Self {
        Self { dataset: dataset.to_owned(), ..Self::default() }
    }

    pub(super) fn window(&mut self, start: DateTime<Utc>, outcome: Outcome) {
        match outcome {
            Outcome::Opened => self.windows.opened.push(start),
            Outcome::Corrected { generation } => {
                self.windows.corrected.push(Correction { start, generation });
            }
            Outcome::Unchanged => self.windows.unchanged += 1,
            Outcome::Postponed => self.windows.postponed.push(start),
            Outcome::Different => self.windows.different.push(start),
            Outcome::Passed => {}
            Outcome::Moved => self.windows.contended.push(start),
        }
    }

    pub(super) fn faults(&mut self, mut faults: Vec<Fault>) {
        faults.sort_by_key(|fault| match fault.severity {
            Severity::SourceFailed => 0,
            Severity::LeftOut => 1,
            Severity::Noted => 2,
        });
        self.faults_total = faults.len();
        faults.truncate(FAULTS_SHOWN_MAX);
        self.faults = faults;
    }
}
