//! Bars: one symbol's prices in one minute, and what makes two collections of a minute the same.
//!
//! Prices keep the digits their source wrote; whether two are equal is a matter of their value.

pub mod csv;
mod header;
mod row;
pub mod timestamp;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::identity::sha256_hex;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::input_fault::{Fault, Origin};

/// One symbol's minute. Its order of fields is the order in artifacts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bar {
    /// The instrument.
    pub symbol: String,
    /// First price of the minute; positive, like all prices.
    pub open: Decimal,
    /// Highest price; no other is above it.
    pub high: Decimal,
    /// Lowest price; no other is below it.
    pub low: Decimal,
    /// Last price.
    pub close: Decimal,
    /// How much was traded; not negative.
    pub volume: Decimal,
}

/// The bars of one minute, by symbol.
pub type Minute = BTreeMap<String, Bar>;

/// Bars by the minute they start.
pub type Bars = BTreeMap<DateTime<Utc>, Minute>;

/// Puts `bar` among `bars`; it stands in place of an earlier one, which makes a fault if it differed.
pub fn insert(
    bars: &mut Bars,
    start: DateTime<Utc>,
    bar: Bar,
    origin: &Origin,
    line: Option<u64>,
) -> Option<Fault> {
    let minute = bars.entry(start).or_default();
    let differed = minute.get(&bar.symbol).is_some_and(|earlier| *earlier != bar);
    let correction = differed.then(|| {
        let (symbol, at) = (&bar.symbol, start.format("%Y-%m-%dT%H:%MZ"));
        let message =
            format!("{symbol} {at} was there with other values; these, the later ones, correct them");
        origin.noted(line, None, message)
    });
    minute.insert(bar.symbol.clone(), bar);
    correction
}

/// The digest of a minute's canonical content: its bars by symbol, numbers by value.
///
/// A source that writes 164.90 today and 164.9 tomorrow has corrected nothing.
#[must_use]
pub fn digest(minute: &Minute) -> String {
    let mut canonical = String::from("[");
    for (index, bar) in minute.values().enumerate() {
        if index > 0 {
            canonical.push(',');
        }
        canonical.push_str(&bar.canonical_json());
    }
    canonical.push(']');
    sha256_hex(canonical.as_bytes())
}

impl Bar {
    fn canonical_json(&self) -> String {
        let number = |value: Decimal| value.normalize().to_string();
        serde_json::json!({
            "symbol": self.symbol,
            "open": number(self.open),
            "high": number(self.high),
            "low": number(self.low),
            "close": number(self.close),
            "volume": number(self.volume),
        })
        .to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minute(symbols: &[&str], close: &str) -> Minute {
        let bar = |symbol: &&str| Bar {
            symbol: (*symbol).to_owned(),
            open: Decimal::ONE,
            high: Decimal::TEN,
            low: Decimal::ONE,
            close: close.parse().unwrap(),
            volume: "167673.0".parse().unwrap(),
        };
        symbols.iter().map(|symbol| ((*symbol).to_owned(), bar(symbol))).collect()
    }

    #[test]
    fn digest_of_a_known_minute_never_changes() {
        assert_eq!(
            digest(&minute(&["AAPL", "TSLA"], "1.5")),
            "936333f13e38b83e51c2b48956b75839d3b9d4ffbb46fb8e66b921044920c1a0"
        );
        assert_eq!(
            digest(&Minute::new()),
            "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"
        );
    }

    #[test]
    fn order_and_trailing_zeros_are_not_content() {
        assert_eq!(digest(&minute(&["TSLA", "AAPL"], "1.50")), digest(&minute(&["AAPL", "TSLA"], "1.5")));
    }

    #[test]
    fn value_and_symbol_are_content() {
        let one = digest(&minute(&["AAPL"], "1.5"));
        assert_ne!(one, digest(&minute(&["AAPL"], "1.6")));
        assert_ne!(one, digest(&minute(&["AAPL", "TSLA"], "1.5")));
    }

    #[test]
    fn artifact_keeps_the_digits_as_written() {
        let json = serde_json::to_string(&minute(&["AAPL"], "1.50")["AAPL"]).unwrap();
        assert!(json.contains(r#""close":"1.50","volume":"167673.0""#), "{json}");
    }
}
