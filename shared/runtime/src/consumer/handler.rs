//! What a job type brings along: the outside work, the effects, and what a failure means.

use std::error::Error;
use std::future::Future;

use domain::{Backoff, DeadReason};
use sqlx::PgConnection;
use store::claim::ClaimedJob;

/// The work of one destination.
///
/// Both halves may run more than once for the same job and must allow for it; the effects of exactly
/// one run are committed. A panic counts as a transient failure.
pub trait Handler: Send + Sync {
    /// What `prepare` hands to `apply`.
    type Prepared: Send;

    /// The destination whose jobs it does. A message for a job of another one is not touched.
    fn destination(&self) -> &str;

    /// How long a job waits after a transient failure.
    fn backoff(&self) -> Backoff {
        Backoff::default()
    }

    /// The slow work outside: S3, HTTP, reading. No transaction is open and no connection is held.
    ///
    /// Everything it waits for needs a limit of its own: nobody cuts it off before the sandbox ends.
    /// It must not take a connection from the engine's pool either: many prepares run side by side, and the
    /// pool is only as large as the engine itself needs.
    fn prepare(&self, job: &ClaimedJob) -> impl Future<Output = Result<Self::Prepared, Failure>> + Send;

    /// Writes the effects, and may enqueue follow-up jobs, in the transaction that completes the job.
    ///
    /// The job's window is locked and current. Nothing but the database is touched here, and not for
    /// long: row locks are held.
    fn apply(
        &self,
        tx: &mut PgConnection,
        job: &ClaimedJob,
        prepared: Self::Prepared,
    ) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// Why a handler did not do its job.
#[derive(Debug)]
pub enum Failure {
    /// It may pass: RETRY after the back-off, as long as attempts are left.
    Transient(Box<dyn Error + Send + Sync>),
    /// It never will: DEAD for `reason`.
    Permanent {
        /// A word for operators to filter by.
        reason: DeadReason,
        /// What happened.
        source: Box<dyn Error + Send + Sync>,
    },
    /// What the job was about has changed: DEAD(`STALE`), which is nobody's fault.
    Stale,
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        Self::Transient(Box::new(error))
    }
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Transient(Box::new(error))
    }
}
