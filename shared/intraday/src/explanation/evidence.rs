//! What is known around a trigger, as it is stored: prices as texts, every piece with a number to cite.

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde::Serialize;

use super::Subject;

/// Everything known around one trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The trigger.
    pub subject: Subject,
    /// The symbol's own prices.
    pub prices: Prices,
    /// News about the symbol, the latest first.
    pub news: Vec<News>,
    /// What the other symbols did meanwhile.
    pub market: Market,
}

/// The prices of the symbol around the trigger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Prices {
    /// What the move is measured against.
    pub reference: Price,
    /// The close that crossed the threshold.
    pub crossing: Price,
    /// The move as a signed share of the reference.
    #[serde(rename = "move")]
    pub change: Decimal,
    /// The closes just before the crossing, oldest first.
    pub before: Vec<Price>,
    /// The closes just after it, as far as they were there, oldest first.
    pub after: Vec<Price>,
}

/// One close.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Price {
    /// The window's start.
    pub at: DateTime<Utc>,
    /// The close.
    pub close: Decimal,
}

/// One item about the symbol, by its strongest finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct News {
    /// The item.
    pub item_id: String,
    /// The text of it that was read.
    pub revision: String,
    /// Where it was found.
    pub feed: String,
    /// Its headline.
    pub title: String,
    /// Where it can be read.
    pub link: Option<String>,
    /// As the feed says.
    pub published_at: DateTime<Utc>,
    /// What it is about, as the `event_kind` column has it.
    pub event_kind: String,
    /// How sure the extractor was, from 0 to 1.
    pub confidence: Decimal,
    /// The words the finding rests on.
    pub matched: String,
}

/// What the other symbols of the dataset did over the same span.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Market {
    /// From which share on a move of theirs counts as the same move: half the trigger's threshold.
    pub threshold: Decimal,
    /// How many were seen at both ends of the span.
    pub observed: usize,
    /// Those that moved the same way, the largest move first.
    pub moving: Vec<OtherMove>,
}

/// The move of another symbol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OtherMove {
    /// The ticker.
    pub symbol: String,
    /// Its move as a signed share.
    #[serde(rename = "move")]
    pub change: Decimal,
}

/// A piece of evidence with the number the text cites it by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cited<'a> {
    /// Counted from 1.
    pub number: usize,
    /// The piece.
    #[serde(flatten)]
    pub exhibit: Exhibit<'a>,
}

/// A piece of evidence of any kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Exhibit<'a> {
    /// The symbol's own prices; always the first.
    Prices(&'a Prices),
    /// One item.
    News(&'a News),
    /// The other symbols; always the last.
    Market(&'a Market),
}

impl Evidence {
    /// Every piece with its number, in the order of the numbers.
    #[must_use]
    pub fn cited(&self) -> Vec<Cited<'_>> {
        let prices = std::iter::once(Exhibit::Prices(&self.prices));
        let news = self.news.iter().map(Exhibit::News);
        let market = std::iter::once(Exhibit::Market(&self.market));
        let exhibits = prices.chain(news).chain(market);
        exhibits.enumerate().map(|(index, exhibit)| Cited { number: index + 1, exhibit }).collect()
    }
}
