//! The evidence of messages that can be neither run nor deleted.
//!
//! A message is copied once, at first sight; later sights only move `last_seen_at`. The copy outlives
//! the queue's retention. The message itself stays where it is: nothing here deletes anything.

use serde_json::Value;
use sqlx::PgExecutor;

use crate::Error;

/// Everything a message said, and why nobody can act upon it.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// SQS's id of the message; not empty.
    pub message_id: String,
    /// The ARN of the queue it lies in; empty if unknown.
    pub queue: String,
    /// As received.
    pub body: Option<String>,
    /// The queue's and the sender's attributes, as received.
    pub attributes: Value,
    /// Across all queues; `None` or at least 1.
    pub receive_count: Option<i32>,
    /// One word in capitals.
    pub reason: String,
    /// The same for people.
    pub detail: String,
}

/// Whether the evidence is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Copied now.
    First,
    /// The first copy stands; only `last_seen_at` has moved.
    Again,
}

/// Keeps the evidence of one message.
///
/// # Errors
///
/// [`Error::Database`]. Leave the message; its next sight tries again.
pub async fn keep(db: impl PgExecutor<'_>, evidence: &Evidence) -> Result<Kept, Error> {
    // SQS carries no NUL, PostgreSQL stores none; a test event may hold one all the same.
    let storable = |text: &str| text.replace('\0', "\u{fffd}");
    let body = evidence.body.as_deref().map(storable);
    let first = sqlx::query_scalar!(
        r#"
        -- quarantine::keep
        insert into quarantined_message as q
               (message_id, queue, body, attributes, receive_count, reason, detail)
        values ($1, $2, $3, $4::text::json, $5, $6, $7)
            on conflict (message_id) do update set last_seen_at = greatest(q.last_seen_at, now())
        returning first_seen_at = now() as "first!"
        "#,
        evidence.message_id,
        evidence.queue,
        body,
        evidence.attributes.to_string(),
        evidence.receive_count,
        evidence.reason,
        storable(&evidence.detail),
    )
    .fetch_one(db)
    .await?;
    Ok(if first { Kept::First } else { Kept::Again })
}
