//! Collecting news: each text of each item once, whichever feed brings it.
//!
//! The row in `news_revision` decides. Whoever inserts it makes the job; whoever comes too late rolls
//! back and leaves an artifact without a row, for the sweeper.

use chrono::{DateTime, Utc};
use fault::FaultPoint;
use futures::{StreamExt, TryStreamExt, stream};
use runtime::artifacts::Written;
use sqlx::PgConnection;
use store::artifact::{self, NewArtifact};
use store::enqueue::enqueue;

use super::artifacts::ArtifactWriter;
use super::gather::Sighting;
use super::{Error, Run, TRIES_MAX, jobs};
use crate::feeds::document::ItemDocument;
use crate::job_types::NEWS;
use crate::news_revision::{self, Key};

const OWNER: &str = "news";
/// Items of one transaction: few enough that a lost race is soon repeated.
const BATCH_MAX: usize = 50;
/// Artifacts written at once.
const WIDTH: usize = 8;

/// What came of a try to commit a batch.
enum Committed {
    /// All of it is there.
    Done,
    /// Somebody else inserted one of its revisions; nothing of it was written.
    Raced,
}

type Draft = (ItemDocument, Written);

impl<A: ArtifactWriter> Run<'_, A> {
    /// Collects those of `sightings` whose text was never seen. `seen_at` stands in for a date that a
    /// feed does not give.
    pub(super) async fn collect_news(
        &mut self,
        sightings: &[Sighting],
        seen_at: DateTime<Utc>,
    ) -> Result<(), Error> {
        for batch in sightings.chunks(BATCH_MAX) {
            let mut documents: Vec<ItemDocument> = batch
                .iter()
                .map(|sighting| {
                    ItemDocument::new(&sighting.item, &self.dataset.name, &sighting.feed, seen_at)
                })
                .collect();
            // Always in the order of the keys: two collectors of the same feed must not deadlock.
            documents.sort_by_cached_key(key);
            self.collect_batch(documents).await?;
        }
        Ok(())
    }

    async fn collect_batch(&mut self, documents: Vec<ItemDocument>) -> Result<(), Error> {
        let asked = documents.len();
        let mut unseen = documents;
        for _ in 0..TRIES_MAX {
            unseen = self.unseen(unseen).await?;
            let drafts = self.write_documents(&unseen).await?;
            match self.commit_news(&drafts).await {
                Ok(Committed::Done) => {
                    self.count_news(asked, drafts.len());
                    return Ok(());
                }
                Ok(Committed::Raced) | Err(Error::Store(store::Error::ArtifactReclaimed)) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Contended)
    }

    /// Those of `documents` without a row: a text that was collected before leaves no object.
    async fn unseen(&self, documents: Vec<ItemDocument>) -> Result<Vec<ItemDocument>, Error> {
        let keys: Vec<Key> = documents.iter().map(key).collect();
        let known = news_revision::known(&self.collector.db, &keys).await?;
        Ok(documents.into_iter().filter(|document| !known.contains(&key(document))).collect())
    }

    async fn write_documents(&self, documents: &[ItemDocument]) -> Result<Vec<Draft>, Error> {
        let writes: Vec<_> = documents.iter().map(|document| self.write_document(document)).collect();
        stream::iter(writes).buffered(WIDTH).try_collect().await
    }

    async fn write_document(&self, document: &ItemDocument) -> Result<Draft, Error> {
        let body = serde_json::to_vec(document).expect("texts and times serialize");
        // Enough of both digests to find a document by; the row has them whole.
        let name = format!("{}-{}", &document.item_id[..16], &document.revision[..16]);
        let written = self.collector.artifacts.put(OWNER, &name, self.clock, body).await;
        Ok((document.clone(), written.map_err(Error::Artifact)?))
    }

    async fn commit_news(&self, drafts: &[Draft]) -> Result<Committed, Error> {
        if drafts.is_empty() {
            return Ok(Committed::Done);
        }
        let mut tx = self.collector.db.begin().await?;
        match self.write_news(&mut tx, drafts).await {
            Ok(Committed::Done) => {
                tx.commit().fault_point("collect::commit_news").await?;
                Ok(Committed::Done)
            }
            other => {
                // The first error says more than a failed rollback; the pool discards the connection.
                let _ = tx.rollback().await;
                other
            }
        }
    }

    async fn write_news(&self, tx: &mut PgConnection, drafts: &[Draft]) -> Result<Committed, Error> {
        let artifacts: Vec<NewArtifact> = drafts.iter().map(|(_, written)| new_artifact(written)).collect();
        artifact::refer(&mut *tx, &artifacts).await?;
        let rows: Vec<(&ItemDocument, &str)> =
            drafts.iter().map(|(document, written)| (document, written.key.as_str())).collect();
        if news_revision::insert(tx, &rows).await? < rows.len() {
            return Ok(Committed::Raced);
        }
        let job_type = self.collector.config.limits(NEWS);
        let job = |(document, key): &(&ItemDocument, &str)| jobs::news(document, key, &job_type, self.trace);
        enqueue(tx, &rows.iter().map(job).collect::<Vec<_>>()).await?;
        Ok(Committed::Done)
    }

    fn count_news(&mut self, asked: usize, new: usize) {
        self.report.items.new += new;
        self.report.items.known += asked - new;
        self.report.jobs += new;
        self.report.events += new;
    }
}

fn key(document: &ItemDocument) -> Key {
    Key { item_id: document.item_id.clone(), revision: document.revision.clone() }
}

fn new_artifact(written: &Written) -> NewArtifact<'_> {
    NewArtifact { key: &written.key, sha256: &written.sha256, size_bytes: written.size_bytes, owner: OWNER }
}
