//! The port to a queue: what the relay asks of it, and what it can answer.
//!
//! One implementation talks to SQS ([`super::sqs`]); its twin in memory, for tests, misbehaves on demand.
//! An implementation makes one call and reports it; retries, order and judgement are the relay's.

use std::future::Future;

/// One message of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Names the entry in the answer; `[A-Za-z0-9_-]`, unique in its call.
    pub id: String,
    /// The message.
    pub body: String,
    /// Message attributes. They count against the queue's maximum, as the body does.
    pub attributes: Vec<Attribute>,
    /// The message group. On a standard queue it keeps one noisy sender from delaying the rest.
    pub group_id: Option<String>,
    /// Sent as the system attribute `AWSTraceHeader`, which counts against nothing.
    pub trace_header: Option<String>,
}

/// A text attribute of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Its value, of type `String`.
    pub value: String,
}

impl Entry {
    /// The bytes that count: body, and name, type and value of each attribute.
    #[must_use]
    pub fn size(&self) -> usize {
        let attributes = self.attributes.iter();
        self.body.len() + attributes.map(|a| a.name.len() + "String".len() + a.value.len()).sum::<usize>()
    }
}

/// What the queue said about each entry. One that is in neither list was not sent.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Ids of the entries it took.
    pub sent: Vec<String>,
    /// Entries it did not take.
    pub refused: Vec<Refused>,
}

/// An entry that the queue did not take although it answered the call.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The entry.
    pub id: String,
    /// The error code.
    pub code: String,
    /// What the queue says about it.
    pub message: String,
    /// Whether the queue blames the sender. Not proof: it blames it for a missing permission too.
    pub sender_fault: bool,
}

/// A call that failed as a whole.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}: {message}", code.as_deref().unwrap_or("no answer"))]
pub struct CallError {
    /// The error code; `None` when no answer came, so that nobody knows whether the messages were taken.
    pub code: Option<String>,
    /// What went wrong, with its causes.
    pub message: String,
}

impl CallError {
    /// A call whose outcome is unknown.
    #[must_use]
    pub fn unanswered(message: impl Into<String>) -> Self {
        Self { code: None, message: message.into() }
    }
}

/// Sends to queues.
pub trait Sender: Send + Sync {
    /// Sends at most 10 entries in one call.
    ///
    /// # Errors
    ///
    /// [`CallError`], when no entry has an answer of its own.
    fn send(
        &self,
        queue_url: &str,
        entries: &[Entry],
    ) -> impl Future<Output = Result<Answer, CallError>> + Send;

    /// The longest message the queue takes, in bytes.
    ///
    /// # Errors
    ///
    /// [`CallError`].
    fn message_bytes_max(&self, queue_url: &str) -> impl Future<Output = Result<usize, CallError>> + Send;
}
