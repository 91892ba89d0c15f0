//! The kind of an event, by the words that give it away.

use super::EventKind;
use super::words::Word;

/// Words and phrases of each kind, in lower case. `*` stands for any ending.
const SIGNS: [(EventKind, &[&str]); 6] = [
    (
        EventKind::Earnings,
        &[
            "earnings",
            "eps",
            "quarterly result*",
            "quarterly profit*",
            "quarterly revenue*",
            "profit*",
            "revenue*",
            "quarterly loss*",
            "first-quarter",
            "net income",
            "beats estimate*",
            "misses estimate*",
        ],
    ),
    (
        EventKind::Guidance,
        &[
            "guidance",
            "outlook",
            "forecast*",
            "profit warning*",
            "full-year target*",
            "raises target*",
            "cuts target*",
            "expects sales",
            "expects revenue*",
        ],
    ),
    (
        EventKind::Merger,
        &[
            "merger*",
            "merge",
            "merges",
            "merging",
            "acqui*",
            "takeover*",
            "buyout*",
            "tender offer*",
            "to buy out",
            "takes over",
            "take over",
        ],
    ),
    (
        EventKind::Rating,
        &[
            "upgrad*",
            "downgrad*",
            "price target*",
            "outperform*",
            "underperform*",
            "overweight",
            "underweight",
            "initiates coverage",
            "buy rating*",
            "sell rating*",
            "hold rating*",
        ],
    ),
    (
        EventKind::Legal,
        &[
            "lawsuit*",
            "sue",
            "sues",
            "sued",
            "suing",
            "court",
            "courts",
            "antitrust",
            "probe",
            "probes",
            "investigat*",
            "subpoena*",
            "regulator*",
            "indict*",
            "fined",
            "patent*",
            "class action",
            "plea*",
            "settlement*",
        ],
    ),
    (
        EventKind::Product,
        &[
            "launch*",
            "unveil*",
            "recall*",
            "rollout",
            "rolls out",
            "product*",
            "debuts",
            "introduces",
            "new model*",
        ],
    ),
];

/// A kind, and the words that gave it away.
pub(super) type Sign = (EventKind, String);

/// Every kind that `words` give away, each with its first sign; empty when there is none.
pub(super) fn signs(words: &[Word<'_>]) -> Vec<Sign> {
    let lower: Vec<String> = words.iter().map(|word| word.text.to_lowercase()).collect();
    SIGNS.iter().filter_map(|(kind, phrases)| Some((*kind, first_of(phrases, &lower)?))).collect()
}

fn first_of(phrases: &[&str], words: &[String]) -> Option<String> {
    phrases.iter().find_map(|phrase| {
        let pattern: Vec<&str> = phrase.split([' ', '-']).collect();
        let found = words.windows(pattern.len()).find(|window| fits(&pattern, window))?;
        Some(found.join(" "))
    })
}

fn fits(pattern: &[&str], words: &[String]) -> bool {
    pattern.iter().zip(words).all(|(pattern, word)| match pattern.strip_suffix('*') {
        Some(stem) => word.starts_with(stem),
        None => word == pattern,
    })
}

#[cfg(test)]
mod tests {
    use super::super::words::words;
    use super::*;

    fn kinds(text: &str) -> Vec<EventKind> {
        signs(&words(text)).into_iter().map(|(kind, _)| kind).collect()
    }

    #[test]
    fn each_kind_is_known_by_its_words() {
        for (text, kind) in [
            ("Apple quarterly earnings beat expectations", EventKind::Earnings),
            ("Intel raises its full-year guidance", EventKind::Guidance),
            ("Merger of AMD and Ostermark is called off", EventKind::Merger),
            ("Analysts downgrade Tesla to sell", EventKind::Rating),
            ("Regulator files a lawsuit against Amazon", EventKind::Legal),
            ("Nvidia launches a new chip", EventKind::Product),
        ] {
            assert!(kinds(text).contains(&kind), "{text}");
        }
    }

    #[test]
    fn text_can_be_of_several_kinds() {
        let text = "Intel earnings beat; company cuts outlook";
        assert_eq!(kinds(text), [EventKind::Earnings, EventKind::Guidance]);
    }

    #[test]
    fn word_that_only_holds_a_sign_is_none() {
        assert_eq!(kinds("The issue pursues a courtesy visit"), []);
        assert_eq!(kinds("Shares fall in a broad market sell-off"), []);
    }

    #[test]
    fn sign_is_the_words_of_the_text() {
        assert_eq!(signs(&words("Price Targets rise")), [(EventKind::Rating, "price targets".to_owned())]);
    }
}
