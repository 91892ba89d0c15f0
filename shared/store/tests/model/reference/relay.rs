//! The relays: lanes, and events on their way from NEW.

use store::lane::Kept;
use store::outbox::Burial;

use super::{Key, Lane, Message, Reference};
use crate::operations::Step;
use crate::outcome::{Outcome, Took};
use crate::real::{BACK_OFF, LANE_LEASE, POSTPONED, STRAY_GRACE};
use crate::subject::DESTINATION;

impl Reference {
    pub(super) fn step(&mut self, relay: usize, step: Step) -> Outcome {
        match step {
            Step::Take => self.take(relay),
            Step::Read => self.read(relay),
            Step::Send => self.send(relay),
            Step::Mark => self.mark(relay),
            Step::Refuse => self.refuse(relay),
            Step::Postpone => self.postpone(relay),
            Step::Renew => {
                let end = self.now.plus(LANE_LEASE);
                self.write_lane(relay, |lane| lane.lease = Some(end))
            }
            Step::Recover => self.write_lane(relay, |lane| (lane.failures, lane.retry) = (0, None)),
            Step::Release => {
                let outcome = self.write_lane(relay, |lane| (lane.holder, lane.lease) = (None, None));
                self.relays[relay].lease = None;
                outcome
            }
            Step::BackOff => self.back_off(relay),
            Step::Die => {
                self.relays[relay] = super::Relay::default();
                Outcome::Nothing
            }
        }
    }

    fn take(&mut self, relay: usize) -> Outcome {
        let now = self.now;
        let is_free = self.lane.lease.is_none_or(|end| end <= now);
        let is_quiet = self.lane.retry.is_some_and(|until| until > now);
        if is_quiet || !is_free {
            return Outcome::Took(if is_quiet { Took::BackingOff } else { Took::Held });
        }
        (self.lane.holder, self.lane.lease) = (Some(self.lanes_taken), Some(now.plus(LANE_LEASE)));
        self.relays[relay].lease = Some(self.lanes_taken);
        self.lanes_taken += 1;
        Outcome::Took(Took::Ours { failures: self.lane.failures })
    }

    /// A write to the lane by a relay that took it once; only the last one to take it is obeyed.
    fn write_lane(&mut self, relay: usize, write: impl FnOnce(&mut Lane)) -> Outcome {
        let Some(token) = self.relays[relay].lease else { return Outcome::Nothing };
        if self.lane.holder != Some(token) {
            return Outcome::Kept(Kept::Lost);
        }
        write(&mut self.lane);
        Outcome::Kept(Kept::Kept)
    }

    fn back_off(&mut self, relay: usize) -> Outcome {
        let until = self.now.plus(BACK_OFF);
        let outcome = self.write_lane(relay, |lane| {
            *lane = Lane { failures: lane.failures + 1, retry: Some(until), ..Lane::default() };
        });
        self.relays[relay].lease = None;
        outcome
    }

    fn read(&mut self, relay: usize) -> Outcome {
        if self.relays[relay].lease.is_none() {
            return Outcome::Nothing;
        }
        let due = self.events.iter().filter(|((slot, _), event)| {
            slot.destination() == DESTINATION && event.is_new() && event.due <= self.now
        });
        let read: Vec<_> = due
            .map(|((slot, generation), event)| Key { slot: *slot, generation: *generation, ring: event.ring })
            .collect();
        self.relays[relay].read.clone_from(&read);
        Outcome::Read(read)
    }

    fn send(&mut self, relay: usize) -> Outcome {
        let sent = std::mem::take(&mut self.relays[relay].read);
        let messages = sent.iter().map(|key| Message { slot: key.slot, generation: key.generation });
        self.queue.extend(messages);
        self.relays[relay].sent.extend(sent);
        Outcome::Nothing
    }

    fn mark(&mut self, relay: usize) -> Outcome {
        let mut marked = 0;
        for key in std::mem::take(&mut self.relays[relay].sent) {
            let event = self.events.get_mut(&(key.slot, key.generation)).unwrap();
            if event.is_new() && event.ring == key.ring {
                event.published = Some(self.now);
                marked += 1;
            }
        }
        Outcome::Rows(marked)
    }

    fn postpone(&mut self, relay: usize) -> Outcome {
        if self.relays[relay].read.is_empty() {
            return Outcome::Nothing;
        }
        let key = self.relays[relay].read.remove(0);
        let due = self.now.plus(POSTPONED);
        let event = self.events.get_mut(&(key.slot, key.generation)).unwrap();
        let moves = event.is_new() && event.ring == key.ring;
        if moves {
            (event.attempts, event.due) = (event.attempts + 1, due);
        }
        Outcome::Rows(u64::from(moves))
    }

    fn refuse(&mut self, relay: usize) -> Outcome {
        if self.relays[relay].read.is_empty() {
            return Outcome::Nothing;
        }
        let key = self.relays[relay].read.remove(0);
        Outcome::Burial(self.bury_events(&[key]))
    }

    pub(super) fn bury_strays(&mut self) -> Outcome {
        let since = self.now.plus(-STRAY_GRACE);
        let strays = self.events.iter().filter(|((slot, _), event)| {
            slot.destination() != DESTINATION && event.is_new() && event.due <= since
        });
        let keys: Vec<_> = strays
            .map(|((slot, generation), event)| Key { slot: *slot, generation: *generation, ring: event.ring })
            .collect();
        Outcome::Burial(self.bury_events(&keys))
    }

    /// Gives events up, each with its job of the same generation; one that is held keeps both.
    fn bury_events(&mut self, keys: &[Key]) -> Burial {
        let mut burial = Burial::default();
        for key in keys {
            let event = self.events.get_mut(&(key.slot, key.generation)).unwrap();
            if !event.is_new() || event.ring != key.ring {
                continue;
            }
            let job = &self.jobs[&key.slot];
            let is_its_job = job.generation == key.generation;
            if is_its_job && job.is_held(self.now) {
                event.due = job.lease.unwrap();
                burial.deferred += 1;
                continue;
            }
            event.reason = Some("REFUSED".to_owned());
            burial.dead += 1;
            if is_its_job && !job.status.is_terminal() {
                self.kill(key.slot, "UNSENDABLE");
                burial.jobs += 1;
            }
        }
        burial
    }
}
