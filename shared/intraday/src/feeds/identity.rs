//! Who a news item is, in whichever feed it appears.
//!
//! Its link, without what only tells where the reader came from; where it has none, its guid; where it
//! has none either, its title. Nothing of the feed goes into it, so the same item in two feeds is one.

use domain::identity::sha256_hex;
use url::Url;

/// Parameters that name a campaign or a click, not a page; compared without case.
const TRACKING: &[&str] = &[
    "fbclid",
    "gclid",
    "dclid",
    "gclsrc",
    "msclkid",
    "yclid",
    "igshid",
    "mc_cid",
    "mc_eid",
    "cmp",
    "cmpid",
    "ocid",
    "ncid",
    "guccounter",
];
/// What such parameters begin with: Urchin and its successors, the BBC's two generations, Piwik.
const TRACKING_PREFIXES: &[&str] = &["utm_", "at_", "ns_", "pk_"];

/// Parameters that may say where the reader came from: only if their value speaks of a feed.
const ORIGINS: &[&str] = &["source", "src", "ref", "from", "partner", "wt_mc"];

/// The digest that names an item.
pub(super) fn item_id(link: Option<&str>, guid: Option<&str>, title: &str) -> String {
    let name = match (link, guid) {
        (Some(link), _) => format!("link:{link}"),
        (None, Some(guid)) => format!("guid:{guid}"),
        (None, None) => format!("title:{title}"),
    };
    sha256_hex(name.as_bytes())
}

/// `link` without fragment, tracking parameters and the difference between http and https.
pub(super) fn normalized(link: &Url) -> String {
    let mut url = link.clone();
    url.set_fragment(None);
    let kept: Vec<(String, String)> =
        link.query_pairs().into_owned().filter(|(name, value)| !is_tracking(name, value)).collect();
    if kept.is_empty() {
        url.set_query(None);
    } else if kept.len() < link.query_pairs().count() {
        url.query_pairs_mut().clear().extend_pairs(kept);
    }
    let text = url.to_string();
    text.strip_prefix("http://").map_or(text.clone(), |rest| format!("https://{rest}"))
}

fn is_tracking(name: &str, value: &str) -> bool {
    let (name, value) = (name.to_lowercase(), value.to_lowercase());
    let from_a_feed =
        ORIGINS.contains(&name.as_str()) && ["rss", "feed"].iter().any(|word| value.contains(word));
    from_a_feed
        || TRACKING.contains(&name.as_str())
        || TRACKING_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(link: &str) -> String {
        normalized(&Url::parse(link).unwrap())
    }

    #[test]
    fn where_the_reader_came_from_is_not_the_page() {
        for link in [
            "https://Example.org/a?id=1",
            "http://example.org:80/a?id=1#comments",
            "https://example.org/a?utm_source=rss&id=1&UTM_medium=feed",
            "https://example.org/a?id=1&CMP=share",
            "https://example.org/a?id=1&source=feed_symbol_AAPL",
        ] {
            assert_eq!(normal(link), "https://example.org/a?id=1", "{link}");
        }
        assert_eq!(normal("https://example.org/a?at_medium=RSS"), "https://example.org/a");
    }

    #[test]
    fn what_names_the_page_stays_as_written() {
        assert_eq!(normal("https://example.org/A/?q=a%20b&id=1"), "https://example.org/A/?q=a%20b&id=1");
        assert_ne!(normal("https://example.org/a?id=1"), normal("https://example.org/a?id=2"));
    }

    #[test]
    fn link_goes_before_guid_and_guid_before_title() {
        let link = Some("https://example.org/a");
        assert_eq!(item_id(link, Some("1"), "t"), item_id(link, Some("2"), "u"));
        assert_eq!(item_id(None, Some("1"), "t"), item_id(None, Some("1"), "u"));
        assert_ne!(item_id(None, None, "t"), item_id(None, None, "u"));
    }
}
