//! Which jobs must exist because of what is committed: nobody has to trust the job table to audit it.

use domain::JobId;
use sqlx::{PgExecutor, PgPool};
use store::audit::windows_with_work;
use store::window::WindowRef;

use crate::collect::jobs::{news_identity, price_identity};
use crate::explanation::Subject;
use crate::triggers::{Direction, Key, Rule};

/// The jobs that follow from the committed rows of `dataset`: one for each window with bars, for each
/// text of each item, and for each trigger that is not withdrawn.
///
/// Not one snapshot, so ask when nothing is being collected.
///
/// # Errors
///
/// [`store::Error`]
pub async fn implied_jobs(db: &PgPool, dataset: &str) -> Result<Vec<JobId>, store::Error> {
    let windows = windows_with_work(db, dataset).await?;
    let mut jobs: Vec<JobId> = windows.iter().map(|window| price_identity(window).job_id()).collect();
    jobs.extend(of_texts(db, dataset).await?);
    jobs.extend(of_triggers(db, dataset).await?);
    Ok(jobs)
}

async fn of_texts(db: impl PgExecutor<'_>, dataset: &str) -> Result<Vec<JobId>, store::Error> {
    let texts = sqlx::query!(
        r#"
        -- audit::of_texts
        select item_id, revision
          from news_revision
         where dataset = $1
         order by item_id, revision
        "#,
        dataset,
    )
    .fetch_all(db)
    .await?;
    Ok(texts.iter().map(|text| news_identity(&text.item_id, &text.revision).job_id()).collect())
}

async fn of_triggers(db: impl PgExecutor<'_>, dataset: &str) -> Result<Vec<JobId>, store::Error> {
    let triggers = sqlx::query!(
        r#"
        -- audit::of_triggers
        select symbol, rule, direction, window_start, revision, cause_window_start, cause_window_generation
          from price_trigger
         where dataset = $1
           and withdrawn_at is null
         order by symbol, rule, direction, window_start
        "#,
        dataset,
    )
    .fetch_all(db)
    .await?;
    let job = |(key, revision, cause): (Key, i32, WindowRef)| {
        Subject::new(dataset, &key, revision).identity(&cause).job_id()
    };
    Ok(triggers
        .into_iter()
        .filter_map(|row| {
            let (rule, direction) = (Rule::parse(&row.rule)?, Direction::parse(&row.direction)?);
            let key = Key { symbol: row.symbol, rule, direction, at: row.window_start };
            let cause = WindowRef {
                dataset: dataset.to_owned(),
                start: row.cause_window_start,
                generation: row.cause_window_generation,
            };
            Some(job((key, row.revision, cause)))
        })
        .collect())
}
