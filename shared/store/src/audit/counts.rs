//! How many there are: windows by dataset, jobs and events by state.

use chrono::{DateTime, Utc};
use sqlx::PgExecutor;

use crate::Error;
use crate::window::WindowRef;

/// The windows of one dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Windows {
    /// The dataset.
    pub dataset: String,
    /// Closed windows, with and without data.
    pub windows: i64,
    /// Those with at least one bar.
    pub with_bars: i64,
    /// Bars in all of them.
    pub bars: i64,
    /// Those collected again with other content.
    pub corrected: i64,
    /// Those stored after the fact.
    pub backfilled: i64,
    /// The first window.
    pub first: DateTime<Utc>,
    /// The last window.
    pub last: DateTime<Utc>,
}

/// The windows of every dataset, by name.
///
/// # Errors
///
/// [`Error::Database`]
pub async fn windows(db: impl PgExecutor<'_>) -> Result<Vec<Windows>, Error> {
    let windows = sqlx::query_as!(
        Windows,
        r#"
        -- audit::windows
        select dataset,
               count(*) as "windows!",
               count(*) filter (where bar_count > 0) as "with_bars!",
               sum(bar_count) as "bars!",
               count(*) filter (where generation > 1) as "corrected!",
               count(*) filter (where backfilled) as "backfilled!",
               min(window_start) as "first!",
               max(window_start) as "last!"
          from collection_window
         group by dataset
         order by dataset
        "#
    )
    .fetch_all(db)
    .await?;
    Ok(windows)
}

/// Jobs that share type, state and reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jobs {
    /// Their type.
    pub job_type: String,
    /// Their state, as the column has it.
    pub status: String,
    /// Why they were given up; `None` for every state but DEAD.
    pub dead_reason: Option<String>,
    /// How many they are.
    pub jobs: i64,
    /// Claims of all of them in their current redrive generation.
    pub attempts: i64,
}

/// Jobs by type, state and reason.
///
/// # Errors
///
/// [`Error::Database`]
pub async fn jobs(db: impl PgExecutor<'_>) -> Result<Vec<Jobs>, Error> {
    let jobs = sqlx::query_as!(
        Jobs,
        r#"
        -- audit::jobs
        select job_type, status, dead_reason, count(*) as "jobs!", sum(attempt_count) as "attempts!"
          from job
         group by job_type, status, dead_reason
         order by job_type, status, dead_reason
        "#
    )
    .fetch_all(db)
    .await?;
    Ok(jobs)
}

/// Outbox events that share destination and state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Events {
    /// Where they go.
    pub destination: String,
    /// Their state, as the column has it.
    pub status: String,
    /// How many they are.
    pub events: i64,
}

/// Outbox events by destination and state.
///
/// # Errors
///
/// [`Error::Database`]
pub async fn events(db: impl PgExecutor<'_>) -> Result<Vec<Events>, Error> {
    let events = sqlx::query_as!(
        Events,
        r#"
        -- audit::events
        select destination, status, count(*) as "events!"
          from outbox_event
         group by destination, status
         order by destination, status
        "#
    )
    .fetch_all(db)
    .await?;
    Ok(events)
}

/// The windows of `dataset` that have a job because of their bars, in their present generation.
///
/// # Errors
///
/// [`Error::Database`]
pub async fn windows_with_work(db: impl PgExecutor<'_>, dataset: &str) -> Result<Vec<WindowRef>, Error> {
    let windows = sqlx::query_as!(
        WindowRef,
        r#"
        -- audit::windows_with_work
        select dataset, window_start as start, generation
          from collection_window
         where dataset = $1
           and bar_count > 0
           and not backfilled
         order by window_start
        "#,
        dataset,
    )
    .fetch_all(db)
    .await?;
    Ok(windows)
}
