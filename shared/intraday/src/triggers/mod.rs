//! Triggers: moves of a price that are worth an explanation.
//!
//! A trigger is a pure function of the committed closes, so it does not matter in which order or how
//! often windows are computed. [`rules`] says what a trigger is, [`influence`] which triggers one
//! window can change, [`changes`] what has to be written; [`rows`] reads and [`writes`] writes.
//!
//! Windows that were backfilled take no part, neither as triggers nor as what a move is measured
//! against: they have no job that could compute again what they change, so counting them would make
//! the rows depend on when the backfill ran.

use std::fmt;

use chrono::{DateTime, NaiveDate, Utc};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::config::Thresholds;

pub mod changes;
pub mod influence;
pub mod rows;
pub mod rules;
pub mod writes;

/// The close of one symbol in one window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Close {
    /// The window's start.
    pub at: DateTime<Utc>,
    /// The trading day the window belongs to.
    pub session: NaiveDate,
    /// The last price of the window; positive.
    pub price: Decimal,
}

/// What a move is measured against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Rule {
    /// The close of the symbol's first bar of the session.
    SessionOpen,
    /// The last close that is at least 30 and at most 40 minutes old.
    ThirtyMinutes,
}

impl Rule {
    /// Every rule, in the order of their names.
    pub const ALL: [Self; 2] = [Self::SessionOpen, Self::ThirtyMinutes];

    /// The rule as the `rule` column has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SessionOpen => "SESSION_OPEN",
            Self::ThirtyMinutes => "THIRTY_MINUTES",
        }
    }

    /// Reads the `rule` column; `None` for text the schema does not allow.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.as_str() == text)
    }
}

/// Which way a price moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Direction {
    /// It fell.
    Down,
    /// It rose.
    Up,
}

impl Direction {
    /// Both directions, in the order of their names.
    pub const ALL: [Self; 2] = [Self::Down, Self::Up];

    /// The direction as the `direction` column has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Down => "DOWN",
            Self::Up => "UP",
        }
    }

    /// Reads the `direction` column; `None` for text the schema does not allow.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|direction| direction.as_str() == text)
    }

    /// Whether going from `reference` to `price` is a move of at least `threshold` this way.
    ///
    /// Compared by multiplication, so that a move of exactly the threshold is never lost to a
    /// quotient's last digit. `reference` is positive, `threshold` a share (0.01 is 1 %).
    #[must_use]
    pub fn reaches(self, reference: Decimal, price: Decimal, threshold: Decimal) -> bool {
        let gained = match self {
            Self::Down => reference - price,
            Self::Up => price - reference,
        };
        gained >= threshold * reference
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Thresholds {
    /// The threshold of `rule`.
    #[must_use]
    pub fn of(&self, rule: Rule) -> Decimal {
        match rule {
            Rule::SessionOpen => self.session_open,
            Rule::ThirtyMinutes => self.thirty_minutes,
        }
    }
}

/// What makes a trigger the trigger it is, inside its dataset. Ordered as the primary key is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The ticker.
    pub symbol: String,
    /// What the move is measured against.
    pub rule: Rule,
    /// Which way it went.
    pub direction: Direction,
    /// The window in which the threshold was crossed.
    pub at: DateTime<Utc>,
}

/// What follows from the closes for one [`Key`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    /// The trading day of the window.
    pub session: NaiveDate,
    /// The window the move is measured against.
    pub reference_at: DateTime<Utc>,
    /// The close of that window.
    pub reference_close: Decimal,
    /// The close that crossed the threshold.
    pub close: Decimal,
}

impl Values {
    /// The move as a signed share of the reference, rounded to eight decimal places.
    #[must_use]
    pub fn r#move(&self) -> Decimal {
        ((self.close - self.reference_close) / self.reference_close).round_dp(8)
    }
}

/// The window, in the generation, whose job writes a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The window's start.
    pub window_start: DateTime<Utc>,
    /// The window's generation when its job ran.
    pub generation: i32,
}

#[cfg(test)]
pub(crate) mod fixture {
    //! Closes and thresholds for the tests of this module.

    use super::{Close, DateTime, Decimal, Thresholds, Utc};

    /// A minute after 2018-04-04 09:30 in New York.
    pub(crate) fn at(minute: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_522_848_600 + minute * 60, 0).unwrap()
    }

    /// A close in the session of its UTC day.
    pub(crate) fn close(minute: i64, price: &str) -> Close {
        Close { at: at(minute), session: at(minute).date_naive(), price: price.parse().unwrap() }
    }

    /// 1 % in thirty minutes, 4 % from the open.
    pub(crate) fn thresholds() -> Thresholds {
        Thresholds { thirty_minutes: Decimal::new(1, 2), session_open: Decimal::new(4, 2) }
    }
}
