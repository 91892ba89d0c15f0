//! The three that repair, as their functions call them: an event in, an answer out.
#![expect(clippy::unwrap_used, reason = "a test that can not go on stops here")]

mod dead_letter;
mod operator;
mod reconciler;

use domain::{Identity, JobId, Message};
use sqlx::PgPool;

/// A PENDING news job whose message was sent ten minutes ago.
async fn job(db: &PgPool, name: &str) -> JobId {
    let job_id = Identity::new("news").text("item_id", name).job_id();
    let message = Message::new("news", job_id.clone(), 0);
    sqlx::query(
        "with job as (
             insert into job (job_id, job_type, destination, max_attempts, payload, next_attempt_at)
             values ($1, 'news', 'news', 8, '{}', now() - interval '10 minutes')
             returning job_id
         )
         insert into outbox_event (event_id, job_id, event_type, destination, redrive_generation, body, status,
                                   published_at)
         select $2, job_id, 'news', 'news', 0, $3, 'PUBLISHED', now() - interval '10 minutes' from job",
    )
    .bind(job_id.as_str())
    .bind(&message.event_id)
    .bind(message.to_body())
    .execute(db)
    .await
    .unwrap();
    job_id
}

async fn execute(db: &PgPool, statement: &'static str, job_id: &JobId) {
    sqlx::query(statement).bind(job_id.as_str()).execute(db).await.unwrap();
}

async fn status(db: &PgPool, job_id: &JobId) -> String {
    sqlx::query_scalar("select status from job where job_id = $1")
        .bind(job_id.as_str())
        .fetch_one(db)
        .await
        .unwrap()
}
