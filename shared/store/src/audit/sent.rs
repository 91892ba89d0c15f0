//! What was delivered, and how long it took until it was done.

use std::time::Duration;

use sqlx::PgExecutor;

use crate::Error;

/// From the commit of a job to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latency {
    /// The type of the jobs.
    pub job_type: String,
    /// How many ended.
    pub jobs: i64,
    /// The median.
    pub p50: Duration,
    /// One in twenty took longer.
    pub p95: Duration,
    /// The longest.
    pub max: Duration,
}

/// How long jobs took from their commit to SUCCEEDED or DEAD, by type; whole milliseconds.
///
/// # Errors
///
/// [`Error::Database`]
pub async fn latencies(db: impl PgExecutor<'_>) -> Result<Vec<Latency>, Error> {
    let rows = sqlx::query!(
        r#"
        -- audit::latencies
        with done as (
            select job_type, (extract(epoch from finished_at - created_at) * 1000)::bigint as took_ms
              from job
             where finished_at is not null
        )
        select job_type,
               count(*) as "jobs!",
               percentile_disc(0.5) within group (order by took_ms) as "p50_ms!",
               percentile_disc(0.95) within group (order by took_ms) as "p95_ms!",
               max(took_ms) as "max_ms!"
          from done
         group by job_type
         order by job_type
        "#
    )
    .fetch_all(db)
    .await?;

    let milliseconds = |ms: i64| Duration::from_millis(ms.max(0).unsigned_abs());
    Ok(rows
        .into_iter()
        .map(|row| Latency {
            job_type: row.job_type,
            jobs: row.jobs,
            p50: milliseconds(row.p50_ms),
            p95: milliseconds(row.p95_ms),
            max: milliseconds(row.max_ms),
        })
        .collect())
}

/// A published event, ready to be delivered once more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// Where it went.
    pub destination: String,
    /// The message as it was sent.
    pub body: String,
}

/// The last `limit` events that were published, newest first.
///
/// # Errors
///
/// [`Error::Database`]
pub async fn published(db: impl PgExecutor<'_>, limit: i64) -> Result<Vec<Published>, Error> {
    let published = sqlx::query_as!(
        Published,
        r#"
        -- audit::published
        select destination, body
          from outbox_event
         where status = 'PUBLISHED'
         order by published_at desc, sequence desc
         limit $1
        "#,
        limit,
    )
    .fetch_all(db)
    .await?;
    Ok(published)
}
