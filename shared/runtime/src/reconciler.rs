//! Rings again for jobs whose wake-up was lost.
//!
//! It takes no input, so there is one code path; it is bounded; it does not retry, for the next run is
//! the retry; and any number of them may run at once. It sends nothing: the relay does, as always.

use std::collections::BTreeMap;

use serde::Serialize;
use sqlx::PgPool;
use store::reconcile::{Pace, Rung, ring};
use tracing::{debug, info};

use crate::metrics::Line;

/// What one run did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Jobs whose event is NEW again.
    pub requeued: usize,
    /// The same by destination.
    pub by_destination: BTreeMap<String, usize>,
    /// The most rings any of these jobs has had: how long the longest outage of a consumer lasts.
    pub requeue_count_max: i32,
    /// The run was full; more jobs may be waiting for the next one.
    pub limit_reached: bool,
}

/// Does one run.
///
/// # Errors
///
/// [`store::Error`]. If the answer was lost the jobs may have been rung, which harms nobody.
pub async fn run(db: &PgPool, pace: &Pace) -> Result<Status, store::Error> {
    let status = status(&ring(db, pace).await?, pace);
    if status.requeued == 0 {
        debug!("no wake-up was lost");
    } else {
        info!(
            requeued = status.requeued,
            requeue_count_max = status.requeue_count_max,
            limit_reached = status.limit_reached,
            "rang again for jobs nobody came for"
        );
    }
    Line::stack().count("Requeued", u64::try_from(status.requeued).unwrap_or(u64::MAX)).emit();
    Ok(status)
}

fn status(rung: &[Rung], pace: &Pace) -> Status {
    let mut by_destination = BTreeMap::new();
    for job in rung {
        *by_destination.entry(job.destination.clone()).or_insert(0) += 1;
    }
    Status {
        requeued: rung.len(),
        by_destination,
        requeue_count_max: rung.iter().map(|job| job.requeue_count).max().unwrap_or(0),
        limit_reached: i64::try_from(rung.len()).is_ok_and(|rung| rung >= pace.limit),
    }
}
