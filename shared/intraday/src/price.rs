//! Price jobs: the triggers of one window, exactly as the committed bars say.
//!
//! Everything happens in the transaction that completes the job: the sessions in reach are locked, the
//! bars read, the difference written, and one explain job enqueued for each trigger that is new or
//! replaced. Whatever order windows are computed in, and however often, the rows end up the same.

use std::sync::Arc;

use domain::JobType;
use runtime::consumer::{Failure, Handler, Job};
use serde::Deserialize;
use sqlx::PgConnection;
use store::enqueue::{self, Enqueued, NewJob};
use store::window::WindowRef;
use tracing::info;

use crate::config::{Config, Dataset};
use crate::explanation::Subject;
use crate::job_types::{EXPLAIN, PRICE};
use crate::triggers::changes::{self, Change};
use crate::triggers::{Cause, Key, rows, writes};

/// Why a price job can never be done.
#[derive(Debug, thiserror::Error)]
enum Impossible {
    #[error("the job is not tied to a window")]
    NoWindow,
    #[error("the dataset {0} is not in the configuration")]
    UnknownDataset(String),
    #[error("an explain job of the same id and other content is there")]
    Conflict,
}

impl From<Impossible> for Failure {
    fn from(error: Impossible) -> Self {
        let word = match error {
            Impossible::NoWindow => "NO_WINDOW",
            Impossible::UnknownDataset(_) => "UNKNOWN_DATASET",
            Impossible::Conflict => "JOB_CONFLICT",
        };
        Self::permanent(word, error)
    }
}

impl From<writes::Error> for Failure {
    fn from(error: writes::Error) -> Self {
        Self::Transient(Box::new(error))
    }
}

/// The payload of a price job. What it is about is the window it is tied to.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Minute {
    /// The dataset.
    pub dataset: String,
}

/// Computes triggers.
#[derive(Clone, Debug)]
pub struct PriceHandler {
    config: Arc<Config>,
}

impl PriceHandler {
    /// Computes them with the thresholds of `config`.
    #[must_use]
    pub fn new(config: Arc<Config>) -> Self {
        Self { config }
    }

    fn dataset(&self, name: &str) -> Result<&Dataset, Impossible> {
        self.config.dataset(name).ok_or_else(|| Impossible::UnknownDataset(name.to_owned()))
    }

    /// The explain job of a trigger that was written.
    fn explain(&self, job: &Job<Minute>, window: &WindowRef, key: &Key, revision: i32) -> NewJob {
        let subject = Subject::new(&window.dataset, key, revision);
        subject.job(window, &self.config.limits(EXPLAIN), job.trace_header().map(str::to_owned))
    }
}

impl Handler for PriceHandler {
    type Payload = Minute;
    type Prepared = ();

    fn job_type(&self) -> JobType {
        self.config.limits(PRICE)
    }

    async fn prepare(&self, _: &Job<Minute>) -> Result<(), Failure> {
        Ok(())
    }

    async fn apply(&self, tx: &mut PgConnection, job: &Job<Minute>, (): ()) -> Result<(), Failure> {
        let window = job.window().ok_or(Impossible::NoWindow)?;
        let dataset = self.dataset(&window.dataset)?;
        let cause = Cause { window_start: window.start, generation: window.generation };

        let mut explain = Vec::new();
        for (key, change) in changes(tx, dataset, cause).await? {
            if let Some(revision) = writes::write(tx, &dataset.name, &key, &change, cause).await? {
                explain.push(self.explain(job, window, &key, revision));
            }
        }
        let enqueued = enqueue::enqueue(tx, &explain).await?;
        if enqueued.contains(&Enqueued::Conflict) {
            return Err(Impossible::Conflict.into());
        }
        info!(triggers = explain.len(), "the triggers of the window are written");
        Ok(())
    }
}

/// What has to be written, read under the locks of the sessions in reach.
async fn changes(
    tx: &mut PgConnection,
    dataset: &Dataset,
    cause: Cause,
) -> Result<Vec<(Key, Change)>, Failure> {
    let sessions = rows::lock_sessions(tx, &dataset.name, cause.window_start).await?;
    let session = sessions.own().ok_or(Failure::Stale)?;
    let closes = rows::read_closes(tx, &dataset.name, session, cause.window_start).await?;
    let standing = rows::read_standing(tx, &dataset.name, &sessions).await?;
    Ok(changes::of_window(cause, session, &closes, &standing, &dataset.thresholds).into_iter().collect())
}
