//! News jobs: one revision of one item, read, cut into segments, and searched for findings.
//!
//! The slow part, reading the document and extracting, happens before the transaction. Written are the
//! revision's segments and findings, and, when it is the newest revision read so far, the item's head
//! and the mention buckets: each item counts once for each symbol and hour, by its head, whatever is
//! delivered how often and in whichever order its revisions are read.

use std::future::Future;
use std::sync::Arc;

use domain::{DeadReason, JobType};
use runtime::artifacts::{Artifacts, GetError};
use runtime::consumer::{Failure, Handler, Job};
use serde::Deserialize;
use sqlx::PgConnection;
use tracing::info;

mod mentions;
mod rows;

use crate::config::Config;
use crate::extraction::{Extractor, Finding, Reading, segments};
use crate::feeds::document::{self, ItemDocument};
use crate::job_types::NEWS;

/// Where item documents are read.
pub trait Documents: Send + Sync {
    /// The bytes under `key`.
    ///
    /// # Errors
    ///
    /// [`GetError`]: gone for good, or to be asked for again later.
    fn get(&self, key: &str) -> impl Future<Output = Result<Vec<u8>, GetError>> + Send;
}

impl Documents for Artifacts {
    async fn get(&self, key: &str) -> Result<Vec<u8>, GetError> {
        Self::get(self, key).await
    }
}

/// Why a news job can never be done.
#[derive(Debug, thiserror::Error)]
enum Impossible {
    #[error("the job refers to no document")]
    NoDocument,
    #[error("the document is missing")]
    Missing(#[source] GetError),
    #[error("the document can not be understood")]
    Unreadable(#[source] serde_json::Error),
    #[error("the document has version {0}; {known} is known", known = document::VERSION)]
    UnknownVersion(u32),
    #[error("the document is of another revision")]
    OtherRevision,
    #[error("the revision was never collected")]
    UnknownRevision,
}

impl From<Impossible> for Failure {
    fn from(error: Impossible) -> Self {
        let reason = match error {
            Impossible::Missing(_) => DeadReason::ArtifactMissing,
            Impossible::NoDocument => DeadReason::Handler("BAD_PAYLOAD"),
            Impossible::Unreadable(_) | Impossible::UnknownVersion(_) => DeadReason::Handler("BAD_DOCUMENT"),
            Impossible::OtherRevision | Impossible::UnknownRevision => {
                DeadReason::Handler("UNKNOWN_REVISION")
            }
        };
        Self::Permanent { reason, source: Box::new(error) }
    }
}

/// One revision of one item: the payload of its job.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RevisionRef {
    /// The item.
    pub item_id: String,
    /// The text of it.
    pub revision: String,
}

/// A revision that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    segments: Vec<String>,
    findings: Vec<Finding>,
}

/// Reads news.
#[derive(Clone, Debug)]
pub struct NewsHandler<D, E> {
    config: Arc<Config>,
    documents: D,
    extractor: E,
}

impl<D: Documents, E: Extractor> NewsHandler<D, E> {
    /// Reads documents from `documents` with `extractor`.
    #[must_use]
    pub fn new(config: Arc<Config>, documents: D, extractor: E) -> Self {
        Self { config, documents, extractor }
    }

    async fn document(&self, key: &str) -> Result<ItemDocument, Failure> {
        let bytes = match self.documents.get(key).await {
            Ok(bytes) => bytes,
            Err(error @ GetError::Missing) => return Err(Impossible::Missing(error).into()),
            Err(error @ GetError::Unavailable(_)) => return Err(Failure::Transient(Box::new(error))),
        };
        let document: ItemDocument = serde_json::from_slice(&bytes).map_err(Impossible::Unreadable)?;
        if document.version != document::VERSION {
            return Err(Impossible::UnknownVersion(document.version).into());
        }
        Ok(document)
    }
}

impl<D: Documents, E: Extractor> Handler for NewsHandler<D, E> {
    type Payload = RevisionRef;
    type Prepared = Read;

    fn job_type(&self) -> JobType {
        self.config.limits(NEWS)
    }

    async fn prepare(&self, job: &Job<RevisionRef>) -> Result<Read, Failure> {
        let revision = &job.payload;
        let key = job.artifact_key().ok_or(Impossible::NoDocument)?;
        let document = self.document(key).await?;
        if (&document.item_id, &document.revision) != (&revision.item_id, &revision.revision) {
            return Err(Impossible::OtherRevision.into());
        }

        let segments = segments::split(&document.title, &document.text);
        let reading = Reading { job_id: job.id(), attempt: job.attempt(), segments: &segments };
        let findings = self.extractor.extract(reading).await;
        let findings = findings.map_err(|error| Failure::Transient(Box::new(error)))?;
        Ok(Read { segments, findings })
    }

    async fn apply(&self, tx: &mut PgConnection, job: &Job<RevisionRef>, read: Read) -> Result<(), Failure> {
        let revision = &job.payload;
        let collected = rows::collected(tx, revision).await?.ok_or(Impossible::UnknownRevision)?;
        if rows::insert_segments(tx, revision, &read.segments).await? == rows::Inserted::Known {
            info!("the revision was read before");
            return Ok(());
        }
        rows::insert_findings(tx, revision, &read.findings).await?;
        let head = rows::move_head(tx, revision, &collected).await?;
        mentions::count(tx, revision, &collected, &head).await?;
        info!(findings = read.findings.len(), ?head, "the revision is read");
        Ok(())
    }
}
