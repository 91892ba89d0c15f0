//! How many messages lie in a queue, those included that nobody can see at this moment.

use std::error::Error;
use std::future::Future;

use aws_sdk_sqs::types::QueueAttributeName;

/// The numbers that add up to everything in a queue. The dead-letter function hides messages for hours,
/// and they do not count as visible then.
const PARTS: [QueueAttributeName; 3] = [
    QueueAttributeName::ApproximateNumberOfMessages,
    QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
    QueueAttributeName::ApproximateNumberOfMessagesDelayed,
];

/// Who knows how deep queues are.
pub trait Depths: Send + Sync {
    /// About how many messages lie in the queue, visible or not.
    ///
    /// # Errors
    ///
    /// When the queue does not answer.
    fn depth(
        &self,
        queue_url: &str,
    ) -> impl Future<Output = Result<u64, Box<dyn Error + Send + Sync>>> + Send;
}

/// Amazon SQS.
#[derive(Clone, Debug)]
pub struct SqsDepths(pub aws_sdk_sqs::Client);

impl Depths for SqsDepths {
    async fn depth(&self, queue_url: &str) -> Result<u64, Box<dyn Error + Send + Sync>> {
        let request = self.0.get_queue_attributes().queue_url(queue_url);
        let answer = request.set_attribute_names(Some(PARTS.to_vec())).send().await?;
        let number = |part| answer.attributes()?.get(part)?.parse::<u64>().ok();
        Ok(PARTS.iter().filter_map(number).sum())
    }
}
