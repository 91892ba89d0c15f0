//! The symbols a segment mentions, and how sure that is.
//!
//! A ticker in a form only tickers have (`$AAPL`, `NASDAQ: AAPL`, `(AAPL)`) is as good as certain. A bare
//! ticker must stand in capitals in a text that is not set in capitals, and a company's name must begin
//! with a capital. Where ticker or name is also an everyday word (Snap, Apple, Target), something near it
//! has to say that the company is meant, and the word after it must not say the opposite: no finding
//! rests on an apple pie or a snap decision.

use rust_decimal::Decimal;

use super::vocabulary::{COMPANY_CONTEXT, EVERYDAY, EXCHANGES, OTHERWISE};
use super::words::{Word, shouts, words};
use crate::config::Instrument;

/// How sure each form of a mention is, the surest first: a form only tickers have, a name of several
/// words, a name of one word, a bare ticker.
const FORMAL: Decimal = Decimal::from_parts(95, 0, 0, false, 2);
const LONG_NAME: Decimal = Decimal::from_parts(90, 0, 0, false, 2);
const SHORT_NAME: Decimal = Decimal::from_parts(80, 0, 0, false, 2);
const BARE_TICKER: Decimal = Decimal::from_parts(70, 0, 0, false, 2);

/// A symbol that is mentioned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mention {
    /// The ticker, as configured.
    pub symbol: String,
    /// How sure it is, from 0 to 1.
    pub confidence: Decimal,
    /// The words of the text.
    pub matched: String,
}

/// What is known of a segment while its symbols are looked for.
struct Segment<'a> {
    words: &'a [Word<'a>],
    shouts: bool,
    about_a_company: bool,
}

/// Every instrument that `text` mentions, once each, by its surest mention. `of_an_event` says that the
/// text is about something companies do, which makes an everyday word more likely to be a name.
pub(super) fn mentions(text: &str, of_an_event: bool, instruments: &[Instrument]) -> Vec<Mention> {
    let words = words(text);
    let context = |word: &Word| COMPANY_CONTEXT.contains(&word.text.to_lowercase().as_str());
    let segment = Segment {
        shouts: shouts(text),
        about_a_company: of_an_event || words.iter().any(context),
        words: &words,
    };
    instruments.iter().filter_map(|instrument| mention(text, &segment, instrument)).collect()
}

fn mention(text: &str, segment: &Segment<'_>, instrument: &Instrument) -> Option<Mention> {
    let ticker =
        segment.words.iter().enumerate().filter_map(|(at, _)| ticker(segment, at, &instrument.symbol));
    let names = instrument.names.iter().filter_map(|name| self::name(text, segment, name));
    let (confidence, matched) = ticker.chain(names).max_by_key(|(confidence, _)| *confidence)?;
    Some(Mention { symbol: instrument.symbol.clone(), confidence, matched })
}

/// Whether the word at `at` is the ticker.
fn ticker(segment: &Segment<'_>, at: usize, symbol: &str) -> Option<(Decimal, String)> {
    let word = &segment.words[at];
    if !word.text.eq_ignore_ascii_case(symbol) {
        return None;
    }
    if word.before.ends_with('$') {
        return Some((FORMAL, format!("${}", word.text)));
    }
    if word.text != symbol {
        return None;
    }
    if follows_exchange(word.before) || (word.before.ends_with('(') && word.after.starts_with(')')) {
        return Some((FORMAL, symbol.to_owned()));
    }
    let bare = symbol.len() > 1 && !segment.shouts && company_is_meant(segment, at, 1, symbol);
    bare.then(|| (BARE_TICKER, symbol.to_owned()))
}

fn follows_exchange(before: &str) -> bool {
    let Some(before) = before.trim_end().strip_suffix(':') else { return false };
    let exchange = before.trim_end().rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    EXCHANGES.contains(&exchange.to_lowercase().as_str())
}

/// The first place where the company is called `name`.
fn name(text: &str, segment: &Segment<'_>, name: &str) -> Option<(Decimal, String)> {
    if is_written_without_spaces(name) {
        return text.contains(name).then(|| (SHORT_NAME, name.to_owned()));
    }
    let wanted = words(name);
    let confidence = if wanted.len() > 1 { LONG_NAME } else { SHORT_NAME };
    let at = segment.words.windows(wanted.len().max(1)).enumerate().find_map(|(at, found)| {
        let same = found.iter().zip(&wanted).all(|(found, wanted)| is_name(found.text, wanted.text));
        (same && company_is_meant(segment, at, wanted.len(), name)).then_some(at)
    })?;
    let matched: Vec<&str> = segment.words[at..at + wanted.len()].iter().map(|word| word.text).collect();
    Some((confidence, matched.join(" ")))
}

/// Whether a word of a text is a word of a name: a capital stays a capital, the rest may differ.
fn is_name(found: &str, wanted: &str) -> bool {
    let capital = |word: &str| word.starts_with(char::is_uppercase);
    found.to_lowercase() == wanted.to_lowercase() && (capital(found) || !capital(wanted))
}

/// Chinese, Japanese and Korean join words and endings without a boundary.
fn is_written_without_spaces(name: &str) -> bool {
    name.chars()
        .any(|c| matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'))
}

/// Whether `count` words at `at`, which look like `term`, name the company and not a thing of every day.
fn company_is_meant(segment: &Segment<'_>, at: usize, count: usize, term: &str) -> bool {
    let term = term.to_lowercase();
    if !EVERYDAY.contains(&term.as_str()) {
        return true;
    }
    let next = segment.words.get(at + count).map(|word| word.text.to_lowercase()).unwrap_or_default();
    let otherwise = OTHERWISE.iter().any(|(word, after)| *word == term && after.contains(&next.as_str()));
    !otherwise && segment.about_a_company
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, String)> {
        let instrument = |symbol: &str, names: &[&str]| Instrument {
            symbol: symbol.to_owned(),
            names: names.iter().map(ToString::to_string).collect(),
        };
        let instruments = [
            instrument("AAPL", &["Apple", "Apple Inc"]),
            instrument("AMD", &["Advanced Micro Devices"]),
            instrument("AMZN", &["Amazon", "Amazon.com"]),
            instrument("SNAP", &["Snap", "Snap Inc"]),
            instrument("005930", &["삼성전자"]),
        ];
        let mentions = mentions(text, false, &instruments).into_iter();
        mentions.map(|mention| (mention.symbol, mention.matched)).collect()
    }

    fn symbols(text: &str) -> Vec<String> {
        found(text).into_iter().map(|(symbol, _)| symbol).collect()
    }

    #[test]
    fn ticker_is_known_by_its_form() {
        for text in
            ["Buy $AAPL now", "buy $aapl", "Apple (NASDAQ: AAPL)", "up (AAPL)", "Nasdaq:AAPL", "AAPL rises"]
        {
            assert_eq!(symbols(text), ["AAPL"], "{text}");
        }
    }

    #[test]
    fn ticker_inside_a_word_or_in_small_letters_is_none() {
        for text in ["AAPLE rises", "the amd64 build", "amd rises", "XAMD"] {
            assert_eq!(symbols(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn company_is_known_by_its_names() {
        assert_eq!(found("Apple's shares rise"), [("AAPL".into(), "Apple".into())]);
        assert_eq!(found("Shares of Apple Inc. fell"), [("AAPL".into(), "Apple Inc".into())]);
        assert_eq!(found("ADVANCED MICRO DEVICES rises"), [("AMD".into(), "ADVANCED MICRO DEVICES".into())]);
        assert_eq!(found("Amazon.com opens a store"), [("AMZN".into(), "Amazon.com".into())]);
        assert_eq!(found("삼성전자가 올랐다"), [("005930".into(), "삼성전자".into())]);
    }

    #[test]
    fn everyday_word_is_no_company() {
        for text in [
            "Apple pie recipe wins the company prize",
            "An apple a day keeps analysts away",
            "Apple season begins",
            "A snap decision by the chief executive",
            "Snap election called; investors worry",
            "Snap-on raises sales",
            "Fires in the Amazon rainforest, company says",
            "Pineapple shares a shelf",
            "SNAP JUDGMENT ON STOCKS",
        ] {
            assert_eq!(symbols(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn everyday_word_is_a_company_where_the_text_says_so() {
        assert_eq!(symbols("Snap shares tumble"), ["SNAP"]);
        assert_eq!(symbols("SNAP stock falls"), ["SNAP"]);
        assert_eq!(symbols("Apple and Amazon report record revenue"), ["AAPL", "AMZN"]);
    }

    #[test]
    fn surest_mention_counts() {
        let instruments = [Instrument { symbol: "AMD".into(), names: vec![] }];
        let mention = &mentions("AMD rises (NASDAQ: AMD)", false, &instruments)[0];
        assert_eq!(mention.confidence, FORMAL);
    }
}
