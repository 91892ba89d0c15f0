//! The collector: closes windows on time, whatever happens behind it.
//!
//! Each run catches up, oldest first, then closes the window that just ended, then takes the news that
//! were published by then. For each of them: the artifact first, then one transaction for everything
//! that refers to it, its job and its event. It waits for no queue and no consumer, and running it again
//! changes nothing. A run that dies leaves at most an artifact without a row, for the sweeper.
//!
//! Windows and news commit apart: a window needs no news, and news come outside the sessions too.

pub mod artifacts;
mod decision;
mod gather;
pub(crate) mod jobs;
mod news;
mod plan;
pub mod report;
pub mod request;
mod window;

use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::{StreamExt, stream};
use runtime::time_left::TimeLeft;
use sqlx::PgPool;

use crate::calendar::window_length;
use crate::config::{Config, Dataset};
use crate::sources::Fetcher;
use artifacts::ArtifactWriter;
use decision::Outcome;
use gather::{Gathered, Sighting, gather};
pub use plan::LOOK_BACK;
use plan::{Plan, Purpose};
use report::{DatasetReport, Report};
use request::Request;
use window::Content;

/// How often one run fetches again, or writes again, because others were faster.
const TRIES_MAX: usize = 3;
/// Enough to commit one more window and the news with it, tries of S3 included.
const TIME_NEEDED: Duration = Duration::from_secs(8);
/// Kept from the sources, to commit what they brought.
const TIME_TO_COMMIT: Duration = Duration::from_secs(12);
/// Datasets collected at once. Each holds one connection at most.
const WIDTH: usize = 4;

/// Why a run did not do its work. What it committed before stays; running it again is harmless.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Correct the request, or configure the dataset.
    #[error("there is no dataset called \"{0}\"")]
    UnknownDataset(String),
    /// Come back later if [`store::Error::is_transient`] says so.
    #[error("windows and jobs were not committed")]
    Store(#[from] store::Error),
    /// Come back later: S3 could not be written.
    #[error("an artifact was not written")]
    Artifact(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Come back later: other collectors kept inserting the same news.
    #[error("others collected the same news again and again")]
    Contended,
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

/// Everything a run needs; made once per process.
pub struct Collector<A> {
    /// What is collected, and how the jobs of each destination are tried.
    pub config: Config,
    /// Where windows, bars, news and jobs are.
    pub db: PgPool,
    /// Where artifacts go.
    pub artifacts: A,
    /// How sources are read.
    pub fetcher: Fetcher,
}

/// One run over one dataset.
struct Run<'r, A> {
    collector: &'r Collector<A>,
    dataset: &'r Dataset,
    purpose: Purpose,
    /// The database's clock at the start of the run; names artifacts.
    clock: DateTime<Utc>,
    trace: Option<&'r str>,
    time: TimeLeft,
    report: DatasetReport,
}

impl<A: ArtifactWriter> Collector<A> {
    /// Carries out `request`. Stops early, and says where, when `time` runs out.
    ///
    /// # Errors
    ///
    /// [`Error`], after every dataset had its turn. What was committed stays committed.
    pub async fn run(&self, request: &Request, time: TimeLeft, trace: Option<&str>) -> Result<Report, Error> {
        let clock = store::window::database_now(&self.db).await?;
        let datasets = self.datasets(request)?;
        let run = |dataset| self.run_one(request, dataset, clock, trace, time);
        let runs: Vec<_> = datasets.into_iter().map(run).collect();
        let runs: Vec<Result<DatasetReport, Error>> = stream::iter(runs).buffered(WIDTH).collect().await;
        let datasets = runs.into_iter().collect::<Result<Vec<_>, Error>>()?;
        Ok(Report { datasets })
    }

    async fn run_one(
        &self,
        request: &Request,
        dataset: &Dataset,
        clock: DateTime<Utc>,
        trace: Option<&str>,
        time: TimeLeft,
    ) -> Result<DatasetReport, Error> {
        let plan = Plan::of(request, dataset, clock);
        let report = DatasetReport::of(&dataset.name);
        Run { collector: self, dataset, purpose: plan.purpose, clock, trace, time, report }
            .carry_out(plan)
            .await
    }

    fn datasets(&self, request: &Request) -> Result<Vec<&Dataset>, Error> {
        let name = match request {
            Request::Schedule { dataset: None, .. } => return Ok(self.config.datasets.iter().collect()),
            Request::Schedule { dataset: Some(name), .. } | Request::Range { dataset: name, .. } => name,
        };
        let dataset = self.config.dataset(name).ok_or_else(|| Error::UnknownDataset(name.clone()))?;
        Ok(vec![dataset])
    }
}

impl<A: ArtifactWriter> Run<'_, A> {
    async fn carry_out(mut self, mut plan: Plan) -> Result<DatasetReport, Error> {
        self.report.windows.too_recent = plan.too_recent;
        for tries in 1..=TRIES_MAX {
            let moved = self.round(&plan, tries == 1).await?;
            if moved.is_empty() {
                break;
            }
            if tries == TRIES_MAX {
                for start in &moved {
                    self.report.window(*start, Outcome::Moved);
                }
            }
            plan.windows = moved;
        }
        self.log();
        Ok(self.report)
    }

    /// Reads what is known, fetches, closes the windows and takes the news; answers the windows that
    /// moved meanwhile. Known first, fetched after: else a slow fetch would correct a window back to
    /// older data.
    async fn round(&mut self, plan: &Plan, first: bool) -> Result<Vec<DateTime<Utc>>, Error> {
        let known = store::window::read_many(&self.collector.db, &self.dataset.name, &plan.windows).await?;
        let with_news = first && plan.purpose != Purpose::Backfill;
        // A source that would take all the time must not cost the windows of the others.
        let most = self.time.remaining().saturating_sub(TIME_TO_COMMIT);
        let gathered = gather(&self.collector.fetcher, self.dataset, with_news, most).await;

        let mut news = gathered.news.as_slice();
        let mut moved = Vec::new();
        for start in &plan.windows {
            if !self.time.allows(TIME_NEEDED) {
                self.report.next = Some(*start);
                break;
            }
            let Some(content) = self.content(*start, &gathered) else { continue };
            let is_current = plan.current == Some(*start);
            match self.close(&content, is_current, known.get(start), gathered.bars_incomplete).await? {
                Outcome::Moved => moved.push(*start),
                outcome => self.report.window(*start, outcome),
            }
            if plan.news_until.is_none() {
                news = self.take_news(news, *start + window_length()).await?;
            }
        }
        if let Some(until) = plan.news_until.filter(|_| self.report.next.is_none()) {
            news = self.take_news(news, until).await?;
        }
        if first {
            self.report.items.not_yet_published = news.len();
            self.report.faults(gathered.faults);
        }
        Ok(moved)
    }

    fn content(&self, start: DateTime<Utc>, gathered: &Gathered) -> Option<Content> {
        let session_date = self.dataset.session_date(start)?;
        Some(Content::new(start, session_date, gathered.minute(start)))
    }

    /// Collects what of `news` was published by `until`, and answers the rest.
    async fn take_news<'n>(
        &mut self,
        news: &'n [Sighting],
        until: DateTime<Utc>,
    ) -> Result<&'n [Sighting], Error> {
        let visible =
            news.partition_point(|sighting| sighting.item.published_at.is_none_or(|at| at <= until));
        let (visible, rest) = news.split_at(visible);
        self.collect_news(visible, until).await?;
        Ok(rest)
    }

    fn log(&self) {
        let report = &self.report;
        tracing::info!(
            dataset = report.dataset,
            windows.opened = report.windows.opened.len(),
            windows.corrected = report.windows.corrected.len(),
            windows.postponed = report.windows.postponed.len(),
            bars = report.bars,
            items = report.items.new,
            jobs = report.jobs,
            faults = report.faults_total,
            "collected"
        );
    }
}

#[cfg(test)]
mod tests;
