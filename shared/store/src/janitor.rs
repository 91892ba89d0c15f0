//! Removes what has served its time: events that were published, and the jobs they belonged to.
//!
//! A job is *retirable* if and only if it SUCCEEDED, was dismissed, or is DEAD(`STALE`), and has been
//! finished for longer than any message about it can live. Of it the PUBLISHED events go first, and the
//! job only when none of its events is left. Nothing unfinished is ever touched, nor a dead job that
//! nobody has dismissed, nor an artifact's row. Rows that somebody holds are left for the next run.

use std::time::Duration;

use fault::FaultPoint;
use sqlx::PgExecutor;

use crate::Error;
use crate::values::interval;

/// Removes PUBLISHED events of jobs that have been retirable for `age`, at most `limit`.
///
/// # Errors
///
/// [`Error::Database`]. Nothing to repair: the next run looks again.
pub async fn remove_events(db: impl PgExecutor<'_>, age: Duration, limit: i64) -> Result<u64, Error> {
    let removed = sqlx::query!(
        r#"
        -- janitor::remove_events
        with served as (
            select e.event_id
              from job
              join outbox_event e on e.job_id = job.job_id and e.status = 'PUBLISHED'
             where job.finished_at < now() - $1::interval
               and job.finished_at is not null
               and (job.dead_reason is null or job.dead_reason = 'STALE' or job.dismissed_at is not null)
             order by job.finished_at, job.job_id, e.event_id
             limit $2
               for update of e skip locked
        )
        delete from outbox_event e using served
         where e.event_id = served.event_id and e.status = 'PUBLISHED'
        "#,
        interval(age),
        limit,
    )
    .execute(db)
    .fault_point("janitor::remove_events")
    .await?;
    Ok(removed.rows_affected())
}

/// Removes jobs that have been retirable for `age` and have no event left, at most `limit`.
///
/// # Errors
///
/// [`Error::Database`]. Nothing to repair: the next run looks again.
pub async fn remove_jobs(db: impl PgExecutor<'_>, age: Duration, limit: i64) -> Result<u64, Error> {
    let removed = sqlx::query!(
        r#"
        -- janitor::remove_jobs
        with served as (
            select job_id
              from job
             where finished_at < now() - $1::interval
               and finished_at is not null
               and (dead_reason is null or dead_reason = 'STALE' or dismissed_at is not null)
               and not exists (select from outbox_event e where e.job_id = job.job_id)
             order by finished_at, job_id
             limit $2
               for update skip locked
        )
        delete from job using served where job.job_id = served.job_id
        "#,
        interval(age),
        limit,
    )
    .execute(db)
    .fault_point("janitor::remove_jobs")
    .await?;
    Ok(removed.rows_affected())
}

/// Removes results of the sweeper that are older than `age`, but never the newest; at most `limit`.
///
/// # Errors
///
/// [`Error::Database`]. Nothing to repair: the next run looks again.
pub async fn remove_sweep_runs(db: impl PgExecutor<'_>, age: Duration, limit: i64) -> Result<u64, Error> {
    let removed = sqlx::query!(
        r#"
        -- janitor::remove_sweep_runs
        with served as (
            select run_id
              from sweep_run
             where ended_at < now() - $1::interval
               and run_id < (select max(run_id) from sweep_run)
             order by run_id
             limit $2
               for update skip locked
        )
        delete from sweep_run using served where sweep_run.run_id = served.run_id
        "#,
        interval(age),
        limit,
    )
    .execute(db)
    .fault_point("janitor::remove_sweep_runs")
    .await?;
    Ok(removed.rows_affected())
}
