//! The relays, each with its own hands.

use domain::EventId;
use store::lane::{self, Kept, Taken};
use store::outbox::{self, Bounds, Cursor, Key, Postponed, Unsendable};

use super::{BACK_OFF, LANE_LEASE, POSTPONED, Real, Relay, STRAY_GRACE};
use crate::operations::Step;
use crate::outcome::{Outcome, Took};
use crate::reference;
use crate::subject::{DESTINATION, Slot, hours};

/// More than a case has.
const BOUNDS: Bounds = Bounds { events: 1_000, bytes: 1 << 20, body_bytes: 1 << 20 };

impl Real {
    pub(super) async fn step(&mut self, relay: usize, step: Step) -> Outcome {
        match step {
            Step::Take => self.take(relay).await,
            Step::Read => self.read(relay).await,
            Step::Send => {
                let relay = &mut self.relays[relay];
                relay.sent.append(&mut relay.read);
                Outcome::Nothing
            }
            Step::Mark => {
                let sent = std::mem::take(&mut self.relays[relay].sent);
                Outcome::Rows(outbox::mark_published(&self.db, &sent).await.unwrap())
            }
            Step::Refuse => self.refuse(relay).await,
            Step::Postpone => self.postpone(relay).await,
            Step::Die => {
                self.relays[relay] = Relay::default();
                Outcome::Nothing
            }
            Step::Renew | Step::Recover | Step::Release | Step::BackOff => self.write_lane(relay, step).await,
        }
    }

    async fn take(&mut self, relay: usize) -> Outcome {
        Outcome::Took(match lane::take(&self.db, DESTINATION, hours(LANE_LEASE)).await.unwrap() {
            Taken::Ours(lease) => {
                let failures = lease.failures();
                self.relays[relay].lease = Some(lease);
                Took::Ours { failures }
            }
            Taken::Held => Took::Held,
            Taken::BackingOff { .. } => Took::BackingOff,
        })
    }

    async fn write_lane(&mut self, relay: usize, step: Step) -> Outcome {
        let Some(mut lease) = self.relays[relay].lease.take() else { return Outcome::Nothing };
        let kept = match step {
            Step::Release => lane::release(&self.db, lease).await,
            Step::BackOff => lane::back_off(&self.db, lease, hours(BACK_OFF), "why").await,
            _ => {
                let kept = match step {
                    Step::Renew => lane::renew(&self.db, &lease, hours(LANE_LEASE)).await,
                    _ => lane::recover(&self.db, &mut lease).await,
                };
                self.relays[relay].lease = Some(lease);
                kept
            }
        };
        let kept: Kept = kept.unwrap();
        Outcome::Kept(kept)
    }

    async fn read(&mut self, relay: usize) -> Outcome {
        if self.relays[relay].lease.is_none() {
            return Outcome::Nothing;
        }
        let batch = outbox::read_due(&self.db, DESTINATION, Cursor::START, BOUNDS).await.unwrap();
        let mut keys: Vec<_> =
            batch.events.into_iter().map(|event| (slotted(&event.key), event.key)).collect();
        keys.sort();
        let (slots, keys) = keys.into_iter().unzip();
        self.relays[relay].read = keys;
        Outcome::Read(slots)
    }

    async fn refuse(&mut self, relay: usize) -> Outcome {
        if self.relays[relay].read.is_empty() {
            return Outcome::Nothing;
        }
        let key = self.relays[relay].read.remove(0);
        Outcome::Burial(outbox::bury(&self.db, &[unsendable(key)]).await.unwrap())
    }

    async fn postpone(&mut self, relay: usize) -> Outcome {
        if self.relays[relay].read.is_empty() {
            return Outcome::Nothing;
        }
        let key = self.relays[relay].read.remove(0);
        let failed = Postponed { key, delay: hours(POSTPONED), error: "why".to_owned() };
        Outcome::Rows(outbox::postpone(&self.db, &[failed]).await.unwrap())
    }

    pub(super) async fn bury_strays(&self) -> Outcome {
        let configured = [DESTINATION.to_owned()];
        let strays = outbox::find_unroutable(&self.db, &configured, hours(STRAY_GRACE), 100).await.unwrap();
        let strays: Vec<_> = strays.into_iter().map(|stray| unsendable(stray.key)).collect();
        Outcome::Burial(outbox::bury(&self.db, &strays).await.unwrap())
    }
}

fn unsendable(key: Key) -> Unsendable {
    Unsendable { key, reason: "REFUSED", error: "why".to_owned() }
}

/// The key as the reference names it.
fn slotted(key: &Key) -> reference::Key {
    let event_id: &EventId = &key.event_id;
    let parts: Vec<_> = event_id.split(':').collect();
    reference::Key { slot: Slot::of(parts[1]), generation: parts[2].parse().unwrap(), ring: key.ring }
}
