//! The little of S3 that the sweeper needs, so that its tests need none of it.

use std::error::Error;
use std::future::Future;

use chrono::{DateTime, Utc};
use store::sweep::Doomed;

/// Objects of one listing, at most: S3's own limit.
pub const LIST_KEYS_MAX: usize = 1_000;
/// Objects of one deletion, at most: S3's own limit.
pub const DELETE_KEYS_MAX: usize = 1_000;
/// The object that says whose bucket it is. Outside the artifacts, so that no sweep meets it.
pub const MARKER_KEY: &str = "tailcar-installation.json";

/// S3 did not do it, or did not say. Look again later.
#[derive(Debug, thiserror::Error)]
#[error("the bucket could not be asked: {asked}")]
pub struct BucketError {
    /// What was asked, with the name of the right it takes.
    pub asked: &'static str,
    /// What S3 said.
    #[source]
    pub source: Box<dyn Error + Send + Sync>,
}

/// An object as it was listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its key.
    pub key: String,
    /// Its `ETag`, as S3 writes it.
    pub etag: String,
    /// Its size.
    pub size_bytes: i64,
    /// When it was written; `None` when S3 did not say, and then it is left alone.
    pub written_at: Option<DateTime<Utc>>,
}

/// Part of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// In the order of their keys' bytes.
    pub objects: Vec<Object>,
    /// There is more behind the last of them.
    pub more: bool,
}

/// The marker, or that there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkerAnswer {
    /// What it says.
    pub body: Option<String>,
    /// S3's clock; `None` when it did not say.
    pub answered_at: Option<DateTime<Utc>>,
}

/// A deletion that S3 refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undeleted {
    /// The key.
    pub key: String,
    /// S3's word for it.
    pub reason: String,
}

/// The artifact bucket.
pub trait Bucket: Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// The artifacts after `after`, at most [`LIST_KEYS_MAX`], everything that was written before the call.
    fn list(&self, after: &str) -> impl Future<Output = Result<Listing, BucketError>> + Send;

    /// Reads the marker.
    fn marker(&self) -> impl Future<Output = Result<MarkerAnswer, BucketError>> + Send;

    /// Writes the marker; `overwrite` only when a person decided so. `false`: there is one already.
    fn write_marker(
        &self,
        body: String,
        overwrite: bool,
    ) -> impl Future<Output = Result<bool, BucketError>> + Send;

    /// Deletes at most [`DELETE_KEYS_MAX`] objects, each only if it is still the one that was listed; one
    /// that is gone counts as deleted. Answers with those that were not.
    fn delete(&self, objects: &[Doomed]) -> impl Future<Output = Result<Vec<Undeleted>, BucketError>> + Send;

    /// SHA-256 of the object's bytes, in hex; `None` when there is no such object.
    fn digest(&self, key: &str) -> impl Future<Output = Result<Option<String>, BucketError>> + Send;
}
