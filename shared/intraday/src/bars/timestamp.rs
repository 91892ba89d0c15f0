//! The moments bars are written with: with an offset, or on the dataset's own clock.
//!
//! Only forms that every reader understands alike are read: 03/04/2018 is March or April, and a wrong
//! guess would be a wrong price.

use chrono::{DateTime, NaiveDateTime, Timelike, Utc};

use crate::calendar::InGap;
use crate::config::Dataset;

/// With an offset (`-04:00`, `-0400`, `Z`), seconds and their fraction optional.
const WITH_OFFSET: [&str; 4] =
    ["%Y-%m-%d %H:%M:%S%.f%#z", "%Y-%m-%d %H:%M%#z", "%Y-%m-%d %H:%M:%S%.f %#z", "%Y%m%d %H:%M:%S%.f%#z"];
/// Without one.
const NAIVE: [&str; 6] = [
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%d %H:%M",
    "%Y/%m/%d %H:%M:%S%.f",
    "%Y/%m/%d %H:%M",
    "%Y%m%d %H:%M:%S%.f",
    "%Y%m%d %H:%M",
];

/// Why a text is not the start of a bar.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// In no known form.
    #[error(
        "is not a timestamp; a date and a time such as 2018-04-04 09:30:00 or 2018-04-04T13:30:00Z is expected"
    )]
    Unknown,
    /// On no clock.
    #[error(transparent)]
    Gap(#[from] InGap),
    /// Inside a minute.
    #[error("is not the start of a minute")]
    NotAMinute,
}

/// The start of the minute that `text` names; on `dataset`'s own clock if it has no offset.
///
/// # Errors
///
/// [`Error`], whose text reads on from the quoted timestamp.
pub fn parse(text: &str, dataset: &Dataset) -> Result<DateTime<Utc>, Error> {
    let text = text.trim().replacen('T', " ", 1);
    let text = text.strip_suffix('Z').map_or(text.clone(), |local| format!("{local}+00:00"));
    let start = match WITH_OFFSET.iter().find_map(|form| DateTime::parse_from_str(&text, form).ok()) {
        Some(instant) => instant.to_utc(),
        None => dataset.instant_of(naive(&text).ok_or(Error::Unknown)?)?,
    };
    if start.second() == 0 && start.nanosecond() == 0 { Ok(start) } else { Err(Error::NotAMinute) }
}

fn naive(text: &str) -> Option<NaiveDateTime> {
    NAIVE.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, location};

    fn read(text: &str) -> Result<DateTime<Utc>, Error> {
        parse(text, Config::load(location::BUNDLED).unwrap().dataset("us8").unwrap())
    }

    #[test]
    fn every_form_names_the_same_minute() {
        let expected: DateTime<Utc> = "2018-04-04T13:30:00Z".parse().unwrap();
        for text in [
            "2018-04-04 09:30:00",
            "2018-04-04T09:30:00",
            "2018-04-04 09:30",
            "2018/04/04 09:30:00",
            "20180404 09:30",
            " 2018-04-04 09:30:00.000 ",
            "2018-04-04T13:30:00Z",
            "2018-04-04T13:30:00.000Z",
            "2018-04-04 13:30Z",
            "2018-04-04 09:30:00-04:00",
            "2018-04-04T09:30:00-0400",
            "2018-04-04 15:30:00 +02:00",
        ] {
            assert_eq!(read(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn form_that_could_be_two_dates_is_refused() {
        for text in ["", "04/03/2018 09:30", "2018-04-04", "09:30:00", "2018-13-04 09:30:00", "yesterday"] {
            assert_eq!(read(text), Err(Error::Unknown), "{text}");
        }
    }

    #[test]
    fn moment_inside_a_minute_is_no_start_of_a_bar() {
        assert_eq!(read("2018-04-04 09:30:59"), Err(Error::NotAMinute));
    }

    #[test]
    fn time_in_a_daylight_saving_gap_is_named() {
        assert!(matches!(read("2018-03-11 02:30:00"), Err(Error::Gap(_))));
    }
}
