//! The feeds as RSS 2.0, as their publishers would serve them in a given minute.

use std::fmt::Write;

use super::{Headline, Scenario};

/// How many items a feed holds; older ones fall out at its end, as in real ones.
const ITEMS_MAX: usize = 40;

/// A feed.
#[derive(Debug)]
pub struct Feed {
    /// Its file.
    pub file: &'static str,
    /// Its title.
    title: &'static str,
}

/// The publishers. The second one also carries what the first has syndicated.
pub const FEEDS: [Feed; 2] = [
    Feed { file: "wire.xml", title: "The Rehearsal Wire" },
    Feed { file: "courier.xml", title: "The Rehearsal Courier" },
];

/// The feed in `minute`, newest item first.
pub fn render(feed: &Feed, headlines: &[Headline], minute: u32) -> String {
    let index = FEEDS.iter().position(|other| other.file == feed.file).unwrap_or(0);
    let carried = |headline: &&Headline| headline.feed == index || headline.syndicated;
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<rss version=\"2.0\">\n<channel>\n<title>{}</title>\n\
         <link>https://rehearsal.example/</link>\n<description>Made-up news</description>\n",
        feed.title
    );
    let out = headlines.iter().rev().filter(|headline| headline.minute <= minute);
    for headline in out.filter(carried).take(ITEMS_MAX) {
        item(&mut xml, headline, minute);
    }
    xml.push_str("</channel>\n</rss>\n");
    xml
}

fn item(xml: &mut String, headline: &Headline, minute: u32) {
    let _ = write!(
        xml,
        "<item>\n<title>{}</title>\n<guid isPermaLink=\"false\">{}</guid>\n\
         <link>https://rehearsal.example/{}</link>\n<pubDate>{}</pubDate>\n<description>{}</description>\n</item>\n",
        escape(headline.title_in(minute)),
        headline.guid,
        headline.guid.replace(':', "-"),
        Scenario::instant(headline.minute).to_rfc2822(),
        escape(&headline.body),
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feed_holds_nothing_from_the_future() {
        let scenario = Scenario::new(2);
        for minute in [0, 100, 389] {
            let shown: usize = FEEDS
                .iter()
                .map(|feed| render(feed, scenario.headlines(), minute).matches("<item>").count())
                .sum();
            let out = scenario.headlines().iter().filter(|headline| headline.minute <= minute).count();
            assert!(shown <= out + 1, "{shown} items in minute {minute}, {out} are out");
        }
    }

    #[test]
    fn markup_in_a_title_is_escaped() {
        assert_eq!(escape("Lorne & Pike <up>"), "Lorne &amp; Pike &lt;up&gt;");
    }
}
