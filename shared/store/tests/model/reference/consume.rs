//! Enqueuing, claiming, and the ways out of CLAIMED.

use domain::{Answer, Disposition, JobStatus, Transition};
use store::enqueue::Enqueued;
use store::window::{Corrected, Opened};

use super::{Event, Held, Job, Message, Reference};
use crate::outcome::{Ended, Outcome};
use crate::real::{CLAIM_LEASE, RETRY_DELAY};
use crate::subject::{LAST_GENERATION, Slot};

impl Reference {
    pub(super) fn enqueue(&mut self, slot: Slot) -> Outcome {
        if self.jobs.contains_key(&slot) {
            return Outcome::Enqueued(Enqueued::Known);
        }
        let job = Job {
            status: JobStatus::Pending,
            attempts: 0,
            generation: 0,
            reason: None,
            due: self.now,
            lease: None,
            holder: None,
            enqueued: self.now,
            requeued: None,
            requeues: 0,
            dismissed: false,
        };
        self.jobs.insert(slot, job);
        self.events.insert((slot, 0), Event::new(self.now));
        Outcome::Enqueued(Enqueued::Created)
    }

    pub(super) fn collect(&mut self) -> Outcome {
        if self.windows.contains_key(&0) {
            return Outcome::Opened(Opened::Exists);
        }
        self.windows.insert(0, 1);
        self.enqueue(Slot::Window(1));
        Outcome::Opened(Opened::Opened)
    }

    pub(super) fn correct(&mut self, late: bool) -> Outcome {
        let generation = self.window_generation();
        if generation == LAST_GENERATION {
            return Outcome::Nothing;
        }
        if generation == 0 || late {
            return Outcome::Corrected(Corrected::Moved);
        }
        self.windows.insert(0, generation + 1);
        self.enqueue(Slot::Window(generation + 1));
        Outcome::Corrected(Corrected::Corrected { generation: generation + 1 })
    }

    pub(super) fn backfill(&mut self, minute: i64) -> Outcome {
        let is_new = self.windows.insert(minute, 1).is_none();
        Outcome::Opened(if is_new { Opened::Opened } else { Opened::Exists })
    }

    /// All answers are given before any job moves: it is one statement.
    pub(super) fn claim(&mut self, numbers: &[usize], tried: bool) -> Outcome {
        let asked = self.distinct_messages(numbers);
        let answers: Vec<_> = (0..asked.len()).map(|position| self.answer(&asked, position, tried)).collect();
        for (message, answer) in asked.iter().zip(&answers) {
            self.obey(*message, *answer);
        }
        for (message, answer) in asked.iter().zip(&answers) {
            if answer.disposition() == Disposition::Acknowledge {
                self.acknowledge(*message);
            }
        }
        Outcome::Answers(answers)
    }

    /// The messages `numbers` mean, each delivery once.
    pub fn distinct_messages(&self, numbers: &[usize]) -> Vec<Message> {
        let mut places: Vec<_> = numbers.iter().filter_map(|number| self.message(*number)).collect();
        places.sort_unstable();
        places.dedup();
        places.into_iter().map(|place| self.queue[place]).collect()
    }

    pub(super) fn acknowledge(&mut self, message: Message) {
        if let Some(place) = self.queue.iter().position(|other| *other == message) {
            self.queue.remove(place);
        }
    }

    fn answer(&self, asked: &[Message], position: usize, tried: bool) -> Answer {
        let message = asked[position];
        let Some(job) = self.jobs.get(&message.slot).filter(|_| message.slot != Slot::Stray) else {
            return Answer::Undecidable;
        };
        let expires = message.slot.max_age().map(|hours| job.enqueued.plus(hours));
        match job {
            _ if message.generation > job.generation => Answer::Undecidable,
            _ if message.generation < job.generation => Answer::Superseded,
            _ if job.status.is_terminal() => Answer::Settled,
            _ if job.is_held(self.now) => Answer::Held,
            _ if job.status == JobStatus::Retry && job.due > self.now => Answer::Early,
            _ if self.is_stale(message.slot) => Answer::Stale,
            _ if expires.is_some_and(|end| end <= self.now) => Answer::Expired,
            _ if job.attempts >= message.slot.max_attempts() => Answer::Exhausted,
            _ if job.attempts > 0 && !tried => Answer::Suspect,
            _ if asked[..position].contains(&message) => Answer::Held,
            _ => Answer::Won,
        }
    }

    fn obey(&mut self, message: Message, answer: Answer) {
        let is_open = self.jobs.get(&message.slot).is_some_and(|job| !job.status.is_terminal());
        match answer {
            Answer::Stale if is_open => self.kill(message.slot, "STALE"),
            Answer::Expired if is_open => self.kill(message.slot, "EXPIRED"),
            Answer::Exhausted if is_open => self.kill(message.slot, "ATTEMPTS_EXHAUSTED"),
            Answer::Won => self.hold(message.slot),
            _ => {}
        }
    }

    fn hold(&mut self, slot: Slot) {
        let (name, end) = (self.claims.len(), self.now.plus(CLAIM_LEASE));
        let job = self.make(slot, Transition::Claim);
        job.attempts += 1;
        (job.holder, job.lease) = (Some(name), Some(end));
        let held = Held { slot, attempt: job.attempts, generation: job.generation };
        self.claims.push(held);
    }

    /// The name of the claim that `number` means: 0 is the newest.
    pub fn claim_of(&self, number: usize) -> Option<usize> {
        let claims = self.claims.len();
        number.checked_rem(claims).map(|place| claims - 1 - place)
    }

    /// The job of the claim that `number` means, if that claim still holds it.
    fn holding(&self, number: usize) -> Result<Slot, Outcome> {
        let name = self.claim_of(number).ok_or(Outcome::Nothing)?;
        let held = self.claims[name];
        let job = &self.jobs[&held.slot];
        let fence = (job.status, job.holder, job.attempts, job.generation);
        let holds = fence == (JobStatus::Claimed, Some(name), held.attempt, held.generation);
        if holds { Ok(held.slot) } else { Err(Outcome::Ended(Ended::Lost)) }
    }

    pub(super) fn complete(&mut self, claim: usize) -> Outcome {
        match self.holding(claim) {
            Ok(slot) if self.is_stale(slot) => self.bury(claim, "STALE"),
            Ok(slot) => {
                self.make(slot, Transition::Complete);
                *self.effects.entry(slot).or_default() += 1;
                Outcome::Ended(Ended::Done)
            }
            Err(lost) => lost,
        }
    }

    pub(super) fn retry(&mut self, claim: usize) -> Outcome {
        let slot = match self.holding(claim) {
            Ok(slot) => slot,
            Err(lost) => return lost,
        };
        let due = self.now.plus(RETRY_DELAY);
        let is_last = self.jobs[&slot].attempts >= slot.max_attempts();
        if is_last {
            self.kill(slot, "ATTEMPTS_EXHAUSTED");
        } else {
            self.make(slot, Transition::Retry);
        }
        self.jobs.get_mut(&slot).unwrap().due = due;
        Outcome::Ended(if is_last { Ended::Dead } else { Ended::Waiting })
    }

    pub(super) fn release(&mut self, claim: usize) -> Outcome {
        let now = self.now;
        match self.holding(claim) {
            Ok(slot) => {
                self.make(slot, Transition::Release).due = now;
                Outcome::Ended(Ended::Done)
            }
            Err(lost) => lost,
        }
    }

    pub(super) fn bury(&mut self, claim: usize, reason: &str) -> Outcome {
        match self.holding(claim) {
            Ok(slot) => {
                self.kill(slot, reason);
                Outcome::Ended(Ended::Done)
            }
            Err(lost) => lost,
        }
    }
}
