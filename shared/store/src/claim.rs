//! Claim: one statement asks for a whole batch and names the answer to each message.
//!
//! Rows are locked in the order of their ids, and one that somebody else has locked is passed over: so
//! overlapping batches neither wait for each other nor deadlock, and of any number of rivals exactly one
//! wins. Every answer that lets a message be deleted comes from a row read under its lock. What only
//! this statement's snapshot says is used for answers that keep the message, with one exception: a
//! window's generation never falls, so a job behind even an old reading of it is stale for certain.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::{Answer, DeadReason, JobId};
use fault::FaultPoint;
use serde_json::Value;
use sqlx::PgExecutor;
use sqlx::types::Uuid;

use crate::Error;
use crate::values::{interval, milliseconds};
use crate::window::WindowRef;

/// How long to leave a message whose job's row somebody has locked at this instant: such locks last for
/// one short transaction, and asking again soon costs only a receive.
const LOCKED_WAIT: Duration = Duration::from_secs(1);

/// Proof that this process holds a job: the five guards of every move out of CLAIMED but one, the
/// status itself.
///
/// It stays a proof only as long as nobody took the job over after the lease; each move compares it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a claim that is dropped blocks its job until the lease ends"]
pub struct Claim {
    job_id: JobId,
    claimed_by: Uuid,
    attempt_count: i32,
    redrive_generation: i32,
}

impl Claim {
    /// The job that is held.
    #[must_use]
    pub fn job_id(&self) -> &JobId {
        &self.job_id
    }

    /// This claim's own name; no other claim ever has it.
    #[must_use]
    pub fn claimed_by(&self) -> Uuid {
        self.claimed_by
    }

    /// How many times the job was claimed in this redrive generation, this time included; at least 1.
    #[must_use]
    pub fn attempt_count(&self) -> i32 {
        self.attempt_count
    }

    /// How often the job was redriven.
    #[must_use]
    pub fn redrive_generation(&self) -> i32 {
        self.redrive_generation
    }
}

/// A job that was won, with what its handler needs.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimedJob {
    /// Needed to finish it.
    pub claim: Claim,
    /// What kind of work it is.
    pub job_type: String,
    /// References to the subject.
    pub payload: Value,
    /// The object the work reads.
    pub artifact_key: Option<String>,
    /// The window it is tied to; checked again when its effects are written.
    pub window: Option<WindowRef>,
    /// Claims before it is given up.
    pub max_attempts: i32,
    /// Its creation, or its last redrive.
    pub enqueued_at: DateTime<Utc>,
    /// Until when the claim holds.
    pub lease_until: DateTime<Utc>,
    /// The trace that caused it, as `AWSTraceHeader`.
    pub trace_header: Option<String>,
}

/// A message's question: may its job be run?
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Asked {
    /// The job it names.
    pub job_id: JobId,
    /// The redrive it belongs to.
    pub redrive_generation: i32,
}

/// What the database says to one message.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// The answer, as [`Answer`] defines it.
    pub answer: Answer,
    /// With [`Answer::Held`] and [`Answer::Early`]: how long until it is worth asking again, in
    /// milliseconds, rounded up.
    pub wait: Option<Duration>,
    /// With [`Answer::Won`]: the job.
    pub job: Option<ClaimedJob>,
}

/// Asks for a batch, and claims for `lease` those of its jobs that were never tried before.
///
/// Answers in the order of `asked`; of several messages for the same job at most one wins. A job that
/// was tried before is answered [`Answer::Suspect`] and left as it is. `lease` counts from the
/// database's now and is rounded down to microseconds. Stale, expired and exhausted jobs are DEAD
/// afterwards. Runs as a statement of its own: in a longer transaction its clock would stand still.
///
/// # Errors
///
/// [`Error::Database`]. Jobs may have been claimed even so, if the answer was lost: nobody will run
/// them before the lease ends.
pub async fn claim_batch(
    db: impl PgExecutor<'_>,
    destination: &str,
    asked: &[Asked],
    lease: Duration,
) -> Result<Vec<Answered>, Error> {
    claim(db, destination, asked, lease, false).await
}

/// Asks for one job and claims it for `lease` also if it was tried before.
///
/// Only right before its handler: should it kill this process, only its own attempts are used up.
///
/// # Errors
///
/// As [`claim_batch`].
pub async fn claim_suspect(
    db: impl PgExecutor<'_>,
    destination: &str,
    asked: &Asked,
    lease: Duration,
) -> Result<Answered, Error> {
    let answers = claim(db, destination, std::slice::from_ref(asked), lease, true).await?;
    answers.into_iter().next().ok_or(Error::Database(sqlx::Error::RowNotFound))
}

/// The statement behind both, `claim.sql`; `tried` says whether a job that was tried before may be claimed.
///
/// The claim's name is drawn by the database, one for each row.
async fn claim(
    db: impl PgExecutor<'_>,
    destination: &str,
    asked: &[Asked],
    lease: Duration,
    tried: bool,
) -> Result<Vec<Answered>, Error> {
    let job_ids: Vec<&str> = asked.iter().map(|asked| asked.job_id.as_str()).collect();
    let generations: Vec<i32> = asked.iter().map(|asked| asked.redrive_generation).collect();
    let rows = sqlx::query_file_as!(
        Row,
        "src/claim.sql",
        destination,
        &job_ids as &[&str],
        &generations,
        interval(lease),
        tried,
        DeadReason::Stale.as_str(),
        DeadReason::Expired.as_str(),
        DeadReason::AttemptsExhausted.as_str(),
    )
    .fetch_all(db)
    .fault_point("claim::claim")
    .await?;
    asked.iter().zip(rows).map(|(asked, row)| row.answered(asked)).collect()
}

/// One line of the answer; everything from `claimed_by` on is there when the job was moved.
struct Row {
    answer: String,
    wait_ms: Option<i64>,
    claimed_by: Option<Uuid>,
    attempt_count: Option<i32>,
    redrive_generation: Option<i32>,
    job_type: Option<String>,
    payload: Option<Value>,
    artifact_key: Option<String>,
    dataset: Option<String>,
    window_start: Option<DateTime<Utc>>,
    window_generation: Option<i32>,
    max_attempts: Option<i32>,
    enqueued_at: Option<DateTime<Utc>>,
    lease_until: Option<DateTime<Utc>>,
    trace_header: Option<String>,
}

impl Row {
    fn answered(self, asked: &Asked) -> Result<Answered, Error> {
        let answer = Answer::parse(&self.answer).ok_or_else(unreadable)?;
        let waits = matches!(answer, Answer::Held | Answer::Early);
        let wait = waits.then(|| self.wait_ms.map_or(LOCKED_WAIT, milliseconds));
        let won = answer == Answer::Won;
        let job = if won { Some(self.job(&asked.job_id).ok_or_else(unreadable)?) } else { None };
        Ok(Answered { answer, wait, job })
    }

    fn job(self, job_id: &JobId) -> Option<ClaimedJob> {
        let claim = Claim {
            job_id: job_id.clone(),
            claimed_by: self.claimed_by?,
            attempt_count: self.attempt_count?,
            redrive_generation: self.redrive_generation?,
        };
        let window = match (self.dataset, self.window_start, self.window_generation) {
            (Some(dataset), Some(start), Some(generation)) => Some(WindowRef { dataset, start, generation }),
            _ => None,
        };
        Some(ClaimedJob {
            claim,
            job_type: self.job_type?,
            payload: self.payload?,
            artifact_key: self.artifact_key,
            window,
            max_attempts: self.max_attempts?,
            enqueued_at: self.enqueued_at?,
            lease_until: self.lease_until?,
            trace_header: self.trace_header,
        })
    }
}

/// The statement and this module disagree: a bug, caught by the tests of every answer.
fn unreadable() -> Error {
    Error::Database(sqlx::Error::Decode("the claim statement gave an answer without its job".into()))
}
