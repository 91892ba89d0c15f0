//! Producers: one that is right, three that are not.

use domain::Message;
use fault::FaultPoint;
use sqlx::{PgConnection, PgPool};
use store::enqueue::{NewJob, enqueue as enqueue_jobs};
use system_tests::subject::{ATTEMPTS_MAX, DESTINATION, job, job_id};

use crate::Error;

/// Commits `count` jobs with their events, as every producer of the product does.
pub async fn enqueue(db: &PgPool, name: &str, behave: &str, count: i64) -> Result<(), Error> {
    let jobs: Vec<NewJob> = (0..count).map(|number| job(name, number, behave)).collect();
    let mut tx = db.begin().await?;
    enqueue_jobs(&mut tx, &jobs).await?;
    tx.commit().fault_point("subject::commit").await?;
    Ok(())
}

/// Baseline: commit the job, then send. Dies in between, and nobody will ever know.
pub async fn commit_then_send(
    db: &PgPool,
    sqs: &aws_sdk_sqs::Client,
    queue_url: &str,
    name: &str,
) -> Result<(), Error> {
    let mut tx = db.begin().await?;
    insert_job(&mut tx, name).await?;
    tx.commit().await?;
    send(sqs, queue_url, name).fault_point("subject::send").await
}

/// Baseline: send, then commit. Dies in between, and the message names a job that is not there.
pub async fn send_then_commit(
    db: &PgPool,
    sqs: &aws_sdk_sqs::Client,
    queue_url: &str,
    name: &str,
) -> Result<(), Error> {
    send(sqs, queue_url, name).fault_point("subject::send").await?;
    let mut tx = db.begin().await?;
    insert_job(&mut tx, name).await?;
    Ok(tx.commit().await?)
}

/// Baseline: send inside the transaction, which then rolls back.
pub async fn send_inside(
    db: &PgPool,
    sqs: &aws_sdk_sqs::Client,
    queue_url: &str,
    name: &str,
) -> Result<(), Error> {
    let mut tx = db.begin().await?;
    insert_job(&mut tx, name).await?;
    send(sqs, queue_url, name).await?;
    Ok(tx.rollback().await?)
}

/// The job alone: the baselines have no outbox.
async fn insert_job(tx: &mut PgConnection, name: &str) -> Result<(), Error> {
    sqlx::query(
        "insert into job (job_id, job_type, destination, payload, max_attempts) values ($1, 'subject', $2, '{}', $3)",
    )
    .bind(job_id(name, 0).as_str())
    .bind(DESTINATION)
    .bind(ATTEMPTS_MAX)
    .execute(tx)
    .await?;
    Ok(())
}

async fn send(sqs: &aws_sdk_sqs::Client, queue_url: &str, name: &str) -> Result<(), Error> {
    let body = Message::new("subject", job_id(name, 0), 0).to_body();
    sqs.send_message().queue_url(queue_url).message_body(body).send().await?;
    Ok(())
}
