//! Jobs in any state, and what their rows say.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use domain::{Answer, DeadReason, Identity, JobId, JobStatus};
use serde_json::{Value, json};
use sqlx::PgPool;
use store::claim::{Asked, ClaimedJob, claim_suspect};
use store::enqueue::{NewJob, enqueue};
use store::job::{self, Moved, Retried};
use store::operator_action::{Order, Selection};

/// The destination, and the type, of the jobs made here.
pub const DESTINATION: &str = "news";
/// Longer than any test runs.
pub const LEASE: Duration = Duration::from_mins(1);

/// A job called `name`, not enqueued yet.
#[must_use]
pub fn new_job(name: &str) -> NewJob {
    NewJob {
        identity: Identity::new(DESTINATION).text("item_id", name).text("revision", "1"),
        job_type: DESTINATION.to_owned(),
        destination: DESTINATION.to_owned(),
        payload: json!({"item_id": name, "revision": "1"}),
        artifact_key: None,
        window: None,
        max_attempts: 8,
        max_age: None,
        ordering_key: None,
        trace_header: None,
    }
}

/// Enqueues `job`, with its event.
pub async fn queued(db: &PgPool, job: &NewJob) -> JobId {
    let mut tx = db.begin().await.unwrap();
    enqueue(&mut tx, std::slice::from_ref(job)).await.unwrap();
    tx.commit().await.unwrap();
    job.identity.job_id()
}

/// A new job, different from every other made in this process.
pub async fn queued_job(db: &PgPool) -> JobId {
    static MADE: AtomicU32 = AtomicU32::new(0);
    queued(db, &new_job(&format!("item {}", MADE.fetch_add(1, Ordering::Relaxed)))).await
}

/// What a message of the job's present generation asks.
pub async fn asked(db: &PgPool, id: &JobId) -> Asked {
    let generation = row(db, id).await["redrive_generation"].as_i64().unwrap();
    Asked { job_id: id.clone(), redrive_generation: i32::try_from(generation).unwrap() }
}

/// Claims the job, which must be claimable.
pub async fn claimed(db: &PgPool, id: &JobId) -> ClaimedJob {
    let asked = asked(db, id).await;
    let answered = claim_suspect(db, DESTINATION, &asked, LEASE).await.unwrap();
    assert_eq!(answered.answer, Answer::Won, "{id} can not be claimed");
    answered.job.unwrap()
}

/// Brings a job that is PENDING into `status`.
pub async fn put_in_state(db: &PgPool, id: &JobId, status: JobStatus) {
    if status == JobStatus::Pending {
        return;
    }
    let claim = claimed(db, id).await.claim;
    match status {
        JobStatus::Pending | JobStatus::Claimed => {}
        JobStatus::Retry => {
            let retried = job::retry(db, &claim, Duration::ZERO, "it failed").await.unwrap();
            assert!(matches!(retried, Retried::Waiting { .. }), "{retried:?}");
        }
        JobStatus::Succeeded => assert_eq!(job::complete(db, &claim).await.unwrap(), Moved::Done),
        JobStatus::Dead => {
            let reason = DeadReason::Handler("UNREADABLE");
            assert_eq!(job::bury(db, &claim, &reason, "it can not be read").await.unwrap(), Moved::Done);
        }
    }
}

/// Lets the lease of a claimed job run out.
pub async fn end_lease(db: &PgPool, id: &JobId) {
    run(
        db,
        "update job set lease_until = now() - interval '1 second' where job_id = $1 and status = 'CLAIMED'",
        id,
    )
    .await;
}

/// Lets a job that waits for its next attempt wait `wait` from now.
pub async fn wait(db: &PgPool, id: &JobId, wait: Duration) {
    let moved = sqlx::query(
        "update job set next_attempt_at = now() + make_interval(secs => $2) where job_id = $1 and status = 'RETRY'",
    )
    .bind(id.as_str())
    .bind(wait.as_secs_f64())
    .execute(db)
    .await
    .unwrap();
    assert_eq!(moved.rows_affected(), 1, "{id} does not wait");
}

/// Lets the job have been enqueued an hour ago.
pub async fn age(db: &PgPool, id: &JobId) {
    run(db, "update job set enqueued_at = enqueued_at - interval '1 hour' where job_id = $1", id).await;
}

/// Brings a DEAD job back as an operator does: a new generation, attempts from zero, a fresh event.
pub async fn redrive(db: &PgPool, id: &JobId) {
    let selection = Selection::Ids(vec![id.clone()]);
    let order = Order { selection, dry_run: false, who: "ada".to_owned(), why: "a test".to_owned() };
    let report = store::redrive::redrive(db, &order, None).await.unwrap();
    let outcome = &report.outcomes[0].1;
    assert!(matches!(outcome, store::redrive::Outcome::Redriven { .. }), "{id}: {outcome:?}");
}

async fn run(db: &PgPool, statement: &'static str, id: &JobId) {
    let moved = sqlx::query(statement).bind(id.as_str()).execute(db).await.unwrap();
    assert_eq!(moved.rows_affected(), 1, "{id} is not where the test thinks it is");
}

/// The whole row, to compare or to look into.
pub async fn row(db: &PgPool, id: &JobId) -> Value {
    sqlx::query_scalar("select to_jsonb(job) from job where job_id = $1")
        .bind(id.as_str())
        .fetch_one(db)
        .await
        .unwrap()
}

/// The state the row says.
pub async fn state_of(db: &PgPool, id: &JobId) -> JobStatus {
    JobStatus::parse(row(db, id).await["status"].as_str().unwrap()).unwrap()
}

/// What changes exactly when a claim happens: the attempt and the claim's name.
pub async fn fence_of(db: &PgPool, id: &JobId) -> (Value, Value) {
    let row = row(db, id).await;
    (row["attempt_count"].clone(), row["claimed_by"].clone())
}

/// Why the job is DEAD, if it is.
pub async fn dead_reason_of(db: &PgPool, id: &JobId) -> Option<String> {
    row(db, id).await["dead_reason"].as_str().map(str::to_owned)
}
