//! Explain jobs: one explanation for one revision of one trigger.
//!
//! A trigger that was withdrawn or replaced meanwhile makes the job stale: the job of the newer revision
//! explains it. While a fresh text that might explain the move is collected and not read yet, the job
//! waits for it, for a few attempts and no longer.

use std::sync::Arc;

use domain::JobType;
use runtime::consumer::{Failure, Handler, Job};
use sqlx::PgConnection;
use tracing::info;

use crate::config::Config;
use crate::explanation::{Subject, compose, gather};
use crate::job_types::EXPLAIN;

/// The last attempt that waits for news: with the default back-off, half a minute after the first.
const WAITING_ATTEMPTS: i32 = 4;

/// An explain job that can never be done.
#[derive(Debug, thiserror::Error)]
#[error("the dataset {0} is not in the configuration")]
struct UnknownDataset(String);

/// It is too early to say that there was no news.
#[derive(Debug, thiserror::Error)]
#[error("{0} fresh text(s) that may explain the move are not read yet")]
struct NewsPending(i64);

impl From<UnknownDataset> for Failure {
    fn from(error: UnknownDataset) -> Self {
        Self::permanent("UNKNOWN_DATASET", error)
    }
}

/// Explains triggers.
#[derive(Clone, Debug)]
pub struct ExplainHandler {
    config: Arc<Config>,
}

impl ExplainHandler {
    /// Explains them with the thresholds and time zones of `config`.
    #[must_use]
    pub fn new(config: Arc<Config>) -> Self {
        Self { config }
    }
}

impl Handler for ExplainHandler {
    type Payload = Subject;
    type Prepared = ();

    fn job_type(&self) -> JobType {
        self.config.limits(EXPLAIN)
    }

    async fn prepare(&self, _: &Job<Subject>) -> Result<(), Failure> {
        Ok(())
    }

    async fn apply(&self, tx: &mut PgConnection, job: &Job<Subject>, (): ()) -> Result<(), Failure> {
        let subject = &job.payload;
        let dataset = self.config.dataset(&subject.dataset);
        let dataset = dataset.ok_or_else(|| UnknownDataset(subject.dataset.clone()))?;
        let trigger = gather::lock(tx, subject).await?.ok_or(Failure::Stale)?;
        if may_wait(job) {
            wait_for_news(tx, subject).await?;
        }

        let evidence = gather::evidence(tx, subject, trigger, dataset.thresholds.of(subject.rule)).await?;
        let verdict = compose::verdict(&evidence);
        let written = gather::write(tx, &evidence, verdict, &compose::text(&evidence, dataset.zone)).await?;
        info!(verdict = verdict.as_str(), written, "the trigger is explained");
        Ok(())
    }
}

/// The last allowed attempt never waits: what is known by then is explained.
fn may_wait(job: &Job<Subject>) -> bool {
    job.attempt() <= WAITING_ATTEMPTS && !job.is_last_attempt()
}

async fn wait_for_news(tx: &mut PgConnection, subject: &Subject) -> Result<(), Failure> {
    match gather::unread_news(tx, subject).await? {
        0 => Ok(()),
        unread => Err(Failure::Transient(Box::new(NewsPending(unread)))),
    }
}
