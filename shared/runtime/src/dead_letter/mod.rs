//! Decides what lies in the dead-letter queues.
//!
//! A message that SQS gave up on is looked at once more: its job goes back to work, is buried, or was
//! settled long ago, and the message is acknowledged. What nobody can decide is copied as evidence and
//! left in the queue, hidden for hours at a time; nothing undecidable is ever deleted. Jobs are moved
//! by `store` alone.

pub(crate) mod evidence;
pub(crate) mod judge;
mod lanes;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use sqlx::PgPool;
use store::dead_letter::Verdict;
use store::quarantine::keep;
use tracing::{error, info, warn};

use crate::consumer::EventError;
use crate::consumer::record::{self, Record};
use crate::consumer::visibility::{CHANGES_MAX, Change, Queue, Refusal, seconds};
use crate::telemetry::Chain;
use judge::{Undecided, judge};

pub use lanes::{Lane, Lanes, LanesError};

/// When a message is looked at again that could not be decided, or kept, at this instant.
const SOON: Duration = Duration::from_secs(30);

/// As long as SQS allows: an undecidable message waits for a person.
const LONGEST: Duration = Duration::from_hours(12);

/// Why a whole invocation failed. Every message of it comes back.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What arrived is not from SQS, or a record can not be named in an answer.
    #[error("the event can not be read")]
    Event(#[from] EventError),
    /// The database is away; the poller should back off.
    #[error("the database did not decide")]
    Store(#[from] store::Error),
}

/// One delivered message, with everything that could be evidence.
struct Delivered<'a> {
    record: Record,
    raw: &'a Value,
}

/// The dead-letter function: its database, its queues.
#[derive(Debug)]
pub struct DeadLetter<Q> {
    db: PgPool,
    lanes: Lanes<Q>,
}

impl<Q: Queue> DeadLetter<Q> {
    /// Decides for `lanes` by what `db` says.
    #[must_use]
    pub fn new(db: PgPool, lanes: Lanes<Q>) -> Self {
        Self { db, lanes }
    }

    /// Decides every message of an SQS event, and replies which ones to keep.
    ///
    /// # Errors
    ///
    /// [`Error`] when the records share a cause for which none can be decided. Jobs may have moved if
    /// only the database's answer was lost; the next delivery finds what happened.
    pub async fn handle(&self, event: &Value) -> Result<Value, Error> {
        let records = record::parse(event)?;
        let raws = event["Records"].as_array().into_iter().flatten();
        let mut by_queue: BTreeMap<&str, Vec<Delivered<'_>>> = BTreeMap::new();
        for (record, raw) in records.into_iter().zip(raws) {
            by_queue.entry(evidence::queue_arn(raw)).or_default().push(Delivered { record, raw });
        }
        let mut kept = Vec::new();
        for (queue_arn, delivered) in by_queue {
            kept.extend(self.decide(self.lanes.of(queue_arn), delivered).await?);
        }
        Ok(record::reply(kept.iter()))
    }

    /// Decides the messages of one queue; gives those that stay in it.
    async fn decide(&self, lane: Option<&Lane<Q>>, all: Vec<Delivered<'_>>) -> Result<Vec<Record>, Error> {
        let judged = judge(&self.db, lane, &all).await?;
        let count = all.len();
        let (mut kept, mut undecided) = (Vec::new(), Vec::new());
        for (delivered, judged) in all.into_iter().zip(judged) {
            match judged {
                Ok(verdict) => {
                    kept.extend(wait(verdict, &delivered.record).map(|wait| (delivered.record, wait)));
                }
                Err(why) => undecided.push((delivered, why)),
            }
        }
        let wait = match self.quarantine(&undecided).await {
            Ok(()) => LONGEST,
            Err(error) if undecided.len() == count => return Err(error.into()),
            Err(error) => {
                error!(error = %Chain(&error), "evidence could not be kept; trying again soon");
                SOON
            }
        };
        kept.extend(undecided.into_iter().map(|(delivered, _)| (delivered.record, wait)));
        if let Some(lane) = lane {
            hide(&lane.queue, &kept).await;
        }
        Ok(kept.into_iter().map(|(record, _)| record).collect())
    }

    /// Keeps the evidence before the queue's retention can eat it.
    async fn quarantine(&self, undecided: &[(Delivered<'_>, Undecided)]) -> Result<(), store::Error> {
        if undecided.is_empty() {
            return Ok(());
        }
        let id = |delivered: &Delivered<'_>| delivered.record.message_id.clone();
        let evidence: Vec<_> = undecided
            .iter()
            .map(|(delivered, why)| evidence::evidence(&id(delivered), delivered.raw, why))
            .collect();
        let first = keep(&self.db, &evidence).await?;
        for one in evidence.iter().filter(|one| first.contains(&one.message_id)) {
            let (id, reason) = (&one.message_id, &one.reason);
            error!(message.id = id, reason, "message {id} can not be decided: {}", one.detail);
        }
        Ok(())
    }
}

/// How long the message stays hidden in its queue; `None` acknowledges it.
fn wait(verdict: Verdict, record: &Record) -> Option<Duration> {
    let id = &record.message_id;
    match verdict {
        Verdict::Held { wait } => {
            info!(message.id = id, "message {id} stays: somebody holds its job");
            return Some(wait.unwrap_or(SOON));
        }
        Verdict::Returned => warn!(message.id = id, "message {id} was given up; its job goes back to work"),
        Verdict::Buried => error!(message.id = id, "message {id} was given up; its job is dead"),
        Verdict::Superseded => info!(message.id = id, "message {id} is superseded by a redrive"),
        Verdict::Settled => info!(message.id = id, "message {id} came late: its job is finished"),
        // The judge makes these an `Undecided`. Leaving one alone is right whatever happens there.
        Verdict::Undecidable(_) => return Some(SOON),
    }
    None
}

/// Hides the messages that stay. A courtesy: one that could not be hidden only comes back sooner.
async fn hide(queue: &impl Queue, kept: &[(Record, Duration)]) {
    let change = |(record, wait): &(Record, Duration)| {
        Some(Change { receipt_handle: record.receipt_handle.clone()?, seconds: seconds(*wait) })
    };
    let changes: Vec<_> = kept.iter().filter_map(change).collect();
    for some in changes.chunks(CHANGES_MAX) {
        match queue.change_visibility(some).await {
            Ok(refused) => {
                for (_, refusal) in refused.iter().filter(|(_, refusal)| *refusal != Refusal::Gone) {
                    warn!(?refusal, "a message could not be hidden");
                }
            }
            Err(error) => warn!(error = %Chain(&*error), "messages could not be hidden"),
        }
    }
}
