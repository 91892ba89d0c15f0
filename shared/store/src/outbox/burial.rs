//! Events that can never be sent: how they become DEAD, and how those nobody drains are found.

use std::time::Duration;

use domain::DeadReason;
use fault::FaultPoint;
use sqlx::PgExecutor;

use super::Key;
use crate::Error;
use crate::values::{error_text, interval};

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
          from (select destination from named where destination <> all ($1::text[]) order by destination limit 1000) as unknown
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
