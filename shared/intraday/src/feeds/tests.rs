//! Items of every feed format, and each kind of item or document that can not be used.

use super::*;

fn parse_text(text: &str) -> Parsed {
    parse(text.as_bytes(), &Origin { source: "news".to_owned(), file: "feed.xml".to_owned() })
}

fn rss(items: &str) -> Parsed {
    parse_text(&format!(
        "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>t</title><link>https://e.org/</link>\
         <description>d</description>{items}</channel></rss>"
    ))
}

fn messages(parsed: &Parsed) -> Vec<String> {
    parsed.faults.iter().map(ToString::to_string).collect()
}

const DATED: &str = "<title>Apple beats estimates</title><link>https://e.org/apple?utm_source=rss</link>\
                     <guid>1</guid><pubDate>Wed, 04 Apr 2018 10:01:30 -0400</pubDate>\
                     <description>&lt;p&gt;Shares rose.&lt;/p&gt;</description>";

#[test]
fn item_of_an_rss_feed_is_read_whole() {
    let parsed = rss(&format!("<item>{DATED}</item>"));

    assert_eq!(messages(&parsed), Vec::<String>::new());
    let item = &parsed.items[0];
    assert_eq!(item.title, "Apple beats estimates");
    assert_eq!(item.text, "Shares rose.");
    assert_eq!(item.published_at, Some("2018-04-04T14:01:30Z".parse().unwrap()));
    assert_eq!(item.link.as_ref().unwrap().as_str(), "https://e.org/apple?utm_source=rss");
}

#[test]
fn same_item_in_two_feeds_of_two_formats_is_one_item_and_one_revision() {
    let in_rss = rss(&format!("<item>{DATED}</item>"));
    let in_atom = parse_text(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>f</title><id>f</id>\
         <entry><id>tag:e.org,2018:1</id><title>Apple beats estimates</title>\
         <link rel=\"self\" href=\"https://e.org/1.atom\"/><link href=\"https://e.org/apple#top\"/>\
         <published>2018-04-04T14:01:30Z</published><content type=\"html\">Shares rose.</content></entry></feed>",
    );
    let in_json = parse_text(
        r#"{"version":"https://jsonfeed.org/version/1.1","title":"f","items":[{"id":"9",
        "url":"http://e.org/apple","title":"Apple beats estimates","content_text":"Shares rose.",
        "date_published":"2018-04-04T10:01:30-04:00"}]}"#,
    );

    let name = |parsed: &Parsed| (parsed.items[0].item_id.clone(), parsed.items[0].revision.clone());
    assert_eq!(name(&in_rss), name(&in_atom));
    assert_eq!(name(&in_rss), name(&in_json));
}

#[test]
fn edited_headline_is_another_revision_of_the_same_item() {
    let before = rss(&format!("<item>{DATED}</item>"));
    let after = rss(&format!("<item>{}</item>", DATED.replace("beats", "misses")));

    assert_eq!(before.items[0].item_id, after.items[0].item_id);
    assert_ne!(before.items[0].revision, after.items[0].revision);
}

#[test]
fn document_that_is_no_feed_is_named() {
    for text in
        ["<html><body>404</body></html>", "{\"status\":\"ok\",\"articles\":[]}", "symbol,close\nAAPL,1"]
    {
        let parsed = parse_text(text);
        let message = &messages(&parsed)[0];
        assert!(message.starts_with("news/feed.xml: is not an RSS, Atom or JSON Feed document"), "{message}");
    }
}

#[test]
fn empty_and_truncated_documents_are_named() {
    assert_eq!(
        messages(&parse_text(" \n")),
        ["news/feed.xml: the file is empty; an RSS, Atom or JSON Feed document is expected"]
    );
    let truncated = parse_text(&format!("<rss version=\"2.0\"><channel><item>{DATED}</item><item><titl"));
    assert!(!truncated.faults.is_empty());
}

#[test]
fn item_without_guid_or_date_is_used_and_noted() {
    let parsed = rss("<item><title>Intel cuts guidance</title><pubDate>mer, 4 avr</pubDate></item>");

    assert_eq!(parsed.items[0].published_at, None);
    assert_eq!(
        messages(&parsed),
        [
            "news/feed.xml, date: 1 item(s) have no date that can be read; they count as published when first seen"
        ]
    );
}

#[test]
fn item_that_says_nothing_is_named_and_costs_no_neighbour() {
    let parsed = rss(&format!("<item><link>https://e.org/x</link></item><item>{DATED}</item>"));

    assert_eq!(parsed.items.len(), 1);
    assert_eq!(messages(&parsed), ["news/feed.xml, item 1: has neither a title nor a text"]);
}

#[test]
fn items_that_share_a_link_are_told_apart_by_their_guids() {
    let item = |guid: &str, title: &str| {
        format!(
            "<item><title>{title}</title><link>https://e.org/</link><guid>{guid}</guid><pubDate>Wed, 04 Apr 2018 10:01:30 -0400</pubDate></item>"
        )
    };
    let parsed = rss(&format!("{}{}", item("1", "One"), item("2", "Two")));

    assert_eq!(parsed.items.len(), 2);
    assert_ne!(parsed.items[0].item_id, parsed.items[1].item_id);
}

#[test]
fn item_that_is_in_the_feed_twice_is_one() {
    let parsed = rss(&format!("<item>{DATED}</item><item>{DATED}</item>"));
    assert_eq!(parsed.items.len(), 1);
}

#[test]
fn rss_of_1999_is_still_read() {
    let parsed = parse_text(
        "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" \
         xmlns=\"http://my.netscape.com/rdf/simple/0.9/\"><channel><title>t</title><link>https://e.org/</link>\
         </channel><item><title>AMD ships</title><link>https://e.org/1</link></item></rdf:RDF>",
    );
    assert_eq!(parsed.items[0].title, "AMD ships");
}
