//! What an operator asks for, which jobs that means, and the record of it.
//!
//! An [`Order`] names DEAD jobs by id or by filter. Whoever carries it out writes `record` in the
//! same transaction, dry run or not, so that no job is ever moved by hand without a name and a reason.

use std::{collections::BTreeSet, time::Duration};

use domain::JobId;
use fault::FaultPoint;
use serde_json::{Value, json};
use sqlx::PgConnection;

use crate::Error;

/// Jobs one order may name or find. Bounds its transaction and its record.
pub const JOBS_MAX: usize = 1_000;

/// Something an operator wants done to DEAD jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// Which jobs.
    pub selection: Selection,
    /// Say what would happen, and record that it was asked; move nothing.
    pub dry_run: bool,
    /// Who wants it; not empty.
    pub who: String,
    /// Why; not empty.
    pub why: String,
}

/// Which jobs an order is about.
#[derive(Clone, Debug, PartialEq)]
pub enum Selection {
    /// Exactly these, at most [`JOBS_MAX`]; each is answered for.
    Ids(Vec<JobId>),
    /// DEAD jobs, not dismissed, that fit every field of the filter.
    Filter {
        /// What they have in common.
        filter: Filter,
        /// Longest dead first, at most so many; 1 to [`JOBS_MAX`].
        limit: i64,
    },
}

/// What DEAD jobs have in common. A field that is `None` fits all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Their `dead_reason`, such as `DLQ`.
    pub reason: Option<String>,
    /// Their job type.
    pub job_type: Option<String>,
    /// Their destination.
    pub destination: Option<String>,
    /// Dead for at least so long.
    pub dead_at_least: Option<Duration>,
    /// Dead for at most so long.
    pub dead_at_most: Option<Duration>,
}

/// What was done, as `operator_action.action` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// DEAD jobs run again.
    Redrive,
    /// DEAD jobs are accepted as dead.
    Dismiss,
}

impl Action {
    fn as_str(self) -> &'static str {
        match self {
            Self::Redrive => "REDRIVE",
            Self::Dismiss => "DISMISS",
        }
    }
}

impl Selection {
    /// The selection as the record keeps it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Self::Ids(ids) => json!({ "job_ids": ids.iter().map(JobId::as_str).collect::<Vec<_>>() }),
            Self::Filter { filter, limit } => json!({ "filter": filter.to_json(), "limit": limit }),
        }
    }
}

impl Filter {
    fn to_json(&self) -> Value {
        json!({
            "reason": self.reason,
            "job_type": self.job_type,
            "destination": self.destination,
            "dead_at_least_seconds": self.dead_at_least.map(|age| age.as_secs()),
            "dead_at_most_seconds": self.dead_at_most.map(|age| age.as_secs()),
        })
    }
}

/// The ids `selection` means now, each once.
///
/// Read without locks: whoever moves the jobs looks at each again under lock.
///
/// # Errors
///
/// [`Error::Database`].
pub(crate) async fn selected(db: &mut PgConnection, selection: &Selection) -> Result<Vec<String>, Error> {
    let (filter, limit) = match selection {
        Selection::Ids(ids) => {
            let each_once: BTreeSet<_> = ids.iter().collect();
            return Ok(each_once.into_iter().map(JobId::to_string).collect());
        }
        Selection::Filter { filter, limit } => (filter, *limit),
    };
    let found = sqlx::query_scalar!(
        r#"
        -- operator_action::selected
        select job_id
          from job
         where dead_reason is not null
           and dismissed_at is null
           and ($1::text is null or dead_reason = $1)
           and ($2::text is null or job_type = $2)
           and ($3::text is null or destination = $3)
           and ($4::double precision is null or finished_at <= now() - make_interval(secs => $4))
           and ($5::double precision is null or finished_at >= now() - make_interval(secs => $5))
         order by finished_at, job_id
         limit $6
        "#,
        filter.reason,
        filter.job_type,
        filter.destination,
        filter.dead_at_least.map(|age| age.as_secs_f64()),
        filter.dead_at_most.map(|age| age.as_secs_f64()),
        limit,
    )
    .fetch_all(db)
    .fault_point("operator_action::selected")
    .await?;
    Ok(found)
}

/// Records what was asked and what came of it; gives the record's id.
///
/// # Errors
///
/// [`Error::Database`]; roll back what the record is about.
pub(crate) async fn record(
    tx: &mut PgConnection,
    action: Action,
    order: &Order,
    result: &Value,
) -> Result<i64, Error> {
    let action_id = sqlx::query_scalar!(
        r#"
        -- operator_action::record
        insert into operator_action (action, who, why, selection, dry_run, result)
        values ($1, $2, $3, $4, $5, $6)
        returning action_id
        "#,
        action.as_str(),
        order.who,
        order.why,
        order.selection.to_json(),
        order.dry_run,
        result,
    )
    .fetch_one(tx)
    .fault_point("operator_action::record")
    .await?;
    Ok(action_id)
}
