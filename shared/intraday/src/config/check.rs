//! From the file's text to a checked [`Config`], faults and all.
//!
//! Each function reads one table to its end before it gives up, so that a fault hides no other.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::time::Duration;

use chrono::{NaiveDate, NaiveTime, Weekday};
use domain::Backoff;
use rust_decimal::Decimal;
use store::dead_letter::Policy;
use toml::Table;
use url::Url;

use super::section::{Findings, Section};
use super::{
    Config, DESTINATIONS, Dataset, Destination, Extraction, Fault, Faults, Instrument, Location, Session,
    Source, Thresholds,
};

/// Long enough for a slow feed, short enough to close the window inside its minute.
const TIMEOUT_SECONDS_MAX: i64 = 50;
const TIMEOUT_SECONDS_DEFAULT: i64 = 20;
/// What a small function can hold in memory.
const BYTES_MAX: i64 = 256 * 1024 * 1024;
const BYTES_DEFAULT: i64 = 64 * 1024 * 1024;
/// Above it, `maxReceiveCount` (at most 1,000) would run out before the attempts do.
const ATTEMPTS_MAX: i64 = 100;
const ATTEMPTS_DEFAULT: i64 = 8;
/// SQS keeps a message for 14 days at most; a job older than that has no message any more.
const AGE_SECONDS_MAX: i64 = 14 * 24 * 3600;
/// SQS hides a message for 12 hours at most.
const BACKOFF_SECONDS_MAX: i64 = 12 * 3600;

pub(super) fn config(text: &str) -> Result<Config, Faults> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        Faults(vec![Fault { path: "the file".to_owned(), message: format!("is not TOML: {error}") }])
    })?;
    let findings = Findings::default();
    let config = root(Section::root(table, &findings));
    let faults = findings.into_faults();
    match config {
        Some(config) if faults.is_empty() => Ok(config),
        _ => Err(Faults(faults)),
    }
}

fn root(mut file: Section) -> Option<Config> {
    let datasets = file.section("datasets").map(datasets);
    let destinations = file.optional_section("destinations").map(destinations);
    let extraction = file.optional_section("extraction").and_then(extraction);
    file.finish();
    Some(Config { datasets: datasets?, destinations: destinations?, extraction: extraction? })
}

fn datasets(section: Section) -> Vec<Dataset> {
    if section.is_empty() {
        section.fault_here("names no dataset");
    }
    section.named_sections().into_iter().filter_map(|(name, section)| dataset(name, section)).collect()
}

fn dataset(name: String, mut table: Section) -> Option<Dataset> {
    let zone =
        table.parsed("zone", "a time zone (an IANA name such as America/New_York)", |text| text.parse().ok());
    let session = table.section("session").and_then(session);
    let instruments = instruments(&mut table);
    let thresholds = table.section("thresholds").and_then(thresholds);
    let sources = table.section("sources").map(sources);
    table.finish();
    let (bars, news) = sources?;
    Some(Dataset { name, zone: zone?, session: session?, instruments, thresholds: thresholds?, bars, news })
}

fn session(mut table: Section) -> Option<Session> {
    const TIME: &str = "a time of day with whole minutes such as 09:30";
    let time = |text: &str| NaiveTime::parse_from_str(text, "%H:%M").ok();
    let first = table.parsed("first_window", TIME, time);
    let last = table.parsed("last_window", TIME, time);
    let weekdays: Vec<Weekday> =
        table.parsed_list("weekdays", "a day of the week such as Mon", |text| text.parse().ok());
    let holidays =
        table.parsed_list("holidays", "a date such as 2026-12-25", |text| text.parse::<NaiveDate>().ok());
    if weekdays.is_empty() {
        table.fault("weekdays", "has no day, so there would never be a session");
    }
    if first > last && last.is_some() {
        table.fault("last_window", "lies before first_window, so the session would be empty");
    }
    table.finish();
    let holidays = holidays.into_iter().collect();
    Some(Session { first_window: first?, last_window: last?, weekdays, holidays })
}

fn instruments(dataset: &mut Section) -> Vec<Instrument> {
    let tables = dataset.sections("instruments");
    if tables.is_empty() {
        dataset.fault("instruments", "names no instrument");
    }
    let mut seen = HashSet::new();
    tables.into_iter().filter_map(|table| instrument(table, &mut seen)).collect()
}

/// `seen` holds every symbol and name so far, in lower case: a text that names two instruments at once
/// could not be understood.
fn instrument(mut table: Section, seen: &mut HashSet<String>) -> Option<Instrument> {
    let symbol = table.text("symbol");
    let names = table.parsed_list("names", "a name", |text| Some(text.to_owned()));
    if let Some(symbol) = &symbol {
        if symbol.chars().any(|c| c.is_whitespace() || c.is_control()) {
            table.fault("symbol", format_args!("\"{symbol}\" holds white space"));
        }
        unique(&table, "symbol", symbol, seen);
    }
    for (index, name) in names.iter().enumerate() {
        unique(&table, &format!("names[{index}]"), name, seen);
    }
    table.finish();
    Some(Instrument { symbol: symbol?, names })
}

fn unique(table: &Section, key: &str, text: &str, seen: &mut HashSet<String>) {
    if !seen.insert(text.to_lowercase()) {
        table.fault(key, format_args!("\"{text}\" is there twice; one text may name one instrument"));
    }
}

fn thresholds(mut table: Section) -> Option<Thresholds> {
    const SHARE: &str = "a decimal above 0, in quotes, such as \"0.01\" for one per cent";
    let share = |text: &str| Decimal::from_str_exact(text).ok().filter(|share| *share > Decimal::ZERO);
    let thirty_minutes = table.parsed("thirty_minutes", SHARE, share);
    let session_open = table.parsed("session_open", SHARE, share);
    table.finish();
    Some(Thresholds { thirty_minutes: thirty_minutes?, session_open: session_open? })
}

fn sources(mut table: Section) -> (Vec<Source>, Vec<Source>) {
    let bars = table.sections("bars");
    if bars.is_empty() {
        table.fault("bars", "names no source");
    }
    let news = table.sections("news");
    table.finish();
    let mut names = HashSet::new();
    let mut checked =
        |tables: Vec<Section>| tables.into_iter().filter_map(|table| source(table, &mut names)).collect();
    (checked(bars), checked(news))
}

fn source(mut table: Section, names: &mut HashSet<String>) -> Option<Source> {
    let name = table.text("name");
    if let Some(name) = name.as_ref().filter(|name| !names.insert((*name).clone())) {
        table.fault("name", format_args!("\"{name}\" is the name of two sources"));
    }
    let location = location(&mut table);
    let timeout = table.integer("timeout_seconds", 1..=TIMEOUT_SECONDS_MAX, TIMEOUT_SECONDS_DEFAULT);
    let max_bytes = table.integer("max_bytes", 1..=BYTES_MAX, BYTES_DEFAULT);
    table.finish();
    Some(Source {
        name: name?,
        location: location?,
        timeout: seconds(timeout?),
        max_bytes: max_bytes?.unsigned_abs(),
    })
}

fn location(table: &mut Section) -> Option<Location> {
    let folder = table.optional_text("folder");
    let s3 = table.optional_text("s3");
    let url = table.optional_text("url");
    match (folder, s3, url) {
        (Some(folder), None, None) => Some(Location::Folder(PathBuf::from(folder))),
        (None, Some(s3), None) => s3_location(table, &s3),
        (None, None, Some(url)) => http_location(table, &url),
        _ => {
            table.fault("folder", "exactly one of folder, s3 and url is expected");
            None
        }
    }
}

fn s3_location(table: &Section, text: &str) -> Option<Location> {
    let parts = text.strip_prefix("s3://").map(|rest| rest.split_once('/').unwrap_or((rest, "")));
    let Some((bucket, prefix)) = parts.filter(|(bucket, _)| !bucket.is_empty()) else {
        table.fault("s3", format_args!("\"{text}\" is not of the form s3://bucket/prefix"));
        return None;
    };
    Some(Location::S3 { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
}

fn http_location(table: &Section, text: &str) -> Option<Location> {
    let url = Url::parse(text).ok().filter(|url| ["http", "https"].contains(&url.scheme()));
    if url.is_none() {
        table.fault("url", format_args!("\"{text}\" is not an http:// or https:// address"));
    }
    url.map(Location::Http)
}

fn destinations(section: Section) -> BTreeMap<String, Destination> {
    let mut destinations: BTreeMap<String, Destination> =
        DESTINATIONS.map(|name| (name.to_owned(), Destination::default())).into();
    for (name, table) in section.named_sections() {
        if !DESTINATIONS.contains(&name.as_str()) {
            table.fault_here(format_args!("is not a destination; there are {}", DESTINATIONS.join(", ")));
        } else if let Some(destination) = destination(table) {
            destinations.insert(name, destination);
        }
    }
    destinations
}

fn destination(mut table: Section) -> Option<Destination> {
    let max_attempts = table.integer("max_attempts", 1..=ATTEMPTS_MAX, ATTEMPTS_DEFAULT);
    let max_age = table.optional_integer("max_age_seconds", 1..=AGE_SECONDS_MAX);
    let base = table.integer("backoff_base_seconds", 1..=BACKOFF_SECONDS_MAX, 2);
    let cap = table.integer("backoff_cap_seconds", 1..=BACKOFF_SECONDS_MAX, 300);
    if cap < base && cap.is_some() {
        table.fault("backoff_cap_seconds", "is below backoff_base_seconds");
    }
    let dead_letter_policy = policy(&mut table);
    table.finish();
    let backoff = Backoff { base: seconds(base?), cap: seconds(cap?) };
    Some(Destination {
        max_attempts: i32::try_from(max_attempts?).ok()?,
        max_age: max_age.map(seconds),
        backoff,
        dead_letter_policy: dead_letter_policy?,
    })
}

fn policy(table: &mut Section) -> Option<Policy> {
    table.parsed_or("dead_letter_policy", "\"return\" or \"dead\"", Policy::default(), |text| match text {
        "return" => Some(Policy::Return),
        "dead" => Some(Policy::Dead),
        _ => None,
    })
}

fn extraction(mut table: Section) -> Option<Extraction> {
    let delay = table.integer("rehearsal_delay_ms", 0..=60_000, 0);
    let failures = table.ratio("rehearsal_failure_ratio");
    table.finish();
    Some(Extraction {
        rehearsal_delay: Duration::from_millis(delay?.unsigned_abs()),
        rehearsal_failure_ratio: failures?,
    })
}

/// Seconds that a range has already held above zero.
fn seconds(count: i64) -> Duration {
    Duration::from_secs(count.unsigned_abs())
}

#[cfg(test)]
mod tests;
