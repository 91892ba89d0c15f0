//! One claimed job, from its handler's first line to the end of its claim.
//!
//! Effects and completion are one transaction: both are committed or neither is. Whatever fails before
//! the commit is rolled back explicitly and the job given back; a commit whose answer was lost is
//! nobody's success, and the row alone knows how it went.

use std::any::Any;
use std::error::Error;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use domain::DeadReason;
use fault::FaultPoint;
use futures::FutureExt;
use sqlx::{PgConnection, PgPool, Postgres, Transaction};
use store::claim::{Claim, ClaimedJob};
use store::job::{self, Moved, Retried};
use store::window::{self, Lock};
use tracing::{error, info, warn};

use super::fate::Ended;
use super::handler::{Failure, Handler};
use super::job::Job;
use super::tally::Stage;
use crate::telemetry::Chain;

/// A handler that fell over. Its process lives on, and so do its neighbours.
#[derive(Debug, thiserror::Error)]
#[error("the handler panicked: {0}")]
struct Panicked(String);

/// How an attempt ended, and where it failed if it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub ended: Ended,
    pub failed: Option<Stage>,
}

/// A job whose outside work is done.
pub(crate) struct Ready<H: Handler> {
    job: Job<H::Payload>,
    prepared: H::Prepared,
}

/// What is needed to work on a claimed job.
pub(crate) struct Attempt<'a, H> {
    pub db: &'a PgPool,
    pub handler: &'a H,
}

impl<H: Handler> Attempt<'_, H> {
    /// The first half: the payload is read, and the outside work done.
    pub(crate) async fn prepare(&self, claimed: &ClaimedJob) -> Result<Ready<H>, Failure> {
        let ready = async {
            let job = Job::read(&self.handler.job_type(), claimed.clone())?;
            let prepared = self.handler.prepare(&job).await?;
            Ok(Ready { job, prepared })
        };
        AssertUnwindSafe(ready).catch_unwind().await.unwrap_or_else(|panic| Err(panicked(&*panic)))
    }

    /// The second half: the effects with the job's completion, or whatever the failure calls for.
    pub(crate) async fn finish(&self, claim: &Claim, prepared: Result<Ready<H>, Failure>) -> Outcome {
        let ready = match prepared {
            Ok(ready) => ready,
            Err(failure) => return self.give_back(claim, Stage::Prepare, failure).await,
        };
        match self.db.begin().await {
            Ok(tx) => self.commit_effects(tx, claim, ready).await,
            Err(error) => self.give_back(claim, Stage::Apply, error.into()).await,
        }
    }

    async fn commit_effects(
        &self,
        mut tx: Transaction<'_, Postgres>,
        claim: &Claim,
        ready: Ready<H>,
    ) -> Outcome {
        if let Err(failure) = self.apply(&mut tx, ready).await {
            roll_back(tx).await;
            return self.give_back(claim, Stage::Apply, failure).await;
        }
        match job::complete(&mut *tx, claim).await {
            Ok(Moved::Done) => commit(tx).await,
            Ok(Moved::Lost) => {
                roll_back(tx).await;
                lost(claim)
            }
            Err(error) => {
                roll_back(tx).await;
                self.give_back(claim, Stage::Complete, error.into()).await
            }
        }
    }

    /// The effects, under the lock of the job's window: a correction could have been committed since the
    /// claim.
    async fn apply(&self, tx: &mut PgConnection, ready: Ready<H>) -> Result<(), Failure> {
        let Ready { job, prepared } = ready;
        if let Some(window) = job.window()
            && window::lock_current(&mut *tx, window).await? == Lock::Moved
        {
            return Err(Failure::Stale);
        }
        AssertUnwindSafe(self.handler.apply(tx, &job, prepared))
            .catch_unwind()
            .await
            .unwrap_or_else(|panic| Err(panicked(&*panic)))
    }

    /// Ends the claim as the failure of `stage` calls for.
    async fn give_back(&self, claim: &Claim, stage: Stage, failure: Failure) -> Outcome {
        let failed = Some(stage);
        match failure {
            Failure::Transient(source) => Outcome { ended: self.retry(claim, stage, &*source).await, failed },
            Failure::Permanent { reason, source } => {
                Outcome { ended: self.bury(claim, stage, &reason, &*source).await, failed }
            }
            Failure::Stale => Outcome { ended: self.bury_stale(claim).await, failed: None },
        }
    }

    async fn retry(
        &self,
        claim: &Claim,
        stage: Stage,
        source: &(dyn Error + Send + Sync + 'static),
    ) -> Ended {
        let source = Chain(source).to_string();
        let attempts = u32::try_from(claim.attempt_count()).unwrap_or(1);
        let delay = self.handler.job_type().backoff.delay(attempts, fastrand::f64());
        match job::retry(self.db, claim, delay, &source).await {
            Ok(Retried::Waiting { wait }) => {
                warn!(error = source, ?stage, wait_ms = milliseconds(wait), "the attempt failed");
                Ended::Retried(wait)
            }
            Ok(Retried::Dead) => {
                error!(error = source, ?stage, "the last attempt failed");
                Ended::Dead
            }
            Ok(Retried::Lost) => lost(claim).ended,
            Err(error) => unknown(&error),
        }
    }

    async fn bury(
        &self,
        claim: &Claim,
        stage: Stage,
        reason: &DeadReason,
        source: &(dyn Error + Send + Sync + 'static),
    ) -> Ended {
        let source = Chain(source).to_string();
        error!(error = source, ?stage, job.dead_reason = %reason, "the job can not be done");
        ended(claim, Ended::Dead, job::bury(self.db, claim, reason, &source).await)
    }

    async fn bury_stale(&self, claim: &Claim) -> Ended {
        info!("what the job was about has changed");
        ended(
            claim,
            Ended::Dead,
            job::bury(self.db, claim, &DeadReason::Stale, "its subject has changed").await,
        )
    }

    /// Gives back a job whose handler was not started.
    pub(crate) async fn release(&self, claim: &Claim) -> Outcome {
        info!("no time is left to start the job");
        let ended = ended(claim, Ended::Released, job::release(self.db, claim).await);
        Outcome { ended, failed: None }
    }
}

async fn commit(tx: Transaction<'_, Postgres>) -> Outcome {
    match tx.commit().fault_point("consumer::commit").await {
        Ok(()) => Outcome { ended: Ended::Done, failed: None },
        Err(error) => Outcome { ended: unknown(&error), failed: Some(Stage::Complete) },
    }
}

/// Rolls back now: a dropped transaction would only do so when its sandbox runs again.
async fn roll_back(tx: Transaction<'_, Postgres>) {
    if let Err(error) = tx.rollback().await {
        // The connection is broken; the server rolls back when it notices.
        warn!(error = %Chain(&error), "the roll back was not confirmed");
    }
}

fn ended(claim: &Claim, then: Ended, moved: Result<Moved, store::Error>) -> Ended {
    match moved {
        Ok(Moved::Done) => then,
        Ok(Moved::Lost) => lost(claim).ended,
        Err(error) => unknown(&error),
    }
}

fn lost(claim: &Claim) -> Outcome {
    warn!(job.claimed_by = %claim.claimed_by(), "the claim was lost; nothing was written");
    Outcome { ended: Ended::Lost, failed: Some(Stage::Complete) }
}

fn unknown(error: &(dyn Error + 'static)) -> Ended {
    warn!(error = %Chain(error), "the database did not say how the job ended");
    Ended::Unknown
}

fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Failure::Transient(Box::new(Panicked(text)))
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
