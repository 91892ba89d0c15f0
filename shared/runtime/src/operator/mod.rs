//! The operator's hand: look at jobs, run dead ones again, accept others as dead.
//!
//! One JSON request in, one JSON answer out. A request that is not perfectly clear does nothing and
//! names every fault it has. What is done is done by `store`, in one transaction with its record of who
//! and why; this module only reads the request and words the answer.

mod fields;
mod request;

use serde_json::{Value, json};
use sqlx::PgPool;
use store::{dismiss::dismiss, inspect, redrive::redrive};
use tracing::info;

pub use request::{BadRequest, Request};

/// Why a request got no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Ask again, better. Nothing was done.
    #[error(transparent)]
    BadRequest(#[from] BadRequest),
    /// Ask again. `operator_action` tells whether it was done all the same.
    #[error("the database could not carry out the request")]
    Store(#[from] store::Error),
}

/// Does what `request` asks for and says what came of it.
///
/// # Errors
///
/// [`Error`]; the variants say whether something may have been done.
pub async fn answer(db: &PgPool, request: &Value) -> Result<Value, Error> {
    match Request::parse(request)? {
        Request::Inspect { job_ids } => inspect_jobs(db, &job_ids).await,
        Request::Redrive { order, rate } => {
            let report = redrive(db, &order, rate).await?;
            info!(action.id = report.action_id, dry_run = report.dry_run, who = order.who, "redrive ordered");
            Ok(named("redrive", report.to_json()))
        }
        Request::Dismiss { order } => {
            let report = dismiss(db, &order).await?;
            info!(
                action.id = report.action_id,
                dry_run = report.dry_run,
                who = order.who,
                "dismissal ordered"
            );
            Ok(named("dismiss", report.to_json()))
        }
    }
}

async fn inspect_jobs(db: &PgPool, job_ids: &[domain::JobId]) -> Result<Value, Error> {
    let (mut jobs, mut missing) = (vec![], vec![]);
    for job_id in job_ids {
        match inspect::job(db, job_id).await? {
            Some(seen) => jobs.push(seen),
            None => missing.push(job_id.as_str()),
        }
    }
    Ok(json!({ "action": "inspect", "jobs": jobs, "missing": missing }))
}

/// `answer` with the action it answers to in front.
fn named(action: &str, answer: Value) -> Value {
    let mut named = json!({ "action": action });
    if let (Some(named), Value::Object(answer)) = (named.as_object_mut(), answer) {
        named.extend(answer);
    }
    named
}
