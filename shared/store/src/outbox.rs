//! Outbox events as the relay sees them: NEW until sent or given up.
//!
//! Events are selected by state, never by a high-water mark: the order of `sequence` is not the order
//! of commits. A [`Cursor`] only spares one drain the rows it has already been given; whoever uses it
//! looks from the start again now and then, or loses what committed late. Each move is guarded by the
//! event's `ring`, so that a relay with an old view can not swallow or kill a later ring.
//!
//! Sending is not done here, and no row stays locked while somebody sends.

mod burial;

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::EventId;
use fault::FaultPoint;
use sqlx::PgExecutor;

pub use self::burial::{Burial, Unroutable, Unsendable, bury, find_unroutable};
use crate::Error;
use crate::values::{error_text, interval, milliseconds};

/// One ring of one event: what a relay may move, and no other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The event.
    pub event_id: EventId,
    /// Which return to NEW of it; every move compares it.
    pub ring: i32,
}

/// An event that is due. What it says about its row is what the row said when it was read.
#[derive(Clone, Debug)]
pub struct Event {
    /// What to move when it was sent or refused.
    pub key: Key,
    /// The message; `None` when it is longer than the reader asked for.
    pub body: Option<String>,
    /// Becomes the message group on the queue.
    pub ordering_key: Option<String>,
    /// Travels as `AWSTraceHeader`.
    pub trace_header: Option<String>,
    /// How often its own entry failed; at least 0.
    pub attempt_count: u32,
    /// How long ago it was created, when it was read.
    pub age: Duration,
}

/// How far one drain has read a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    next_attempt_at: DateTime<Utc>,
    sequence: i64,
}

impl Cursor {
    /// Before everything: no event is due before 1970.
    pub const START: Self = Self { next_attempt_at: DateTime::UNIX_EPOCH, sequence: 0 };
}

/// How much one read brings at most.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Events; at least 1.
    pub events: usize,
    /// Bytes of all bodies together, except that the first event comes whatever its size.
    pub bytes: usize,
    /// Bytes of one body; a longer one stays in the database.
    pub body_bytes: usize,
}

/// Some due events, in the order they are to be sent.
#[derive(Debug)]
pub struct Batch {
    /// The events.
    pub events: Vec<Event>,
    /// Where to read on.
    pub cursor: Cursor,
    /// Whether the bounds ended it, and not the lack of events.
    pub more: bool,
}

/// Reads due events of one destination behind `after`.
///
/// Takes no locks: only the holder of the lane's lease sends, and every move is guarded.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn read_due(
    db: impl PgExecutor<'_>,
    destination: &str,
    after: Cursor,
    bounds: Bounds,
) -> Result<Batch, Error> {
    let rows = sqlx::query!(
        r#"
        -- outbox::read_due
        select event_id, ring, body, ordering_key, trace_header, attempt_count, next_attempt_at, sequence,
               bytes as "bytes!", (extract(epoch from now() - created_at) * 1000)::bigint as "age_ms!"
          from (select due.*, sum(bytes) over (order by next_attempt_at, sequence) as bytes_so_far
                  from (select event_id, ring, ordering_key, trace_header, attempt_count, next_attempt_at, sequence,
                               created_at,
                               case when octet_length(body) <= $6::bigint then body end as body,
                               case when octet_length(body) <= $6::bigint then octet_length(body) else 0 end as bytes
                          from outbox_event
                         where destination = $1
                           and status = 'NEW'
                           and next_attempt_at <= now()
                           and (next_attempt_at, sequence) > ($2, $3)
                         order by next_attempt_at, sequence
                         limit $4) as due) as measured
         where bytes_so_far - bytes < $5
         order by next_attempt_at, sequence
        "#,
        destination,
        after.next_attempt_at,
        after.sequence,
        whole(bounds.events),
        whole(bounds.bytes),
        whole(bounds.body_bytes),
    )
    .fetch_all(db)
    .fault_point("outbox::read_due")
    .await?;

    let bytes: i64 = rows.iter().map(|row| i64::from(row.bytes)).sum();
    let more = rows.len() >= bounds.events || bytes >= whole(bounds.bytes);
    let cursor = rows
        .last()
        .map_or(after, |row| Cursor { next_attempt_at: row.next_attempt_at, sequence: row.sequence });
    let events = rows.into_iter().map(|row| Event {
        key: Key { event_id: row.event_id, ring: row.ring },
        body: row.body,
        ordering_key: row.ordering_key,
        trace_header: row.trace_header,
        attempt_count: u32::try_from(row.attempt_count).unwrap_or(0),
        age: milliseconds(row.age_ms),
    });
    Ok(Batch { events: events.collect(), cursor, more })
}

/// Marks what was sent and says how many of `sent` are PUBLISHED by this call.
///
/// The rest was marked by somebody else, is DEAD, or rang again since it was read: all of it fine, the
/// consumer absorbs a message too many. The guard is on `published_at` and not on `status`, the partial
/// index's own predicate, which statistics of an idle outbox would turn into a scan of the backlog.
///
/// # Errors
///
/// [`Error::Database`]. What was not marked is sent again.
pub async fn mark_published(db: impl PgExecutor<'_>, sent: &[Key]) -> Result<u64, Error> {
    let (event_ids, rings) = in_key_order(sent);
    let done = sqlx::query!(
        r#"
        -- outbox::mark_published
        update outbox_event as event
           set status = 'PUBLISHED',
               published_at = now()
          from unnest($1::text[], $2::int[]) as sent (event_id, ring)
         where event.event_id = sent.event_id
           and event.ring = sent.ring
           and event.published_at is null
           and event.dead_reason is null
        "#,
        &event_ids,
        &rings,
    )
    .execute(db)
    .fault_point("outbox::mark_published")
    .await?;
    Ok(done.rows_affected())
}

/// An entry that its queue did not take, through no fault of the event's own.
#[derive(Clone, Debug)]
pub struct Postponed {
    /// What was not sent.
    pub key: Key,
    /// From now until it is due again.
    pub delay: Duration,
    /// Why it was not sent.
    pub error: String,
}

/// Counts a failure of each event and makes it due again after its delay. Says how many were moved.
///
/// # Errors
///
/// [`Error::Database`]. The events are due as they were.
pub async fn postpone(db: impl PgExecutor<'_>, failed: &[Postponed]) -> Result<u64, Error> {
    let mut failed: Vec<_> = failed.iter().collect();
    failed.sort_by(|one, other| one.key.cmp(&other.key));
    let event_ids: Vec<_> = failed.iter().map(|event| event.key.event_id.clone()).collect();
    let rings: Vec<_> = failed.iter().map(|event| event.key.ring).collect();
    let delays: Vec<_> = failed.iter().map(|event| interval(event.delay)).collect();
    let errors: Vec<_> = failed.iter().map(|event| error_text(&event.error)).collect();
    let done = sqlx::query!(
        r#"
        -- outbox::postpone
        update outbox_event as event
           set attempt_count = event.attempt_count + 1,
               next_attempt_at = now() + failed.delay,
               last_error = failed.error
          from unnest($1::text[], $2::int[], $3::interval[], $4::text[]) as failed (event_id, ring, delay, error)
         where event.event_id = failed.event_id
           and event.ring = failed.ring
           and event.published_at is null
           and event.dead_reason is null
        "#,
        &event_ids,
        &rings,
        &delays,
        &errors,
    )
    .execute(db)
    .fault_point("outbox::postpone")
    .await?;
    Ok(done.rows_affected())
}

/// A count as SQL takes it.
fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Ids and rings, sorted: two relays that mark the same events lock them in the same order.
fn in_key_order(keys: &[Key]) -> (Vec<EventId>, Vec<i32>) {
    let mut keys: Vec<_> = keys.iter().collect();
    keys.sort();
    keys.into_iter().map(|key| (key.event_id.clone(), key.ring)).unzip()
}
