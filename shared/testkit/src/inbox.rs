//! A consumer's queue in memory, and the events Lambda makes of its messages.

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Mutex, PoisonError};

use domain::{JobId, Message};
use runtime::consumer::{Change, Queue, Refusal};
use serde_json::{Value, json};

/// The twin of a queue that messages were received from: it remembers when each is to come back.
///
/// The receipt handle of a message is its id after `receipt:`.
#[derive(Debug, Default)]
pub struct Inbox {
    visibility: Mutex<HashMap<String, i32>>,
    gone: Option<String>,
    unreachable: bool,
}

impl Inbox {
    /// One that fails every call.
    #[must_use]
    pub fn unreachable() -> Self {
        Self { unreachable: true, ..Self::default() }
    }

    /// One where the message is not in flight any more.
    #[must_use]
    pub fn without(message_id: &str) -> Self {
        Self { gone: Some(message_id.to_owned()), ..Self::default() }
    }

    /// The seconds after which the message comes back; `None` if nobody said.
    #[must_use]
    pub fn visibility_of(&self, message_id: &str) -> Option<i32> {
        self.visibility.lock().unwrap_or_else(PoisonError::into_inner).get(message_id).copied()
    }
}

impl Queue for Inbox {
    async fn change_visibility(
        &self,
        changes: &[Change],
    ) -> Result<Vec<(usize, Refusal)>, Box<dyn Error + Send + Sync>> {
        assert!((1..=10).contains(&changes.len()), "SQS takes one to ten entries");
        if self.unreachable {
            return Err("the queue can not be reached".into());
        }
        let mut refused = Vec::new();
        for (position, change) in changes.iter().enumerate() {
            let message_id = change.receipt_handle.strip_prefix("receipt:").unwrap();
            if self.gone.as_deref() == Some(message_id) {
                refused.push((position, Refusal::Gone));
            } else {
                let mut visibility = self.visibility.lock().unwrap_or_else(PoisonError::into_inner);
                visibility.insert(message_id.to_owned(), change.seconds);
            }
        }
        Ok(refused)
    }
}

/// The body that wakes `job_id` up in `generation`.
#[must_use]
pub fn body(job_id: &JobId, generation: i32) -> String {
    Message::new(crate::jobs::DESTINATION, job_id.clone(), generation).to_body()
}

/// The event of a batch of messages: their ids and bodies.
#[must_use]
pub fn event(messages: &[(&str, String)]) -> Value {
    let records = messages.iter().map(|(id, body)| {
        json!({
            "messageId": id,
            "receiptHandle": format!("receipt:{id}"),
            "body": body,
            "attributes": {"ApproximateReceiveCount": "1"},
            "eventSource": "aws:sqs",
        })
    });
    json!({"Records": records.collect::<Vec<_>>()})
}

/// The message ids a reply keeps in the queue, in order.
#[must_use]
pub fn kept(reply: &Value) -> Vec<String> {
    let failures = reply["batchItemFailures"].as_array().unwrap();
    let mut ids: Vec<_> =
        failures.iter().map(|failure| failure["itemIdentifier"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}
