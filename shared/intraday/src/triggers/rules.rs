//! What a trigger is.
//!
//! For one symbol, in one direction:
//!
//! - the *move* of a window compares its close with a reference close. Thirty-minute rule: the last
//!   bar at or before `w - 30 min` that is not older than `w - 40 min`, in whichever session it lies;
//!   from the open: the session's first bar. Without a reference there is no move;
//! - a *crossing* is a move of at least the threshold while the previous bar's move was below it, or
//!   absent;
//! - a *trigger* is a crossing with no other crossing in `[w - 30 min, w)`. Crossings that are no
//!   triggers silence what follows them all the same.
//!
//! Every edge is inclusive: a reference of exactly 30 or 40 minutes counts, a move of exactly the
//! threshold crosses, a crossing exactly 30 minutes ago silences.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use rust_decimal::Decimal;

use super::{Close, Direction, Key, Rule, Values};
use crate::config::Thresholds;

/// A reference of the thirty-minute rule is at least this old.
pub(super) const REFERENCE_AGE_MIN: TimeDelta = TimeDelta::minutes(30);
/// A reference of the thirty-minute rule is at most this old.
pub(super) const REFERENCE_AGE_MAX: TimeDelta = TimeDelta::minutes(40);
/// How long a crossing silences those that follow.
pub(super) const QUIET: TimeDelta = TimeDelta::minutes(30);

/// The closes of each symbol, oldest first, one a window.
pub type Closes = BTreeMap<String, Vec<Close>>;

/// Every trigger that follows from `closes`.
#[must_use]
pub fn triggers(closes: &Closes, thresholds: &Thresholds) -> BTreeMap<Key, Values> {
    let mut found = BTreeMap::new();
    for (symbol, closes) in closes {
        for rule in Rule::ALL {
            for direction in Direction::ALL {
                let crossed = of_one_symbol(closes, rule, direction, thresholds.of(rule));
                found.extend(crossed.into_iter().map(|(reference, close)| {
                    let key = Key { symbol: symbol.clone(), rule, direction, at: close.at };
                    (key, values(reference, close))
                }));
            }
        }
    }
    found
}

/// A reference and the close that crossed the threshold against it.
type Crossed<'a> = (&'a Close, &'a Close);

fn of_one_symbol(closes: &[Close], rule: Rule, direction: Direction, threshold: Decimal) -> Vec<Crossed<'_>> {
    match rule {
        Rule::ThirtyMinutes => walk(closes, direction, threshold, thirty_minutes_before),
        Rule::SessionOpen => closes
            .chunk_by(|left, right| left.session == right.session)
            .flat_map(|session| walk(session, direction, threshold, session_open))
            .collect(),
    }
}

/// Walks the closes once and keeps the crossings that nothing silences.
fn walk(
    closes: &[Close],
    direction: Direction,
    threshold: Decimal,
    reference_of: fn(&[Close], usize) -> Option<&Close>,
) -> Vec<Crossed<'_>> {
    let mut found = Vec::new();
    let mut was_beyond = false;
    let mut last_crossing = None;
    for (index, close) in closes.iter().enumerate() {
        let beyond = reference_of(closes, index)
            .filter(|reference| direction.reaches(reference.price, close.price, threshold));
        if let Some(reference) = beyond.filter(|_| !was_beyond) {
            if last_crossing.is_none_or(|crossing| close.at - crossing > QUIET) {
                found.push((reference, close));
            }
            last_crossing = Some(close.at);
        }
        was_beyond = beyond.is_some();
    }
    found
}

fn thirty_minutes_before(closes: &[Close], index: usize) -> Option<&Close> {
    let at = closes[index].at;
    let old_enough = closes[..index].partition_point(|close| close.at <= at - REFERENCE_AGE_MIN);
    closes[..old_enough].last().filter(|reference| reference.at >= at - REFERENCE_AGE_MAX)
}

fn session_open(session: &[Close], index: usize) -> Option<&Close> {
    (index > 0).then(|| &session[0])
}

fn values(reference: &Close, close: &Close) -> Values {
    Values {
        session: close.session,
        reference_at: reference.at,
        reference_close: reference.price,
        close: close.price,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::triggers::fixture::{at, close, thresholds};

    /// The minutes at which AAPL crosses against half an hour ago.
    fn thirty_minute_triggers(closes: &[(i64, &str)]) -> Vec<(i64, Direction)> {
        of_rule(closes, Rule::ThirtyMinutes)
    }

    fn of_rule(closes: &[(i64, &str)], rule: Rule) -> Vec<(i64, Direction)> {
        let closes = closes.iter().map(|(minute, price)| close(*minute, price)).collect();
        triggers(&Closes::from([("AAPL".to_owned(), closes)]), &thresholds())
            .into_keys()
            .filter(|key| key.rule == rule)
            .map(|key| ((key.at - at(0)).num_minutes(), key.direction))
            .collect()
    }

    #[test]
    fn move_of_exactly_the_threshold_crosses() {
        assert_eq!(thirty_minute_triggers(&[(0, "300"), (30, "303")]), [(30, Direction::Up)]);
        assert_eq!(thirty_minute_triggers(&[(0, "300"), (30, "297")]), [(30, Direction::Down)]);
        assert_eq!(thirty_minute_triggers(&[(0, "300"), (30, "302.9999")]), []);
    }

    #[test]
    fn reference_is_the_last_bar_between_thirty_and_forty_minutes_old() {
        assert_eq!(thirty_minute_triggers(&[(0, "100"), (29, "102")]), []);
        assert_eq!(thirty_minute_triggers(&[(0, "100"), (40, "102")]), [(40, Direction::Up)]);
        assert_eq!(thirty_minute_triggers(&[(0, "100"), (41, "102")]), []);
        assert_eq!(thirty_minute_triggers(&[(0, "100"), (5, "102"), (35, "102")]), []);
    }

    #[test]
    fn staying_beyond_the_threshold_is_no_second_crossing() {
        let stays = [(0, "100"), (1, "100"), (30, "102"), (31, "102")];
        assert_eq!(thirty_minute_triggers(&stays), [(30, Direction::Up)]);
    }

    #[test]
    fn crossing_that_is_no_trigger_silences_the_next_all_the_same() {
        let spikes = [30, 55, 80, 115];
        let price = |minute| if spikes.contains(&minute) { "102" } else { "100" };
        let closes: Vec<_> = (0..=120).step_by(5).map(|minute| (minute, price(minute))).collect();

        let up: Vec<_> =
            thirty_minute_triggers(&closes).into_iter().filter(|found| found.1 == Direction::Up).collect();
        assert_eq!(up, [(30, Direction::Up), (115, Direction::Up)]);
    }

    #[test]
    fn crossing_exactly_thirty_minutes_ago_silences() {
        let then = |last| [(0, "100"), (29, "100"), (30, "102"), (31, "101"), (59, "100"), last];
        assert_eq!(thirty_minute_triggers(&then((60, "104"))), [(30, Direction::Up)]);
        assert_eq!(thirty_minute_triggers(&then((61, "104"))), [(30, Direction::Up), (61, Direction::Up)]);
    }

    #[test]
    fn move_from_the_open_starts_anew_with_each_session() {
        let next_day = 24 * 60;
        let closes = [(0, "100"), (1, "104"), (next_day, "104"), (next_day + 1, "108")];
        assert_eq!(of_rule(&closes, Rule::SessionOpen), [(1, Direction::Up)]);
        let closes = [(0, "100"), (1, "104"), (next_day, "104"), (next_day + 1, "109")];
        let expected = [(1, Direction::Up), (next_day + 1, Direction::Up)];
        assert_eq!(of_rule(&closes, Rule::SessionOpen), expected);
    }

    /// Counts the triggers of a real day, where the day is at hand: `TAILCAR_SAMPLE_BARS` names
    /// `us8_2018-04-04_long_naive_et.csv`.
    #[test]
    fn real_day_has_the_known_triggers() {
        let Some(path) = std::env::var_os("TAILCAR_SAMPLE_BARS") else {
            eprintln!("NOT RUN: TAILCAR_SAMPLE_BARS names no file");
            return;
        };
        let found = triggers(&read_closes(File::open(path).unwrap()), &thresholds());

        let by_symbol = |rule| {
            found.keys().filter(|key| key.rule == rule).fold(BTreeMap::new(), |mut counts, key| {
                *counts.entry(key.symbol.as_str()).or_insert(0) += 1;
                counts
            })
        };
        let symbols = ["AAPL", "AMD", "AMZN", "INTC", "MSFT", "NVDA", "SNAP", "TSLA"];
        let expected = |counts: [i32; 8]| symbols.into_iter().zip(counts).collect();
        assert_eq!(by_symbol(Rule::ThirtyMinutes), expected([1, 5, 4, 3, 4, 5, 3, 6]));
        assert_eq!(by_symbol(Rule::SessionOpen), expected([1, 1, 1, 1, 1, 1, 2, 1]));
    }

    /// The columns `timestamp,symbol,…,close,volume`; the zone does not matter inside one day.
    fn read_closes(file: File) -> Closes {
        let mut closes = Closes::new();
        for row in csv::Reader::from_reader(file).into_records() {
            let row = row.unwrap();
            let at = chrono::NaiveDateTime::parse_from_str(&row[0], "%Y-%m-%d %H:%M:%S").unwrap();
            closes.entry(row[1].to_owned()).or_default().push(Close {
                at: at.and_utc(),
                session: at.date(),
                price: row[5].parse().unwrap(),
            });
        }
        for closes in closes.values_mut() {
            closes.sort_by_key(|close| close.at);
        }
        closes
    }
}
