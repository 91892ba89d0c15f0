//! The one configuration file, checked: whoever holds a [`Config`] needs to doubt nothing in it.
//!
//! [`Config::load`] names every fault at once, each with its path in the file. It reads no
//! environment; [`location`] finds the text.

mod check;
mod fault;
pub mod location;
mod section;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use chrono::{NaiveDate, NaiveTime, Weekday};
use chrono_tz::Tz;
use domain::{Backoff, JobType};
use rust_decimal::Decimal;
use store::dead_letter::Policy;
use url::Url;

pub use crate::job_types::DESTINATIONS;
pub use fault::{Fault, Faults};

/// The configuration of the whole product.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// What is collected, in the order of their names.
    pub datasets: Vec<Dataset>,
    /// How each of [`DESTINATIONS`] is tried; every one is there.
    pub destinations: BTreeMap<String, Destination>,
    /// How news is read.
    pub extraction: Extraction,
}

/// One market: its clock, its instruments, and where its data comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    /// The name windows and bars are stored under.
    pub name: String,
    /// Where its wall clock hangs.
    pub zone: Tz,
    /// When it trades.
    pub session: Session,
    /// What it trades; symbols and names are unique in it.
    pub instruments: Vec<Instrument>,
    /// How large a move must be to be explained.
    pub thresholds: Thresholds,
    /// Sources of bars. Of two values for one bar, the later source's stands.
    pub bars: Vec<Source>,
    /// Sources of news. Of two texts of one item, the earlier source's stands.
    pub news: Vec<Source>,
}

/// When a dataset trades, on its own wall clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Start of the first minute.
    pub first_window: NaiveTime,
    /// Start of the last minute, which belongs to the session; not before `first_window`.
    pub last_window: NaiveTime,
    /// The days of the week with a session; at least one.
    pub weekdays: Vec<Weekday>,
    /// Dates without a session.
    pub holidays: BTreeSet<NaiveDate>,
}

/// Something that is traded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instrument {
    /// The ticker, as bars carry it.
    pub symbol: String,
    /// Names of the company that a text may use; may be empty.
    pub names: Vec<String>,
}

/// The least moves that are triggers, as shares of the price: 0.01 is one per cent. Positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Against the price thirty minutes ago.
    pub thirty_minutes: Decimal,
    /// Against the session's first bar.
    pub session_open: Decimal,
}

/// Where input comes from, and what one fetch of it may cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// What reports call it.
    pub name: String,
    /// Where it is.
    pub location: Location,
    /// The longest a fetch may take.
    pub timeout: Duration,
    /// The most bytes a fetch may bring, all documents together.
    pub max_bytes: u64,
}

/// The place of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// The files of one folder, not of folders in it.
    Folder(PathBuf),
    /// The objects of one bucket whose keys begin with `prefix`.
    S3 {
        /// The bucket's name.
        bucket: String,
        /// What the keys begin with; may be empty.
        prefix: String,
    },
    /// One document, by HTTP or HTTPS.
    Http(Url),
}

/// How the jobs of one destination are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Attempts in one redrive generation; at least 1.
    pub max_attempts: i32,
    /// Older than this since it was enqueued, a job is EXPIRED. `None`: never.
    pub max_age: Option<Duration>,
    /// The wait between attempts.
    pub backoff: Backoff,
    /// What becomes of a job whose message reached the dead-letter queue.
    pub dead_letter_policy: Policy,
}

impl Default for Destination {
    fn default() -> Self {
        let (backoff, dead_letter_policy) = (Backoff::default(), Policy::default());
        Self { max_attempts: 8, max_age: None, backoff, dead_letter_policy }
    }
}

/// How news is read.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Extraction {
    /// Added to each extraction, to rehearse a slow extractor.
    pub rehearsal_delay: Duration,
    /// The share of extractions that fail, to rehearse an unreliable one; 0 to 1.
    pub rehearsal_failure_ratio: f64,
}

impl Config {
    /// Checks the text of a configuration file.
    ///
    /// # Errors
    ///
    /// [`Faults`]: all of them, each with its path; correct the file.
    pub fn load(text: &str) -> Result<Self, Faults> {
        check::config(text)
    }

    /// The dataset called `name`.
    #[must_use]
    pub fn dataset(&self, name: &str) -> Option<&Dataset> {
        self.datasets.iter().find(|dataset| dataset.name == name)
    }

    /// `job_type` with the attempts, age and back-off that its destination is configured with.
    #[must_use]
    pub fn limits(&self, job_type: JobType) -> JobType {
        let configured = self.destinations.get(job_type.destination);
        configured.map_or(job_type, |Destination { max_attempts, max_age, backoff, .. }| JobType {
            max_attempts: *max_attempts,
            max_age: *max_age,
            backoff: *backoff,
            ..job_type
        })
    }
}

impl Dataset {
    /// The configured spelling of `symbol`, whatever case it comes in; `None` if it is not traded here.
    #[must_use]
    pub fn symbol(&self, symbol: &str) -> Option<&str> {
        let same = |instrument: &&Instrument| instrument.symbol.eq_ignore_ascii_case(symbol);
        self.instruments.iter().find(same).map(|instrument| instrument.symbol.as_str())
    }
}
