//! Which triggers one window can change.
//!
//! **Thirty-minute rule: `[w, w + 110 min]`.** A move at `u` compares two closes, `u`'s and one from
//! `[u - 40, u - 30]`. A crossing at `u` needs that move, and then the previous bar is not older than
//! `u - 40`, since the reference itself lies between; so it rests on bars from `[u - 80, u]` alone.
//! A trigger at `t` needs the crossings of `[t - 30, t]`, so bars from `[t - 110, t]`. Read the other
//! way round: a bar at `w` counts for no trigger before `w` and for none after `w + 110 min`.
//!
//! **From the open.** The symbol's first bar of the session is the reference of every other, so a
//! window that is or precedes that bar (it may have *been* the first until its correction) can change
//! the whole session. A later one changes its own crossing and that of the next bar, and what these
//! silence: `[w, next + 30 min]`. Here the next bar may be any time away.
//!
//! A range follows from the bars as they are when it is computed. A bar that comes between later can
//! make it too short only for what that bar's own window then covers.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::{Close, Rule, rules::QUIET};

/// How far the thirty-minute rule reaches: 40 min to a reference, 40 min to the reference of the
/// previous bar, 30 min of silence. Derived above.
pub const REACH: TimeDelta = TimeDelta::minutes(110);

/// The part of a symbol's triggers, under one rule, that a window can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// Every trigger of this trading day.
    Session(NaiveDate),
    /// The triggers from the first instant to the second, both included.
    Between(DateTime<Utc>, DateTime<Utc>),
    /// The triggers of this trading day among those between the instants.
    Within(NaiveDate, DateTime<Utc>, DateTime<Utc>),
}

impl Range {
    /// Whether a trigger at `at` on trading day `session` is in the range.
    #[must_use]
    pub fn contains(&self, session: NaiveDate, at: DateTime<Utc>) -> bool {
        match *self {
            Self::Session(day) => session == day,
            Self::Between(from, to) => (from..=to).contains(&at),
            Self::Within(day, from, to) => session == day && (from..=to).contains(&at),
        }
    }
}

/// What the window at `at`, of trading day `session`, can change for the symbol with these `closes`
/// (oldest first, at least those of the session).
#[must_use]
pub fn of_window(rule: Rule, at: DateTime<Utc>, session: NaiveDate, closes: &[Close]) -> Range {
    match rule {
        Rule::ThirtyMinutes => Range::Between(at, at + REACH),
        Rule::SessionOpen => from_the_open(at, session, closes),
    }
}

fn from_the_open(at: DateTime<Utc>, session: NaiveDate, closes: &[Close]) -> Range {
    let mut bars = closes.iter().filter(|close| close.session == session).map(|close| close.at);
    let precedes_the_first = bars.clone().next().is_none_or(|first| at <= first);
    if precedes_the_first {
        return Range::Session(session);
    }
    let next = bars.find(|bar| *bar > at);
    Range::Within(session, at, next.map_or(at, |next| next + QUIET))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::triggers::{
        fixture::{at, close, thresholds},
        rules::{self, Closes},
    };

    /// The last minute with a thirty-minute trigger, given the price of minute 0.
    fn last_trigger(first: &str) -> i64 {
        let later = [(40, "102"), (80, "104.5"), (85, "100"), (110, "106")];
        let closes = std::iter::once((0, first)).chain(later).map(|(minute, price)| close(minute, price));
        rules::triggers(&Closes::from([("AAPL".to_owned(), closes.collect())]), &thresholds())
            .into_keys()
            .filter(|key| key.rule == Rule::ThirtyMinutes)
            .map(|key| (key.at - at(0)).num_minutes())
            .max()
            .unwrap()
    }

    #[test]
    fn bar_reaches_a_trigger_110_minutes_later() {
        // Whether minute 40 is beyond the threshold decides whether 80 crosses, and that silences 110.
        assert_eq!(last_trigger("100"), REACH.num_minutes());
        assert_eq!(last_trigger("102"), 80);
    }

    #[test]
    fn first_bar_of_the_session_can_change_all_of_it() {
        let closes = [close(5, "100"), close(200, "100")];
        let session = closes[0].session;
        for minute in [0, 5] {
            assert_eq!(
                of_window(Rule::SessionOpen, at(minute), session, &closes),
                Range::Session(session),
                "minute {minute}"
            );
        }
    }

    #[test]
    fn later_bar_reaches_past_the_next_one() {
        let closes = [close(0, "100"), close(5, "100"), close(200, "100")];
        let session = closes[0].session;
        let range = |minute| of_window(Rule::SessionOpen, at(minute), session, &closes);
        assert_eq!(range(5), Range::Within(session, at(5), at(230)));
        assert_eq!(range(200), Range::Within(session, at(200), at(200)));
    }
}
