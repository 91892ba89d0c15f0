//! The subject's jobs and tables: made by the subject's own producer and by the scenarios alike.

use domain::{Identity, JobId, JobType};
use serde_json::json;
use sqlx::PgPool;
use store::enqueue::{NewJob, enqueue};

use crate::Result;

/// The destination whose queue the subject consumes; the configuration knows no other names.
pub const DESTINATION: &str = "news";
/// Attempts of a job of the subject.
pub const ATTEMPTS_MAX: i32 = 3;

/// The jobs of the subject.
pub const JOB_TYPE: JobType = JobType::new("subject").sent_to(DESTINATION).tried(ATTEMPTS_MAX);

/// The id of a job of the subject.
#[must_use]
pub fn job_id(name: &str, number: i64) -> JobId {
    identity(name, number).job_id()
}

fn identity(name: &str, number: i64) -> Identity {
    JOB_TYPE.identity().text("name", name).integer("number", number)
}

/// A job of the subject; its handler behaves as `behave` says.
#[must_use]
pub fn job(name: &str, number: i64, behave: &str) -> NewJob {
    let payload = json!({ "name": name, "number": number, "behave": behave });
    NewJob::new(&JOB_TYPE, identity(name, number), payload)
}

/// Makes the subject's tables: what ran, and what had an effect. Neither refuses a second row.
///
/// # Errors
///
/// The database refuses.
pub async fn create_tables(db: &PgPool) -> Result<()> {
    let tables = "create table subject_run (job_id text not null, attempt integer not null); \
                  create table subject_effect (job_id text not null); \
                  create index on subject_run (job_id); create index on subject_effect (job_id)";
    sqlx::raw_sql(tables).execute(db).await?;
    Ok(())
}

/// Commits `jobs` with their events.
///
/// # Errors
///
/// The database refuses.
pub async fn commit(db: &PgPool, jobs: &[NewJob]) -> Result<()> {
    let mut tx = db.begin().await?;
    enqueue(&mut tx, jobs).await?;
    tx.commit().await?;
    Ok(())
}
