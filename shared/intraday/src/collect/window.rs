//! Closing one window: compare, write the artifact, then commit everything in one transaction.
//!
//! What the database knew before the fetch decides. The same content is a no-op, found before the
//! artifact is written; other content is a correction, unless the window moved meanwhile.

use chrono::{DateTime, NaiveDate, Utc};
use fault::FaultPoint;
use runtime::artifacts::Written;
use serde::Serialize;
use sqlx::PgConnection;
use store::artifact::{self, NewArtifact};
use store::enqueue::enqueue;
use store::window::{self, Corrected, NewWindow, Opened, Seen, WindowRef};

use super::artifacts::ArtifactWriter;
use super::decision::{Decision, Outcome, decide};
use super::plan::Purpose;
use super::{Error, Run, TRIES_MAX, jobs};
use crate::bars::{self, Bar, Minute};
use crate::job_types::PRICE;
use crate::{instant, price_bar, trading_session};

/// The version of a window's artifact.
const VERSION: u32 = 1;
const OWNER: &str = "window";

/// A window's content, as collected now.
pub(super) struct Content {
    pub start: DateTime<Utc>,
    pub session_date: NaiveDate,
    pub minute: Minute,
    /// Of the minute's canonical form.
    pub digest: String,
}

/// The artifact of a window.
#[derive(Serialize)]
struct WindowDocument<'a> {
    version: u32,
    dataset: &'a str,
    window_start: String,
    session_date: NaiveDate,
    content_digest: &'a str,
    bars: Vec<&'a Bar>,
}

impl Content {
    pub(super) fn new(start: DateTime<Utc>, session_date: NaiveDate, minute: Minute) -> Self {
        Self { start, session_date, digest: bars::digest(&minute), minute }
    }
}

impl<A: ArtifactWriter> Run<'_, A> {
    /// Closes or corrects the window of `content`, if `seen` and `purpose` ask for it.
    pub(super) async fn close(
        &mut self,
        content: &Content,
        is_current: bool,
        seen: Option<&Seen>,
        incomplete: bool,
    ) -> Result<Outcome, Error> {
        let from_generation = match decide(self.purpose, is_current, seen, content, incomplete) {
            Decision::Leave(outcome) => return Ok(outcome),
            Decision::Open => None,
            Decision::Correct { from_generation } => Some(from_generation),
        };
        for _ in 0..TRIES_MAX {
            let written = self.write_artifact(content).await?;
            match self.commit(content, from_generation, written.as_ref()).await {
                Err(Error::Store(store::Error::ArtifactReclaimed)) => {}
                outcome => return outcome,
            }
        }
        Err(Error::Store(store::Error::ArtifactReclaimed))
    }

    async fn write_artifact(&self, content: &Content) -> Result<Option<Written>, Error> {
        if content.minute.is_empty() {
            return Ok(None);
        }
        let document = WindowDocument {
            version: VERSION,
            dataset: &self.dataset.name,
            window_start: instant::text(content.start),
            session_date: content.session_date,
            content_digest: &content.digest,
            bars: content.minute.values().collect(),
        };
        let body = serde_json::to_vec(&document).expect("texts and numbers serialize");
        let name = format!("{}-{}", self.dataset.name, content.start.format("%Y%m%dT%H%MZ"));
        let written = self.collector.artifacts.put(OWNER, &name, self.clock, body).await;
        written.map(Some).map_err(Error::Artifact)
    }

    async fn commit(
        &mut self,
        content: &Content,
        from_generation: Option<i32>,
        written: Option<&Written>,
    ) -> Result<Outcome, Error> {
        let mut tx = self.collector.db.begin().await?;
        match self.write(&mut tx, content, from_generation, written).await {
            Ok(Outcome::Moved) => {
                tx.rollback().await?;
                Ok(Outcome::Moved)
            }
            Ok(outcome) => {
                tx.commit().fault_point("collect::commit_window").await?;
                self.count(content, outcome);
                Ok(outcome)
            }
            Err(error) => {
                // The first error says more than a failed rollback; the pool discards the connection.
                let _ = tx.rollback().await;
                Err(error)
            }
        }
    }

    async fn write(
        &self,
        tx: &mut PgConnection,
        content: &Content,
        from_generation: Option<i32>,
        written: Option<&Written>,
    ) -> Result<Outcome, Error> {
        let dataset = self.dataset.name.as_str();
        if let Some(Written { key, sha256, size_bytes }) = written {
            let new = NewArtifact { key, sha256, size_bytes: *size_bytes, owner: OWNER };
            artifact::refer(&mut *tx, &[new]).await?;
        }
        trading_session::ensure(&mut *tx, dataset, content.session_date).await?;
        let new = self.new_window(content, written);
        let outcome = match from_generation {
            None => match window::open(&mut *tx, &new).await? {
                Opened::Opened => Outcome::Opened,
                Opened::Exists => return Ok(Outcome::Moved),
            },
            Some(generation) => match window::correct(&mut *tx, &new, generation).await? {
                Corrected::Corrected { generation } => Outcome::Corrected { generation },
                Corrected::Moved => return Ok(Outcome::Moved),
            },
        };
        price_bar::replace(tx, dataset, content.start, &content.minute).await?;
        if let Some(generation) = self.generation_with_job(content, outcome) {
            let window = WindowRef { dataset: dataset.to_owned(), start: content.start, generation };
            let job_type = self.collector.config.limits(PRICE);
            enqueue(tx, &[jobs::price(window, &job_type, self.trace)]).await?;
        }
        Ok(outcome)
    }

    fn new_window<'w>(&'w self, content: &'w Content, written: Option<&'w Written>) -> NewWindow<'w> {
        NewWindow {
            dataset: &self.dataset.name,
            start: content.start,
            session_date: content.session_date,
            content_digest: &content.digest,
            bar_count: i32::try_from(content.minute.len()).unwrap_or(i32::MAX),
            artifact_key: written.map(|written| written.key.as_str()),
            backfilled: self.purpose == Purpose::Backfill,
        }
    }

    /// The generation that a job is made for. A minute without bars needs none, unless it had some: what
    /// they triggered must go.
    fn generation_with_job(&self, content: &Content, outcome: Outcome) -> Option<i32> {
        match outcome {
            _ if self.purpose == Purpose::Backfill => None,
            Outcome::Opened if !content.minute.is_empty() => Some(1),
            Outcome::Corrected { generation } => Some(generation),
            _ => None,
        }
    }

    fn count(&mut self, content: &Content, outcome: Outcome) {
        self.report.bars += content.minute.len();
        let jobs = usize::from(self.generation_with_job(content, outcome).is_some());
        self.report.jobs += jobs;
        self.report.events += jobs;
    }
}
