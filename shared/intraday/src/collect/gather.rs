//! Everything a dataset's sources hold at one moment, read and merged. Nothing here writes.

use std::collections::HashSet;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::bars::{self, Bars, Minute};
use crate::config::{Dataset, Source};
use crate::feeds::{self, Item};
use crate::input_fault::{Fault, Origin};
use crate::sources::{Document, Fetched, Fetcher, Kind};

/// What the sources hold.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// Every bar, inside sessions or not.
    pub bars: Bars,
    /// Whether a source of bars brought nothing, so that a bar which is missing proves nothing.
    pub bars_incomplete: bool,
    /// Each item once, by the time of publication; those without one first.
    pub news: Vec<Sighting>,
    /// What was wrong with any of it.
    pub faults: Vec<Fault>,
}

/// An item, and the feed that brought it.
#[derive(Debug)]
pub(super) struct Sighting {
    /// Source and file.
    pub feed: String,
    /// What the feed says.
    pub item: Item,
}

impl Gathered {
    /// The bars of the minute that starts at `start`.
    pub(super) fn minute(&self, start: DateTime<Utc>) -> Minute {
        self.bars.get(&start).cloned().unwrap_or_default()
    }
}

/// Fetches all sources of `dataset` side by side, for at most `most`; those of news only `with_news`.
pub(super) async fn gather(
    fetcher: &Fetcher,
    dataset: &Dataset,
    with_news: bool,
    most: Duration,
) -> Gathered {
    let news_sources: &[Source] = if with_news { &dataset.news } else { &[] };
    let (bars, news) = futures::join!(
        fetcher.fetch_all(&dataset.bars, Kind::Bars, most),
        fetcher.fetch_all(news_sources, Kind::News, most),
    );
    let mut gathered =
        Gathered { bars_incomplete: bars.iter().any(|fetched| fetched.failed), ..Gathered::default() };
    for (origin, document) in documents(&mut gathered.faults, &dataset.bars, bars) {
        gathered.read_bars(&origin, &document, dataset);
    }
    let mut seen = HashSet::new();
    for (origin, document) in documents(&mut gathered.faults, news_sources, news) {
        gathered.read_news(&origin, &document, &mut seen);
    }
    gathered.news.sort_by_key(|sighting| sighting.item.published_at);
    gathered
}

/// Every document with its origin; what was wrong with a source goes to `faults`.
fn documents(faults: &mut Vec<Fault>, sources: &[Source], fetched: Vec<Fetched>) -> Vec<(Origin, Document)> {
    let mut documents = Vec::new();
    for (source, fetched) in sources.iter().zip(fetched) {
        faults.extend(fetched.faults);
        let origin =
            |document: &Document| Origin { source: source.name.clone(), file: document.name.clone() };
        documents.extend(fetched.documents.into_iter().map(|document| (origin(&document), document)));
    }
    documents
}

impl Gathered {
    fn read_bars(&mut self, origin: &Origin, document: &Document, dataset: &Dataset) {
        let parsed = bars::csv::parse(&document.bytes, origin, dataset);
        self.faults.extend(parsed.faults);
        let in_session = parsed.bars.keys().any(|start| dataset.session_date(*start).is_some());
        if !parsed.bars.is_empty() && !in_session {
            let message =
                format!("none of its minutes lies in a session of {} ({})", dataset.name, dataset.zone);
            self.faults.push(origin.noted(None, None, message));
        }
        for (start, minute) in parsed.bars {
            for bar in minute.into_values() {
                self.faults.extend(bars::insert(&mut self.bars, start, bar, origin, None));
            }
        }
    }

    /// Of several texts of one item at the same time, the first feed's stands: one item, one job.
    fn read_news(&mut self, origin: &Origin, document: &Document, seen: &mut HashSet<String>) {
        let parsed = feeds::parse(&document.bytes, origin);
        self.faults.extend(parsed.faults);
        let feed = format!("{}/{}", origin.source, origin.file);
        let new = parsed.items.into_iter().filter(|item| seen.insert(item.item_id.clone()));
        self.news.extend(new.map(|item| Sighting { feed: feed.clone(), item }));
    }
}
