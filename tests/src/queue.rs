//! One queue with its dead-letter queue, and what a test looks at in them.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::operation::delete_message::DeleteMessageError;
use aws_sdk_sqs::types::{
    Message, MessageSystemAttributeName, QueueAttributeName, SendMessageBatchRequestEntry,
};

use crate::Result;

/// A queue and where its given-up messages go.
#[derive(Clone, Debug)]
pub struct Queue {
    sqs: Client,
    /// Its URL.
    pub url: String,
    /// Its ARN.
    pub arn: String,
}

impl Queue {
    /// Makes the queue `name` and its dead-letter queue.
    ///
    /// # Errors
    ///
    /// The server refuses.
    pub async fn create(
        sqs: &Client,
        name: &str,
        visibility_seconds: u32,
        receives_max: u32,
    ) -> Result<(Self, Self)> {
        let dead = Self::plain(sqs, &format!("{name}-dead-letter"), visibility_seconds, None).await?;
        let redrive = format!(r#"{{"deadLetterTargetArn":"{}","maxReceiveCount":{receives_max}}}"#, dead.arn);
        Ok((Self::plain(sqs, name, visibility_seconds, Some(redrive)).await?, dead))
    }

    async fn plain(
        sqs: &Client,
        name: &str,
        visibility_seconds: u32,
        redrive: Option<String>,
    ) -> Result<Self> {
        let made = sqs
            .create_queue()
            .queue_name(name)
            .attributes(QueueAttributeName::VisibilityTimeout, visibility_seconds.to_string())
            .attributes(QueueAttributeName::MaximumMessageSize, "1048576");
        let made = match redrive {
            Some(redrive) => made.attributes(QueueAttributeName::RedrivePolicy, redrive),
            None => made,
        };
        let url = made.send().await?.queue_url.ok_or("a queue without a URL")?;
        let attributes = sqs
            .get_queue_attributes()
            .queue_url(&url)
            .attribute_names(QueueAttributeName::QueueArn)
            .send()
            .await?;
        let arn = attributes.attributes().and_then(|all| all.get(&QueueAttributeName::QueueArn));
        Ok(Self { sqs: sqs.clone(), arn: arn.ok_or("a queue without an ARN")?.clone(), url })
    }

    /// Sends bodies as they are.
    ///
    /// # Errors
    ///
    /// The server refuses one.
    pub async fn send(&self, bodies: &[String]) -> Result<()> {
        for call in bodies.chunks(10) {
            let entries = call.iter().enumerate().map(|(position, body)| {
                SendMessageBatchRequestEntry::builder().id(position.to_string()).message_body(body).build()
            });
            let entries = entries.collect::<std::result::Result<Vec<_>, _>>()?;
            let answer =
                self.sqs.send_message_batch().queue_url(&self.url).set_entries(Some(entries)).send().await?;
            if !answer.failed().is_empty() {
                return Err(format!("not sent: {:?}", answer.failed()).into());
            }
        }
        Ok(())
    }

    /// Receives at most ten messages that are visible now.
    ///
    /// # Errors
    ///
    /// The server refuses.
    pub async fn receive(&self) -> Result<Vec<Message>> {
        let received = self
            .sqs
            .receive_message()
            .queue_url(&self.url)
            .max_number_of_messages(10)
            .wait_time_seconds(0)
            .message_system_attribute_names(MessageSystemAttributeName::All)
            .send()
            .await?;
        Ok(received.messages.unwrap_or_default())
    }

    /// Deletes a received message. A receipt that somebody else's delivery has replaced deletes nothing,
    /// which SQS calls a success and some emulators do not.
    ///
    /// # Errors
    ///
    /// The server refuses.
    pub async fn delete(&self, receipt: &str) -> Result<()> {
        let call = self.sqs.delete_message().queue_url(&self.url).receipt_handle(receipt);
        match call.send().await {
            Err(error)
                if error.as_service_error().is_some_and(DeleteMessageError::is_receipt_handle_is_invalid) =>
            {
                Ok(())
            }
            other => Ok(other.map(drop)?),
        }
    }

    /// Makes a received message visible again; one that is visible stays as it is. Whether the receipt
    /// still stands for a message.
    pub async fn show(&self, receipt: &str) -> bool {
        let shown = self.sqs.change_message_visibility().queue_url(&self.url).receipt_handle(receipt);
        shown.visibility_timeout(0).send().await.is_ok()
    }

    /// Messages in it: visible, in flight and delayed together.
    ///
    /// # Errors
    ///
    /// The server refuses.
    pub async fn depth(&self) -> Result<u64> {
        let names = [
            QueueAttributeName::ApproximateNumberOfMessages,
            QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
            QueueAttributeName::ApproximateNumberOfMessagesDelayed,
        ];
        let asked =
            self.sqs.get_queue_attributes().queue_url(&self.url).set_attribute_names(Some(names.to_vec()));
        let told = asked.send().await?.attributes.unwrap_or_default();
        Ok(names.iter().filter_map(|name| told.get(name)?.parse::<u64>().ok()).sum())
    }

    /// Loses everything in it.
    ///
    /// # Errors
    ///
    /// The server refuses.
    pub async fn purge(&self) -> Result<()> {
        self.sqs.purge_queue().queue_url(&self.url).send().await?;
        Ok(())
    }
}
