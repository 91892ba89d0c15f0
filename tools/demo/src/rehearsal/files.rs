//! Somebody's own files: where the bars and the news are, which sessions they hold, who is traded.
//!
//! Files are read with the product's own reader, so what is expected here is what will be collected.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};
use chrono_tz::Tz;
use domain::identity::sha256_hex;
use intraday::bars::Bars;
use intraday::collect::LOOK_BACK;
use intraday::config::Config;
use intraday::config::location::BUNDLED;
use intraday::input_fault::Fault;

use super::expected::{Expected, files_in, read};
use super::{FOLDER, Rehearsal, configuration, empty};
use crate::arguments::Arguments;
use crate::state::PREFIX;

/// Faults that are shown; the collector's own report has them all.
const FAULTS_SHOWN: usize = 5;

/// Why the files do not do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something could not be read or copied.
    #[error("{} can not be read", .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// There is no bar in any of them.
    #[error("no bars were found in {}: CSV files with a header are expected{}", .0.display(), listed(.1))]
    NoBars(PathBuf, Vec<Fault>),
}

fn listed(faults: &[Fault]) -> String {
    let shown: Vec<String> = faults.iter().take(FAULTS_SHOWN).map(|fault| format!("\n  {fault}")).collect();
    shown.concat()
}

/// The rehearsal of the latest trading days in `data`, as many and as much of each as `arguments` ask for.
///
/// # Errors
///
/// [`Error`]
pub fn rehearsal(data: &Path, arguments: &Arguments) -> Result<Rehearsal, Error> {
    let Arguments { zone, sessions, minutes, .. } = *arguments;
    let data = std::fs::canonicalize(data).map_err(|err| Error::Read(data.to_owned(), err))?;
    let dataset = dataset_name(&data, arguments);
    let folders = Folders::of(&data, &dataset)?;
    let (bars, faults) = read(&folders.bars, zone).map_err(|(file, err)| Error::Read(file, err))?;
    let days = days(&bars, zone);
    let chosen: Vec<NaiveDate> = days.iter().rev().take(sessions.max(1)).rev().copied().collect();
    let windows = windows(&bars, &chosen, zone, minutes);
    if windows.is_empty() {
        return Err(Error::NoBars(data, faults));
    }

    let instruments = instruments(&bars);
    let config = configuration::render(&dataset, zone, &windows, &folders.bars, &folders.news, &instruments);
    Ok(Rehearsal {
        dataset,
        expected: Expected::of(&bars, &windows, zone),
        choices: choices(&data, zone, &days, &chosen, &windows, &instruments, &faults),
        afterwards: quiet(&config, Utc::now()),
        windows,
        config,
        publishers: None,
    })
}

/// The first hour from `now` on before which the collector finds no session to catch up on. Not every
/// feed is of the day its bars are of; so its news is collected as well, as what it is: later news.
fn quiet(config: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let config = Config::load(config).ok()?;
    let dataset = config.datasets.first()?;
    let hours = (0..7 * 24).map(|hours| now + TimeDelta::hours(hours));
    hours
        .into_iter()
        .find(|at| dataset.windows_between(*at - LOOK_BACK - TimeDelta::minutes(1), *at).next().is_none())
}

/// What was chosen, for the audience.
fn choices(
    data: &Path,
    zone: Tz,
    days: &BTreeSet<NaiveDate>,
    chosen: &[NaiveDate],
    windows: &[DateTime<Utc>],
    instruments: &[(String, Vec<String>)],
    faults: &[Fault],
) -> Vec<String> {
    let symbols: Vec<&str> = instruments.iter().map(|(symbol, _)| symbol.as_str()).collect();
    let replayed: Vec<String> = chosen.iter().map(ToString::to_string).collect();
    let time =
        |window: Option<&DateTime<Utc>>| window.map(|at| at.with_timezone(&zone).format("%R").to_string());
    let mut choices = vec![
        format!("Your data in {}", data.display()),
        format!("Times that do not say are taken as {zone} (TZ_DATA= or --zone for another)"),
        format!("{} symbols: {}", symbols.len(), symbols.join(", ")),
        format!(
            "Replaying {} of {} trading days ({}), {} windows from {} to {}",
            chosen.len(),
            days.len(),
            replayed.join(", "),
            windows.len(),
            time(windows.first()).unwrap_or_default(),
            time(windows.last()).unwrap_or_default(),
        ),
    ];
    if days.len() > chosen.len() {
        choices.push(format!("--sessions {} replays them all", days.len()));
    }
    choices.extend(faults.iter().take(FAULTS_SHOWN).map(|fault| format!("  {fault}")));
    if let Some(more) = faults.len().checked_sub(FAULTS_SHOWN).filter(|more| *more > 0) {
        choices.push(format!("  and {more} more remarks about the files"));
    }
    choices
}

/// A name that is the same for the same folder read in the same way, and no other.
fn dataset_name(data: &Path, arguments: &Arguments) -> String {
    let stem = data.file_stem().and_then(OsStr::to_str).unwrap_or("data").to_lowercase();
    let plain: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(40).collect();
    let Arguments { zone, sessions, minutes, .. } = arguments;
    let way = format!("{} {zone} {sessions} {minutes:?}", data.display());
    format!("{PREFIX}-{plain}-{}", &sha256_hex(way.as_bytes())[..6])
}

/// Where the sources are.
#[derive(Debug, PartialEq, Eq)]
struct Folders {
    bars: PathBuf,
    news: PathBuf,
}

impl Folders {
    /// `data`'s own `bars` and `news`, or copies sorted by kind if everything lies in one place.
    fn of(data: &Path, dataset: &str) -> Result<Self, Error> {
        let own = Self { bars: data.join("bars"), news: data.join("news") };
        if own.bars.is_dir() && own.news.is_dir() {
            return Ok(own);
        }
        let read = |err| Error::Read(data.to_owned(), err);
        let place = std::path::absolute(Path::new(FOLDER).join(dataset)).map_err(read)?;
        let sorted = Self { bars: place.join("bars"), news: place.join("news") };
        sorted.fill(data, &own).map_err(read)?;
        Ok(sorted)
    }

    /// Copies the files of `data`, of its `bars` and of its `news`, or `data` itself if it is one file.
    fn fill(&self, data: &Path, own: &Self) -> io::Result<()> {
        empty(&self.bars)?;
        empty(&self.news)?;
        let mut files = if data.is_file() { vec![data.to_owned()] } else { Vec::new() };
        for folder in [data, &own.bars, &own.news].into_iter().filter(|folder| folder.is_dir()) {
            files.extend(files_in(folder)?);
        }
        for file in files {
            let folder = if is_bars(&file) { &self.bars } else { &self.news };
            if let Some(name) = file.file_name() {
                std::fs::copy(&file, folder.join(name))?;
            }
        }
        Ok(())
    }
}

fn is_bars(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"))
}

fn days(bars: &Bars, zone: Tz) -> BTreeSet<NaiveDate> {
    bars.keys().map(|start| start.with_timezone(&zone).date_naive()).collect()
}

/// Every minute of each of `days`, from the earliest time of day with a bar on any of them to the latest.
fn windows(bars: &Bars, days: &[NaiveDate], zone: Tz, minutes: Option<usize>) -> Vec<DateTime<Utc>> {
    let local = bars.keys().map(|start| start.with_timezone(&zone).naive_local());
    let times: Vec<NaiveTime> = local.filter(|at| days.contains(&at.date())).map(|at| at.time()).collect();
    let (Some(&first), Some(&last)) = (times.iter().min(), times.iter().max()) else { return Vec::new() };
    let length = usize::try_from((last - first).num_minutes() + 1).unwrap_or(0);
    let length = minutes.map_or(length, |minutes| length.min(minutes));
    let session = |day: &NaiveDate| {
        let opening = day.and_time(first).and_local_timezone(zone).earliest();
        (0..).take(length).filter_map(move |minute| Some(opening?.to_utc() + TimeDelta::minutes(minute)))
    };
    days.iter().flat_map(session).collect()
}

/// The symbols of `bars`, with the names that the product's own configuration knows for them.
fn instruments(bars: &Bars) -> Vec<(String, Vec<String>)> {
    let symbols: BTreeSet<&String> = bars.values().flat_map(BTreeMap::keys).collect();
    let known = Config::load(BUNDLED).map(|config| config.datasets).unwrap_or_default();
    let names = |symbol: &str| {
        let instruments = known.iter().flat_map(|dataset| &dataset.instruments);
        let mut same = instruments.filter(|instrument| instrument.symbol.eq_ignore_ascii_case(symbol));
        same.next().map(|instrument| instrument.names.clone()).unwrap_or_default()
    };
    symbols.into_iter().map(|symbol| (symbol.clone(), names(symbol))).collect()
}

#[cfg(test)]
mod tests;
