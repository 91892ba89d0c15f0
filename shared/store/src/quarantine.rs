//! The evidence of messages that can be neither run nor deleted.
//!
//! A message is copied once, at first sight; later sights only move `last_seen_at`. The copy outlives
//! the queue's retention. The message itself stays where it is: nothing here deletes anything.

use fault::FaultPoint;
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

/// Keeps the evidence of each message; gives the ids of those seen for the first time.
///
/// # Errors
///
/// [`Error::Database`]: nothing was kept. Leave the messages; their next sight tries again.
pub async fn keep(db: impl PgExecutor<'_>, evidence: &[Evidence]) -> Result<Vec<String>, Error> {
    // SQS carries no NUL, PostgreSQL stores none; a test event may hold one all the same.
    let storable = |text: &str| text.replace('\0', "\u{fffd}");
    let column = |of: fn(&Evidence) -> &str| evidence.iter().map(|one| storable(of(one))).collect::<Vec<_>>();
    let bodies: Vec<_> = evidence.iter().map(|one| one.body.as_deref().map(storable)).collect();
    let attributes: Vec<_> = evidence.iter().map(|one| one.attributes.to_string()).collect();
    let receive_counts: Vec<_> = evidence.iter().map(|one| one.receive_count).collect();
    let first = sqlx::query_scalar!(
        r#"
        -- quarantine::keep
        with kept as (
            insert into quarantined_message as q
                   (message_id, queue, body, attributes, receive_count, reason, detail)
            select distinct on (message_id)
                   message_id, queue, body, attributes::json, receive_count, reason, detail
              from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::integer[], $6::text[], $7::text[])
                   as seen (message_id, queue, body, attributes, receive_count, reason, detail)
             order by message_id
                on conflict (message_id) do update set last_seen_at = greatest(q.last_seen_at, now())
            returning message_id, first_seen_at
        )
        select message_id
          from kept
         where first_seen_at = now()
         order by message_id
        "#,
        &column(|one| &one.message_id),
        &column(|one| &one.queue),
        &bodies as &[Option<String>],
        &attributes,
        &receive_counts as &[Option<i32>],
        &column(|one| &one.reason),
        &column(|one| &one.detail),
    )
    .fetch_all(db)
    .fault_point("quarantine::keep")
    .await?;
    Ok(first)
}
