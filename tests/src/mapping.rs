//! An event source mapping: receives a batch, invokes the function, deletes what it did not report.
//!
//! Strict as AWS is: an answer that names an id which was not in the batch, or none at all, fails the
//! whole batch. Messages of an invocation that died stay in flight until [`Mapping::time_passes`].

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_sdk_sqs::types::Message;
use serde_json::{Map, Value, json};

use crate::Result;
use crate::queue::Queue;
use crate::sandbox::{Invoked, Sandbox};

/// What went through.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Messages handed to the function.
    pub deliveries: u64,
    /// Messages deleted.
    pub deletes: u64,
    /// Batches that failed as a whole.
    pub failed_batches: u64,
    /// Answers that no function may give.
    pub bad_answers: u64,
}

impl std::ops::Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            deliveries: self.deliveries + other.deliveries,
            deletes: self.deletes + other.deletes,
            failed_batches: self.failed_batches + other.failed_batches,
            bad_answers: self.bad_answers + other.bad_answers,
        }
    }
}

/// One queue's way to its function.
pub struct Mapping {
    queue: Queue,
    timeout: Duration,
    /// What the function is told that it has.
    pub deadline: Duration,
    in_flight: InFlight,
    /// What went through so far.
    pub counts: Counts,
}

/// Received messages that were not deleted: by id, the last receipt of each. Clones are the same.
#[derive(Clone, Default)]
pub struct InFlight {
    receipts: Arc<Mutex<HashMap<String, String>>>,
}

impl InFlight {
    fn receipts(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.receipts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Their visibility timeouts end. They are remembered: whoever works on one may still hide it again.
    pub async fn time_passes(&self, queue: &Queue) {
        let receipts = self.receipts().clone();
        for (id, receipt) in receipts {
            if !queue.show(&receipt).await {
                self.forget(&id, &receipt);
            }
        }
    }

    /// Forgets a receipt that stands for nothing any more, unless a younger one has replaced it.
    fn forget(&self, id: &str, receipt: &str) {
        let mut receipts = self.receipts();
        if receipts.get(id).is_some_and(|known| known == receipt) {
            receipts.remove(id);
        }
    }
}

/// A batch on its way to a function.
pub struct Batch(Vec<Message>);

impl Batch {
    /// A batch of `messages`, which may be ones that were received long ago.
    #[must_use]
    pub fn of(messages: Vec<Message>) -> Self {
        Self(messages)
    }

    /// The same in another order, which `seed` decides.
    #[must_use]
    pub fn shuffled(mut self, seed: u64) -> Self {
        fastrand::Rng::with_seed(seed).shuffle(&mut self.0);
        self
    }

    /// Its messages.
    #[must_use]
    pub fn into_messages(self) -> Vec<Message> {
        self.0
    }
}

impl Mapping {
    /// A mapping of `queue` to functions that have `timeout` for a batch.
    #[must_use]
    pub fn new(queue: Queue, timeout: Duration) -> Self {
        Self { queue, timeout, deadline: timeout, in_flight: InFlight::default(), counts: Counts::default() }
    }

    /// Receives what is visible, at most ten messages; `None` when nothing is.
    ///
    /// # Errors
    ///
    /// The queue does not answer.
    pub async fn receive(&mut self) -> Result<Option<Batch>> {
        let messages = self.queue.receive().await?;
        let received = messages.iter().map(|message| (id(message).to_owned(), receipt(message).to_owned()));
        self.in_flight.receipts().extend(received);
        self.counts.deliveries += messages.len() as u64;
        Ok((!messages.is_empty()).then_some(Batch(messages)))
    }

    /// Hands `batch` to `sandbox` and does with the messages what its answer says.
    ///
    /// # Errors
    ///
    /// The queue does not answer.
    pub async fn deliver(&mut self, batch: &Batch, sandbox: &mut Sandbox) -> Result<Invoked> {
        let invoked = sandbox.invoke_until(self.event(batch), self.deadline, self.timeout).await;
        self.settle(batch, &invoked).await?;
        Ok(invoked)
    }

    /// The event that a function gets for `batch`.
    #[must_use]
    pub fn event(&self, batch: &Batch) -> Value {
        let records: Vec<Value> = batch.0.iter().map(|message| record(message, &self.queue.arn)).collect();
        json!({ "Records": records })
    }

    /// Deletes the messages of `batch` that `invoked` allows to delete.
    ///
    /// # Errors
    ///
    /// The queue does not answer.
    pub async fn settle(&mut self, batch: &Batch, invoked: &Invoked) -> Result<()> {
        let Invoked::Answered(answer) = invoked else {
            self.counts.failed_batches += 1;
            return Ok(());
        };
        let Some(kept) = kept(batch, answer) else {
            self.counts.failed_batches += 1;
            self.counts.bad_answers += 1;
            return Ok(());
        };
        for message in batch.0.iter().filter(|message| !kept.contains(id(message))) {
            self.queue.delete(receipt(message)).await?;
            self.in_flight.forget(id(message), receipt(message));
            self.counts.deletes += 1;
        }
        Ok(())
    }

    /// Receives and delivers until nothing is visible. Gives the last end of an invocation that was not
    /// an answer, and stops there.
    ///
    /// # Errors
    ///
    /// The queue does not answer.
    pub async fn drain(&mut self, sandbox: &mut Sandbox) -> Result<Option<Invoked>> {
        while let Some(batch) = self.receive().await? {
            match self.deliver(&batch, sandbox).await? {
                Invoked::Answered(_) => {}
                other => return Ok(Some(other)),
            }
        }
        Ok(None)
    }

    /// All visibility timeouts end.
    pub async fn time_passes(&mut self) {
        self.in_flight.time_passes(&self.queue).await;
    }

    /// What is on its way, for somebody who lets time pass while this mapping waits for an answer.
    #[must_use]
    pub fn in_flight(&self) -> (Queue, InFlight) {
        (self.queue.clone(), self.in_flight.clone())
    }
}

fn id(message: &Message) -> &str {
    message.message_id().unwrap_or_default()
}

fn receipt(message: &Message) -> &str {
    message.receipt_handle().unwrap_or_default()
}

fn record(message: &Message, arn: &str) -> Value {
    let attributes = message.attributes().into_iter().flatten();
    let attributes: Map<String, Value> =
        attributes.map(|(name, value)| (name.as_str().to_owned(), json!(value))).collect();
    json!({
        "messageId": message.message_id(),
        "receiptHandle": message.receipt_handle(),
        "body": message.body(),
        "attributes": attributes,
        "messageAttributes": {},
        "md5OfBody": message.md5_of_body(),
        "eventSource": "aws:sqs",
        "eventSourceARN": arn,
        "awsRegion": "us-east-1",
    })
}

/// The ids that an answer keeps; `None` when the answer fails the whole batch.
fn kept(batch: &Batch, answer: &Value) -> Option<BTreeSet<String>> {
    let failures = match answer {
        Value::Null => return Some(BTreeSet::new()),
        Value::Object(fields) => fields.get("batchItemFailures")?,
        _ => return None,
    };
    let failures = match failures {
        Value::Null => return Some(BTreeSet::new()),
        failures => failures.as_array()?,
    };
    let known: BTreeSet<&str> = batch.0.iter().map(id).collect();
    failures
        .iter()
        .map(|failure| {
            failure.get("itemIdentifier")?.as_str().filter(|id| known.contains(id)).map(str::to_owned)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receipt_that_was_replaced_does_not_take_the_younger_one_with_it() {
        let in_flight = InFlight::default();
        in_flight.receipts().insert("a".to_owned(), "younger".to_owned());

        in_flight.forget("a", "older");
        assert_eq!(in_flight.receipts().len(), 1);
        in_flight.forget("a", "younger");
        assert!(in_flight.receipts().is_empty());
    }

    fn batch() -> Batch {
        Batch(["a", "b"].map(|id| Message::builder().message_id(id).build()).into())
    }

    #[test]
    fn only_the_messages_an_answer_names_are_kept() {
        assert_eq!(
            kept(&batch(), &json!({ "batchItemFailures": [{ "itemIdentifier": "b" }] })).unwrap(),
            ["b".to_owned()].into()
        );
        assert!(kept(&batch(), &json!({ "batchItemFailures": [] })).unwrap().is_empty());
        assert!(kept(&batch(), &json!({ "batchItemFailures": null })).unwrap().is_empty());
        assert!(kept(&batch(), &Value::Null).unwrap().is_empty());
    }

    #[test]
    fn answer_that_can_not_be_followed_fails_the_whole_batch() {
        for answer in [
            json!({ "batchItemFailures": [{ "itemIdentifier": "c" }] }),
            json!({ "batchItemFailures": [{ "itemIdentifier": "" }] }),
            json!({ "batchItemFailures": [{ "itemIdentifier": null }] }),
            json!({ "batchItemFailures": [{ "id": "a" }] }),
            json!({ "batchItemFailures": "a" }),
            json!({}),
            json!("done"),
        ] {
            assert!(kept(&batch(), &answer).is_none(), "{answer}");
        }
    }
}
