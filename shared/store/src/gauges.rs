//! What the rows say from outside: how much there is of each state, and how old the oldest is.
//!
//! Each statement reads what is unfinished, new or dead, through the partial index that holds just that,
//! and never the history: how much has SUCCEEDED is the planner's estimate less what was counted. All
//! rows come back, also for names that nobody configured; a name without a row is the caller's zero.

use std::time::Duration;

use chrono::{DateTime, Utc};
use fault::FaultPoint;
use sqlx::PgExecutor;

use crate::Error;
use crate::values::milliseconds;

/// Unfinished jobs that have destination, type and status in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// Where their messages go.
    pub destination: String,
    /// Their type.
    pub job_type: String,
    /// PENDING, CLAIMED or RETRY.
    pub status: String,
    /// How many.
    pub count: u64,
    /// How long ago the oldest was enqueued or redriven.
    pub oldest: Duration,
}

/// DEAD jobs that have destination and reason in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dead {
    /// Where their messages went.
    pub destination: String,
    /// One word in capitals.
    pub reason: String,
    /// Whether a person accepted them as dead.
    pub dismissed: bool,
    /// How many.
    pub count: u64,
}

/// NEW events of one destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvents {
    /// Where they go.
    pub destination: String,
    /// How many.
    pub count: u64,
    /// How long ago the oldest was created.
    pub oldest: Duration,
}

/// How healthy a lane is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneHealth {
    /// The lane.
    pub destination: String,
    /// Failures in a row; above 0 it backs off.
    pub failures: u64,
}

/// The newest window of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewestWindow {
    /// The dataset's name.
    pub dataset: String,
    /// The window's first instant; `None` when there is no window yet.
    pub start: Option<DateTime<Utc>>,
    /// The database's clock.
    pub now: DateTime<Utc>,
}

/// Unfinished jobs by destination, type and status.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn unfinished(db: impl PgExecutor<'_>) -> Result<Vec<Unfinished>, Error> {
    let rows = sqlx::query!(
        r#"
        -- gauges::unfinished
        select destination, job_type, status, count(*) as "count!",
               (extract(epoch from now() - min(enqueued_at)) * 1000)::bigint as "oldest_ms!"
          from job
         where finished_at is null
         group by destination, job_type, status
         order by destination, job_type, status
        "#
    )
    .fetch_all(db)
    .fault_point("gauges::unfinished")
    .await?;
    let unfinished = rows.into_iter().map(|row| Unfinished {
        destination: row.destination,
        job_type: row.job_type,
        status: row.status,
        count: whole(row.count),
        oldest: milliseconds(row.oldest_ms),
    });
    Ok(unfinished.collect())
}

/// DEAD jobs by destination and reason, the dismissed apart.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn dead(db: impl PgExecutor<'_>) -> Result<Vec<Dead>, Error> {
    let rows = sqlx::query!(
        r#"
        -- gauges::dead
        select destination, dead_reason as "reason!", dismissed_at is not null as "dismissed!", count(*) as "count!"
          from job
         where dead_reason is not null
         group by 1, 2, 3
         order by 1, 2, 3
        "#
    )
    .fetch_all(db)
    .fault_point("gauges::dead")
    .await?;
    let dead = rows.into_iter().map(|row| Dead {
        destination: row.destination,
        reason: row.reason,
        dismissed: row.dismissed,
        count: whole(row.count),
    });
    Ok(dead.collect())
}

/// About how many jobs there are, as of the last vacuum or analyze: for sets too large to count.
///
/// A table that was never looked at is counted, to 100,000.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn estimated_jobs(db: impl PgExecutor<'_>) -> Result<u64, Error> {
    let jobs = sqlx::query_scalar!(
        r#"
        -- gauges::estimated_jobs
        select case when reltuples >= 0 then reltuples::bigint
                    else (select count(*) from (select from job limit 100000) as counted)
               end as "jobs!"
          from pg_class
         where oid = 'job'::regclass
        "#
    )
    .fetch_one(db)
    .fault_point("gauges::estimated_jobs")
    .await?;
    Ok(whole(jobs))
}

/// NEW events by destination.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn new_events(db: impl PgExecutor<'_>) -> Result<Vec<NewEvents>, Error> {
    let rows = sqlx::query!(
        r#"
        -- gauges::new_events
        select destination, count(*) as "count!",
               (extract(epoch from now() - min(created_at)) * 1000)::bigint as "oldest_ms!"
          from outbox_event
         where status = 'NEW'
         group by destination
         order by destination
        "#
    )
    .fetch_all(db)
    .fault_point("gauges::new_events")
    .await?;
    let events = rows.into_iter().map(|row| NewEvents {
        destination: row.destination,
        count: whole(row.count),
        oldest: milliseconds(row.oldest_ms),
    });
    Ok(events.collect())
}

/// DEAD events by destination.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn dead_events(db: impl PgExecutor<'_>) -> Result<Vec<(String, u64)>, Error> {
    let rows = sqlx::query!(
        r#"
        -- gauges::dead_events
        select destination, count(*) as "count!"
          from outbox_event
         where dead_reason is not null
         group by destination
         order by destination
        "#
    )
    .fetch_all(db)
    .fault_point("gauges::dead_events")
    .await?;
    Ok(rows.into_iter().map(|row| (row.destination, whole(row.count))).collect())
}

/// All lanes.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn lanes(db: impl PgExecutor<'_>) -> Result<Vec<LaneHealth>, Error> {
    let rows = sqlx::query!(
        r#"
        -- gauges::lanes
        select destination, failure_count
          from lane
         order by destination
        "#
    )
    .fetch_all(db)
    .fault_point("gauges::lanes")
    .await?;
    let health = |destination, failures| LaneHealth { destination, failures };
    Ok(rows.into_iter().map(|row| health(row.destination, whole(row.failure_count.into()))).collect())
}

/// How many messages nobody can decide.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn quarantined(db: impl PgExecutor<'_>) -> Result<u64, Error> {
    let count = sqlx::query_scalar!(
        r#"
        -- gauges::quarantined
        select count(*) as "count!"
          from quarantined_message
        "#
    )
    .fetch_one(db)
    .fault_point("gauges::quarantined")
    .await?;
    Ok(whole(count))
}

/// The newest window of each of `datasets`, and the database's clock to compare it with.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn newest_windows(
    db: impl PgExecutor<'_>,
    datasets: &[String],
) -> Result<Vec<NewestWindow>, Error> {
    let windows = sqlx::query_as!(
        NewestWindow,
        r#"
        -- gauges::newest_windows
        select asked.dataset as "dataset!", now() as "now!",
               (select max(window_start) from collection_window where dataset = asked.dataset) as start
          from unnest($1::text[]) as asked (dataset)
         order by asked.dataset
        "#,
        datasets,
    )
    .fetch_all(db)
    .fault_point("gauges::newest_windows")
    .await?;
    Ok(windows)
}

fn whole(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}
