//! News feeds: RSS 0.9 to 2.0, Atom and JSON Feed in, items out.
//!
//! An item is the same item in whichever feed it appears (`identity`), and one text of it is one
//! revision. An item that can not be used is named and left out; a document that is no feed is named
//! as a whole.

mod dialect;
pub mod document;
mod encoding;
mod identity;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use domain::identity::sha256_hex;
use feed_rs::model::{Entry, Link};
use url::Url;

use crate::input_fault::{Fault, Origin};

/// One text of one news item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Who it is, in any feed: 64 hexadecimal digits.
    pub item_id: String,
    /// Which text it is: the digest of title and text.
    pub revision: String,
    /// The headline, one line; never empty.
    pub title: String,
    /// The text without markup; may be empty.
    pub text: String,
    /// Where it can be read.
    pub link: Option<Url>,
    /// When it was published, if the feed says so in a way that can be read.
    pub published_at: Option<DateTime<Utc>>,
}

/// What a document holds.
#[derive(Debug, Default)]
pub struct Parsed {
    /// Its items, each once, in the feed's order.
    pub items: Vec<Item>,
    /// What was wrong with it.
    pub faults: Vec<Fault>,
}

/// Reads `bytes`, the document that `origin` names.
#[must_use]
pub fn parse(bytes: &[u8], origin: &Origin) -> Parsed {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return failed(origin, "the file is empty; an RSS, Atom or JSON Feed document is expected");
    }
    let text = encoding::decode(bytes);
    // An id that feed-rs makes up is no guid; without one, the identity falls back on other things.
    let parser = feed_rs::parser::Builder::new().id_generator(|_, _, _| String::new()).build();
    match parser.parse(dialect::modern(&text).as_bytes()) {
        Ok(feed) => items(feed.entries, origin),
        Err(error) => failed(origin, &format!("is not an RSS, Atom or JSON Feed document: {error}")),
    }
}

fn failed(origin: &Origin, message: &str) -> Parsed {
    Parsed { items: Vec::new(), faults: vec![origin.left_out(None, None, message)] }
}

fn items(entries: Vec<Entry>, origin: &Origin) -> Parsed {
    let mut parsed = Parsed::default();
    if entries.is_empty() {
        parsed.faults.push(origin.noted(None, None, "the feed has no items"));
    }
    let mut drafts = Vec::new();
    for (index, entry) in entries.into_iter().enumerate() {
        if let Some(draft) = Draft::of(entry) {
            drafts.push(draft);
        } else {
            let item = format!("item {}", index + 1);
            parsed.faults.push(origin.left_out(None, Some(&item), "has neither a title nor a text"));
        }
    }
    parsed.faults.extend(undated(&drafts, origin));

    let shared = shared_links(&drafts);
    let mut seen = BTreeSet::new();
    for draft in drafts {
        let item = draft.into_item(&shared);
        if seen.insert(item.item_id.clone()) {
            parsed.items.push(item);
        }
    }
    parsed
}

fn undated(drafts: &[Draft], origin: &Origin) -> Option<Fault> {
    let count = drafts.iter().filter(|draft| draft.published_at.is_none()).count();
    let message =
        format!("{count} item(s) have no date that can be read; they count as published when first seen");
    (count > 0).then(|| origin.noted(None, Some("date"), message))
}

/// Links that several different items of one feed carry, such as the publisher's front page: they name
/// none of them.
fn shared_links(drafts: &[Draft]) -> BTreeSet<String> {
    let mut titles: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for draft in drafts {
        if let Some(link) = &draft.link {
            titles.entry(identity::normalized(link)).or_default().insert(&draft.title);
        }
    }
    titles.into_iter().filter(|(_, titles)| titles.len() > 1).map(|(link, _)| link).collect()
}

/// An item before it is known which of its marks name it.
struct Draft {
    guid: Option<String>,
    link: Option<Url>,
    title: String,
    text: String,
    published_at: Option<DateTime<Utc>>,
}

impl Draft {
    /// `None` for an entry that says nothing.
    fn of(entry: Entry) -> Option<Self> {
        let body = entry.content.and_then(|content| content.body);
        let body = body.or_else(|| entry.summary.map(|summary| summary.content));
        let text = text::plain(body.as_deref().unwrap_or_default());
        let title = text::headline(entry.title.as_ref().map_or("", |title| &title.content), &text)?;
        Some(Self {
            guid: Some(entry.id.trim().to_owned()).filter(|id| !id.is_empty()),
            link: entry.links.iter().find(|link| leads_to_the_page(link)).and_then(address),
            title,
            text,
            published_at: entry.published.or(entry.updated),
        })
    }

    fn into_item(self, shared_links: &BTreeSet<String>) -> Item {
        let link = self.link.as_ref().map(identity::normalized).filter(|link| !shared_links.contains(link));
        Item {
            item_id: identity::item_id(link.as_deref(), self.guid.as_deref(), &self.title),
            revision: sha256_hex(format!("{}\n{}", self.title, self.text).as_bytes()),
            title: self.title,
            text: self.text,
            link: self.link,
            published_at: self.published_at,
        }
    }
}

/// Not a feed of comments, an enclosure or the feed itself.
fn leads_to_the_page(link: &Link) -> bool {
    let relation = link.rel.as_deref().is_none_or(|rel| rel == "alternate");
    relation && link.media_type.as_deref().is_none_or(|kind| kind.contains("html"))
}

fn address(link: &Link) -> Option<Url> {
    let href: String = link.href.split_whitespace().collect();
    Url::parse(&href).ok().filter(|url| ["http", "https"].contains(&url.scheme()))
}

#[cfg(test)]
mod tests;
