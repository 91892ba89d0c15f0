//! A made-up trading session: prices that wander, shocks, headlines that explain some of them, and
//! noise that explains nothing.
//!
//! Everything follows from the seed: the same seed gives the same files, byte for byte, on any machine.
//! Companies, people and events are invented.

mod feed;
mod headlines;
mod market;

use std::collections::BTreeMap;

use chrono::{DateTime, Duration, NaiveDate, NaiveTime, Utc};
use chrono_tz::{America::New_York, Tz};

pub use headlines::Headline;
pub use market::Shock;

/// Minutes of the session: 09:30 to 15:59.
pub const MINUTES: u32 = 390;

/// The session's zone.
pub const ZONE: Tz = New_York;

/// A listed company.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Company {
    /// Its ticker.
    pub symbol: &'static str,
    /// The name headlines use.
    pub name: &'static str,
    /// Its first price, in cents.
    opening_cents: i64,
}

/// Who is traded.
pub const COMPANIES: [Company; 8] = [
    Company { symbol: "ZALQ", name: "Zalquin Energy", opening_cents: 8_412 },
    Company { symbol: "VEXO", name: "Vexora Semiconductor", opening_cents: 21_377 },
    Company { symbol: "QTRL", name: "Quantrel Software", opening_cents: 34_905 },
    Company { symbol: "HLXO", name: "Halixo Therapeutics", opening_cents: 5_768 },
    Company { symbol: "MIRV", name: "Mirvane Airlines", opening_cents: 4_231 },
    Company { symbol: "BRKO", name: "Brekkado Foods", opening_cents: 11_650 },
    Company { symbol: "NVRR", name: "Novurra Motors", opening_cents: 18_094 },
    Company { symbol: "TDLN", name: "Tidelan Shipping", opening_cents: 9_923 },
];

/// A generated session.
#[derive(Debug)]
pub struct Scenario {
    bars: String,
    shocks: Vec<Shock>,
    headlines: Vec<Headline>,
}

impl Scenario {
    /// The session of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let shocks = market::plan(&mut random);
        let bars = market::bars(&mut random, &shocks);
        let headlines = headlines::write(&mut random, &shocks);
        Self { bars, shocks, headlines }
    }

    /// The start of the session's `minute`, counted from 0. New York is four hours behind on that day.
    #[must_use]
    pub fn instant(minute: u32) -> DateTime<Utc> {
        Self::date().and_time(NaiveTime::MIN).and_utc() + Duration::minutes(13 * 60 + 30 + i64::from(minute))
    }

    /// The day of the session, a Tuesday.
    #[must_use]
    pub fn date() -> NaiveDate {
        NaiveDate::from_ymd_opt(2026, 5, 12).unwrap_or_default()
    }

    /// The bars of the whole session as one CSV file, times naive in [`ZONE`].
    #[must_use]
    pub fn bars(&self) -> &str {
        &self.bars
    }

    /// What moved the prices.
    #[must_use]
    pub fn shocks(&self) -> &[Shock] {
        &self.shocks
    }

    /// Every headline of the session, by the minute it came out.
    #[must_use]
    pub fn headlines(&self) -> &[Headline] {
        &self.headlines
    }

    /// The feeds as their publishers serve them in `minute`: by file name, RSS 2.0.
    #[must_use]
    pub fn feeds(&self, minute: u32) -> BTreeMap<&'static str, String> {
        feed::FEEDS.iter().map(|feed| (feed.file, feed::render(feed, &self.headlines, minute))).collect()
    }

    /// Whether the feeds of `minute` differ from those of the minute before.
    #[must_use]
    pub fn feeds_change(&self, minute: u32) -> bool {
        minute == 0 || self.headlines.iter().any(|headline| headline.changes_in(minute))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_gives_the_same_files() {
        let (one, other) = (Scenario::new(7), Scenario::new(7));
        assert_eq!(one.bars(), other.bars());
        for minute in 0..MINUTES {
            assert_eq!(one.feeds(minute), other.feeds(minute));
        }
    }

    #[test]
    fn another_seed_gives_another_session() {
        assert_ne!(Scenario::new(7).bars(), Scenario::new(8).bars());
    }

    #[test]
    fn every_company_has_a_bar_in_every_minute() {
        let scenario = Scenario::new(1);
        for company in COMPANIES {
            let bars = scenario.bars().lines().filter(|line| line.contains(company.symbol)).count();
            assert_eq!(bars, MINUTES as usize, "{}", company.symbol);
        }
    }

    #[test]
    fn feeds_only_change_in_the_minutes_that_say_so() {
        let scenario = Scenario::new(3);
        for minute in 1..MINUTES {
            let changed = scenario.feeds(minute) != scenario.feeds(minute - 1);
            assert_eq!(changed, scenario.feeds_change(minute), "minute {minute}");
        }
    }

    #[test]
    fn session_opens_at_half_past_nine_in_new_york() {
        assert_eq!(Scenario::instant(0).to_rfc3339(), "2026-05-12T13:30:00+00:00");
        assert_eq!(Scenario::instant(MINUTES - 1).to_rfc3339(), "2026-05-12T19:59:00+00:00");
    }
}
