//! Decides what lies in the dead-letter queues.
//!
//! A message that SQS gave up on is looked at once more: its job goes back to work, is buried, or was
//! settled long ago, and the message is acknowledged. What nobody can decide is copied as evidence and
//! left in the queue, hidden for hours at a time; nothing undecidable is ever deleted. Jobs are moved
//! by `store` alone.

mod judge;
mod lanes;
mod record;
mod visibility;

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};
use sqlx::PgPool;
use store::{dead_letter::Verdict, quarantine::keep};
use tracing::{error, info, warn};

use judge::{Undecided, judge};
pub use lanes::{Lane, Lanes, LanesError};
pub use record::{NotAnEvent, Record};
pub use visibility::{HIDDEN_MAX, Hidden, Hide};

/// When a message is looked at again that could not be decided, or kept, at this instant.
const SOON: Duration = Duration::from_secs(30);

/// Why a whole invocation failed. Every message of it comes back.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What arrived is not from SQS, or a record can not be named in an answer.
    #[error("the event can not be answered")]
    Event(#[from] NotAnEvent),
    /// The database is away; the poller should back off.
    #[error("the database did not decide")]
    Store(#[from] store::Error),
}

/// The dead-letter function: its database, its queues.
pub struct DeadLetter<H> {
    db: PgPool,
    lanes: Lanes,
    queue: H,
}

impl<H: Hide> DeadLetter<H> {
    /// Decides for `lanes` by what `db` says; `queue` hides what is left.
    pub fn new(db: PgPool, lanes: Lanes, queue: H) -> Self {
        Self { db, lanes, queue }
    }

    /// Decides every record of an SQS event; gives the partial batch response.
    ///
    /// The response names records of this event and nothing else.
    ///
    /// # Errors
    ///
    /// [`Error`] when the records share a cause for which none can be decided. Jobs may have moved if
    /// only the database's answer was lost; the next delivery finds what happened.
    pub async fn handle(&self, event: &Value) -> Result<Value, Error> {
        let mut by_queue: BTreeMap<String, Vec<Record>> = BTreeMap::new();
        for record in Record::read_all(event)? {
            by_queue.entry(record.queue_arn.clone()).or_default().push(record);
        }
        let mut failures = Vec::new();
        for (queue_arn, records) in by_queue {
            let left = self.decide(&queue_arn, records).await?;
            failures.extend(left.into_iter().map(|id| json!({ "itemIdentifier": id })));
        }
        Ok(json!({ "batchItemFailures": failures }))
    }

    /// Decides the records of one queue; gives the ids of those that stay in it.
    async fn decide(&self, queue_arn: &str, records: Vec<Record>) -> Result<Vec<String>, Error> {
        let lane = self.lanes.of(queue_arn);
        let (mut staying, mut undecided) = (Vec::new(), Vec::new());
        let count = records.len();
        for (record, judged) in judge(&self.db, lane, records).await? {
            match judged {
                Ok(verdict) => staying.extend(after(verdict, &record).map(|time| (record, time))),
                Err(why) => undecided.push((record, why)),
            }
        }
        let hidden_for = match self.quarantine(&undecided).await {
            Ok(()) => HIDDEN_MAX,
            Err(error) if undecided.len() == count => return Err(error.into()),
            Err(error) => {
                error!(error = %crate::telemetry::Chain(&error), "evidence could not be kept; trying again soon");
                SOON
            }
        };
        staying.extend(undecided.into_iter().map(|(record, _)| (record, hidden_for)));
        if let Some(lane) = lane {
            let hidden: Vec<_> =
                staying.iter().filter_map(|(record, time)| Hidden::new(record, *time)).collect();
            self.queue.hide(&lane.queue_url, &hidden).await;
        }
        Ok(staying.into_iter().map(|(record, _)| record.message_id).collect())
    }

    /// Keeps the evidence before the queue's retention can eat it.
    async fn quarantine(&self, undecided: &[(Record, Undecided)]) -> Result<(), store::Error> {
        if undecided.is_empty() {
            return Ok(());
        }
        let evidence: Vec<_> =
            undecided.iter().map(|(record, why)| record.evidence(why.reason, &why.detail)).collect();
        let first = keep(&self.db, &evidence).await?;
        for (record, why) in undecided.iter().filter(|(record, _)| first.contains(&record.message_id)) {
            error!(
                message.id = record.message_id,
                reason = why.reason,
                "message {} can not be decided: {}",
                record.message_id,
                why.detail
            );
        }
        Ok(())
    }
}

/// How long the message stays hidden in its queue; `None` acknowledges it.
fn after(verdict: Verdict, record: &Record) -> Option<Duration> {
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
