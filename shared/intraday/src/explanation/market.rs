//! What the other symbols did over the span of a trigger's move. Pure.

use std::cmp::Reverse;

use chrono::{DateTime, TimeDelta, Utc};
use rust_decimal::Decimal;

use super::evidence::{Market, OtherMove};
use crate::triggers::Direction;

/// How much older than an end of the span another symbol's close may be: a quiet symbol has no bar in
/// every minute.
pub const SLACK: TimeDelta = TimeDelta::minutes(10);

/// From the reference of a trigger to its crossing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The reference's window.
    pub from: DateTime<Utc>,
    /// The window of the crossing; later than `from`.
    pub to: DateTime<Utc>,
}

/// A close of another symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherClose {
    /// The ticker.
    pub symbol: String,
    /// The window's start.
    pub at: DateTime<Utc>,
    /// The close; positive.
    pub close: Decimal,
}

/// Which of the other symbols moved in `direction` over `span`, by half of `threshold` or more.
///
/// `closes` is ordered by symbol and window, and holds those of the other symbols within [`SLACK`]
/// before either end. A symbol without a close at each end was not observed.
#[must_use]
pub fn of(closes: &[OtherClose], span: Span, direction: Direction, threshold: Decimal) -> Market {
    let threshold = (threshold / Decimal::TWO).normalize();
    let ends: Vec<(&OtherClose, &OtherClose)> = closes
        .chunk_by(|left, right| left.symbol == right.symbol)
        .filter_map(|closes| Some((last_before(closes, span.from)?, last_before(closes, span.to)?)))
        .filter(|(start, end)| start.at < end.at)
        .collect();
    let moved = |ends: &&(&OtherClose, &OtherClose)| direction.reaches(ends.0.close, ends.1.close, threshold);
    let mut moving: Vec<OtherMove> =
        ends.iter().filter(moved).map(|(start, end)| other(start, end)).collect();
    moving.sort_by_key(|other| Reverse(other.change.abs()));
    Market { threshold, observed: ends.len(), moving }
}

fn last_before(closes: &[OtherClose], end: DateTime<Utc>) -> Option<&OtherClose> {
    closes.iter().rfind(|close| (end - SLACK..=end).contains(&close.at))
}

fn other(start: &OtherClose, end: &OtherClose) -> OtherMove {
    let change = ((end.close - start.close) / start.close).round_dp(8);
    OtherMove { symbol: start.symbol.clone(), change }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::triggers::fixture::at;

    fn close(symbol: &str, minute: i64, price: &str) -> OtherClose {
        OtherClose { symbol: symbol.to_owned(), at: at(minute), close: price.parse().unwrap() }
    }

    fn fell(closes: &[OtherClose]) -> (usize, Vec<String>) {
        let span = Span { from: at(20), to: at(50) };
        let market = of(closes, span, Direction::Down, Decimal::new(1, 2));
        (market.observed, market.moving.into_iter().map(|other| other.symbol).collect())
    }

    #[test]
    fn half_the_threshold_in_the_same_direction_is_the_same_move() {
        let closes = [
            close("AMD", 20, "200"),
            close("AMD", 50, "199"),
            close("AMZN", 20, "200"),
            close("AMZN", 50, "199.01"),
            close("INTC", 20, "200"),
            close("INTC", 50, "210"),
            close("TSLA", 20, "200"),
            close("TSLA", 50, "190"),
        ];
        assert_eq!(fell(&closes), (4, vec!["TSLA".to_owned(), "AMD".to_owned()]));
    }

    #[test]
    fn close_at_each_end_may_be_ten_minutes_old() {
        let ends = |from, to| [close("AMD", from, "200"), close("AMD", to, "100")];
        assert_eq!(fell(&ends(10, 40)).0, 1);
        assert_eq!(fell(&ends(9, 40)).0, 0);
        assert_eq!(fell(&ends(10, 39)).0, 0);
    }

    #[test]
    fn one_close_is_no_move() {
        let span = Span { from: at(20), to: at(22) };
        let market = of(&[close("AMD", 20, "200")], span, Direction::Down, Decimal::ONE);
        assert_eq!(market.observed, 0);
    }
}
