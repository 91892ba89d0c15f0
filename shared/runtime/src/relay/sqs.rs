//! The port's implementation: one `SendMessageBatch` a call, and nothing clever.
//!
//! The SDK's own retries are off. They would wait inside the invocation, unseen by the other lanes'
//! reports; the lane's back-off does it better and outlives the invocation. Its timeouts are short, so
//! that a queue behind a missing network path costs seconds, not the budget.

use std::error::Error;
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::config::timeout::TimeoutConfig;
use aws_sdk_sqs::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::{
    BatchResultErrorEntry, MessageAttributeValue, MessageSystemAttributeNameForSends,
    MessageSystemAttributeValue, QueueAttributeName, SendMessageBatchRequestEntry,
};
use fault::FaultPoint;

use super::batch::CALL_BYTES_MAX;
use super::sender::{Answer, CallError, Entry, Refused, Sender};

/// How long a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Sends to SQS.
#[derive(Clone, Debug)]
pub struct Sqs(Client);

impl Sqs {
    /// A client that makes each call once, within `send_timeout`.
    #[must_use]
    pub fn new(config: &aws_config::SdkConfig, send_timeout: Duration) -> Self {
        let timeouts =
            TimeoutConfig::builder().connect_timeout(CONNECT_TIMEOUT).operation_timeout(send_timeout).build();
        let config = aws_sdk_sqs::config::Builder::from(config)
            .retry_config(RetryConfig::disabled())
            .timeout_config(timeouts)
            .build();
        Self(Client::from_conf(config))
    }
}

impl Sender for Sqs {
    async fn send(&self, queue_url: &str, entries: &[Entry]) -> Result<Answer, CallError> {
        let mut request = self.0.send_message_batch().queue_url(queue_url);
        for entry in entries {
            request =
                request.entries(to_sdk(entry).map_err(|error| CallError::unanswered(error.to_string()))?);
        }
        let answer = request
            .send()
            .fault_point("sqs::send_message_batch")
            .await
            .map_err(|error| call_error(&error))?;
        Ok(Answer {
            sent: answer.successful.into_iter().map(|entry| entry.id).collect(),
            refused: answer.failed.into_iter().map(from_sdk).collect(),
        })
    }

    async fn message_bytes_max(&self, queue_url: &str) -> Result<usize, CallError> {
        let name = QueueAttributeName::MaximumMessageSize;
        let request = self.0.get_queue_attributes().queue_url(queue_url).attribute_names(name.clone());
        let answer = request
            .send()
            .fault_point("sqs::get_queue_attributes")
            .await
            .map_err(|error| call_error(&error))?;
        let max = answer.attributes().and_then(|attributes| attributes.get(&name)?.parse().ok());
        Ok(max.unwrap_or(CALL_BYTES_MAX))
    }
}

fn to_sdk(entry: &Entry) -> Result<SendMessageBatchRequestEntry, aws_sdk_sqs::error::BuildError> {
    let mut request = SendMessageBatchRequestEntry::builder()
        .id(&entry.id)
        .message_body(&entry.body)
        .set_message_group_id(entry.group_id.clone());
    for attribute in &entry.attributes {
        let value = MessageAttributeValue::builder().data_type("String").string_value(&attribute.value);
        request = request.message_attributes(&attribute.name, value.build()?);
    }
    if let Some(header) = &entry.trace_header {
        let value = MessageSystemAttributeValue::builder().data_type("String").string_value(header);
        request = request
            .message_system_attributes(MessageSystemAttributeNameForSends::AwsTraceHeader, value.build()?);
    }
    request.build()
}

fn from_sdk(failed: BatchResultErrorEntry) -> Refused {
    Refused {
        id: failed.id,
        code: failed.code,
        message: failed.message.unwrap_or_default(),
        sender_fault: failed.sender_fault,
    }
}

/// A code only where the service gave one: all the rest leaves the outcome unknown.
fn call_error<E, R>(error: &SdkError<E, R>) -> CallError
where
    E: Error + ProvideErrorMetadata + 'static,
    R: std::fmt::Debug,
{
    match error.as_service_error() {
        Some(refusal) => CallError {
            code: Some(refusal.code().unwrap_or("Unknown").to_owned()),
            message: refusal.message().unwrap_or("the queue gave no reason").to_owned(),
        },
        None => CallError::unanswered(DisplayErrorContext(error).to_string()),
    }
}
