//! From evidence to a verdict and a readable text. Pure: the same evidence gives the same words.
//!
//! The verdict is news when a finding about the symbol is strong enough, else a move of the market when
//! enough other symbols moved along, else that no cause was found, and the text says so. It says what
//! may explain a move and never that it does.

use std::fmt::Write;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use rust_decimal::Decimal;

use super::evidence::{Cited, Evidence, Exhibit, Market, News, Prices};
use super::gather::NEWS_HOURS;
use crate::triggers::{Direction, Rule};

/// From this confidence on a finding may explain a move: a name without an event stays below it.
const CONFIDENCE_MIN: Decimal = Decimal::from_parts(5, 0, 0, false, 1);
/// With fewer other symbols, what they do together says nothing about a market.
const OBSERVED_MIN: usize = 3;

/// What may have caused a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// News about the symbol.
    News,
    /// At least half of the other symbols moved the same way.
    MarketMove,
    /// Neither.
    NoCauseFound,
}

impl Verdict {
    /// The verdict as the `verdict` column has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::News => "NEWS",
            Self::MarketMove => "MARKET_MOVE",
            Self::NoCauseFound => "NO_CAUSE_FOUND",
        }
    }
}

/// What the evidence says.
#[must_use]
pub fn verdict(evidence: &Evidence) -> Verdict {
    let market = &evidence.market;
    if evidence.news.iter().any(is_strong) {
        Verdict::News
    } else if market.observed >= OBSERVED_MIN && market.moving.len() * 2 >= market.observed {
        Verdict::MarketMove
    } else {
        Verdict::NoCauseFound
    }
}

/// The explanation for people, times in `zone`, evidence cited as `[number]`.
#[must_use]
pub fn text(evidence: &Evidence, zone: Tz) -> String {
    let mut text = String::new();
    for cited in evidence.cited() {
        let line = match cited.exhibit {
            Exhibit::Prices(prices) => {
                format!("{} [1].\n{}", what_happened(evidence, prices, zone), judgement(evidence))
            }
            Exhibit::News(_) => citation(&cited, zone),
            Exhibit::Market(market) => what_others_did(evidence, market, cited.number),
        };
        let _ = writeln!(text, "{line}");
    }
    if let Some(last) = evidence.prices.after.last() {
        let _ = writeln!(text, "Afterwards it closed at {} at {} [1].", last.close, clock(last.at, zone));
    }
    text.truncate(text.trim_end().len());
    text
}

fn is_strong(news: &News) -> bool {
    news.confidence >= CONFIDENCE_MIN
}

fn what_happened(evidence: &Evidence, prices: &Prices, zone: Tz) -> String {
    let subject = &evidence.subject;
    let against = match subject.rule {
        Rule::ThirtyMinutes => {
            format!("within {} minutes", (prices.crossing.at - prices.reference.at).num_minutes())
        }
        Rule::SessionOpen => "since the session's first bar".to_owned(),
    };
    format!(
        "{} {} {} {against}: from {} at {} to {} at {} on {}",
        subject.symbol,
        verb(subject.direction),
        percent(prices.change.abs()),
        prices.reference.close,
        clock(prices.reference.at, zone),
        prices.crossing.close,
        clock(prices.crossing.at, zone),
        prices.crossing.at.with_timezone(&zone).date_naive(),
    )
}

fn judgement(evidence: &Evidence) -> String {
    let symbol = &evidence.subject.symbol;
    match verdict(evidence) {
        Verdict::News => {
            format!("News about {symbol} in the {NEWS_HOURS} hours before may explain it:")
        }
        Verdict::MarketMove => {
            format!(
                "It moved with the market; {} {symbol} in the {NEWS_HOURS} hours before.",
                nothing_but(evidence)
            )
        }
        Verdict::NoCauseFound => {
            format!(
                "No cause was found: {} {symbol} in the {NEWS_HOURS} hours before.",
                nothing_but(evidence)
            )
        }
    }
}

fn nothing_but(evidence: &Evidence) -> &'static str {
    if evidence.news.is_empty() {
        "no news was found about"
    } else {
        "only these uncertain mentions were found of"
    }
}

fn citation(cited: &Cited<'_>, zone: Tz) -> String {
    let Exhibit::News(news) = &cited.exhibit else { return String::new() };
    let kind = news.event_kind.to_lowercase();
    let uncertain = if is_strong(news) { "" } else { ", uncertain" };
    let link = news.link.as_ref().map(|link| format!(", {link}")).unwrap_or_default();
    let at = news.published_at.with_timezone(&zone).format("%Y-%m-%d %H:%M %Z");
    format!("[{}] {kind}{uncertain}: \"{}\" ({}, {at}{link})", cited.number, news.title, news.feed)
}

fn what_others_did(evidence: &Evidence, market: &Market, number: usize) -> String {
    if market.observed == 0 {
        return format!("No other symbol was seen at the same time [{number}].");
    }
    let names: Vec<String> =
        market.moving.iter().map(|other| format!("{} {}", other.symbol, signed(other.change))).collect();
    let names = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
    format!(
        "At the same time {} of {} other symbols {} by at least {}{names} [{number}].",
        market.moving.len(),
        market.observed,
        verb(evidence.subject.direction),
        percent(market.threshold),
    )
}

fn verb(direction: Direction) -> &'static str {
    match direction {
        Direction::Down => "fell",
        Direction::Up => "rose",
    }
}

fn percent(share: Decimal) -> String {
    format!("{} %", (share * Decimal::ONE_HUNDRED).round_dp(2).normalize())
}

fn signed(share: Decimal) -> String {
    let sign = if share.is_sign_negative() { "-" } else { "+" };
    format!("{sign}{}", percent(share.abs()))
}

fn clock(at: DateTime<Utc>, zone: Tz) -> String {
    at.with_timezone(&zone).format("%H:%M %Z").to_string()
}

#[cfg(test)]
mod tests;
