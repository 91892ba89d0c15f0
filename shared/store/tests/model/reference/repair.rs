//! Messages that go astray, and what repairs: dead-letter, reconciler, operator.

use domain::{JobStatus, Transition};
use store::dead_letter::{Doubt, Policy};

use super::{Event, Message, Reference};
use crate::outcome::{Moved, Outcome, Verdict};
use crate::real::{LONGEST_DELAY, SAFE_DELAY};
use crate::subject::Slot;

impl Reference {
    pub(super) fn duplicate(&mut self, number: usize) -> Outcome {
        if let Some(place) = self.message(number) {
            self.queue.push(self.queue[place]);
        }
        Outcome::Nothing
    }

    pub(super) fn drop_message(&mut self, number: usize) -> Outcome {
        if let Some(place) = self.message(number) {
            self.queue.remove(place);
        }
        Outcome::Nothing
    }

    pub(super) fn forge(&mut self, slot: Slot, ahead: i32) -> Outcome {
        let generation = (self.generation(slot) + ahead).max(0);
        self.queue.push(Message { slot, generation });
        Outcome::Nothing
    }

    /// As with claims, all verdicts are given before anything moves.
    pub(super) fn dead_letter(&mut self, numbers: &[usize], policy: Policy) -> Outcome {
        let asked = self.distinct_messages(numbers);
        let verdicts: Vec<_> = asked.iter().map(|message| self.verdict(*message, policy)).collect();
        for (position, (message, verdict)) in asked.iter().zip(&verdicts).enumerate() {
            if !asked[..position].contains(message) {
                self.carry_out(*message, *verdict);
            }
            if !matches!(verdict, Verdict::Held | Verdict::Undecidable(_)) {
                self.acknowledge(*message);
            }
        }
        Outcome::Verdicts(verdicts)
    }

    fn verdict(&self, message: Message, policy: Policy) -> Verdict {
        let Some(job) = self.jobs.get(&message.slot) else {
            return Verdict::Undecidable(Doubt::UnknownJob);
        };
        match job {
            _ if message.slot == Slot::Stray => Verdict::Undecidable(Doubt::WrongDestination),
            _ if message.generation > job.generation => Verdict::Undecidable(Doubt::FutureGeneration),
            _ if message.generation < job.generation => Verdict::Superseded,
            _ if job.status.is_terminal() => Verdict::Settled,
            _ if job.is_held(self.now) => Verdict::Held,
            _ if policy == Policy::Dead || job.attempts >= message.slot.max_attempts() => Verdict::Buried,
            _ => Verdict::Returned,
        }
    }

    fn carry_out(&mut self, message: Message, verdict: Verdict) {
        let now = self.now;
        match verdict {
            Verdict::Buried => self.kill(message.slot, "DLQ"),
            Verdict::Returned => {
                let job = self.make(message.slot, Transition::Return);
                (job.attempts, job.due) = (job.attempts + 1, now);
                let event = self.events.get_mut(&(message.slot, message.generation)).unwrap();
                *event = event.rung(now);
            }
            _ => {}
        }
    }

    pub(super) fn redrive_all(&mut self) -> Outcome {
        let found = self.jobs.iter().filter(|(_, job)| job.status == JobStatus::Dead && !job.dismissed);
        let slots: Vec<_> = found.map(|(slot, _)| *slot).collect();
        self.redrive(&slots, false)
    }

    pub(super) fn redrive(&mut self, slots: &[Slot], dry_run: bool) -> Outcome {
        let moved = slots.iter().map(|slot| (*slot, self.redrive_one(*slot, dry_run)));
        let mut moved: Vec<_> = moved.collect();
        moved.sort();
        Outcome::Moved(moved)
    }

    fn redrive_one(&mut self, slot: Slot, dry_run: bool) -> Moved {
        let Some(job) = self.jobs.get(&slot) else { return Moved::Missing };
        if job.status != JobStatus::Dead {
            return Moved::NotDead;
        }
        let is_stale = self.is_stale(slot) || job.reason.as_deref() == Some("STALE");
        if is_stale {
            if !dry_run {
                self.jobs.get_mut(&slot).unwrap().reason = Some("STALE".to_owned());
            }
            return Moved::Stale;
        }
        if !dry_run {
            self.bring_back(slot);
        }
        Moved::Done
    }

    fn bring_back(&mut self, slot: Slot) {
        let now = self.now;
        let job = self.make(slot, Transition::Redrive);
        job.generation += 1;
        job.attempts = 0;
        job.reason = None;
        (job.due, job.enqueued) = (now, now);
        (job.requeued, job.requeues) = (None, 0);
        job.dismissed = false;
        let generation = job.generation;
        self.events.insert((slot, generation), Event::new(now));
    }

    pub(super) fn dismiss(&mut self, slot: Slot) -> Outcome {
        let moved = match self.jobs.get(&slot) {
            None => Moved::Missing,
            Some(job) if job.status != JobStatus::Dead => Moved::NotDead,
            Some(job) if job.dismissed => Moved::Already,
            Some(_) => {
                self.make(slot, Transition::Dismiss).dismissed = true;
                Moved::Done
            }
        };
        Outcome::Moved(vec![(slot, moved)])
    }

    pub(super) fn reconcile(&mut self) -> Outcome {
        let lost: Vec<_> = self.jobs.keys().copied().filter(|slot| self.is_lost(*slot)).collect();
        for slot in &lost {
            let job = self.jobs.get_mut(slot).unwrap();
            job.status = job.status.after(Transition::Ring).unwrap();
            (job.requeued, job.requeues) = (Some(self.now), job.requeues + 1);
            let event = self.events.get_mut(&(*slot, job.generation)).unwrap();
            *event = event.rung(self.now);
        }
        Outcome::Rung(lost)
    }

    /// Not finished, its event sent, and silent for longer than the patience that doubles.
    fn is_lost(&self, slot: Slot) -> bool {
        let job = &self.jobs[&slot];
        let published = self.events[&(slot, job.generation)].published;
        let patience = SAFE_DELAY.saturating_mul(1 << job.requeues.min(30)).min(LONGEST_DELAY);
        let last_sign = published.max(Some(job.due)).max(job.requeued).max(job.lease);
        !job.status.is_terminal()
            && published.is_some()
            && last_sign.is_some_and(|instant| instant < self.now.plus(-patience))
    }
}
