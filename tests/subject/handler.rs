//! The subject's handler: it does what its job's payload says, well or badly.
//!
//! It notes each run outside of any transaction, and its effect inside the job's. No natural key holds
//! off a second effect: that is left to the claim alone.

use std::time::Duration;

use domain::JobType;
use runtime::consumer::{Failure, Handler, Job};
use rustix::process::{Signal, getpid, kill_process};
use serde_json::Value;
use sqlx::{PgConnection, PgPool};
use store::enqueue::enqueue;
use system_tests::subject::{JOB_TYPE, job as new_job};

/// Longer than any invocation lasts.
const FOR_EVER: Duration = Duration::from_hours(1);

/// Long enough for something to happen meanwhile.
const SLOW: Duration = Duration::from_millis(300);

/// The handler of the subject's jobs.
pub struct Subject {
    /// For the notes about runs.
    pub notes: PgPool,
}

impl Handler for Subject {
    type Payload = Value;
    type Prepared = ();

    fn job_type(&self) -> JobType {
        JOB_TYPE
    }

    async fn prepare(&self, job: &Job<Value>) -> Result<(), Failure> {
        sqlx::query("insert into subject_run (job_id, attempt) values ($1, $2)")
            .bind(job.id().as_str())
            .bind(job.attempt())
            .execute(&self.notes)
            .await?;
        let is_first = job.attempt() == 1;
        match text(job, "behave") {
            "fail-once" if is_first => Err(Failure::Transient("once".into())),
            "fail" => Err(Failure::Transient("always".into())),
            "refuse" => Err(Failure::permanent("REFUSED", "on purpose")),
            "stale" => Err(Failure::Stale),
            "panic" => panic!("on purpose"),
            "kill" => die(),
            "slow" => {
                tokio::time::sleep(SLOW).await;
                Ok(())
            }
            "hang" if is_first => {
                tokio::time::sleep(FOR_EVER).await;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn apply(&self, tx: &mut PgConnection, job: &Job<Value>, (): ()) -> Result<(), Failure> {
        sqlx::query("insert into subject_effect (job_id) values ($1)")
            .bind(job.id().as_str())
            .execute(&mut *tx)
            .await?;
        if text(job, "behave") == "follow-up" {
            let number = job.payload.get("number").and_then(Value::as_i64).unwrap_or_default();
            let name = format!("{}-follow-up", text(job, "name"));
            enqueue(tx, &[new_job(&name, number, "succeed")]).await?;
        }
        Ok(())
    }
}

fn text<'a>(job: &'a Job<Value>, field: &str) -> &'a str {
    job.payload.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Ends this process as a lost host ends it.
fn die() -> Result<(), Failure> {
    kill_process(getpid(), Signal::KILL).map_err(|error| Failure::Transient(error.into()))
}
