//! A claimed job as its handler sees it: the payload in its own type, and who the job is.
//!
//! What moves the job stays with the engine; a handler can neither complete nor lose a claim.

use domain::{JobId, JobType};
use serde::de::DeserializeOwned;
use store::claim::ClaimedJob;
use store::window::WindowRef;

use super::handler::Failure;

/// Why a handler is not even asked. Nothing but another release or a redrive would change it.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// The row's payload is not what the handler reads.
    #[error("the payload is not what {job_type} jobs have")]
    Payload {
        /// The job's type.
        job_type: &'static str,
        /// Where it is wrong.
        #[source]
        source: serde_json::Error,
    },
    /// The job was sent to a destination whose handler does other jobs.
    #[error("the consumer of {destination} does {done} jobs, not {found} jobs")]
    Type {
        /// The destination.
        destination: &'static str,
        /// What its handler does.
        done: &'static str,
        /// What the row says.
        found: String,
    },
}

impl From<Unfit> for Failure {
    fn from(unfit: Unfit) -> Self {
        let word = match unfit {
            Unfit::Payload { .. } => "BAD_PAYLOAD",
            Unfit::Type { .. } => "UNKNOWN_JOB_TYPE",
        };
        Self::permanent(word, unfit)
    }
}

/// A job that was claimed, with its payload read.
#[derive(Clone, Debug, PartialEq)]
pub struct Job<P> {
    /// What the work is about.
    pub payload: P,
    claimed: ClaimedJob,
}

impl<P: DeserializeOwned> Job<P> {
    /// Reads `claimed` as a job of `job_type`.
    ///
    /// # Errors
    ///
    /// [`Unfit`]: the job is DEAD for it.
    pub fn read(job_type: &JobType, claimed: ClaimedJob) -> Result<Self, Unfit> {
        if claimed.job_type != job_type.name {
            let (destination, done) = (job_type.destination, job_type.name);
            return Err(Unfit::Type { destination, done, found: claimed.job_type });
        }
        match P::deserialize(&claimed.payload) {
            Ok(payload) => Ok(Self { payload, claimed }),
            Err(source) => Err(Unfit::Payload { job_type: job_type.name, source }),
        }
    }
}

impl<P> Job<P> {
    /// Who the job is: the same in every delivery, attempt and redrive of the same logical work, and so
    /// the idempotency key of its outside effects.
    #[must_use]
    pub fn id(&self) -> &JobId {
        self.claimed.claim.job_id()
    }

    /// How many times it was claimed in this redrive generation, this time included; at least 1.
    #[must_use]
    pub fn attempt(&self) -> i32 {
        self.claimed.claim.attempt_count()
    }

    /// Whether a failure of this attempt is the end: DEAD(`ATTEMPTS_EXHAUSTED`).
    #[must_use]
    pub fn is_last_attempt(&self) -> bool {
        self.attempt() >= self.claimed.max_attempts
    }

    /// How often an operator had it run again.
    #[must_use]
    pub fn redrive_generation(&self) -> i32 {
        self.claimed.claim.redrive_generation()
    }

    /// The object the work reads.
    #[must_use]
    pub fn artifact_key(&self) -> Option<&str> {
        self.claimed.artifact_key.as_deref()
    }

    /// The window it is tied to. Follow-up jobs inherit it.
    #[must_use]
    pub fn window(&self) -> Option<&WindowRef> {
        self.claimed.window.as_ref()
    }

    /// The trace that caused it, as `AWSTraceHeader`. Follow-up jobs inherit it.
    #[must_use]
    pub fn trace_header(&self) -> Option<&str> {
        self.claimed.trace_header.as_deref()
    }
}
