//! What was read, as metrics: every name that is configured has its number, zero included.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::{DeadReason, JobStatus};
use store::gauges::{Dead, LaneHealth, NewEvents, Unfinished};
use store::sweep;

use crate::metrics::Line;

/// The reasons that the protocol itself gives; a handler's own show up when there are some.
const REASONS: [DeadReason; 6] = [
    DeadReason::Stale,
    DeadReason::Expired,
    DeadReason::AttemptsExhausted,
    DeadReason::Unsendable,
    DeadReason::ArtifactMissing,
    DeadReason::Dlq,
];

/// What one run read.
#[derive(Clone, Debug)]
pub struct Gauges {
    /// Every configured destination. Each is the type of its jobs as well.
    pub destinations: Vec<String>,
    /// Unfinished jobs, counted.
    pub unfinished: Vec<Unfinished>,
    /// DEAD jobs, counted.
    pub dead: Vec<Dead>,
    /// All jobs, estimated.
    pub jobs: u64,
    /// NEW events, counted.
    pub new_events: Vec<NewEvents>,
    /// DEAD events by destination, counted.
    pub dead_events: Vec<(String, u64)>,
    /// The lanes.
    pub lanes: Vec<LaneHealth>,
    /// Messages nobody can decide.
    pub quarantined: u64,
    /// What the newest sweep found.
    pub sweep: sweep::Gauges,
    /// Messages in dead-letter queues by destination, as far as known.
    pub depths: BTreeMap<String, u64>,
}

impl Gauges {
    /// All of it as lines.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        let states = JobStatus::ALL.into_iter().map(|state| self.state(state));
        let types = self.types().into_iter().map(|job_type| self.job_type(job_type));
        let destinations = self.all_destinations().into_iter().flat_map(|destination| {
            std::iter::once(self.destination(destination)).chain(self.reasons(destination))
        });
        states.chain(types).chain(destinations).chain([self.stack()]).collect()
    }

    fn stack(&self) -> Line {
        let backing_off = self.lanes.iter().filter(|lane| lane.failures > 0).count();
        Line::stack()
            .count("QuarantinedMessages", self.quarantined)
            .count("LanesBackingOff", u64::try_from(backing_off).unwrap_or(u64::MAX))
            .count("OrphansSeen", whole(self.sweep.orphans_seen))
            .count("OrphansReclaimed", whole(self.sweep.orphans_reclaimed))
            .count("ArtifactsMissing", whole(self.sweep.artifacts_missing))
            .count("SweepRefusals", whole(self.sweep.sweep_refusals))
    }

    /// What SUCCEEDED is an estimate: all jobs less those that are counted.
    fn state(&self, state: JobStatus) -> Line {
        let dead = self.dead.iter().map(|dead| dead.count).sum::<u64>();
        let count = match state {
            JobStatus::Dead => dead,
            JobStatus::Succeeded => self.jobs.saturating_sub(dead + self.unfinished_where(|_| true)),
            open => self.unfinished_where(|job| job.status == open.as_str()),
        };
        Line::of(&[("State", state.as_str())]).count("Jobs", count)
    }

    fn unfinished_where(&self, holds: impl Fn(&Unfinished) -> bool) -> u64 {
        self.unfinished.iter().filter(|job| holds(job)).map(|job| job.count).sum()
    }

    fn job_type(&self, job_type: &str) -> Line {
        let ages = self.unfinished.iter().filter(|job| job.job_type == job_type).map(|job| job.oldest);
        Line::of(&[("JobType", job_type)])
            .seconds("OldestUnfinishedJobAgeSeconds", ages.max().unwrap_or(Duration::ZERO))
    }

    fn destination(&self, destination: &str) -> Line {
        let stale = |dead: &Dead| dead.reason == DeadReason::Stale.as_str();
        let new = self.new_events.iter().find(|events| events.destination == destination);
        let dead_events = self.dead_events.iter().find(|(name, _)| name == destination);
        let lane = self.lanes.iter().find(|lane| lane.destination == destination);
        let gauges = Line::of(&[("Destination", destination)])
            .count("NewEvents", new.map_or(0, |events| events.count))
            .seconds("OldestNewEventAgeSeconds", new.map_or(Duration::ZERO, |events| events.oldest))
            .count("DeadEvents", dead_events.map_or(0, |(_, count)| *count))
            .count("DeadJobs", self.dead_where(destination, |dead| !dead.dismissed && !stale(dead)))
            .count("StaleJobs", self.dead_where(destination, |dead| !dead.dismissed && stale(dead)))
            .count("DismissedJobs", self.dead_where(destination, |dead| dead.dismissed))
            .count("LaneFailures", lane.map_or(0, |lane| lane.failures));
        // An unknown depth is no zero: its alarm must see that nobody knows.
        self.depths.get(destination).map_or(gauges.clone(), |depth| gauges.count("DeadLetterDepth", *depth))
    }

    fn reasons<'a>(&'a self, destination: &'a str) -> impl Iterator<Item = Line> + 'a {
        let found = self.dead.iter().filter(move |dead| dead.destination == destination);
        let reasons: BTreeSet<_> =
            REASONS.iter().map(DeadReason::as_str).chain(found.map(|dead| dead.reason.as_str())).collect();
        reasons.into_iter().map(move |reason| {
            let count = self.dead_where(destination, |dead| !dead.dismissed && dead.reason == reason);
            Line::of(&[("Destination", destination), ("Reason", reason)]).count("DeadJobsByReason", count)
        })
    }

    fn dead_where(&self, destination: &str, holds: impl Fn(&Dead) -> bool) -> u64 {
        let dead = self.dead.iter().filter(|dead| dead.destination == destination && holds(dead));
        dead.map(|dead| dead.count).sum()
    }

    fn types(&self) -> BTreeSet<&str> {
        let found = self.unfinished.iter().map(|job| job.job_type.as_str());
        self.destinations.iter().map(String::as_str).chain(found).collect()
    }

    /// What is configured, and what rows say all the same.
    fn all_destinations(&self) -> BTreeSet<&str> {
        let unfinished = self.unfinished.iter().map(|job| job.destination.as_str());
        let dead = self.dead.iter().map(|dead| dead.destination.as_str());
        let new = self.new_events.iter().map(|events| events.destination.as_str());
        let dead_events = self.dead_events.iter().map(|(destination, _)| destination.as_str());
        let configured = self.destinations.iter().map(String::as_str);
        configured.chain(unfinished).chain(dead).chain(new).chain(dead_events).collect()
    }
}

fn whole(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}
