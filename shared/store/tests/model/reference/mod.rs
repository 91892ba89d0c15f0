//! The reference: what the protocol says, in memory, without SQL.
//!
//! It is small because nothing happens at the same time here and nothing is ever lost. Moves of a job go
//! through the table in `domain`, so a move that table does not list is found as well.

mod consume;
mod relay;
mod repair;
mod rows;

use std::collections::BTreeMap;

use domain::{JobStatus, Transition};

use crate::operations::Operation;
use crate::outcome::Outcome;
use crate::subject::Slot;

/// An instant: whole hours, and the step within the hour, as no two steps are at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant {
    pub hour: i64,
    step: u32,
}

impl Instant {
    /// The instant so many hours later.
    pub fn plus(self, hours: i64) -> Self {
        Self { hour: self.hour + hours, ..self }
    }
}

/// A row of `job`.
#[derive(Clone, Debug)]
pub struct Job {
    pub status: JobStatus,
    pub attempts: i32,
    pub generation: i32,
    pub reason: Option<String>,
    pub due: Instant,
    pub lease: Option<Instant>,
    pub holder: Option<usize>,
    pub enqueued: Instant,
    pub requeued: Option<Instant>,
    pub requeues: i32,
    pub dismissed: bool,
}

impl Job {
    fn is_held(&self, now: Instant) -> bool {
        self.status == JobStatus::Claimed && self.lease.is_some_and(|end| end > now)
    }
}

/// A row of `outbox_event`; NEW when it is neither published nor given up.
#[derive(Clone, Debug)]
pub struct Event {
    pub ring: i32,
    pub attempts: i32,
    pub due: Instant,
    pub published: Option<Instant>,
    pub reason: Option<String>,
}

impl Event {
    fn new(due: Instant) -> Self {
        Self { ring: 0, attempts: 0, due, published: None, reason: None }
    }

    fn is_new(&self) -> bool {
        self.published.is_none() && self.reason.is_none()
    }

    /// NEW again.
    fn rung(&self, now: Instant) -> Self {
        Self { ring: self.ring + 1, ..Self::new(now) }
    }
}

/// The row of `lane`.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    pub holder: Option<usize>,
    pub lease: Option<Instant>,
    pub failures: u32,
    pub retry: Option<Instant>,
}

/// What one relay believes: the lane it took, what it read and what it sent.
#[derive(Clone, Debug, Default)]
pub struct Relay {
    pub lease: Option<usize>,
    pub read: Vec<Key>,
    pub sent: Vec<Key>,
}

/// One ring of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub slot: Slot,
    pub generation: i32,
    pub ring: i32,
}

/// A claim as its holder remembers it; its place in the list is its name.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub slot: Slot,
    pub attempt: i32,
    pub generation: i32,
}

/// A message, wherever it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    pub slot: Slot,
    pub generation: i32,
}

/// The whole world.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    now: Instant,
    jobs: BTreeMap<Slot, Job>,
    events: BTreeMap<(Slot, i32), Event>,
    lane: Lane,
    lanes_taken: usize,
    pub relays: [Relay; 2],
    pub claims: Vec<Held>,
    pub queue: Vec<Message>,
    /// Minute and generation.
    windows: BTreeMap<i64, i32>,
    effects: BTreeMap<Slot, i64>,
}

impl Reference {
    /// Carries `operation` out and says what its caller would hear.
    pub fn run(&mut self, operation: &Operation) -> Outcome {
        self.now.step += 1;
        match operation {
            Operation::Enqueue(slot) => self.enqueue(*slot),
            Operation::Relay(relay, step) => self.step(*relay, *step),
            Operation::ClaimBatch(messages) => self.claim(messages, false),
            Operation::ClaimSuspect(message) => self.claim(&[*message], true),
            Operation::Complete(claim) => self.complete(*claim),
            Operation::Retry(claim) => self.retry(*claim),
            Operation::Release(claim) => self.release(*claim),
            Operation::Bury(claim) => self.bury(*claim, "UNREADABLE"),
            Operation::DeadLetter(messages, policy) => self.dead_letter(messages, *policy),
            Operation::Duplicate(message) => self.duplicate(*message),
            Operation::Drop(message) => self.drop_message(*message),
            Operation::Forge(slot, ahead) => self.forge(*slot, *ahead),
            Operation::Redrive { slot, dry_run } => self.redrive(&[*slot], *dry_run),
            Operation::RedriveAll => self.redrive_all(),
            Operation::Dismiss(slot) => self.dismiss(*slot),
            Operation::Collect => self.collect(),
            Operation::Correct { late } => self.correct(*late),
            Operation::Backfill(minute) => self.backfill(*minute),
            Operation::Reconcile => self.reconcile(),
            Operation::BuryStrays => self.bury_strays(),
            Operation::Pass(hours) => {
                self.now.hour += hours;
                Outcome::Nothing
            }
        }
    }

    /// The generation of the real-time window, 0 before it was collected.
    pub fn window_generation(&self) -> i32 {
        self.windows.get(&0).copied().unwrap_or(0)
    }

    /// The job's generation, 0 before it was enqueued.
    pub fn generation(&self, slot: Slot) -> i32 {
        self.jobs.get(&slot).map_or(0, |job| job.generation)
    }

    /// The number of a message that `number` means now.
    pub fn message(&self, number: usize) -> Option<usize> {
        number.checked_rem(self.queue.len())
    }

    /// Whether every job came to its end.
    pub fn unfinished(&self) -> Vec<Slot> {
        self.jobs.iter().filter(|(_, job)| !job.status.is_terminal()).map(|(slot, _)| *slot).collect()
    }

    fn is_stale(&self, slot: Slot) -> bool {
        slot.window_generation().is_some_and(|generation| generation < self.window_generation())
    }

    /// Moves a job as the table in `domain` says. Whoever held it does not hold it any more.
    fn make(&mut self, slot: Slot, transition: Transition) -> &mut Job {
        let job = self.jobs.get_mut(&slot).unwrap();
        job.status = job.status.after(transition).unwrap();
        (job.holder, job.lease) = (None, None);
        job
    }

    fn kill(&mut self, slot: Slot, reason: &str) {
        self.make(slot, Transition::Bury).reason = Some(reason.to_owned());
    }

    /// What must hold after each step, whatever happened.
    pub fn check(&self) -> Result<(), String> {
        for (slot, job) in &self.jobs {
            let event = self.events.get(&(*slot, job.generation));
            if !job.status.is_terminal() && event.is_none_or(|event| event.reason.is_some()) {
                return Err(format!("nothing will ever wake {slot:?}"));
            }
            let effects = self.effects.get(slot).copied().unwrap_or(0);
            if effects != i64::from(job.status == JobStatus::Succeeded) {
                return Err(format!("{slot:?} is {} with {effects} effects", job.status));
            }
        }
        Ok(())
    }
}
