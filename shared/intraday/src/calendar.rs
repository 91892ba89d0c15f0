//! Which minutes a dataset trades, whatever its clock does.
//!
//! A window is a minute of universal time. It belongs to a session if and only if the wall clock of
//! the dataset's zone shows a trading minute of a trading day then. So the hour that daylight saving
//! leaves out has no windows, and the hour it repeats has them twice.

use chrono::{
    DateTime, Datelike, Duration, DurationRound, MappedLocalTime, NaiveDate, NaiveDateTime, TimeZone, Utc,
};

use crate::config::Dataset;

/// The length of a window.
#[must_use]
pub fn window_length() -> Duration {
    Duration::minutes(1)
}

/// The start of the minute that holds `instant`.
///
/// For a window that just ended at `instant` it is the window's end.
#[must_use]
pub fn floor(instant: DateTime<Utc>) -> DateTime<Utc> {
    instant.duration_trunc(window_length()).unwrap_or(instant)
}

/// A wall-clock time that the zone's clock never showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("lies in a daylight-saving gap: the clock of {zone} never showed {time}")]
pub struct InGap {
    /// What was written.
    pub time: NaiveDateTime,
    /// Whose clock.
    pub zone: chrono_tz::Tz,
}

impl Dataset {
    /// The trading day that the window starting at `start` belongs to; `None` outside the sessions.
    #[must_use]
    pub fn session_date(&self, start: DateTime<Utc>) -> Option<NaiveDate> {
        let local = start.with_timezone(&self.zone).naive_local();
        let session = &self.session;
        let trading_day =
            session.weekdays.contains(&local.weekday()) && !session.holidays.contains(&local.date());
        let trading_minute = (session.first_window..=session.last_window).contains(&local.time());
        (trading_day && trading_minute).then(|| local.date())
    }

    /// The windows of the sessions that start from `first` to `last`, both included, oldest first.
    pub fn windows_between(
        &self,
        first: DateTime<Utc>,
        last: DateTime<Utc>,
    ) -> impl Iterator<Item = DateTime<Utc>> {
        let from = floor(first - Duration::nanoseconds(1)) + window_length();
        std::iter::successors(Some(from), |start| Some(*start + window_length()))
            .take_while(move |start| *start <= last)
            .filter(|start| self.session_date(*start).is_some())
    }

    /// The window that ended last before or at `instant`; `None` if that minute was outside the sessions.
    #[must_use]
    pub fn window_ended_at(&self, instant: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let start = floor(instant) - window_length();
        self.session_date(start).map(|_| start)
    }

    /// The instant at which this zone's clock showed `time`.
    ///
    /// A time that the clock showed twice is taken as the first of the two.
    ///
    /// # Errors
    ///
    /// [`InGap`] for a time that the clock never showed.
    pub fn instant_of(&self, time: NaiveDateTime) -> Result<DateTime<Utc>, InGap> {
        match self.zone.from_local_datetime(&time) {
            MappedLocalTime::Single(instant) | MappedLocalTime::Ambiguous(instant, _) => Ok(instant.to_utc()),
            MappedLocalTime::None => Err(InGap { time, zone: self.zone }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, location};

    fn us8() -> Dataset {
        Config::load(location::BUNDLED).unwrap().dataset("us8").unwrap().clone()
    }

    fn around_the_clock() -> Dataset {
        let text = location::BUNDLED
            .replace("first_window = \"09:30\"", "first_window = \"00:00\"")
            .replace("last_window = \"16:00\"", "last_window = \"23:59\"")
            .replace("\"Fri\"]", "\"Fri\", \"Sat\", \"Sun\"]");
        Config::load(&text).unwrap().dataset("us8").unwrap().clone()
    }

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[test]
    fn session_has_391_minutes_in_summer_and_in_winter() {
        for (day, first) in [("2018-04-04", "13:30"), ("2018-01-03", "14:30")] {
            let start = at(&format!("{day}T00:00:00Z"));
            let windows: Vec<_> = us8().windows_between(start, start + Duration::days(1)).collect();

            assert_eq!(windows.len(), 391);
            assert_eq!(windows[0], at(&format!("{day}T{first}:00Z")));
            assert!(windows.iter().all(|window| us8().session_date(*window) == Some(day.parse().unwrap())));
        }
    }

    #[test]
    fn weekend_and_holiday_have_no_window() {
        let ended = |text| us8().window_ended_at(at(text));
        assert_eq!(ended("2018-03-29T14:00:30Z"), Some(at("2018-03-29T13:59:00Z")));
        assert_eq!(ended("2018-03-30T14:00:30Z"), None, "Good Friday");
        assert_eq!(ended("2018-03-31T14:00:30Z"), None, "Saturday");
    }

    #[test]
    fn window_ends_with_its_minute_and_no_earlier() {
        let ended = |text| us8().window_ended_at(at(text));
        assert_eq!(ended("2018-04-04T13:30:59.999Z"), None);
        assert_eq!(ended("2018-04-04T13:31:00Z"), Some(at("2018-04-04T13:30:00Z")));
        assert_eq!(ended("2018-04-04T20:01:00Z"), Some(at("2018-04-04T20:00:00Z")));
        assert_eq!(ended("2018-04-04T20:02:00Z"), None);
    }

    #[test]
    fn range_includes_both_ends_and_whole_minutes_only() {
        let windows = |from, to| us8().windows_between(at(from), at(to)).count();
        assert_eq!(windows("2018-04-04T13:30:00Z", "2018-04-04T13:30:00Z"), 1);
        assert_eq!(windows("2018-04-04T13:30:01Z", "2018-04-04T13:31:59Z"), 1);
        assert_eq!(windows("2018-04-04T13:31:00Z", "2018-04-04T13:30:00Z"), 0);
    }

    #[test]
    fn time_in_a_daylight_saving_gap_is_named() {
        let time: NaiveDateTime = "2018-03-11T02:30:00".parse().unwrap();
        let error = us8().instant_of(time).unwrap_err();
        assert_eq!(
            error.to_string(),
            "lies in a daylight-saving gap: the clock of America/New_York never showed 2018-03-11 02:30:00"
        );
    }

    #[test]
    fn time_that_the_clock_shows_twice_is_the_first() {
        let time: NaiveDateTime = "2018-11-04T01:30:00".parse().unwrap();
        assert_eq!(us8().instant_of(time), Ok(at("2018-11-04T05:30:00Z")));
    }

    #[test]
    fn day_of_the_gap_has_an_hour_less_and_day_of_the_fold_an_hour_more() {
        let minutes = |from, to| around_the_clock().windows_between(at(from), at(to)).count();
        assert_eq!(minutes("2018-03-11T05:00:00Z", "2018-03-12T03:59:00Z"), 23 * 60);
        assert_eq!(minutes("2018-11-04T04:00:00Z", "2018-11-05T04:59:00Z"), 25 * 60);
    }
}
