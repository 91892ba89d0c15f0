//! What repairs: dead-letter, reconciler, operator.

use store::dead_letter::{self, Policy};
use store::operator_action::{Filter, Order, Selection};
use store::reconcile::{self, Pace};
use store::{dismiss, redrive};

use super::consume::asked;
use super::{LONGEST_DELAY, Real, SAFE_DELAY};
use crate::outcome::{Moved, Outcome, Verdict};
use crate::reference::Message;
use crate::subject::{DESTINATION, Slot, hours};

impl Real {
    pub(super) async fn dead_letter(&self, messages: &[Message], policy: Policy) -> Outcome {
        let asked: Vec<_> = messages.iter().map(|message| asked(*message)).collect();
        let verdicts = dead_letter::decide(&self.db, DESTINATION, &asked, policy).await.unwrap();
        Outcome::Verdicts(verdicts.into_iter().map(verdict).collect())
    }

    pub(super) async fn redrive(&self, slot: Slot, dry_run: bool) -> Outcome {
        self.order_redrive(Selection::Ids(vec![slot.job_id()]), dry_run).await
    }

    pub(super) async fn redrive_all(&self) -> Outcome {
        self.order_redrive(Selection::Filter { filter: Filter::default(), limit: 1_000 }, false).await
    }

    async fn order_redrive(&self, selection: Selection, dry_run: bool) -> Outcome {
        let report = redrive::redrive(&self.db, &order(selection, dry_run), None).await.unwrap();
        let moved = report.outcomes.into_iter().map(|(job_id, outcome)| {
            let moved = match outcome {
                redrive::Outcome::Redriven { .. } => Moved::Done,
                redrive::Outcome::Stale => Moved::Stale,
                redrive::Outcome::NotDead(_) => Moved::NotDead,
                redrive::Outcome::Missing => Moved::Missing,
            };
            (Slot::of(&job_id), moved)
        });
        let mut moved: Vec<_> = moved.collect();
        moved.sort();
        Outcome::Moved(moved)
    }

    pub(super) async fn dismiss(&self, slot: Slot) -> Outcome {
        let order = order(Selection::Ids(vec![slot.job_id()]), false);
        let report = dismiss::dismiss(&self.db, &order).await.unwrap();
        let moved = match report.outcomes[0].1 {
            dismiss::Outcome::Dismissed => Moved::Done,
            dismiss::Outcome::Already => Moved::Already,
            dismiss::Outcome::NotDead(_) => Moved::NotDead,
            dismiss::Outcome::Missing => Moved::Missing,
        };
        Outcome::Moved(vec![(slot, moved)])
    }

    pub(super) async fn reconcile(&self) -> Outcome {
        let pace =
            Pace { safe_delay: hours(SAFE_DELAY), longest_delay: hours(LONGEST_DELAY), ..Pace::default() };
        let rung = reconcile::ring(&self.db, &pace).await.unwrap();
        let mut slots: Vec<_> = rung.iter().map(|rung| Slot::of(&rung.job_id)).collect();
        slots.sort();
        Outcome::Rung(slots)
    }
}

fn order(selection: Selection, dry_run: bool) -> Order {
    Order { selection, dry_run, who: "ada".to_owned(), why: "the cause is fixed".to_owned() }
}

fn verdict(verdict: dead_letter::Verdict) -> Verdict {
    match verdict {
        dead_letter::Verdict::Undecidable(doubt) => Verdict::Undecidable(doubt),
        dead_letter::Verdict::Superseded => Verdict::Superseded,
        dead_letter::Verdict::Settled => Verdict::Settled,
        dead_letter::Verdict::Held { .. } => Verdict::Held,
        dead_letter::Verdict::Returned => Verdict::Returned,
        dead_letter::Verdict::Buried => Verdict::Buried,
    }
}
