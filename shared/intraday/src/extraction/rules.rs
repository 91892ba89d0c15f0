//! An extractor made of rules: the same text gives the same findings, at once and for ever.
//!
//! One finding for each symbol of a segment and each kind of event the segment's words give away;
//! [`EventKind::Other`] when they give away none, which halves the confidence: it is only a mention.

use rust_decimal::Decimal;

use super::words::words;
use super::{EventKind, Extractor, Finding, Reading, Unavailable, kinds, symbols};
use crate::config::{Config, Instrument};

/// What a mention without an event is worth of one with an event.
const MERE_MENTION: Decimal = Decimal::from_parts(5, 0, 0, false, 1);

/// Finds the instruments it was made with.
#[derive(Clone, Debug)]
pub struct RulesExtractor {
    instruments: Vec<Instrument>,
}

impl RulesExtractor {
    /// Knows the instruments of every dataset; one that is in several keeps all of its names.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let mut instruments: Vec<Instrument> = Vec::new();
        for instrument in config.datasets.iter().flat_map(|dataset| &dataset.instruments) {
            match instruments.iter_mut().find(|known| known.symbol == instrument.symbol) {
                Some(known) => known.names.extend(instrument.names.iter().cloned()),
                None => instruments.push(instrument.clone()),
            }
        }
        Self { instruments }
    }

    fn read(&self, segment: usize, text: &str) -> Vec<Finding> {
        let signs = kinds::signs(&words(text));
        let mentions = symbols::mentions(text, !signs.is_empty(), &self.instruments);
        let other = [(EventKind::Other, String::new())];
        let kinds = if signs.is_empty() { &other[..] } else { &signs[..] };
        mentions
            .iter()
            .flat_map(|mention| kinds.iter().map(move |(kind, sign)| finding(segment, mention, *kind, sign)))
            .collect()
    }
}

fn finding(segment: usize, mention: &symbols::Mention, kind: EventKind, sign: &str) -> Finding {
    let (confidence, matched) = if kind == EventKind::Other {
        (mention.confidence * MERE_MENTION, mention.matched.clone())
    } else {
        (mention.confidence, format!("{}, {sign}", mention.matched))
    };
    Finding { segment, symbol: mention.symbol.clone(), kind, confidence: confidence.normalize(), matched }
}

impl Extractor for RulesExtractor {
    async fn extract(&self, reading: Reading<'_>) -> Result<Vec<Finding>, Unavailable> {
        let segments = reading.segments.iter().enumerate();
        Ok(segments.flat_map(|(index, text)| self.read(index, text)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::location::BUNDLED;

    fn findings(text: &str) -> Vec<(String, EventKind, String, String)> {
        let extractor = RulesExtractor::new(&Config::load(BUNDLED).unwrap());
        let findings = extractor.read(0, text).into_iter();
        findings
            .map(|found| (found.symbol, found.kind, found.confidence.to_string(), found.matched))
            .collect()
    }

    fn row(
        symbol: &str,
        kind: EventKind,
        confidence: &str,
        matched: &str,
    ) -> (String, EventKind, String, String) {
        (symbol.to_owned(), kind, confidence.to_owned(), matched.to_owned())
    }

    #[test]
    fn finding_says_who_and_what_and_on_which_words_it_rests() {
        assert_eq!(
            findings("Apple quarterly earnings beat expectations"),
            [row("AAPL", EventKind::Earnings, "0.8", "Apple, earnings")]
        );
    }

    #[test]
    fn each_symbol_has_a_finding_of_each_kind() {
        assert_eq!(
            findings("Intel sues $AMD over a product"),
            [
                row("AMD", EventKind::Legal, "0.95", "$AMD, sues"),
                row("AMD", EventKind::Product, "0.95", "$AMD, product"),
                row("INTC", EventKind::Legal, "0.8", "Intel, sues"),
                row("INTC", EventKind::Product, "0.8", "Intel, product"),
            ]
        );
    }

    #[test]
    fn mention_without_an_event_is_worth_half() {
        assert_eq!(findings("Tesla shares are up"), [row("TSLA", EventKind::Other, "0.4", "Tesla")]);
    }

    #[test]
    fn text_about_nobody_has_no_finding() {
        assert_eq!(findings("Regulator files a lawsuit against a baker of apple pie"), []);
    }
}
