//! What the texts say, word for word.

use chrono_tz::America::New_York;

use super::super::Subject;
use super::super::evidence::{OtherMove, Price};
use super::*;
use crate::triggers::fixture::at;

fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

fn price(minute: i64, close: &str) -> Price {
    Price { at: at(minute), close: decimal(close) }
}

fn evidence(rule: Rule, news: Vec<News>, observed: usize, moving: &[(&str, &str)]) -> Evidence {
    let other =
        |(symbol, change): &(&str, &str)| OtherMove { symbol: (*symbol).to_owned(), change: decimal(change) };
    Evidence {
        subject: Subject {
            dataset: "us8".to_owned(),
            symbol: "AAPL".to_owned(),
            rule,
            direction: Direction::Down,
            window_start: at(35),
            revision: 1,
        },
        prices: Prices {
            reference: price(5, "167.0"),
            crossing: price(35, "164.9"),
            change: decimal("-0.01257485"),
            before: vec![price(34, "165.6")],
            after: vec![price(36, "164.8"), price(45, "163.21")],
        },
        news,
        market: Market { threshold: decimal("0.005"), observed, moving: moving.iter().map(other).collect() },
    }
}

fn item(kind: &str, confidence: &str, link: Option<&str>) -> News {
    News {
        item_id: "i".repeat(64),
        revision: "r".repeat(64),
        feed: "wire".to_owned(),
        title: "Apple cuts its full-year guidance".to_owned(),
        link: link.map(ToOwned::to_owned),
        published_at: at(30),
        event_kind: kind.to_owned(),
        confidence: decimal(confidence),
        matched: "Apple, guidance".to_owned(),
    }
}

#[test]
fn news_is_cited_by_number_title_time_and_link() {
    let news = vec![item("GUIDANCE", "0.8", Some("https://wire.example/1"))];
    let evidence = evidence(Rule::ThirtyMinutes, news, 7, &[("AMD", "-0.0061")]);

    assert_eq!(verdict(&evidence), Verdict::News);
    assert_eq!(
        text(&evidence, New_York),
        "AAPL fell 1.26 % within 30 minutes: from 167.0 at 09:35 EDT to 164.9 at 10:05 EDT on 2018-04-04 [1].\n\
         News about AAPL in the 6 hours before may explain it:\n\
         [2] guidance: \"Apple cuts its full-year guidance\" (wire, 2018-04-04 10:00 EDT, https://wire.example/1)\n\
         At the same time 1 of 7 other symbols fell by at least 0.5 %: AMD -0.61 % [3].\n\
         Afterwards it closed at 163.21 at 10:15 EDT [1]."
    );
}

#[test]
fn move_of_the_market_is_said_where_there_is_no_news() {
    let evidence = evidence(Rule::SessionOpen, vec![], 4, &[("AMD", "-0.02"), ("TSLA", "-0.01")]);

    assert_eq!(verdict(&evidence), Verdict::MarketMove);
    assert_eq!(
        text(&evidence, New_York),
        "AAPL fell 1.26 % since the session's first bar: from 167.0 at 09:35 EDT to 164.9 at 10:05 EDT on 2018-04-04 [1].\n\
         It moved with the market; no news was found about AAPL in the 6 hours before.\n\
         At the same time 2 of 4 other symbols fell by at least 0.5 %: AMD -2 %, TSLA -1 % [2].\n\
         Afterwards it closed at 163.21 at 10:15 EDT [1]."
    );
}

#[test]
fn no_cause_is_said_plainly() {
    let evidence = evidence(Rule::ThirtyMinutes, vec![], 7, &[]);

    assert_eq!(verdict(&evidence), Verdict::NoCauseFound);
    let text = text(&evidence, New_York);
    assert!(
        text.contains("No cause was found: no news was found about AAPL in the 6 hours before."),
        "{text}"
    );
    assert!(text.contains("0 of 7 other symbols fell by at least 0.5 % [2]."), "{text}");
}

#[test]
fn mention_without_an_event_is_cited_and_explains_nothing() {
    let evidence = evidence(Rule::ThirtyMinutes, vec![item("OTHER", "0.4", None)], 7, &[]);

    assert_eq!(verdict(&evidence), Verdict::NoCauseFound);
    let text = text(&evidence, New_York);
    assert!(text.contains("only these uncertain mentions were found of AAPL"), "{text}");
    assert!(text.contains("[2] other, uncertain: \"Apple cuts"), "{text}");
}

#[test]
fn two_symbols_are_no_market() {
    let evidence = evidence(Rule::ThirtyMinutes, vec![], 2, &[("AMD", "-0.02"), ("TSLA", "-0.01")]);
    assert_eq!(verdict(&evidence), Verdict::NoCauseFound);
}

#[test]
fn stored_evidence_has_numbers_to_cite_and_prices_as_texts() {
    let evidence = evidence(Rule::ThirtyMinutes, vec![item("GUIDANCE", "0.8", None)], 7, &[]);
    let stored = serde_json::to_value(evidence.cited()).unwrap();

    assert_eq!(stored[0]["number"], 1);
    assert_eq!(stored[0]["kind"], "PRICES");
    assert_eq!(stored[0]["reference"]["close"], "167.0");
    assert_eq!(stored[1]["kind"], "NEWS");
    assert_eq!(stored[1]["confidence"], "0.8");
    assert_eq!(stored[2]["number"], 3);
    assert_eq!(stored[2]["kind"], "MARKET");
}
