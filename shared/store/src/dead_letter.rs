//! What becomes of a job whose message reached a dead-letter queue.
//!
//! A message that SQS gave up on is no verdict on its job: throttling or an outage of the database
//! brings it here as well. The row decides, in one statement that carries the message's generation, so
//! a redrive that commits between the receive and the statement is safe. A job goes back to work only
//! together with its outbox event, so the message may be deleted. Nothing is sent and no message is
//! touched here.

use std::time::Duration;

use fault::FaultPoint;
use sqlx::PgExecutor;

use crate::{Error, claim::Asked};

/// What to do with a job that is not finished and held by nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Counts an attempt and gives the job back to the relay, while attempts are left.
    #[default]
    Return,
    /// Buries the job at once.
    Dead,
}

/// Why a message that can be read can still not be decided. It is neither run nor deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Doubt {
    /// Never enqueued, or removed by retention.
    #[error("there is no such job")]
    UnknownJob,
    /// The message lay in the dead-letter queue of another destination.
    #[error("the job belongs to another destination")]
    WrongDestination,
    /// The message is of a redrive that has not happened.
    #[error("the job was never redriven that often")]
    FutureGeneration,
    /// So nothing would wake it again.
    #[error("the job has no event of its generation")]
    NoEvent,
}

/// The verdict on one message, tested in the order of the variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Leave the message, and keep its evidence.
    Undecidable(Doubt),
    /// A younger message replaces it. Acknowledge.
    Superseded,
    /// The job is finished. Acknowledge.
    Settled,
    /// Somebody works on the job: leave both and look again later.
    Held {
        /// Until the lease ends; `None` when only its row was locked at this instant.
        wait: Option<Duration>,
    },
    /// The job waits for a new message: one attempt counted, RETRY, its event NEW. Acknowledge.
    Returned,
    /// The job is DEAD(`DLQ`). Acknowledge.
    Buried,
}

impl Doubt {
    /// The doubt as a word in capitals, as `quarantined_message.reason` has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnknownJob => "UNKNOWN_JOB",
            Self::WrongDestination => "WRONG_DESTINATION",
            Self::FutureGeneration => "FUTURE_GENERATION",
            Self::NoEvent => "NO_EVENT",
        }
    }
}

/// Decides every message of `asked` that lay in the dead-letter queue of `destination`.
///
/// The verdicts come in the order of `asked`. Rows are locked in primary-key order and never waited
/// for: a job or event somebody holds at this instant is [`Verdict::Held`]. Messages of one job are one
/// attempt, however many of them are in the call.
///
/// # Errors
///
/// [`Error::Database`]. If the answer was lost on the way the jobs may have moved; leave the messages,
/// their next delivery finds what happened.
pub async fn decide(
    db: impl PgExecutor<'_>,
    destination: &str,
    asked: &[Asked],
    policy: Policy,
) -> Result<Vec<Verdict>, Error> {
    let job_ids: Vec<String> = asked.iter().map(|asked| asked.job_id.to_string()).collect();
    let generations: Vec<i32> = asked.iter().map(|asked| asked.redrive_generation).collect();
    let rows = sqlx::query!(
        r#"
        -- dead_letter::decide
        with asked as (
            select job_id, generation, position
              from unnest($2::text[], $3::integer[]) with ordinality as a (job_id, generation, position)
        ), locked as (
            select job_id, destination, status, redrive_generation, attempt_count, max_attempts, lease_until
              from job
             where job_id in (select job_id from asked)
             order by job_id
               for update skip locked
        ), idle as (
            select job_id, redrive_generation, attempt_count, max_attempts
              from locked
             where destination = $1
               and status in ('PENDING', 'CLAIMED', 'RETRY')
               and (lease_until is null or lease_until <= now())
               and (job_id, redrive_generation) in (select job_id, generation from asked)
        ), event as (
            select e.event_id, e.job_id
              from outbox_event e
              join idle using (job_id, redrive_generation)
             order by e.event_id
               for update of e skip locked
        ), returned as (
            update job
               set status          = 'RETRY',
                   attempt_count   = job.attempt_count + 1,
                   next_attempt_at = now(),
                   claimed_by      = null,
                   lease_until     = null,
                   last_error      = coalesce(job.last_error, 'its message reached the dead-letter queue')
              from idle
             where job.job_id = idle.job_id
               and idle.attempt_count < idle.max_attempts
               and not $4
               and exists (select from event where event.job_id = idle.job_id)
            returning job.job_id
        ), rung as (
            -- Also an event that is NEW: a relay frozen since it sent this message must not mark it.
            update outbox_event e
               set status          = 'NEW',
                   ring            = e.ring + 1,
                   published_at    = null,
                   attempt_count   = 0,
                   next_attempt_at = now(),
                   dead_reason     = null,
                   last_error      = null
              from event
              join returned using (job_id)
             where e.event_id = event.event_id
        ), buried as (
            update job
               set status      = 'DEAD',
                   dead_reason = 'DLQ',
                   finished_at = now(),
                   claimed_by  = null,
                   lease_until = null,
                   last_error  = coalesce(job.last_error, 'its message reached the dead-letter queue')
              from idle
             where job.job_id = idle.job_id
               and (idle.attempt_count >= idle.max_attempts or $4)
            returning job.job_id
        )
        select case
                 when not exists (select from job where job.job_id = asked.job_id) then 'UNKNOWN_JOB'
                 when locked.job_id is null then 'HELD'
                 when locked.destination <> $1 then 'WRONG_DESTINATION'
                 when asked.generation > locked.redrive_generation then 'FUTURE_GENERATION'
                 when asked.generation < locked.redrive_generation then 'SUPERSEDED'
                 when locked.status in ('SUCCEEDED', 'DEAD') then 'SETTLED'
                 when locked.lease_until > now() then 'HELD'
                 when exists (select from returned where returned.job_id = asked.job_id) then 'RETURNED'
                 when exists (select from buried where buried.job_id = asked.job_id) then 'BURIED'
                 when exists (select from outbox_event e
                               where e.job_id = asked.job_id
                                 and e.redrive_generation = asked.generation) then 'HELD'
                 else 'NO_EVENT'
               end as "verdict!",
               extract(epoch from locked.lease_until - now())::double precision as wait_seconds
          from asked
          left join locked using (job_id)
         order by asked.position
        "#,
        destination,
        &job_ids,
        &generations,
        policy == Policy::Dead,
    )
    .fetch_all(db)
    .fault_point("dead_letter::decide")
    .await?;
    rows.into_iter().map(|row| verdict(&row.verdict, row.wait_seconds)).collect()
}

/// Reads what the statement wrote.
fn verdict(word: &str, wait_seconds: Option<f64>) -> Result<Verdict, Error> {
    let doubts = [Doubt::UnknownJob, Doubt::WrongDestination, Doubt::FutureGeneration, Doubt::NoEvent];
    match word {
        "SUPERSEDED" => Ok(Verdict::Superseded),
        "SETTLED" => Ok(Verdict::Settled),
        "HELD" => {
            let wait = wait_seconds.filter(|seconds| *seconds > 0.0).map(Duration::from_secs_f64);
            Ok(Verdict::Held { wait })
        }
        "RETURNED" => Ok(Verdict::Returned),
        "BURIED" => Ok(Verdict::Buried),
        other => {
            doubts.into_iter().find(|doubt| doubt.as_str() == other).map(Verdict::Undecidable).ok_or_else(
                || Error::Database(sqlx::Error::Decode(format!("unknown verdict {other}").into())),
            )
        }
    }
}
