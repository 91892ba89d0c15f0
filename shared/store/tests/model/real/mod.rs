//! The real thing: `store` on PostgreSQL, called as its callers call it.
//!
//! Here is what processes hold in their hands: claims, lane leases, events they read. Messages are the
//! reference's, as no row knows of them.

mod consume;
mod relay;
mod repair;
mod rows;

use sqlx::PgPool;
use store::claim::Claim;
use store::lane::{self, Lease};
use store::outbox::Key;

use crate::operations::Operation;
use crate::outcome::Outcome;
use crate::reference::Reference;
use crate::subject::{DESTINATION, hours};

/// Hours a claim holds its job.
pub const CLAIM_LEASE: i64 = 2;
/// Hours until the next attempt.
pub const RETRY_DELAY: i64 = 2;
/// Hours a relay holds the lane.
pub const LANE_LEASE: i64 = 1;
/// Hours a lane in trouble is left alone.
pub const BACK_OFF: i64 = 3;
/// Hours until an event that was not taken is due again.
pub const POSTPONED: i64 = 2;
/// Hours until an event nobody drains is given up.
pub const STRAY_GRACE: i64 = 2;
/// Hours of silence before the first ring, and before any.
pub const SAFE_DELAY: i64 = 3;
pub const LONGEST_DELAY: i64 = 12;

/// What a relay holds in its hands.
#[derive(Default)]
struct Relay {
    lease: Option<Lease>,
    read: Vec<Key>,
    sent: Vec<Key>,
}

/// The processes of one case, and their database.
pub struct Real {
    db: PgPool,
    relays: [Relay; 2],
    claims: Vec<Claim>,
}

impl Real {
    /// Makes the table that effects go to. It has no key: an effect applied twice is seen.
    pub async fn prepare(db: &PgPool) {
        sqlx::query("create table effect (job_id text not null)").execute(db).await.unwrap();
    }

    /// Starts a case on empty tables.
    pub async fn start(db: &PgPool) -> Self {
        for table in ["outbox_event", "job", "collection_window", "lane", "effect", "operator_action"] {
            let statement = format!("delete from {table}");
            sqlx::query(sqlx::AssertSqlSafe(statement)).execute(db).await.unwrap();
        }
        lane::declare(db, &[DESTINATION.to_owned()]).await.unwrap();
        Self { db: db.clone(), relays: Default::default(), claims: Vec::new() }
    }

    /// Carries `operation` out; `world` is as it was before.
    pub async fn run(&mut self, operation: &Operation, world: &Reference) -> Outcome {
        match operation {
            Operation::Enqueue(slot) => self.enqueue(*slot).await,
            Operation::Relay(relay, step) => self.step(*relay, *step).await,
            Operation::ClaimBatch(messages) => self.claim_batch(&world.distinct_messages(messages)).await,
            Operation::ClaimSuspect(message) => {
                self.claim_suspect(&world.distinct_messages(&[*message])).await
            }
            Operation::Complete(claim) => self.complete(*claim).await,
            Operation::Retry(claim) => self.retry(*claim).await,
            Operation::Release(claim) => self.release(*claim).await,
            Operation::Bury(claim) => self.bury(*claim).await,
            Operation::DeadLetter(messages, policy) => {
                self.dead_letter(&world.distinct_messages(messages), *policy).await
            }
            Operation::Duplicate(_) | Operation::Drop(_) | Operation::Forge(..) => Outcome::Nothing,
            Operation::Redrive { slot, dry_run } => self.redrive(*slot, *dry_run).await,
            Operation::RedriveAll => self.redrive_all().await,
            Operation::Dismiss(slot) => self.dismiss(*slot).await,
            Operation::Collect => self.collect().await,
            Operation::Correct { late } => self.correct(*late, world.window_generation()).await,
            Operation::Backfill(minute) => self.backfill(*minute).await,
            Operation::Reconcile => self.reconcile().await,
            Operation::BuryStrays => self.bury_strays().await,
            Operation::Pass(hours) => self.pass(*hours).await,
        }
    }

    /// Lets time go by: every instant in every row moves back.
    async fn pass(&self, count: i64) -> Outcome {
        for statement in [
            "update job
                set next_attempt_at = next_attempt_at - make_interval(secs => $1),
                    lease_until = lease_until - make_interval(secs => $1),
                    last_requeued_at = last_requeued_at - make_interval(secs => $1),
                    enqueued_at = enqueued_at - make_interval(secs => $1),
                    finished_at = finished_at - make_interval(secs => $1)",
            "update outbox_event
                set published_at = published_at - make_interval(secs => $1),
                    next_attempt_at = next_attempt_at - make_interval(secs => $1)",
            "update lane
                set lease_until = lease_until - make_interval(secs => $1),
                    retry_at = retry_at - make_interval(secs => $1)",
        ] {
            sqlx::query(statement).bind(hours(count).as_secs_f64()).execute(&self.db).await.unwrap();
        }
        Outcome::Nothing
    }
}
