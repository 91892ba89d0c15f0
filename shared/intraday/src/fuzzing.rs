//! What holds for any bytes a source or a caller sends: no panic, and nothing is left out in silence.
//!
//! Each function here is one property. The tests below hold them to a bounded number of damaged
//! documents; `make fuzz` looks for bytes that break them, led by coverage.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a property that does not hold panics")]

use std::sync::LazyLock;

use crate::collect::request::Request;
use crate::config::{Config, location};
use crate::input_fault::Origin;
use crate::{bars, feeds};

static CONFIG: LazyLock<Config> = LazyLock::new(|| Config::load(location::BUNDLED).unwrap());

fn origin(file: &str) -> Origin {
    Origin { source: "fuzz".to_owned(), file: file.to_owned() }
}

/// A request is understood or refused; a range that is understood does not end before it begins.
pub fn collector(bytes: &[u8]) {
    let Ok(event) = serde_json::from_slice(bytes) else { return };
    if let Ok(Request::Range { from, to, .. }) = Request::parse(event) {
        assert!(from <= to);
    }
}

/// A document has items that can be stored, or says what is wrong with it.
pub fn feed(bytes: &[u8]) {
    let parsed = feeds::parse(bytes, &origin("feed.xml"));
    assert!(
        !parsed.items.is_empty() || !parsed.faults.is_empty(),
        "a feed without items and without a fault"
    );
    for item in parsed.items {
        assert!(!item.title.is_empty());
        assert_eq!((item.item_id.len(), item.revision.len()), (64, 64));
    }
}

/// A file has bars that make sense, or says what is wrong with it.
pub fn bars(bytes: &[u8]) {
    let parsed = bars::csv::parse(bytes, &origin("bars.csv"), CONFIG.dataset("us8").unwrap());
    assert!(!parsed.bars.is_empty() || !parsed.faults.is_empty(), "a file without bars and without a fault");
    for bar in parsed.bars.values().flat_map(|bars| bars.values()) {
        assert!(bar.low <= bar.open.min(bar.close) && bar.high >= bar.open.max(bar.close));
    }
}

#[cfg(test)]
mod tests {
    use testkit::damage::withstand;

    const RSS: &str = "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>t</title><link>https://e.org/</link>\
        <description>d</description><item><title>Apple beats estimates</title><link>https://e.org/apple</link>\
        <guid>1</guid><pubDate>Wed, 04 Apr 2018 10:01:30 -0400</pubDate>\
        <description>&lt;p&gt;Shares rose.&lt;/p&gt;</description></item></channel></rss>";

    const ATOM: &str = "<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>f</title><id>f</id>\
        <updated>2018-04-04T14:00:00Z</updated><entry><id>1</id><title type=\"html\">A &amp;amp; B</title>\
        <link href=\"https://e.org/a\"/><updated>2018-04-04T14:00:00Z</updated>\
        <content type=\"xhtml\"><div xmlns=\"http://www.w3.org/1999/xhtml\"><p>rose</p></div></content></entry></feed>";

    const JSON: &str = r#"{"version":"https://jsonfeed.org/version/1","title":"t","items":[{"id":"1","title":"A","url":"https://e.org/a","content_html":"<p>rose</p>","date_published":"2018-04-04T14:00:00Z"}]}"#;

    const CSV: &str = "timestamp,symbol,open,high,low,close,volume\n\
        2018-04-04 09:30:00,AAPL,10.0,11,9.50,10.5,100.0\n2018-04-04 09:31:00,\"AAPL\",10,11,9,10,100\n";

    const UNSIGNED: &str = "time;open;high;low;close;volume\n2018-04-04T13:30:00Z;10.0;11;9.50;10.5;100.0\n";

    const RANGE: &str =
        r#"{"dataset":"us8","from":"2018-04-04T13:30:00Z","to":"2018-04-04T20:00:00Z","backfill":true}"#;

    const AT: &str = r#"{"dataset":"us8","at":"2018-04-04T09:31:00-04:00"}"#;

    #[test]
    fn request_of_any_bytes_is_understood_or_refused() {
        withstand(&[RANGE, AT, "{}"], super::collector);
    }

    #[test]
    fn feed_of_any_bytes_has_items_or_says_what_is_wrong() {
        withstand(&[RSS, ATOM, JSON], super::feed);
    }

    #[test]
    fn file_of_any_bytes_has_bars_that_make_sense_or_says_what_is_wrong() {
        withstand(&[CSV, UNSIGNED], super::bars);
    }
}
