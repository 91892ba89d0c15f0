//! What a job type brings along: its payload, the outside work, the effects, and what a failure means.
//!
//! ```text
//! claim ──▶ payload read ──▶ prepare ──▶ begin ─▶ window locked ─▶ apply ─▶ complete ─▶ commit
//!              │               │                                      │         │
//!              └ DEAD          └──── Transient ▸ RETRY, Permanent ▸ DEAD, Stale ▸ DEAD(STALE)
//! ```
//!
//! | | `prepare` | `apply` |
//! |---|---|---|
//! | runs | at least once for each job that is done; again after every failure, crash or lost claim | the same, and only after a `prepare` of the same attempt |
//! | may | call S3, HTTP, anything slow | use the transaction it is given |
//! | must not | take a connection of the engine's pool: completions wait for those | call anything outside, or take long: row locks are held |
//! | its effects | outside: **at least once** | rows: **exactly once**, with the job's completion or not at all |
//!
//! To make an outside effect idempotent, give the receiver [`Job::id`] as the idempotency key: it is the
//! same in every delivery, attempt and redrive of the same logical work. What can not take a key is
//! guarded by a row that `apply` writes and the next `prepare` reads, which narrows the gap to a crash
//! between the two and never closes it.

use std::error::Error;
use std::future::Future;

use domain::{DeadReason, JobType};
use serde::de::DeserializeOwned;
use sqlx::PgConnection;

use super::job::Job;

/// The work of one job type.
///
/// Both halves may run more than once for the same job and must allow for it; the effects of exactly
/// one run are committed. A panic counts as a transient failure.
///
/// ```
/// use domain::{DeadReason, JobType};
/// use runtime::consumer::{Failure, Handler, Job};
/// use serde::Deserialize;
/// use sqlx::PgConnection;
///
/// pub const GREETING: JobType = JobType::new("greeting").tried(5);
///
/// #[derive(Deserialize)]
/// struct Greet {
///     name: String,
/// }
///
/// struct Greeter;
///
/// impl Handler for Greeter {
///     type Payload = Greet;
///     type Prepared = String;
///
///     fn job_type(&self) -> JobType {
///         GREETING
///     }
///
///     async fn prepare(&self, job: &Job<Greet>) -> Result<String, Failure> {
///         if job.payload.name.is_empty() {
///             return Err(Failure::permanent("NO_NAME", "there is nobody to greet"));
///         }
///         Ok(format!("Hello, {}!", job.payload.name))
///     }
///
///     async fn apply(&self, tx: &mut PgConnection, job: &Job<Greet>, text: String) -> Result<(), Failure> {
///         sqlx::query("insert into greeting (job_id, body) values ($1, $2)")
///             .bind(job.id().as_str())
///             .bind(text)
///             .execute(tx)
///             .await?;
///         Ok(())
///     }
/// }
///
/// let failure = Failure::permanent("NO_NAME", "there is nobody to greet");
/// assert!(matches!(failure, Failure::Permanent { reason: DeadReason::Handler("NO_NAME"), .. }));
/// ```
pub trait Handler: Send + Sync {
    /// What the job's payload is read as, before anything else. One that can not be read so makes the
    /// job DEAD(`BAD_PAYLOAD`); `serde_json::Value` reads everything.
    type Payload: DeserializeOwned + Send + Sync;

    /// What `prepare` hands to `apply`.
    type Prepared: Send;

    /// The jobs it does: their name, their destination and how they are tried.
    ///
    /// A message for a job of another destination is not touched; a job of another name that was sent
    /// here is DEAD(`UNKNOWN_JOB_TYPE`). `max_attempts` and `max_age` are written into a job's row when it is
    /// enqueued, and count from there; the back-off is read here at each failure.
    fn job_type(&self) -> JobType;

    /// The slow work outside: S3, HTTP, reading. No transaction is open and no connection is held.
    ///
    /// Everything it waits for needs a limit of its own: nobody cuts it off before the sandbox ends.
    /// It must not take a connection from the engine's pool either: many prepares run side by side, and the
    /// pool is only as large as the engine itself needs.
    fn prepare(
        &self,
        job: &Job<Self::Payload>,
    ) -> impl Future<Output = Result<Self::Prepared, Failure>> + Send;

    /// Writes the effects, and may enqueue follow-up jobs, in the transaction that completes the job.
    ///
    /// The job's window is locked and current. Nothing but the database is touched here, and not for
    /// long: row locks are held.
    fn apply(
        &self,
        tx: &mut PgConnection,
        job: &Job<Self::Payload>,
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

impl Failure {
    /// It may pass. `source` is stored with the job, its causes included: put no secret into it.
    #[must_use]
    pub fn transient(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Transient(source.into())
    }

    /// It never will; `word` (`[A-Z][A-Z0-9_]*`) is what operators filter by.
    #[must_use]
    pub fn permanent(word: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Permanent { reason: DeadReason::Handler(word), source: source.into() }
    }
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
