//! Jobs in every state, with the event of their generation as the relay leaves it.

use std::time::Duration;

use domain::{Identity, JobId, JobStatus, Message};
use sqlx::PgPool;
use store::operator_action::{Order, Selection};

/// Every job here goes this way.
pub const DESTINATION: &str = "news";

/// The attempts every job here may use.
pub const MAX_ATTEMPTS: i32 = 3;

/// A PENDING job whose message was sent just now.
pub async fn job(db: &PgPool, name: &str) -> JobId {
    let job_id = Identity::new("news").text("item_id", name).job_id();
    sqlx::query(
        "insert into job (job_id, job_type, destination, max_attempts, payload) values ($1, 'news', $2, $3, '{}')",
    )
    .bind(job_id.as_str())
    .bind(DESTINATION)
    .bind(MAX_ATTEMPTS)
    .execute(db)
    .await
    .unwrap();
    publish_new_event(db, &job_id, 0).await;
    job_id
}

/// The event of `generation`, sent just now.
pub async fn publish_new_event(db: &PgPool, job_id: &JobId, generation: i32) {
    let message = Message::new("news", job_id.clone(), generation);
    sqlx::query(
        "insert into outbox_event (event_id, job_id, event_type, destination, redrive_generation, body,
                                   ordering_key, status, published_at)
         values ($1, $2, 'news', $3, $4, $5, 'AAPL', 'PUBLISHED', now())",
    )
    .bind(&message.event_id)
    .bind(job_id.as_str())
    .bind(DESTINATION)
    .bind(generation)
    .bind(message.to_body())
    .execute(db)
    .await
    .unwrap();
}

/// Brings the job into `status`; CLAIMED with a lease that ends `lease_seconds` from now.
pub async fn put(db: &PgPool, job_id: &JobId, status: JobStatus, lease_seconds: f64) {
    sqlx::query(
        "update job
            set status        = $2,
                attempt_count = case when $2 = 'PENDING' then 0 else 1 end,
                claimed_by    = case when $2 = 'CLAIMED' then gen_random_uuid() end,
                lease_until   = case when $2 = 'CLAIMED' then now() + make_interval(secs => $3) end,
                dead_reason   = case when $2 = 'DEAD' then 'ATTEMPTS_EXHAUSTED' end,
                last_error    = case when $2 = 'DEAD' then 'the last error' end,
                finished_at   = case when $2 in ('SUCCEEDED', 'DEAD') then now() end
          where job_id = $1",
    )
    .bind(job_id.as_str())
    .bind(status.as_str())
    .bind(lease_seconds)
    .execute(db)
    .await
    .unwrap();
}

/// A job in `status`; CLAIMED with a lease that is over.
pub async fn job_in(db: &PgPool, name: &str, status: JobStatus) -> JobId {
    let job_id = job(db, name).await;
    put(db, &job_id, status, -1.0).await;
    job_id
}

/// Ties the job to a window of which it knows `generation`; the window itself is at generation 2.
pub async fn tie_to_window(db: &PgPool, job_id: &JobId, generation: i32) {
    sqlx::query(
        "with artifact as (
             insert into artifact (key, state, sha256, size_bytes, owner)
             values ('a', 'REFERENCED', repeat('0', 64), 1, 'window') on conflict do nothing
         ), w as (
             insert into collection_window (dataset, window_start, generation, session_date, content_digest,
                                            bar_count, corrected_at)
             values ('us8', '2018-04-04T13:30:00Z', 2, '2018-04-04', repeat('0', 64), 0, now())
                 on conflict do nothing
         )
         update job
            set dataset = 'us8', window_start = '2018-04-04T13:30:00Z', window_generation = $2
          where job_id = $1",
    )
    .bind(job_id.as_str())
    .bind(generation)
    .execute(db)
    .await
    .unwrap();
}

/// Lets time pass for every row: all instants move back.
pub async fn pass(db: &PgPool, time: Duration) {
    let seconds = time.as_secs_f64();
    for statement in [
        "update job
            set next_attempt_at  = next_attempt_at - make_interval(secs => $1),
                lease_until      = lease_until - make_interval(secs => $1),
                last_requeued_at = last_requeued_at - make_interval(secs => $1),
                enqueued_at      = enqueued_at - make_interval(secs => $1),
                finished_at      = finished_at - make_interval(secs => $1)",
        "update outbox_event
            set published_at    = published_at - make_interval(secs => $1),
                next_attempt_at = next_attempt_at - make_interval(secs => $1)",
    ] {
        sqlx::query(statement).bind(seconds).execute(db).await.unwrap();
    }
}

/// What the relay does to everything that is NEW and due.
pub async fn relay(db: &PgPool) {
    sqlx::query(
        "update outbox_event set status = 'PUBLISHED', published_at = now()
          where status = 'NEW' and next_attempt_at <= now()",
    )
    .execute(db)
    .await
    .unwrap();
}

/// The parts of a job that repair moves.
#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
pub struct Job {
    pub status: String,
    pub attempt_count: i32,
    pub redrive_generation: i32,
    pub dead_reason: Option<String>,
    pub requeue_count: i32,
    pub dismissed: bool,
}

/// The parts of an event that repair moves.
#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
pub struct Event {
    pub status: String,
    pub ring: i32,
}

pub async fn read(db: &PgPool, job_id: &JobId) -> Job {
    sqlx::query_as(
        "select status, attempt_count, redrive_generation, dead_reason, requeue_count,
                dismissed_at is not null as dismissed
           from job where job_id = $1",
    )
    .bind(job_id.as_str())
    .fetch_one(db)
    .await
    .unwrap()
}

/// Oldest generation first.
pub async fn events(db: &PgPool, job_id: &JobId) -> Vec<Event> {
    sqlx::query_as("select status, ring from outbox_event where job_id = $1 order by redrive_generation")
        .bind(job_id.as_str())
        .fetch_all(db)
        .await
        .unwrap()
}

/// An order for exactly these jobs.
pub fn order(job_ids: &[&JobId]) -> Order {
    Order {
        selection: Selection::Ids(job_ids.iter().map(|id| (*id).clone()).collect()),
        dry_run: false,
        who: "ada".into(),
        why: "the cause is fixed".into(),
    }
}
