//! Accepts DEAD jobs as dead, because an operator says so.
//!
//! A dismissed job counts in no alarm, is found by no filter, and may be removed by retention. It stays
//! DEAD; a redrive by id takes it back.

use domain::JobStatus;
use fault::FaultPoint;
use serde_json::{Value, json};
use sqlx::{PgConnection, PgPool};

use crate::{
    Error,
    operator_action::{Action, Order, record, selected},
};

/// What came of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Dismissed; in a dry run: would be.
    Dismissed,
    /// It was dismissed before, and stays so.
    Already,
    /// Refused: only a DEAD job can be dismissed.
    NotDead(JobStatus),
    /// There is no such job.
    Missing,
}

/// What came of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The record in `operator_action`.
    pub action_id: i64,
    /// Nothing was changed.
    pub dry_run: bool,
    /// Each job of the selection, by id.
    pub outcomes: Vec<(String, Outcome)>,
}

impl Report {
    /// The ids and outcomes, by outcome.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({ "action_id": self.action_id, "dry_run": self.dry_run, "result": by_outcome(&self.outcomes) })
    }
}

/// Dismisses the jobs of `order`.
///
/// # Errors
///
/// [`Error::Database`]: nothing was dismissed, unless the answer to the commit itself was lost.
pub async fn dismiss(db: &PgPool, order: &Order) -> Result<Report, Error> {
    let mut tx = db.begin().await?;
    match dismiss_in(&mut tx, order).await {
        Ok(report) => {
            tx.commit().fault_point("dismiss::commit").await?;
            Ok(report)
        }
        Err(error) => {
            tx.rollback().await?;
            Err(error)
        }
    }
}

async fn dismiss_in(tx: &mut PgConnection, order: &Order) -> Result<Report, Error> {
    let job_ids = selected(tx, &order.selection).await?;
    let outcomes = mark(tx, &job_ids, order.dry_run).await?;
    let action_id = record(tx, Action::Dismiss, order, &by_outcome(&outcomes)).await?;
    Ok(Report { action_id, dry_run: order.dry_run, outcomes })
}

async fn mark(
    tx: &mut PgConnection,
    job_ids: &[String],
    dry_run: bool,
) -> Result<Vec<(String, Outcome)>, Error> {
    let rows = sqlx::query!(
        r#"
        -- dismiss::mark
        with picked as (
            select job_id, status, dismissed_at
              from job
             where job_id = any($1)
             order by job_id
               for update
        ), marked as (
            update job
               set dismissed_at = now()
              from picked
             where job.job_id = picked.job_id
               and picked.status = 'DEAD'
               and picked.dismissed_at is null
               and not $2
        )
        select asked.job_id as "job_id!", picked.status as "status?", picked.dismissed_at as "dismissed_at?"
          from unnest($1) as asked (job_id)
          left join picked using (job_id)
         order by asked.job_id
        "#,
        job_ids,
        dry_run,
    )
    .fetch_all(tx)
    .fault_point("dismiss::mark")
    .await?;
    let outcome = |status: Option<String>, dismissed: bool| match status.as_deref().map(JobStatus::parse) {
        None => Outcome::Missing,
        Some(Some(status)) if status != JobStatus::Dead => Outcome::NotDead(status),
        Some(_) if dismissed => Outcome::Already,
        Some(_) => Outcome::Dismissed,
    };
    Ok(rows.into_iter().map(|row| (row.job_id, outcome(row.status, row.dismissed_at.is_some()))).collect())
}

fn by_outcome(outcomes: &[(String, Outcome)]) -> Value {
    let (mut dismissed, mut already, mut not_dead, mut missing) = (vec![], vec![], vec![], vec![]);
    for (job_id, outcome) in outcomes {
        match outcome {
            Outcome::Dismissed => dismissed.push(json!(job_id)),
            Outcome::Already => already.push(json!(job_id)),
            Outcome::NotDead(status) => not_dead.push(json!({ "job_id": job_id, "status": status.as_str() })),
            Outcome::Missing => missing.push(json!(job_id)),
        }
    }
    json!({ "dismissed": dismissed, "already_dismissed": already, "not_dead": not_dead, "missing": missing })
}
