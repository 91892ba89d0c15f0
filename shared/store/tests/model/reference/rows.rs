//! The reference's own rows, as they are compared.

use super::{Event, Instant, Reference};
use crate::rows::{EventRow, JobRow, LaneRow, Rows};

impl Reference {
    /// Every row that should be there.
    pub fn rows(&self) -> Rows {
        let jobs =
            self.jobs.keys().map(|slot| (format!("job {slot:?}"), format!("{:?}", self.job_row(*slot))));
        let events = self.events.iter().map(|((slot, generation), event)| {
            (format!("event {slot:?} of {generation}"), format!("{:?}", self.event_row(event)))
        });
        let windows = self.windows.iter().map(|(minute, generation)| {
            (format!("window {minute}"), format!("generation {generation}, backfilled {}", *minute != 0))
        });
        jobs.chain(events).chain(windows).chain([("lane".to_owned(), self.lane_row())]).collect()
    }

    fn hours(&self, instant: Instant) -> i64 {
        instant.hour - self.now.hour
    }

    fn job_row(&self, slot: crate::subject::Slot) -> JobRow {
        let job = &self.jobs[&slot];
        JobRow {
            status: job.status,
            attempts: job.attempts,
            generation: job.generation,
            reason: job.reason.clone(),
            due: self.hours(job.due),
            lease: job.lease.map(|end| self.hours(end)),
            holder: job.holder,
            requeues: job.requeues,
            dismissed: job.dismissed,
            effects: self.effects.get(&slot).copied().unwrap_or(0),
        }
    }

    fn event_row(&self, event: &Event) -> EventRow {
        let status = match event {
            Event { published: Some(_), .. } => "PUBLISHED",
            Event { reason: Some(_), .. } => "DEAD",
            _ => "NEW",
        };
        EventRow {
            status,
            ring: event.ring,
            attempts: event.attempts,
            due: self.hours(event.due),
            published: event.published.map(|instant| self.hours(instant)),
            reason: event.reason.clone(),
        }
    }

    fn lane_row(&self) -> String {
        let row = LaneRow {
            lease: self.lane.lease.map(|end| self.hours(end)),
            failures: self.lane.failures,
            retry: self.lane.retry.map(|until| self.hours(until)),
        };
        format!("{row:?}")
    }
}
