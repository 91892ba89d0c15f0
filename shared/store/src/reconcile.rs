//! Finds jobs nobody will ever wake, and rings again.
//!
//! A job is *lost* if and only if it is not finished, its event of the current generation is
//! PUBLISHED, and nothing has happened to it for longer than a safe delay: the message was lost, the
//! queue purged, its retention over, or a consumer died. What the relay still has to send is not lost.
//! A ring repeats a message, which the claim absorbs; it never moves the job.

use std::time::Duration;

use fault::FaultPoint;
use sqlx::PgExecutor;

use crate::Error;

/// How patient, and how much at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Silence before the first ring of a job. Longer than the queues' visibility timeout, or jobs
    /// that are being worked on are rung. It doubles with each ring of the same job.
    pub safe_delay: Duration,
    /// The longest silence between two rings of the same job.
    pub longest_delay: Duration,
    /// Jobs rung in one call, at most.
    pub limit: i64,
}

impl Default for Pace {
    /// 5 min, doubling up to 6 h; 1,000 jobs.
    fn default() -> Self {
        Self { safe_delay: Duration::from_mins(5), longest_delay: Duration::from_hours(6), limit: 1_000 }
    }
}

/// A job whose event is NEW again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rung {
    /// The job's id.
    pub job_id: String,
    /// Where its message will go.
    pub destination: String,
    /// Rings of this job in this redrive generation, this one included.
    pub requeue_count: i32,
}

/// Rings for lost jobs, the longest unfinished first.
///
/// Rows somebody holds are skipped and the predicate is tested again on the locked rows, so that of any
/// number of reconcilers exactly one rings. It never waits for a lock, so the order it locks in can not
/// close a deadlock's circle.
///
/// # Errors
///
/// [`Error::Database`]. Nothing to repair: the next run looks again.
pub async fn ring(db: impl PgExecutor<'_>, pace: &Pace) -> Result<Vec<Rung>, Error> {
    let rung = sqlx::query_as!(
        Rung,
        r#"
        -- reconcile::ring
        with lost as (
            select job.job_id, e.event_id
              from job
              join outbox_event e using (job_id, redrive_generation)
             cross join lateral (
                   select now() - make_interval(secs => least($1 * power(2, least(job.requeue_count, 30)), $2))
                   ) as patience (ends)
             where job.finished_at is null
               and e.status = 'PUBLISHED'
               and greatest(job.next_attempt_at, job.last_requeued_at, job.lease_until) < patience.ends
               and e.published_at < patience.ends
             order by job.enqueued_at, job.job_id
             limit $3
               for update of job, e skip locked
        ), event as (
            update outbox_event e
               set status          = 'NEW',
                   ring            = e.ring + 1,
                   published_at    = null,
                   attempt_count   = 0,
                   next_attempt_at = now(),
                   last_error      = null
              from lost
             where e.event_id = lost.event_id
            returning e.job_id
        )
        update job
           set last_requeued_at = now(),
               requeue_count    = job.requeue_count + 1
          from event
         where job.job_id = event.job_id
        returning job.job_id, job.destination, job.requeue_count
        "#,
        pace.safe_delay.as_secs_f64(),
        pace.longest_delay.as_secs_f64(),
        pace.limit,
    )
    .fetch_all(db)
    .fault_point("reconcile::ring")
    .await?;
    Ok(rung)
}
