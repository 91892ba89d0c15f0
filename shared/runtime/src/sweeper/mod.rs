//! Sweeper: finds objects no row refers to and reclaims them, and rows whose object is not there.
//!
//! Guarantee: no object that a committed row refers to is ever deleted, however the grace period is
//! chosen. An object is deleted only after its key is RECLAIMED in PostgreSQL, on the primary key that its
//! writer needs. Every run is bounded, goes on where the last one stopped, and does not retry: the next
//! run is the retry. It mends nothing: what is missing is reported.
//!
//! `docs/sweeper.md` has the protocol, its proof and the guards.

mod adoption;
pub mod bucket;
pub mod compare;
pub mod guard;
pub mod keys;
pub mod page;
pub mod policy;
pub mod report;
pub mod request;
mod run;
pub mod s3;

use std::time::Duration;

use sqlx::PgPool;

pub use bucket::{Bucket, BucketError};
pub use guard::Refusal;
pub use policy::Policy;
pub use report::{Report, Stopped};
pub use request::Order;
pub use s3::S3;

use crate::time_left::TimeLeft;

/// Why a run failed. What it did before is done, and the next one goes on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database did not carry out a statement.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// S3 did not answer.
    #[error(transparent)]
    Bucket(#[from] BucketError),
}

/// Of the time at the start, the part that is kept for a page's end: with less left none is begun. Dying
/// in the middle of one harms nobody.
const PAGE_SHARE: u32 = 5;
/// At least so much of it.
const PAGE_TIME_MIN: Duration = Duration::from_secs(1);

/// Does one run.
///
/// # Errors
///
/// [`Error`]. A guard that refuses is no error: the report says so.
pub async fn run<B: Bucket>(
    db: &PgPool,
    bucket: &B,
    policy: &Policy,
    order: &Order,
    time: TimeLeft,
) -> Result<Report, Error> {
    let report = Report { dry_run: !policy.delete, ..Report::default() };
    let page_time = (time.remaining() / PAGE_SHARE).max(PAGE_TIME_MIN);
    // On the heap: the futures of a page are nested too deeply for the compiler to lay them out in a caller.
    Box::pin(run::Run { db, bucket, policy, time, page_time, report }.all(order)).await
}
