//! Outbox events as the relay sees them: NEW until sent or given up.
//!
//! Events are selected by state, never by a high-water mark: the order of `sequence` is not the order
//! of commits. A [`Cursor`] only spares one drain the rows it has already been given; whoever uses it
//! looks from the start again now and then, or loses what committed late. Each move is guarded by the
//! event's `ring`, so that a relay with an old view can not swallow or kill a later ring.
//!
//! Sending is not done here, and no row stays locked while somebody sends.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::{DeadReason, EventId};
use fault::FaultPoint;
use sqlx::PgExecutor;

use crate::Error;
use crate::values::{error_text, interval};

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
               bytes as "bytes!"
          from (select due.*, sum(bytes) over (order by next_attempt_at, sequence) as bytes_so_far
                  from (select event_id, ring, ordering_key, trace_header, attempt_count, next_attempt_at, sequence,
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

/// An event that can never be sent.
#[derive(Clone, Debug)]
pub struct Unsendable {
    /// The event.
    pub key: Key,
    /// Why, as a word in capitals.
    pub reason: &'static str,
    /// Why, for people.
    pub error: String,
}

/// What became of events that can never be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Burial {
    /// Events that are DEAD now.
    pub dead: u64,
    /// Jobs that went with them.
    pub jobs: u64,
    /// Events whose job is being worked on: still NEW, due again when that lease ends.
    pub deferred: u64,
}

/// Makes events DEAD, each with its job, so that no job waits for a message that can not come.
///
/// A job goes with its event when it is of the same generation and not terminal. While somebody holds
/// it under a live lease, neither is touched. Body, reason and error stay for whoever redrives the job.
///
/// # Errors
///
/// [`Error::Database`]. Everything is as it was.
pub async fn bury(db: impl PgExecutor<'_>, unsendable: &[Unsendable]) -> Result<Burial, Error> {
    let mut unsendable: Vec<_> = unsendable.iter().collect();
    unsendable.sort_by(|one, other| one.key.cmp(&other.key));
    let event_ids: Vec<_> = unsendable.iter().map(|event| event.key.event_id.clone()).collect();
    let rings: Vec<_> = unsendable.iter().map(|event| event.key.ring).collect();
    let reasons: Vec<_> = unsendable.iter().map(|event| event.reason.to_owned()).collect();
    let errors: Vec<_> = unsendable.iter().map(|event| error_text(&event.error)).collect();
    let burial = sqlx::query!(
        r#"
        -- outbox::bury
        with unsendable as (
            select *
              from unnest($1::text[], $2::int[], $3::text[], $4::text[]) as u (event_id, ring, reason, error)
        ), locked as (
            select job_id, redrive_generation, lease_until,
                   status = 'CLAIMED' and lease_until > now() as is_held
              from job
             where job_id in (select event.job_id from outbox_event as event join unsendable using (event_id))
             order by job_id
               for update
        ), judged as (
            select unsendable.*, locked.job_id, locked.redrive_generation, locked.lease_until,
                   locked.is_held and locked.redrive_generation = event.redrive_generation as is_deferred
              from unsendable
              join outbox_event as event using (event_id)
              join locked using (job_id)
        ), moved as (
            update outbox_event as event
               set status = case when is_deferred then 'NEW' else 'DEAD' end,
                   dead_reason = case when is_deferred then null else reason end,
                   next_attempt_at = case when is_deferred then judged.lease_until else event.next_attempt_at end,
                   last_error = error
              from judged
             where event.event_id = judged.event_id
               and event.ring = judged.ring
               and event.published_at is null
               and event.dead_reason is null
            returning event.job_id, event.redrive_generation, event.dead_reason, event.last_error
        ), buried as (
            update job
               set status = 'DEAD',
                   dead_reason = $5,
                   last_error = moved.dead_reason || ': ' || moved.last_error,
                   claimed_by = null,
                   lease_until = null,
                   finished_at = now()
              from moved
             where job.job_id = moved.job_id
               and job.redrive_generation = moved.redrive_generation
               and job.finished_at is null
               and moved.dead_reason is not null
            returning job.job_id
        )
        select count(*) filter (where dead_reason is not null) as "dead!",
               count(*) filter (where dead_reason is null) as "deferred!",
               (select count(*) from buried) as "jobs!"
          from moved
        "#,
        &event_ids,
        &rings,
        &reasons,
        &errors,
        DeadReason::Unsendable.as_str(),
    )
    .fetch_one(db)
    .fault_point("outbox::bury")
    .await?;
    let count = |rows: i64| u64::try_from(rows).unwrap_or(0);
    Ok(Burial { dead: count(burial.dead), jobs: count(burial.jobs), deferred: count(burial.deferred) })
}

/// An event for a destination that nobody drains.
#[derive(Clone, Debug)]
pub struct Unroutable {
    /// The event.
    pub key: Key,
    /// Where it should go.
    pub destination: String,
}

/// Finds due events whose destination is none of `configured`, for longer than `grace`; at most `limit`.
///
/// `grace` covers a rolling deploy, in which an older relay does not know a new destination yet.
/// Steps from one destination to the next along the index, however many events each one has.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn find_unroutable(
    db: impl PgExecutor<'_>,
    configured: &[String],
    grace: Duration,
    limit: u32,
) -> Result<Vec<Unroutable>, Error> {
    let rows = sqlx::query!(
        r#"
        -- outbox::find_unroutable
        with recursive named (destination) as (
            (select destination from outbox_event where status = 'NEW' order by destination limit 1)
            union all
            select (select event.destination
                      from outbox_event as event
                     where event.status = 'NEW'
                       and event.destination > named.destination
                     order by event.destination
                     limit 1)
              from named
             where named.destination is not null
        )
        select event.event_id, event.ring, event.destination
          from (select destination from named where destination <> all ($1::text[]) limit 1000) as unknown
         cross join lateral (
               select event_id, ring, outbox_event.destination, next_attempt_at, sequence
                 from outbox_event
                where outbox_event.destination = unknown.destination
                  and status = 'NEW'
                  and next_attempt_at <= now() - $2::interval
                order by next_attempt_at, sequence
                limit $3) as event
         order by event.next_attempt_at, event.sequence
         limit $3
        "#,
        configured,
        interval(grace),
        i64::from(limit),
    )
    .fetch_all(db)
    .fault_point("outbox::find_unroutable")
    .await?;
    let unroutable = rows.into_iter().map(|row| Unroutable {
        key: Key { event_id: row.event_id, ring: row.ring },
        destination: row.destination,
    });
    Ok(unroutable.collect())
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
