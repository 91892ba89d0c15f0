//! The artifact of one news revision: what a news job reads.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::Item;

/// The version of this form; a reader refuses what it does not know.
pub const VERSION: u32 = 1;

/// One text of one item as it lies in S3.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemDocument {
    /// [`VERSION`].
    pub version: u32,
    /// Who the item is, in any feed.
    pub item_id: String,
    /// Which text of it this is.
    pub revision: String,
    /// The dataset whose source brought it first.
    pub dataset: String,
    /// The source and file that brought it first.
    pub feed: String,
    /// The headline.
    pub title: String,
    /// The text without markup; may be empty.
    pub text: String,
    /// Where it can be read.
    pub link: Option<String>,
    /// As the feed says; the moment it was first seen where the feed says nothing.
    pub published_at: DateTime<Utc>,
}

impl ItemDocument {
    /// The document of `item`, seen in `feed` at `seen_at`.
    #[must_use]
    pub fn new(item: &Item, dataset: &str, feed: &str, seen_at: DateTime<Utc>) -> Self {
        Self {
            version: VERSION,
            item_id: item.item_id.clone(),
            revision: item.revision.clone(),
            dataset: dataset.to_owned(),
            feed: feed.to_owned(),
            title: item.title.clone(),
            text: item.text.clone(),
            link: item.link.as_ref().map(ToString::to_string),
            published_at: item.published_at.unwrap_or(seen_at),
        }
    }
}
