//! What became of every committed job, and which were never made.

use domain::JobId;
use sqlx::PgExecutor;

use crate::Error;

/// What became of every committed job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// Jobs there are.
    pub committed: i64,
    /// Of these, SUCCEEDED.
    pub succeeded: i64,
    /// Of these, DEAD.
    pub dead: i64,
    /// Of these, still under way.
    pub unfinished: i64,
    /// Unfinished jobs somebody holds under a live lease.
    pub held: i64,
    /// Unfinished jobs that wait for the relay.
    pub unsent: i64,
    /// Unfinished jobs whose message was sent. Nothing in this database says whether it still exists.
    pub awaiting_delivery: i64,
    /// Unfinished jobs that no event of their generation can ever wake: it is missing or DEAD.
    pub unwakeable: i64,
}

impl Balance {
    /// Whether every job has ended, one way or the other.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.unfinished == 0
    }

    /// Whether `committed = succeeded + dead + unfinished` and every unfinished job can be woken.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.committed == self.succeeded + self.dead + self.unfinished && self.unwakeable == 0
    }
}

/// What became of every committed job, in one snapshot.
///
/// # Errors
///
/// [`Error::Database`]
pub async fn balance(db: impl PgExecutor<'_>) -> Result<Balance, Error> {
    let balance = sqlx::query_as!(
        Balance,
        r#"
        -- audit::balance
        with woken as (
            select job.status,
                   job.finished_at is null as unfinished,
                   coalesce(job.lease_until > now(), false) as held,
                   event.status as event
              from job
              left join outbox_event event
                on event.job_id = job.job_id
               and event.redrive_generation = job.redrive_generation
               and event.event_type = job.job_type
        )
        select count(*) as "committed!",
               count(*) filter (where status = 'SUCCEEDED') as "succeeded!",
               count(*) filter (where status = 'DEAD') as "dead!",
               count(*) filter (where unfinished) as "unfinished!",
               count(*) filter (where unfinished and held) as "held!",
               count(*) filter (where unfinished and event = 'NEW') as "unsent!",
               count(*) filter (where unfinished and not held and event = 'PUBLISHED') as "awaiting_delivery!",
               count(*) filter (where unfinished and coalesce(event, 'DEAD') = 'DEAD') as "unwakeable!"
          from woken
        "#
    )
    .fetch_one(db)
    .await?;
    Ok(balance)
}

/// Which of these jobs have no row. Asked with the jobs that must follow from the subject's own rows,
/// the answer is what was lost before it was ever a job.
///
/// # Errors
///
/// [`Error::Database`]
pub async fn absent(db: impl PgExecutor<'_>, expected: &[JobId]) -> Result<Vec<String>, Error> {
    let expected: Vec<&str> = expected.iter().map(JobId::as_str).collect();
    let absent = sqlx::query_scalar!(
        r#"
        -- audit::absent
        select expected.job_id as "job_id!"
          from unnest($1::text[]) as expected (job_id)
         where not exists (select from job where job.job_id = expected.job_id)
         order by expected.job_id
        "#,
        &expected as &[&str],
    )
    .fetch_all(db)
    .await?;
    Ok(absent)
}
