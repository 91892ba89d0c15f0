//! What is to be replayed: which dataset, which minutes, from which files.

mod configuration;
mod expected;
mod files;

use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use crate::arguments::Arguments;
use crate::generate::{COMPANIES, MINUTES, Scenario, ZONE};
use crate::state::PREFIX;

pub use expected::Expected;
pub use files::Error as FilesError;

/// Where everything the demo writes goes, below the folder it is run in.
const FOLDER: &str = ".tailcar/demo";

/// A session, or a few, ready to be replayed.
#[derive(Debug)]
pub struct Rehearsal {
    /// The dataset's name.
    pub dataset: String,
    /// The starts of the minutes to replay, in order.
    pub windows: Vec<DateTime<Utc>>,
    /// The configuration the functions need for it.
    pub config: String,
    /// What must come out of these minutes.
    pub expected: Expected,
    /// An instant outside every session, to collect at once whatever news is dated after the last minute.
    pub afterwards: Option<DateTime<Utc>>,
    /// What was chosen, for the audience.
    pub choices: Vec<String>,
    publishers: Option<Publishers>,
}

/// A made-up session and the folder its publishers write to.
#[derive(Debug)]
struct Publishers {
    scenario: Scenario,
    news: PathBuf,
}

/// Why there is nothing to replay.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The made-up files could not be written.
    #[error("the files can not be written below {FOLDER}")]
    Write(#[from] io::Error),
    /// The given files do not do.
    #[error(transparent)]
    Files(#[from] FilesError),
}

impl Rehearsal {
    /// Prepares what `arguments` ask for.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn prepare(arguments: &Arguments) -> Result<Self, Error> {
        match &arguments.data {
            None => Self::generated(arguments),
            Some(data) => Ok(files::rehearsal(data, arguments)?),
        }
    }

    /// Lets the publishers of a made-up session write what comes out in `minute`.
    ///
    /// # Errors
    ///
    /// If a feed can not be written.
    pub fn publish(&self, minute: usize) -> io::Result<()> {
        let (Some(publishers), Ok(minute)) = (&self.publishers, u32::try_from(minute)) else { return Ok(()) };
        if !publishers.scenario.feeds_change(minute) {
            return Ok(());
        }
        for (file, feed) in publishers.scenario.feeds(minute) {
            replace(&publishers.news.join(file), &feed)?;
        }
        Ok(())
    }

    fn generated(arguments: &Arguments) -> Result<Self, Error> {
        let scenario = Scenario::new(arguments.seed);
        let folder = std::path::absolute(Path::new(FOLDER).join(PREFIX))?;
        let (bars, news) = (folder.join("bars"), folder.join("news"));
        empty(&bars)?;
        empty(&news)?;
        replace(&bars.join(format!("{}.csv", Scenario::date())), scenario.bars())?;

        let mut windows: Vec<DateTime<Utc>> = (0..MINUTES).map(Scenario::instant).collect();
        windows.truncate(arguments.minutes.unwrap_or(usize::MAX).max(1));
        let (written, _faults) = expected::read(&bars, ZONE).map_err(|(_, err)| err)?;
        let instruments: Vec<(String, Vec<String>)> = COMPANIES
            .iter()
            .map(|company| (company.symbol.to_owned(), vec![company.name.to_owned()]))
            .collect();
        Ok(Self {
            dataset: PREFIX.to_owned(),
            expected: Expected::of(&written, &windows, ZONE),
            config: configuration::render(PREFIX, ZONE, &windows, &bars, &news, &instruments),
            choices: vec![
                format!(
                    "A made-up session of {} (seed {}): {} symbols, {} minutes, {} shocks, {} headlines",
                    Scenario::date(),
                    arguments.seed,
                    COMPANIES.len(),
                    windows.len(),
                    scenario.shocks().len(),
                    scenario.headlines().len()
                ),
                format!("Its files are in {}", folder.display()),
            ],
            windows,
            afterwards: None,
            publishers: Some(Publishers { scenario, news }),
        })
    }
}

/// Makes `folder`, without any file.
fn empty(folder: &Path) -> io::Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)
}

/// Writes a file so that nobody ever reads half of it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    // Not in the same folder: a collector reads whatever lies there.
    let unfinished = path.parent().unwrap_or(path).with_extension("unfinished");
    std::fs::write(&unfinished, text)?;
    std::fs::rename(unfinished, path)
}
