//! The moves out of CLAIMED. Each is one statement under five guards, and the row count is its answer.
//!
//! The guards are the id, the claim's own name, the status, the attempt and the redrive generation. A
//! claim that lost its job to another after the lease, or to a redrive, can not move the row any more,
//! however late it comes. A lease that ran out without anybody taking over still counts: nobody else
//! can have done the work.

use std::time::Duration;

use domain::DeadReason;
use fault::FaultPoint;
use sqlx::PgExecutor;

use crate::Error;
use crate::claim::Claim;
use crate::values::{error_text, interval, milliseconds};

/// What came of moving a claimed job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a lost claim must roll back whatever was written for it"]
pub enum Moved {
    /// The job is where it was to go.
    Done,
    /// The claim does not hold the job any more; nothing was changed.
    Lost,
}

/// What came of giving a job back after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "it says what to do with the message"]
pub enum Retried {
    /// RETRY: the next attempt is due after this wait, on the database's clock.
    Waiting {
        /// In milliseconds, rounded up.
        wait: Duration,
    },
    /// DEAD: that was the last allowed attempt.
    Dead,
    /// The claim does not hold the job any more; nothing was changed.
    Lost,
}

/// Marks the job SUCCEEDED. Run it in the transaction that holds the work's effects.
///
/// # Errors
///
/// [`Error::Database`]; roll back.
pub async fn complete(tx: impl PgExecutor<'_>, claim: &Claim) -> Result<Moved, Error> {
    let done = sqlx::query!(
        r#"
        -- job::complete
        update job
           set status      = 'SUCCEEDED',
               claimed_by  = null,
               lease_until = null,
               finished_at = clock_timestamp()
         where job_id = $1
           and claimed_by = $2
           and status = 'CLAIMED'
           and attempt_count = $3
           and redrive_generation = $4
        "#,
        claim.job_id().as_str(),
        claim.claimed_by(),
        claim.attempt_count(),
        claim.redrive_generation(),
    )
    .execute(tx)
    .fault_point("job::complete")
    .await?;
    Ok(moved(done.rows_affected()))
}

/// Gives the job up for `reason`: DEAD until an operator redrives it.
///
/// # Errors
///
/// [`Error::Database`]. The move may have happened even so.
pub async fn bury(
    db: impl PgExecutor<'_>,
    claim: &Claim,
    reason: &DeadReason,
    last_error: &str,
) -> Result<Moved, Error> {
    let buried = sqlx::query!(
        r#"
        -- job::bury
        update job
           set status      = 'DEAD',
               dead_reason = $5,
               last_error  = $6,
               claimed_by  = null,
               lease_until = null,
               finished_at = clock_timestamp()
         where job_id = $1
           and claimed_by = $2
           and status = 'CLAIMED'
           and attempt_count = $3
           and redrive_generation = $4
        "#,
        claim.job_id().as_str(),
        claim.claimed_by(),
        claim.attempt_count(),
        claim.redrive_generation(),
        reason.as_str(),
        error_text(last_error),
    )
    .execute(db)
    .fault_point("job::bury")
    .await?;
    Ok(moved(buried.rows_affected()))
}

/// Gives back a job whose handler was never started: RETRY, due now.
///
/// The attempt stays counted, since it is the fence against this very claim.
///
/// # Errors
///
/// [`Error::Database`]. The move may have happened even so.
pub async fn release(db: impl PgExecutor<'_>, claim: &Claim) -> Result<Moved, Error> {
    let released = sqlx::query!(
        r#"
        -- job::release
        update job
           set status          = 'RETRY',
               next_attempt_at = clock_timestamp(),
               claimed_by      = null,
               lease_until     = null
         where job_id = $1
           and claimed_by = $2
           and status = 'CLAIMED'
           and attempt_count = $3
           and redrive_generation = $4
        "#,
        claim.job_id().as_str(),
        claim.claimed_by(),
        claim.attempt_count(),
        claim.redrive_generation(),
    )
    .execute(db)
    .fault_point("job::release")
    .await?;
    Ok(moved(released.rows_affected()))
}

/// Gives back a job whose handler failed: RETRY, due after `delay`, or DEAD(`ATTEMPTS_EXHAUSTED`) at
/// once when that was the last allowed attempt.
///
/// `delay` counts from the database's now and is rounded down to microseconds.
///
/// # Errors
///
/// [`Error::Database`]. The move may have happened even so.
pub async fn retry(
    db: impl PgExecutor<'_>,
    claim: &Claim,
    delay: Duration,
    last_error: &str,
) -> Result<Retried, Error> {
    let moved = sqlx::query!(
        r#"
        -- job::retry
        update job
           set status          = case when attempt_count < max_attempts then 'RETRY' else 'DEAD' end,
               dead_reason     = case when attempt_count < max_attempts then null else $7 end,
               finished_at     = case when attempt_count < max_attempts then null else clock_timestamp() end,
               next_attempt_at = clock_timestamp() + $5,
               last_error      = $6,
               claimed_by      = null,
               lease_until     = null
         where job_id = $1
           and claimed_by = $2
           and status = 'CLAIMED'
           and attempt_count = $3
           and redrive_generation = $4
        returning status = 'DEAD' as "is_dead!",
                  ceil(extract(epoch from next_attempt_at - clock_timestamp()) * 1000)::bigint as "wait_ms!"
        "#,
        claim.job_id().as_str(),
        claim.claimed_by(),
        claim.attempt_count(),
        claim.redrive_generation(),
        interval(delay),
        error_text(last_error),
        DeadReason::AttemptsExhausted.as_str(),
    )
    .fetch_optional(db)
    .fault_point("job::retry")
    .await?;
    Ok(match moved {
        Some(row) if row.is_dead => Retried::Dead,
        Some(row) => Retried::Waiting { wait: milliseconds(row.wait_ms) },
        None => Retried::Lost,
    })
}

/// What the row count of a move by primary key means.
fn moved(rows: u64) -> Moved {
    if rows == 1 { Moved::Done } else { Moved::Lost }
}
