//! What a relay did: one account per lane, for its answer and its log line.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::metrics::{Distribution, Line};

/// What one invocation did.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// By destination.
    pub destinations: BTreeMap<String, LaneReport>,
    /// Events made DEAD because no relay drains their destination.
    pub unknown_destination: u64,
}

/// How the time with a lane ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Everything due was sent.
    #[default]
    Drained,
    /// The time was up first.
    OutOfTime,
    /// The lane is in trouble; `last_error` says which.
    BackingOff,
    /// Another relay has it.
    Held,
    /// The database did not answer; `last_error` says how.
    Failed,
}

/// What one invocation did with one lane.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LaneReport {
    /// How it ended.
    pub ending: Ending,
    /// Events sent and marked.
    pub published: u64,
    /// Events sent that somebody else had moved meanwhile: messages too many, absorbed by the consumer.
    pub repeated: u64,
    /// Entries to be tried again later, on the event's own account.
    pub transient: u64,
    /// Events that are DEAD now.
    pub dead: u64,
    /// Jobs that went with them.
    pub dead_jobs: u64,
    /// Events that can not be sent while their job is being worked on.
    pub deferred: u64,
    /// Calls that sent messages, answered or not.
    pub batches: u64,
    /// Calls that were cut in two and made again.
    pub splits: u64,
    /// Reads of the outbox.
    pub looks: u64,
    /// Reads that found nothing.
    pub idle_looks: u64,
    /// Statements that moved events.
    pub writes: u64,
    /// Times the lane went into back-off.
    pub back_offs: u64,
    /// From an event's creation to its queue's answer, each event's first ring.
    #[serde(skip)]
    pub waits: Distribution,
    /// The lane's last trouble.
    pub last_error: Option<String>,
}

impl LaneReport {
    /// Troubles of the lane and the database's in this run.
    fn errors(&self) -> u64 {
        self.back_offs + u64::from(self.ending == Ending::Failed)
    }
}

/// Writes what a run did as metrics: what was published, and how often something was in its way.
pub fn count(run: &Result<Report, store::Error>) {
    let Ok(report) = run else {
        return Line::stack().count("RelayErrors", 1).emit();
    };
    for (destination, lane) in &report.destinations {
        Line::of(&[("Destination", destination)])
            .count("Published", lane.published)
            .distribution("CreatedToPublishedMilliseconds", &lane.waits)
            .emit();
    }
    let errors = report.destinations.values().map(LaneReport::errors).sum();
    Line::stack().count("RelayErrors", errors).emit();
}
