//! The configuration of a rehearsal: one dataset, folders as sources, extraction slow and unreliable.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use chrono::{DateTime, Datelike, NaiveTime, Utc};
use chrono_tz::Tz;

use super::expected::thresholds;

/// Extraction takes half a second and fails one time in ten, and windows close on time even so.
const SLOW_AND_UNRELIABLE: &str = "[extraction]\nrehearsal_delay_ms = 500\nrehearsal_failure_ratio = 0.1\n";

/// The configuration with which `windows` of `dataset` can be collected from `bars` and `news`.
///
/// The session reaches from the earliest time of day to the latest; instruments are symbols with the
/// names that headlines use.
pub fn render(
    dataset: &str,
    zone: Tz,
    windows: &[DateTime<Utc>],
    bars: &Path,
    news: &Path,
    instruments: &[(String, Vec<String>)],
) -> String {
    let local: Vec<DateTime<Tz>> = windows.iter().map(|window| window.with_timezone(&zone)).collect();
    let time = |time: Option<NaiveTime>| quoted(&time.unwrap_or_default().format("%H:%M").to_string());
    let weekdays: BTreeSet<u8> = local.iter().map(|window| window.weekday() as u8).collect();
    let weekdays: Vec<String> = weekdays
        .into_iter()
        .filter_map(|day| chrono::Weekday::try_from(day).ok())
        .map(|day| quoted(&day.to_string()))
        .collect();
    let thresholds = thresholds();
    let mut toml = format!(
        "# Written by the demo; the next run replaces it.\n\n\
         [datasets.{dataset}]\nzone = {}\n\n\
         [datasets.{dataset}.session]\nfirst_window = {}\nlast_window = {}\nweekdays = [{}]\nholidays = []\n\n\
         [datasets.{dataset}.thresholds]\nthirty_minutes = \"{}\"\nsession_open = \"{}\"\n\n\
         [[datasets.{dataset}.sources.bars]]\nname = \"bars\"\nfolder = {}\n\n\
         [[datasets.{dataset}.sources.news]]\nname = \"news\"\nfolder = {}\n\n",
        quoted(zone.name()),
        time(local.iter().map(DateTime::time).min()),
        time(local.iter().map(DateTime::time).max()),
        weekdays.join(", "),
        thresholds.thirty_minutes,
        thresholds.session_open,
        quoted(&bars.to_string_lossy()),
        quoted(&news.to_string_lossy()),
        dataset = quoted(dataset),
    );
    for (symbol, names) in instruments {
        let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        let _ = write!(
            toml,
            "[[datasets.{}.instruments]]\nsymbol = {}\nnames = [{}]\n\n",
            quoted(dataset),
            quoted(symbol),
            names.join(", ")
        );
    }
    toml + SLOW_AND_UNRELIABLE
}

/// A TOML basic string; its escapes are those of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
