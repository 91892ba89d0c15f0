//! One batch of messages, from the event to the reply.
//!
//! First whatever the one claim statement won, side by side; then, alone and one after the other, the
//! jobs that were tried before, so that one which kills its process takes nobody with it. A job whose
//! handler can not be started in the time left is given back, not started.

use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use serde_json::Value;
use sqlx::PgPool;
use store::claim::{self, Answered, Asked, ClaimedJob};
use tracing::{Instrument, warn};

use super::attempt::{Attempt, Outcome, Ready};
use super::batch::{Batch, Won};
use super::fate::{Ended, Fate};
use super::handler::{Failure, Handler};
use super::record::{self, EventError};
use super::tally::Stage;
use super::visibility::{CHANGES_MAX, Queue};
use crate::telemetry::Chain;
use crate::time_left::TimeLeft;

/// A lease that has ended before its claim is answered would help nobody.
const LEASE_MIN: Duration = Duration::from_secs(1);

/// The invocation fails as a whole: the poller backs off, and every message comes back.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The event can not be answered record by record.
    #[error("the event can not be read")]
    Event(#[from] EventError),
    /// The database was not there to be asked.
    #[error("the batch was not claimed")]
    Claim(#[source] store::Error),
    /// The database went away under every single job of the batch.
    #[error("the database did not say how any of the jobs ended")]
    NothingSettled,
}

/// What bounds the work on one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How much longer than the invocation a claim holds; more than nothing.
    pub lease_margin: Duration,
    /// The least time in which a handler is still started.
    pub start_time_min: Duration,
    /// How many handlers do their outside work at once; at least 1.
    pub prepare_width: usize,
}

impl Default for Limits {
    /// A margin of 10 s, 5 s to start, 10 side by side.
    fn default() -> Self {
        Self {
            lease_margin: Duration::from_secs(10),
            start_time_min: Duration::from_secs(5),
            prepare_width: 10,
        }
    }
}

/// A consumer's engine: the database, the queue the messages come from, and the handler of their jobs.
#[derive(Debug)]
pub struct Engine<H, Q> {
    db: PgPool,
    queue: Q,
    handler: H,
    limits: Limits,
}

impl<H: Handler, Q: Queue> Engine<H, Q> {
    /// An engine that runs `handler` on the jobs of its destination.
    #[must_use]
    pub fn new(db: PgPool, queue: Q, handler: H, limits: Limits) -> Self {
        Self { db, queue, handler, limits }
    }

    /// The queue its messages come from.
    pub fn queue(&self) -> &Q {
        &self.queue
    }

    /// The handler of its jobs.
    pub fn handler(&self) -> &H {
        &self.handler
    }

    /// Does the jobs that the messages of `event` name, and replies which messages to keep.
    ///
    /// # Errors
    ///
    /// [`Error`]; the invocation must fail with it.
    pub async fn consume(&self, event: Value, time_left: TimeLeft) -> Result<Value, Error> {
        let started = Instant::now();
        let records = record::parse(&event)?;
        let mut batch = Batch::new(&records);

        let won = self.claim_batch(&mut batch, time_left).await?;
        self.run_side_by_side(&mut batch, won, time_left).await;
        self.keep(&mut batch).await;
        self.run_suspects(&mut batch, time_left).await;
        self.keep(&mut batch).await;

        batch.tally.log(self.handler.job_type().destination, records.len(), started.elapsed());
        if batch.is_unsettled() { Err(Error::NothingSettled) } else { Ok(batch.reply()) }
    }

    /// Asks the database about every readable message; answers the jobs that are ours.
    async fn claim_batch(&self, batch: &mut Batch<'_>, time_left: TimeLeft) -> Result<Vec<Won>, Error> {
        let (positions, asked): (Vec<usize>, Vec<Asked>) = batch.readable().into_iter().unzip();
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        let lease = self.lease(time_left);
        let answers = claim::claim_batch(&self.db, self.handler.job_type().destination, &asked, lease)
            .await
            .map_err(Error::Claim)?;
        let answered = positions.into_iter().zip(asked).zip(answers);
        Ok(answered
            .filter_map(|((position, asked), answered)| batch.answered(position, asked, answered))
            .collect())
    }

    /// Runs jobs side by side: so many in their outside work, and as many in their transactions as
    /// there are connections.
    async fn run_side_by_side(&self, batch: &mut Batch<'_>, won: Vec<Won>, time_left: TimeLeft) {
        let connections = self.db.options().get_max_connections() as usize;
        let outcomes: Vec<(usize, Outcome)> = stream::iter(won)
            .map(|won| async move {
                let prepared = self.prepare(&won.job, time_left).instrument(won.span.clone()).await;
                (won, prepared)
            })
            .buffer_unordered(self.limits.prepare_width)
            .map(|(won, prepared)| async move {
                (won.position, self.finish(&won.job, prepared).instrument(won.span).await)
            })
            .buffer_unordered(connections)
            .collect()
            .await;
        for (position, outcome) in outcomes {
            batch.ended(position, outcome);
        }
    }

    /// Claims and runs the jobs that were tried before, one after the other, while time is left.
    async fn run_suspects(&self, batch: &mut Batch<'_>, time_left: TimeLeft) {
        for (position, asked) in std::mem::take(&mut batch.suspects) {
            if !time_left.allows(self.limits.start_time_min) {
                batch.decide(position, Fate::soon());
                continue;
            }
            match self.claim_suspect(&asked, time_left).await {
                Ok(answered) => {
                    if let Some(won) = batch.answered(position, asked, answered) {
                        self.run_side_by_side(batch, vec![won], time_left).await;
                    }
                }
                Err(error) => {
                    warn!(job.id = %asked.job_id, error = %Chain(&error), "the job was not claimed");
                    batch.ended(position, Outcome { ended: Ended::Unknown, failed: Some(Stage::Claim) });
                }
            }
        }
    }

    async fn claim_suspect(&self, asked: &Asked, time_left: TimeLeft) -> Result<Answered, store::Error> {
        claim::claim_suspect(&self.db, self.handler.job_type().destination, asked, self.lease(time_left))
            .await
    }

    /// Longer than this sandbox can work on the job: it never outlives its own deadline.
    fn lease(&self, time_left: TimeLeft) -> Duration {
        (time_left.remaining() + self.limits.lease_margin).max(LEASE_MIN)
    }

    /// The job's outside work; `None` when it can not be started any more.
    async fn prepare(&self, job: &ClaimedJob, time_left: TimeLeft) -> Option<Result<Ready<H>, Failure>> {
        if time_left.allows(self.limits.start_time_min) {
            Some(self.attempt().prepare(job).await)
        } else {
            None
        }
    }

    async fn finish(&self, job: &ClaimedJob, prepared: Option<Result<Ready<H>, Failure>>) -> Outcome {
        match prepared {
            Some(prepared) => self.attempt().finish(&job.claim, prepared).await,
            None => self.attempt().release(&job.claim).await,
        }
    }

    fn attempt(&self) -> Attempt<'_, H> {
        Attempt { db: &self.db, handler: &self.handler }
    }

    /// Tells the queue when the messages kept since the last call are to come back.
    async fn keep(&self, batch: &mut Batch<'_>) {
        let changes = batch.take_changes();
        for some in changes.chunks(CHANGES_MAX) {
            match self.queue.change_visibility(some).await {
                Ok(refused) => refused.iter().for_each(|(_, refusal)| batch.refused(refusal)),
                Err(error) => {
                    warn!(error = %Chain(&*error), "the queue did not change when messages come back");
                    batch.tally.failed(Stage::Acknowledge);
                }
            }
        }
    }
}
