//! The monitor: what everything looks like from outside, said once a minute, also when it is nothing.
//!
//! It reads and changes nothing. What can be read is said even when something else can not; such a run
//! fails afterwards and leaves no heartbeat. The subject's own gauges are the caller's.

mod depth;
mod lines;

use std::collections::{BTreeMap, BTreeSet};

use fault::FaultPoint as _;
use futures::future::join_all;
use sqlx::PgPool;
use store::gauges;
use store::sweep::runs;

pub use depth::{Depths, SqsDepths};
pub use lines::Gauges;

use crate::metrics::{self, Line};
use crate::settings::Faults;
use crate::telemetry::Chain;

/// Why a run was not a good one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database is away. Nothing is known.
    #[error("the gauges were not read")]
    Store(#[from] store::Error),
    /// Everything else was said. The next run asks again.
    #[error("the depth of the dead-letter queues of {0} is not known")]
    Depth(String),
}

/// What the monitor looks at.
#[derive(Debug)]
pub struct Monitor<D> {
    db: PgPool,
    depths: D,
    /// Destination and dead-letter queue; every destination is there.
    queues: BTreeMap<String, String>,
}

impl<D: Depths> Monitor<D> {
    /// Looks at `db` and at the dead-letter queue of each of `destinations`.
    ///
    /// # Errors
    ///
    /// [`Faults`] when `queues` are not those of `destinations`: the function must not start.
    pub fn new<'a>(
        db: PgPool,
        depths: D,
        destinations: impl IntoIterator<Item = &'a String>,
        queues: BTreeMap<String, String>,
    ) -> Result<Self, Faults> {
        let configured: BTreeSet<_> = destinations.into_iter().collect();
        let strangers = queues.keys().filter(|name| !configured.contains(name));
        let strangers =
            strangers.map(|name| format!("DEAD_LETTER_QUEUE_URLS names {name}, which is no destination"));
        let missing = configured.iter().filter(|name| !queues.contains_key(**name));
        let missing = missing.map(|name| format!("DEAD_LETTER_QUEUE_URLS does not name {name}"));
        let faults: Vec<_> = missing.chain(strangers).collect();
        if faults.is_empty() { Ok(Self { db, depths, queues }) } else { Err(Faults(faults)) }
    }

    /// One run: reads everything, says it, and says so. `subject` are gauges of the caller's own.
    ///
    /// # Errors
    ///
    /// [`Error`].
    pub async fn run(&self, subject: Vec<Line>) -> Result<usize, Error> {
        let (gauges, unknown) = self.gauges().await?;
        let lines: Vec<_> = gauges.lines().into_iter().chain(subject).collect();
        let count = lines.len();
        lines.into_iter().for_each(Line::emit);
        if !unknown.is_empty() {
            return Err(Error::Depth(unknown.join(", ")));
        }
        metrics::heartbeat("monitor");
        Ok(count)
    }

    /// Everything there is to say, and the destinations whose dead-letter queue did not answer.
    ///
    /// # Errors
    ///
    /// [`store::Error`].
    pub async fn gauges(&self) -> Result<(Gauges, Vec<String>), store::Error> {
        let (depths, unknown) = self.depths().await;
        let db = &self.db;
        let gauges = Gauges {
            destinations: self.queues.keys().cloned().collect(),
            unfinished: gauges::unfinished(db).await?,
            dead: gauges::dead(db).await?,
            jobs: gauges::estimated_jobs(db).await?,
            new_events: gauges::new_events(db).await?,
            dead_events: gauges::dead_events(db).await?,
            lanes: gauges::lanes(db).await?,
            quarantined: gauges::quarantined(db).await?,
            sweep: runs::gauges(db).await?,
            depths,
        };
        Ok((gauges, unknown))
    }

    async fn depths(&self) -> (BTreeMap<String, u64>, Vec<String>) {
        let asked = self.queues.iter().map(|(destination, url)| async move {
            (destination.clone(), self.depths.depth(url).fault_point("sqs::queue_depth").await)
        });
        let (mut depths, mut unknown) = (BTreeMap::new(), Vec::new());
        for (destination, answer) in join_all(asked).await {
            match answer {
                Ok(depth) => drop(depths.insert(destination, depth)),
                Err(error) => {
                    tracing::warn!(destination, error = %Chain(&*error), "a dead-letter queue did not answer");
                    unknown.push(destination);
                }
            }
        }
        (depths, unknown)
    }
}
