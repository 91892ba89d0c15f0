//! Janitor: removes events and jobs that have served their time, in small batches.
//!
//! It takes no input; it is bounded; it does not retry, for the next run is the retry; and any number of
//! them may run at once. What may be removed is `store`'s decision. It touches no artifact.

use std::time::Duration;

use serde::Serialize;
use sqlx::PgPool;
use store::janitor::{remove_events, remove_jobs, remove_sweep_runs};
use tracing::{debug, info};

use crate::time_left::TimeLeft;

/// How long things are kept, and how much is removed at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Since a job was finished. Longer than any message about it can live.
    pub age: Duration,
    /// Rows of one statement, at most.
    pub batch: i64,
    /// Statements of each kind in one run, at most.
    pub batches_max: u32,
    /// Time that one statement may take.
    pub batch_time: Duration,
}

/// What one run removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Published events.
    pub events: u64,
    /// Jobs without events.
    pub jobs: u64,
    /// Results of the sweeper.
    pub sweep_runs: u64,
    /// The run was full; the next one goes on.
    pub limit_reached: bool,
}

impl Default for Retention {
    /// 35 days; up to 50,000 rows of each kind, 500 at once.
    fn default() -> Self {
        let batch_time = Duration::from_secs(5);
        Self { age: Duration::from_hours(35 * 24), batch: 500, batches_max: 100, batch_time }
    }
}

/// Does one run: events before the jobs they belong to.
///
/// # Errors
///
/// [`store::Error`]. What was removed before stays removed.
pub async fn run(db: &PgPool, retention: &Retention, time: TimeLeft) -> Result<Status, store::Error> {
    let mut status = Status::default();
    let Retention { age, batch, .. } = *retention;
    let mut full = |removed: u64| status.limit_reached |= removed >= limit(retention);
    let events = repeat(retention, time, || remove_events(db, age, batch)).await?;
    full(events);
    let jobs = repeat(retention, time, || remove_jobs(db, age, batch)).await?;
    full(jobs);
    let sweep_runs = repeat(retention, time, || remove_sweep_runs(db, age, batch)).await?;
    full(sweep_runs);
    let status = Status { events, jobs, sweep_runs, ..status };
    if status == Status::default() {
        debug!("nothing has served its time");
    } else {
        info!(
            events,
            jobs,
            sweep_runs,
            limit_reached = status.limit_reached,
            "removed what has served its time"
        );
    }
    Ok(status)
}

fn limit(retention: &Retention) -> u64 {
    u64::try_from(retention.batch).unwrap_or(0) * u64::from(retention.batches_max)
}

/// Batches until one is not full, time is short, or the run's bound is reached.
async fn repeat<F: Future<Output = Result<u64, store::Error>>>(
    retention: &Retention,
    time: TimeLeft,
    remove: impl Fn() -> F,
) -> Result<u64, store::Error> {
    let mut removed = 0;
    for _ in 0..retention.batches_max {
        if !time.allows(retention.batch_time) {
            break;
        }
        let batch = remove().await?;
        removed += batch;
        if batch < u64::try_from(retention.batch).unwrap_or(0) {
            break;
        }
    }
    Ok(removed)
}
