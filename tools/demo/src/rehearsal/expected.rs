//! What must come out, computed from the files alone: the bars, and the triggers that follow from them.
//!
//! Files are read with the product's own reader and its own rule is applied to them, all at once and in
//! order; so the audit sees whatever was lost, doubled or misplaced on the way through the queues.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, NaiveTime, TimeDelta, Utc, Weekday};
use chrono_tz::Tz;
use intraday::bars::{Bars, csv};
use intraday::config::{Dataset, Session, Thresholds};
use intraday::input_fault::{Fault, Origin};
use intraday::triggers::rules::{self, Closes};
use intraday::triggers::{Close, Key};
use rust_decimal::Decimal;

/// What must come out of the minutes of a rehearsal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Bars.
    pub bars: i64,
    /// Triggers.
    pub triggers: BTreeSet<Key>,
}

impl Expected {
    /// What follows from those of `bars` that lie in `windows`, at the thresholds of every rehearsal.
    #[must_use]
    pub fn of(bars: &Bars, windows: &[DateTime<Utc>], zone: Tz) -> Self {
        let windows: BTreeSet<&DateTime<Utc>> = windows.iter().collect();
        let mut expected = Self::default();
        let mut closes = Closes::new();
        for (at, minute) in bars.iter().filter(|(at, _)| windows.contains(at)) {
            for bar in minute.values() {
                expected.bars += 1;
                let session = at.with_timezone(&zone).date_naive();
                let close = Close { at: *at, session, price: bar.close };
                closes.entry(bar.symbol.clone()).or_default().push(close);
            }
        }
        expected.triggers = rules::triggers(&closes, &thresholds()).into_keys().collect();
        expected
    }
}

/// One percent in thirty minutes, four from the open.
#[must_use]
pub fn thresholds() -> Thresholds {
    Thresholds { thirty_minutes: Decimal::new(1, 2), session_open: Decimal::new(4, 2) }
}

/// Every bar in the files of `folder`, and what was wrong with them.
///
/// # Errors
///
/// The file that could not be read.
pub fn read(folder: &Path, zone: Tz) -> Result<(Bars, Vec<Fault>), (PathBuf, io::Error)> {
    let any = any_dataset(zone);
    let mut bars = Bars::new();
    let mut faults = Vec::new();
    for file in files_in(folder).map_err(|err| (folder.to_owned(), err))? {
        let bytes = std::fs::read(&file).map_err(|err| (file.clone(), err))?;
        let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default().to_owned();
        let parsed = csv::parse(&bytes, &Origin { source: "bars".to_owned(), file: name }, &any);
        for (start, minute) in parsed.bars {
            bars.entry(start).or_default().extend(minute);
        }
        // Which symbols there are is what reading the files is to find out.
        faults.extend(parsed.faults.into_iter().filter(|fault| !fault.message.contains("instruments; kept")));
    }
    Ok((bars, faults))
}

/// The files that lie in `folder` itself, by name.
///
/// # Errors
///
/// If the folder can not be listed.
pub fn files_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
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

/// A dataset that trades anything at any time, to read files whose dataset is not known yet.
fn any_dataset(zone: Tz) -> Dataset {
    use Weekday::{Fri, Mon, Sat, Sun, Thu, Tue, Wed};
    Dataset {
        name: super::PREFIX.to_owned(),
        zone,
        session: Session {
            first_window: NaiveTime::MIN,
            last_window: NaiveTime::MIN + TimeDelta::minutes(24 * 60 - 1),
            weekdays: vec![Mon, Tue, Wed, Thu, Fri, Sat, Sun],
            holidays: BTreeSet::new(),
        },
        instruments: Vec::new(),
        thresholds: thresholds(),
        bars: Vec::new(),
        news: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use intraday::input_fault::Origin;
    use intraday::triggers::Rule;

    use super::*;
    use crate::generate::{COMPANIES, MINUTES, Scenario, ZONE};

    #[test]
    fn made_up_session_triggers_once_for_each_shock() {
        for seed in 1..6 {
            let scenario = Scenario::new(seed);
            let origin = Origin { source: "bars".to_owned(), file: "bars.csv".to_owned() };
            let parsed = csv::parse(scenario.bars().as_bytes(), &origin, &any_dataset(ZONE));
            let windows: Vec<DateTime<Utc>> = (0..MINUTES).map(Scenario::instant).collect();

            let expected = Expected::of(&parsed.bars, &windows, ZONE);

            let triggered = |company: &str, at: DateTime<Utc>| {
                expected.triggers.iter().any(|key| {
                    let late = key.at - at;
                    key.rule == Rule::ThirtyMinutes
                        && key.symbol == company
                        && (0..3).contains(&late.num_minutes())
                })
            };
            for shock in scenario.shocks() {
                let at = Scenario::instant(shock.minute);
                assert!(triggered(COMPANIES[shock.company].symbol, at), "seed {seed}: {shock:?}");
            }
            let thirty_minutes =
                expected.triggers.iter().filter(|key| key.rule == Rule::ThirtyMinutes).count();
            assert_eq!(thirty_minutes, scenario.shocks().len(), "seed {seed}");
        }
    }
}
