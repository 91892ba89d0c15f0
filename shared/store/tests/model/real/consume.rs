//! Collectors and consumers.

use domain::{Answer, DeadReason};
use sqlx::Connection as _;
use store::claim::{Answered, Asked, Claim, claim_batch, claim_suspect};
use store::enqueue::{Enqueued, enqueue};
use store::job::{self, Moved, Retried};
use store::window::{self, Corrected, Lock, NewWindow, Opened, WindowRef};
use testkit::windows::{digest, empty, first_minute};

use super::{CLAIM_LEASE, RETRY_DELAY, Real};
use crate::outcome::{Ended, Outcome};
use crate::reference::Message;
use crate::subject::{DESTINATION, LAST_GENERATION, Slot, hours};

impl Real {
    pub(super) async fn enqueue(&self, slot: Slot) -> Outcome {
        let mut tx = self.db.begin().await.unwrap();
        let enqueued = enqueue(&mut tx, &[slot.new_job()]).await.unwrap();
        tx.commit().await.unwrap();
        Outcome::Enqueued(enqueued[0])
    }

    pub(super) async fn collect(&self) -> Outcome {
        let mut tx = self.db.begin().await.unwrap();
        let opened = window::open(&mut *tx, &empty(first_minute(), &digest('a'))).await.unwrap();
        if opened == Opened::Opened {
            let enqueued = enqueue(&mut tx, &[Slot::Window(1).new_job()]).await.unwrap();
            assert_eq!(enqueued, [Enqueued::Created]);
        }
        tx.commit().await.unwrap();
        Outcome::Opened(opened)
    }

    pub(super) async fn correct(&self, late: bool, generation: i32) -> Outcome {
        if generation == LAST_GENERATION {
            return Outcome::Nothing;
        }
        let seen = if late { generation - 1 } else { generation };
        let mut tx = self.db.begin().await.unwrap();
        let content = digest('b');
        let corrected = window::correct(&mut *tx, &empty(first_minute(), &content), seen).await.unwrap();
        if let Corrected::Corrected { generation } = corrected {
            enqueue(&mut tx, &[Slot::Window(generation).new_job()]).await.unwrap();
        }
        tx.commit().await.unwrap();
        Outcome::Corrected(corrected)
    }

    pub(super) async fn backfill(&self, minute: i64) -> Outcome {
        let start = first_minute() + chrono::TimeDelta::minutes(minute);
        let content = digest('c');
        let window = NewWindow { backfilled: true, ..empty(start, &content) };
        Outcome::Opened(window::open(&self.db, &window).await.unwrap())
    }

    pub(super) async fn claim_batch(&mut self, messages: &[Message]) -> Outcome {
        let asked: Vec<_> = messages.iter().map(|message| asked(*message)).collect();
        let answers = claim_batch(&self.db, DESTINATION, &asked, hours(CLAIM_LEASE)).await.unwrap();
        self.keep(answers)
    }

    pub(super) async fn claim_suspect(&mut self, messages: &[Message]) -> Outcome {
        let mut answers = Vec::new();
        for message in messages {
            let lease = hours(CLAIM_LEASE);
            answers.push(claim_suspect(&self.db, DESTINATION, &asked(*message), lease).await.unwrap());
        }
        self.keep(answers)
    }

    fn keep(&mut self, answered: Vec<Answered>) -> Outcome {
        let answers: Vec<Answer> = answered.iter().map(|answered| answered.answer).collect();
        self.claims.extend(answered.into_iter().filter_map(|answered| Some(answered.job?.claim)));
        Outcome::Answers(answers)
    }

    fn claim(&self, number: usize) -> Option<&Claim> {
        self.claims.iter().rev().nth(number.checked_rem(self.claims.len())?)
    }

    /// As a handler's end: the effect and the completion in one transaction, the window looked at in it.
    pub(super) async fn complete(&self, number: usize) -> Outcome {
        let Some(claim) = self.claim(number) else { return Outcome::Nothing };
        let mut connection = self.db.acquire().await.unwrap();
        let mut tx = connection.begin().await.unwrap();
        sqlx::query("insert into effect values ($1)")
            .bind(claim.job_id().as_str())
            .execute(&mut *tx)
            .await
            .unwrap();
        if let Some(window) = Slot::of(claim.job_id().as_str()).new_job().window
            && is_behind(&mut tx, &window).await
        {
            tx.rollback().await.unwrap();
            let buried = job::bury(&mut *connection, claim, &DeadReason::Stale, "why").await;
            return ended(buried.unwrap());
        }
        let moved = job::complete(&mut *tx, claim).await.unwrap();
        match moved {
            Moved::Done => tx.commit().await.unwrap(),
            Moved::Lost => tx.rollback().await.unwrap(),
        }
        ended(moved)
    }

    pub(super) async fn retry(&self, number: usize) -> Outcome {
        let Some(claim) = self.claim(number) else { return Outcome::Nothing };
        Outcome::Ended(match job::retry(&self.db, claim, hours(RETRY_DELAY), "why").await.unwrap() {
            Retried::Waiting { .. } => Ended::Waiting,
            Retried::Dead => Ended::Dead,
            Retried::Lost => Ended::Lost,
        })
    }

    pub(super) async fn release(&self, number: usize) -> Outcome {
        let Some(claim) = self.claim(number) else { return Outcome::Nothing };
        ended(job::release(&self.db, claim).await.unwrap())
    }

    pub(super) async fn bury(&self, number: usize) -> Outcome {
        let Some(claim) = self.claim(number) else { return Outcome::Nothing };
        ended(job::bury(&self.db, claim, &DeadReason::Handler("UNREADABLE"), "why").await.unwrap())
    }
}

async fn is_behind(tx: &mut sqlx::PgConnection, window: &WindowRef) -> bool {
    window::lock_current(tx, window).await.unwrap() == Lock::Moved
}

/// What a message asks.
pub(super) fn asked(message: Message) -> Asked {
    Asked { job_id: message.slot.job_id(), redrive_generation: message.generation }
}

fn ended(moved: Moved) -> Outcome {
    Outcome::Ended(if moved == Moved::Done { Ended::Done } else { Ended::Lost })
}
