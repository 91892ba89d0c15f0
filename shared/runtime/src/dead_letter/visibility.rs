//! Hides messages that stay in their queue.
//!
//! Only a courtesy: a message that could not be hidden comes back after the queue's own time.

use std::time::Duration;

use aws_sdk_sqs::{Client, types::ChangeMessageVisibilityBatchRequestEntry};
use tracing::{info, warn};

use super::Record;

/// Entries of one `ChangeMessageVisibilityBatch`: SQS takes no more.
const BATCH_MAX: usize = 10;

/// The longest a message can stay out of sight: SQS refuses more than 12 h since its receive, and this
/// invocation may have used up the rest of them.
pub const HIDDEN_MAX: Duration = Duration::from_mins(11 * 60 + 40);

/// A message that is to stay out of sight for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// Names this receive of the message.
    pub receipt_handle: String,
    /// For how long, in whole seconds: rounded up, so that it does not come back early.
    pub seconds: i32,
}

impl Hidden {
    /// Hides the message of `record`; `None` if it has no receipt handle to do it by.
    #[must_use]
    pub fn new(record: &Record, time: Duration) -> Option<Self> {
        let time = time.min(HIDDEN_MAX);
        let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
        let receipt_handle = record.receipt_handle.clone()?;
        Some(Self { receipt_handle, seconds: i32::try_from(seconds.max(1)).unwrap_or(i32::MAX) })
    }
}

/// Something that can hide messages in a queue.
pub trait Hide {
    /// Hides `messages`; those that could not be hidden are logged and come back sooner.
    fn hide(&self, queue_url: &str, messages: &[Hidden]) -> impl Future<Output = ()> + Send;
}

impl Hide for Client {
    async fn hide(&self, queue_url: &str, messages: &[Hidden]) {
        for batch in messages.chunks(BATCH_MAX) {
            hide_batch(self, queue_url, batch).await;
        }
    }
}

async fn hide_batch(sqs: &Client, queue_url: &str, batch: &[Hidden]) {
    let mut call = sqs.change_message_visibility_batch().queue_url(queue_url);
    for (nth, hidden) in batch.iter().enumerate() {
        let entry = ChangeMessageVisibilityBatchRequestEntry::builder()
            .id(nth.to_string())
            .receipt_handle(&hidden.receipt_handle)
            .visibility_timeout(hidden.seconds)
            .build();
        match entry {
            Ok(entry) => call = call.entries(entry),
            Err(error) => warn!(error = %error, "a message could not be hidden"),
        }
    }
    match call.send().await {
        Ok(answer) => {
            for refused in answer.failed() {
                // It may be visible again by now, or gone: nothing is wrong with that.
                info!(code = refused.code(), "a message was not hidden");
            }
        }
        Err(error) => {
            warn!(error = %aws_sdk_sqs::error::DisplayErrorContext(&error), "messages could not be hidden");
        }
    }
}
