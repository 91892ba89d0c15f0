//! How far collection lies behind the calendar: are we collecting?

use chrono::{DateTime, TimeDelta, Utc};
use runtime::metrics::Line;
use sqlx::PgExecutor;
use store::gauges::{NewestWindow, newest_windows};

use crate::calendar::window_length;
use crate::collect::LOOK_BACK;
use crate::config::Dataset;

/// How long ago the first window that is missing after the newest could have been collected.
///
/// Zero while nothing is missing, in the session and outside it. Where no window was ever collected it
/// counts from the collector's look-back: older ones are nobody's duty. A hole that lies before the
/// newest window is not seen here; a backfill reports it.
#[must_use]
pub fn lag(dataset: &Dataset, newest: Option<DateTime<Utc>>, now: DateTime<Utc>) -> TimeDelta {
    let first = newest.map_or(now - LOOK_BACK, |newest| newest + window_length());
    let missing = dataset.windows_between(first, now - window_length()).next();
    missing.map_or(TimeDelta::zero(), |start| now - (start + window_length()))
}

/// `WindowAgeSeconds` of each of `datasets`.
///
/// # Errors
///
/// [`store::Error`].
pub async fn lines(db: impl PgExecutor<'_>, datasets: &[Dataset]) -> Result<Vec<Line>, store::Error> {
    let names: Vec<_> = datasets.iter().map(|dataset| dataset.name.clone()).collect();
    let newest = newest_windows(db, &names).await?;
    Ok(newest.iter().filter_map(|newest| line(datasets, newest)).collect())
}

fn line(datasets: &[Dataset], newest: &NewestWindow) -> Option<Line> {
    let dataset = datasets.iter().find(|dataset| dataset.name == newest.dataset)?;
    let lag = lag(dataset, newest.start, newest.now).to_std().unwrap_or_default();
    Some(Line::of(&[("Dataset", &dataset.name)]).seconds("WindowAgeSeconds", lag))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, location};

    fn lag_seconds(newest: Option<&str>, now: &str) -> i64 {
        let config = Config::load(location::BUNDLED).unwrap();
        let at = |text: &str| text.parse().unwrap();
        lag(config.dataset("us8").unwrap(), newest.map(at), at(now)).num_seconds()
    }

    #[test]
    fn nothing_is_missing_while_the_last_minute_is_collected() {
        assert_eq!(lag_seconds(Some("2018-04-04T13:59:00Z"), "2018-04-04T14:00:59Z"), 0);
        assert_eq!(lag_seconds(Some("2018-04-04T13:59:00Z"), "2018-04-04T14:01:20Z"), 20);
        assert_eq!(lag_seconds(Some("2018-04-04T13:59:00Z"), "2018-04-04T14:06:00Z"), 300);
    }

    #[test]
    fn closed_market_is_no_lag_and_an_unfinished_session_is() {
        assert_eq!(lag_seconds(Some("2018-04-04T20:00:00Z"), "2018-04-05T13:30:30Z"), 0, "over night");
        assert_eq!(lag_seconds(Some("2018-03-29T20:00:00Z"), "2018-04-02T13:30:00Z"), 0, "over Easter");
        assert_eq!(lag_seconds(Some("2018-04-04T19:58:00Z"), "2018-04-04T21:00:00Z"), 3600);
    }

    #[test]
    fn collection_that_never_began_lags_by_the_look_back_at_most() {
        assert_eq!(lag_seconds(None, "2018-04-04T13:00:00Z"), 0, "before the session");
        assert_eq!(lag_seconds(None, "2018-04-04T18:00:00Z"), 59 * 60);
    }
}
