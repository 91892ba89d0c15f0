//! Runs DEAD jobs again, because an operator says so.
//!
//! A redrive raises the job's `redrive_generation`, so messages of the life before are superseded
//! wherever they still lie, and writes a fresh event from the row, never from an old message. Jobs,
//! events and the record of who and why are one transaction: all or nothing. A stale job is refused;
//! running it again could only end in STALE again.

use domain::{JobStatus, message};
use fault::FaultPoint;
use serde_json::{Value, json};
use sqlx::{PgConnection, PgPool};

use crate::{
    Error,
    operator_action::{Action, Order, record, selected},
};

/// What came of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// PENDING again, with this event; in a dry run: would be.
    Redriven {
        /// The fresh event's id.
        event_id: String,
    },
    /// Refused: what it was about has moved on. It is DEAD(`STALE`) now, if it was not yet.
    Stale,
    /// Refused: only a DEAD job can be redriven.
    NotDead(JobStatus),
    /// There is no such job.
    Missing,
}

/// What came of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The record in `operator_action`.
    pub action_id: i64,
    /// Nothing was moved.
    pub dry_run: bool,
    /// Each job of the selection, longest dead first.
    pub outcomes: Vec<(String, Outcome)>,
}

impl Report {
    /// The ids and outcomes, by outcome.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({ "action_id": self.action_id, "dry_run": self.dry_run, "result": by_outcome(&self.outcomes) })
    }
}

/// Redrives the jobs of `order`, `rate` of them a second at most; `None`: all at once.
///
/// The rate spreads the instants at which the relay sends the events; the jobs are PENDING at once.
///
/// # Errors
///
/// [`Error::Database`]: nothing was redriven, unless the answer to the commit itself was lost; then
/// `operator_action` says whether it was.
pub async fn redrive(db: &PgPool, order: &Order, rate: Option<f64>) -> Result<Report, Error> {
    let mut tx = db.begin().await?;
    match redrive_in(&mut tx, order, rate).await {
        Ok(report) => {
            tx.commit().fault_point("redrive::commit").await?;
            Ok(report)
        }
        Err(error) => {
            tx.rollback().await?;
            Err(error)
        }
    }
}

async fn redrive_in(tx: &mut PgConnection, order: &Order, rate: Option<f64>) -> Result<Report, Error> {
    let job_ids = selected(tx, &order.selection).await?;
    let spacing_seconds = rate.map_or(0.0, f64::recip);
    let outcomes = move_jobs(tx, &job_ids, spacing_seconds, order.dry_run).await?;
    let action_id = record(tx, Action::Redrive, order, &by_outcome(&outcomes)).await?;
    Ok(Report { action_id, dry_run: order.dry_run, outcomes })
}

/// The one statement. The body it writes is byte for byte that of `domain::Message`.
async fn move_jobs(
    tx: &mut PgConnection,
    job_ids: &[String],
    spacing_seconds: f64,
    dry_run: bool,
) -> Result<Vec<(String, Outcome)>, Error> {
    let rows = sqlx::query!(
        r#"
        -- redrive::move_jobs
        with picked as (
            select job.job_id, job.job_type, job.status, job.dead_reason, job.finished_at,
                   job.redrive_generation + 1 as generation,
                   job.dead_reason = 'STALE'
                       or coalesce(w.generation > job.window_generation, false)
                       as stale
              from job
              left join collection_window w using (dataset, window_start)
             where job.job_id = any($1)
             order by job.job_id
               for update of job
        ), due as (
            select job_id, generation,
                   job_type || ':' || job_id || ':' || generation as event_id,
                   row_number() over (order by finished_at, job_id) - 1 as earlier
              from picked
             where status = 'DEAD'
               and not stale
        ), redriven as (
            update job
               set status             = 'PENDING',
                   redrive_generation = due.generation,
                   attempt_count      = 0,
                   next_attempt_at    = now(),
                   claimed_by         = null,
                   lease_until        = null,
                   dead_reason        = null,
                   last_error         = null,
                   last_requeued_at   = null,
                   requeue_count      = 0,
                   dismissed_at       = null,
                   enqueued_at        = now(),
                   finished_at        = null
              from due
             where job.job_id = due.job_id
               and not $2
            returning job.job_id, job.job_type, job.destination, job.redrive_generation, job.trace_header,
                      due.event_id, due.earlier
        ), rung as (
            insert into outbox_event (event_id, job_id, event_type, destination, redrive_generation, body,
                                      ordering_key, trace_header, next_attempt_at)
            select event_id, job_id, job_type, destination, redrive_generation,
                   '{"version":' || $3::bigint
                       || ',"event_id":' || to_json(event_id)
                       || ',"event_type":' || to_json(job_type)
                       || ',"job_id":' || to_json(job_id)
                       || ',"redrive_generation":' || redrive_generation || '}',
                   (select before.ordering_key
                      from outbox_event before
                     where before.job_id = redriven.job_id
                     order by before.redrive_generation desc, before.event_id
                     limit 1),
                   trace_header,
                   now() + make_interval(secs => earlier * $4::double precision)
              from redriven
        ), marked as (
            update job
               set dead_reason = 'STALE'
              from picked
             where job.job_id = picked.job_id
               and picked.status = 'DEAD'
               and picked.stale
               and picked.dead_reason <> 'STALE'
               and not $2
        )
        select asked.job_id as "job_id!", picked.status as "status?", picked.stale as "stale?", due.event_id as "event_id?"
          from unnest($1) as asked (job_id)
          left join picked using (job_id)
          left join due using (job_id)
         order by picked.finished_at, asked.job_id
        "#,
        job_ids,
        dry_run,
        i64::from(message::VERSION),
        spacing_seconds,
    )
    .fetch_all(tx)
    .fault_point("redrive::move_jobs")
    .await?;
    let outcome = |status: Option<String>, event_id: Option<String>| match (status, event_id) {
        (_, Some(event_id)) => Outcome::Redriven { event_id },
        (None, _) => Outcome::Missing,
        (Some(status), None) => match JobStatus::parse(&status) {
            Some(status) if status != JobStatus::Dead => Outcome::NotDead(status),
            _ => Outcome::Stale,
        },
    };
    Ok(rows.into_iter().map(|row| (row.job_id, outcome(row.status, row.event_id))).collect())
}

/// What the record and the answer say: lists that are empty are there all the same.
fn by_outcome(outcomes: &[(String, Outcome)]) -> Value {
    let (mut redriven, mut stale, mut not_dead, mut missing) = (vec![], vec![], vec![], vec![]);
    for (job_id, outcome) in outcomes {
        match outcome {
            Outcome::Redriven { event_id } => {
                redriven.push(json!({ "job_id": job_id, "event_id": event_id }));
            }
            Outcome::Stale => stale.push(json!(job_id)),
            Outcome::NotDead(status) => not_dead.push(json!({ "job_id": job_id, "status": status.as_str() })),
            Outcome::Missing => missing.push(json!(job_id)),
        }
    }
    json!({ "redriven": redriven, "stale": stale, "not_dead": not_dead, "missing": missing })
}
