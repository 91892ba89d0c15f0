//! When a message that was kept comes back: the visibility timeout of this delivery.
//!
//! It is a courtesy, never needed for correctness: a message whose visibility could not be changed
//! comes back after the queue's own timeout, finds out what its row says, and waits again.

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use aws_sdk_sqs::types::{BatchResultErrorEntry, ChangeMessageVisibilityBatchRequestEntry as Entry};
use fault::FaultPoint;

/// Entries in one call, at most (SQS `ChangeMessageVisibilityBatch`).
pub const CHANGES_MAX: usize = 10;
/// SQS allows 12 hours counted from the receive and refuses more; this leaves room for a batching
/// window of 5 minutes and a function of 15 between the receive and the call.
const VISIBILITY_MAX: Duration = Duration::from_mins(12 * 60 - 20);
/// Zero would bring the message back at once and burn its receives within seconds.
const VISIBILITY_MIN: Duration = Duration::from_secs(1);

/// One message that is to come back later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Names the delivery.
    pub receipt_handle: String,
    /// Seconds from now until it comes back.
    pub seconds: i32,
}

/// Why the visibility of one message was not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is not in flight any more: it has come back, or somebody deleted it. Benign.
    Gone,
    /// Anything else, by the queue's own code.
    Other(String),
}

/// The calls a consumer makes to its queue.
pub trait Queue: Send + Sync {
    /// Changes up to [`CHANGES_MAX`] messages; answers those refused, by their position.
    ///
    /// # Errors
    ///
    /// When the call failed as a whole. Some messages may have been changed even so.
    fn change_visibility(
        &self,
        changes: &[Change],
    ) -> impl Future<Output = Result<Vec<(usize, Refusal)>, Box<dyn Error + Send + Sync>>> + Send;
}

/// A queue of Amazon SQS.
#[derive(Clone, Debug)]
pub struct Sqs {
    client: aws_sdk_sqs::Client,
    queue_url: String,
}

impl Sqs {
    /// The queue at `queue_url`.
    #[must_use]
    pub fn new(client: aws_sdk_sqs::Client, queue_url: &str) -> Self {
        Self { client, queue_url: queue_url.to_owned() }
    }
}

impl Queue for Sqs {
    async fn change_visibility(
        &self,
        changes: &[Change],
    ) -> Result<Vec<(usize, Refusal)>, Box<dyn Error + Send + Sync>> {
        let entries = changes.iter().enumerate().map(|(position, change)| entry(position, change));
        let output = self
            .client
            .change_message_visibility_batch()
            .queue_url(&self.queue_url)
            .set_entries(Some(entries.collect::<Result<_, _>>()?))
            .send()
            .fault_point("sqs::change_visibility")
            .await?;
        Ok(output.failed().iter().filter_map(refused).collect())
    }
}

fn entry(position: usize, change: &Change) -> Result<Entry, aws_sdk_sqs::error::BuildError> {
    Entry::builder()
        .id(position.to_string())
        .receipt_handle(&change.receipt_handle)
        .visibility_timeout(change.seconds)
        .build()
}

fn refused(entry: &BatchResultErrorEntry) -> Option<(usize, Refusal)> {
    Some((entry.id().parse().ok()?, refusal(entry.code(), entry.message().unwrap_or_default())))
}

/// SQS says in three ways that a delivery is over, one of them only in words.
fn refusal(code: &str, message: &str) -> Refusal {
    let over = code.ends_with("MessageNotInflight")
        || code.ends_with("ReceiptHandleIsInvalid")
        || message.contains("not available for visibility timeout change");
    if over { Refusal::Gone } else { Refusal::Other(code.to_owned()) }
}

/// `wait` as a visibility timeout: whole seconds rounded up, so that the message does not come back
/// early, within what SQS allows.
#[must_use]
pub fn seconds(wait: Duration) -> i32 {
    let wait = wait.clamp(VISIBILITY_MIN, VISIBILITY_MAX);
    let whole = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    i32::try_from(whole).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_is_rounded_up_to_whole_seconds() {
        assert_eq!(seconds(Duration::from_millis(2_001)), 3);
        assert_eq!(seconds(Duration::from_secs(2)), 2);
    }

    #[test]
    fn wait_stays_within_what_sqs_allows() {
        assert_eq!(seconds(Duration::ZERO), 1);
        assert_eq!(seconds(Duration::MAX), 42_000);
    }

    #[test]
    fn delivery_that_is_over_is_benign() {
        let words = "Value AQEB for parameter ReceiptHandle is invalid. Reason: Message does not exist or \
                     is not available for visibility timeout change.";
        assert_eq!(refusal("AWS.SimpleQueueService.MessageNotInflight", ""), Refusal::Gone);
        assert_eq!(refusal("ReceiptHandleIsInvalid", ""), Refusal::Gone);
        assert_eq!(refusal("InvalidParameterValue", words), Refusal::Gone);
        assert_eq!(refusal("RequestThrottled", ""), Refusal::Other("RequestThrottled".to_owned()));
    }
}
