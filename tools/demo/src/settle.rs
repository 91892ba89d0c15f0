//! Waiting until every job has ended and every queue is empty, with a deadline.

use std::time::{Duration, Instant};

use aws_sdk_sqs::types::QueueAttributeName;
use store::audit::{self, Balance};

use crate::progress::Progress;
use crate::stack::Stack;

/// Between two looks: often enough for a bar that moves, rarely enough not to disturb.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How things stood when the waiting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The jobs.
    pub balance: Balance,
    /// Messages left in the queues, visible or in flight.
    pub messages: i64,
    /// How long it took.
    pub waited: Duration,
}

/// Why nobody can say how things stand.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database could not be asked.
    #[error("the database did not say how many jobs are left")]
    Database(#[from] store::Error),
    /// A queue could not be asked.
    #[error("a queue did not say how many messages are left")]
    Queue(#[source] Box<aws_sdk_sqs::Error>),
}

/// Waits until no job is unfinished and no message is left, or until `deadline` has passed.
///
/// # Errors
///
/// [`Error`]
pub async fn wait(stack: &Stack, deadline: Duration) -> Result<Settled, Error> {
    let began = Instant::now();
    let mut progress: Option<Progress> = None;
    loop {
        let balance = audit::balance(&stack.db).await?;
        let messages = messages(stack, stack.deployed.queues.values()).await?;
        let settled = Settled { balance, messages, waited: began.elapsed() };
        let (ended, all) = (balance.succeeded + balance.dead, balance.committed);
        let bar = progress.get_or_insert_with(|| Progress::new("jobs", usize::try_from(all).unwrap_or(0)));
        bar.reach(usize::try_from(ended).unwrap_or(0));
        if (balance.is_settled() && messages == 0) || settled.waited >= deadline {
            return Ok(settled);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Messages in `queues`, visible or in flight.
///
/// # Errors
///
/// [`Error::Queue`]
pub async fn messages(stack: &Stack, queues: impl Iterator<Item = &String>) -> Result<i64, Error> {
    use QueueAttributeName::{ApproximateNumberOfMessages, ApproximateNumberOfMessagesNotVisible};
    let mut messages = 0;
    for queue in queues {
        let answer = stack
            .sqs
            .get_queue_attributes()
            .queue_url(queue)
            .attribute_names(ApproximateNumberOfMessages)
            .attribute_names(ApproximateNumberOfMessagesNotVisible)
            .send()
            .await
            .map_err(|err| Error::Queue(Box::new(err.into())))?;
        let counts = answer.attributes.unwrap_or_default();
        messages += counts.values().filter_map(|count| count.parse::<i64>().ok()).sum::<i64>();
    }
    Ok(messages)
}
