//! Somebody's own files: where the bars and the news are, which sessions they hold, who is traded.
//!
//! Files are read with the product's own reader, so what is expected here is what will be collected.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc, Weekday};
use chrono_tz::Tz;
use domain::identity::sha256_hex;
use intraday::bars::{Bars, csv};
use intraday::config::location::BUNDLED;
use intraday::config::{Config, Dataset, Session, Thresholds};
use intraday::fault::{Fault, Origin};
use rust_decimal::Decimal;

use super::{FOLDER, Rehearsal, configuration, count, empty};
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

/// The rehearsal of the latest `sessions` trading days in `data`, `minutes` of each at most.
///
/// # Errors
///
/// [`Error`]
pub fn rehearsal(data: &Path, zone: Tz, sessions: usize, minutes: Option<usize>) -> Result<Rehearsal, Error> {
    let data = std::fs::canonicalize(data).map_err(|err| Error::Read(data.to_owned(), err))?;
    let dataset = dataset_name(&data);
    let folders = Folders::of(&data, &dataset)?;
    let (bars, faults) = read(&folders.bars, zone)?;
    let days = days(&bars, zone);
    let chosen: Vec<NaiveDate> = days.iter().rev().take(sessions.max(1)).rev().copied().collect();
    let windows = windows(&bars, &chosen, zone, minutes);
    if windows.is_empty() {
        return Err(Error::NoBars(data, faults));
    }

    let replayed: BTreeSet<&DateTime<Utc>> = windows.iter().collect();
    let minutes_with_bars = bars.iter().filter(|(start, _)| replayed.contains(start));
    let bars_in_them: usize = minutes_with_bars.map(|(_, minute)| minute.len()).sum();
    let instruments = instruments(&bars);
    let config = configuration::render(&dataset, zone, &windows, &folders.bars, &folders.news, &instruments);
    Ok(Rehearsal {
        dataset,
        bars: count(bars_in_them),
        choices: choices(&data, zone, &days, &chosen, &windows, &instruments, &faults),
        windows,
        config,
        publishers: None,
    })
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

/// A name that is the same for the same folder and differs between folders.
fn dataset_name(data: &Path) -> String {
    let stem = data.file_stem().and_then(OsStr::to_str).unwrap_or("data").to_lowercase();
    let plain: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(40).collect();
    format!("{PREFIX}-{plain}-{}", &sha256_hex(data.to_string_lossy().as_bytes())[..6])
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

fn files_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn is_bars(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"))
}

/// Every bar in `folder`, and what was wrong with the files.
fn read(folder: &Path, zone: Tz) -> Result<(Bars, Vec<Fault>), Error> {
    let any = any_dataset(zone);
    let mut bars = Bars::new();
    let mut faults = Vec::new();
    for file in files_in(folder).map_err(|err| Error::Read(folder.to_owned(), err))? {
        let bytes = std::fs::read(&file).map_err(|err| Error::Read(file.clone(), err))?;
        let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default().to_owned();
        let parsed = csv::parse(&bytes, &Origin { source: "bars".to_owned(), file: name }, &any);
        for (start, minute) in parsed.bars {
            bars.entry(start).or_default().extend(minute);
        }
        // Which symbols there are is what this is to find out.
        faults.extend(parsed.faults.into_iter().filter(|fault| !fault.message.contains("instruments; kept")));
    }
    Ok((bars, faults))
}

/// A dataset that trades anything at any time, to read files whose dataset is not known yet.
fn any_dataset(zone: Tz) -> Dataset {
    use Weekday::{Fri, Mon, Sat, Sun, Thu, Tue, Wed};
    Dataset {
        name: PREFIX.to_owned(),
        zone,
        session: Session {
            first_window: NaiveTime::MIN,
            last_window: NaiveTime::MIN + TimeDelta::minutes(24 * 60 - 1),
            weekdays: vec![Mon, Tue, Wed, Thu, Fri, Sat, Sun],
            holidays: BTreeSet::new(),
        },
        instruments: Vec::new(),
        thresholds: Thresholds { thirty_minutes: Decimal::ONE, session_open: Decimal::ONE },
        bars: Vec::new(),
        news: Vec::new(),
    }
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
