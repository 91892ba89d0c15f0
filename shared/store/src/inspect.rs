//! Everything the protocol knows about a job, for an operator's eyes.
//!
//! Reads only. Payloads are references, so nothing here is secret; the subject itself is not shown.

use domain::JobId;
use serde_json::Value;
use sqlx::PgExecutor;

use crate::Error;

/// A job's row, its window's, its events in order and what operators did to it; `None` if unknown.
///
/// The columns appear under their own names: `{"job": {…}, "window": {…} | null, "events": […],
/// "actions": […]}`. Bodies of events are text. Actions are the newest 20.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn job(db: impl PgExecutor<'_>, job_id: &JobId) -> Result<Option<Value>, Error> {
    let found = sqlx::query_scalar!(
        r#"
        -- inspect::job
        select json_build_object(
                   'job', to_json(job),
                   'window', (select to_json(w)
                                from collection_window w
                               where w.dataset = job.dataset and w.window_start = job.window_start),
                   'events', (select coalesce(json_agg(e order by e.redrive_generation, e.sequence), '[]')
                                from outbox_event e
                               where e.job_id = job.job_id),
                   'actions', (select coalesce(json_agg(a order by a.action_id), '[]')
                                 from (select action_id, action, who, why, dry_run, acted_at
                                         from operator_action
                                        where result::text like '%' || job.job_id || '%'
                                        order by action_id desc
                                        limit 20) a)
               ) as "found!"
          from job
         where job_id = $1
        "#,
        job_id.as_str(),
    )
    .fetch_optional(db)
    .await?;
    Ok(found)
}
