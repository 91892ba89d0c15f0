//! Artifacts in S3: written once under a key that was never used, read by key.
//!
//! The key holds a random part drawn for each try, and the PUT is conditional on nobody having it, so
//! no object is ever overwritten. An object becomes part of the product only when a row refers to it;
//! until then it is an orphan, and a try whose answer was lost leaves one for the sweeper.

use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::get_object::GetObjectError;
use aws_sdk_s3::operation::put_object::PutObjectError;
use aws_sdk_s3::primitives::ByteStream;
use chrono::{DateTime, Utc};
use domain::identity::sha256_hex;
use fault::FaultPoint;
use uuid::Uuid;

use crate::sweeper::keys;

/// Keys tried before a PUT is given up; each of them is new, so a second refusal is already strange.
const KEYS_MAX: usize = 3;

/// The bucket that holds the artifacts.
#[derive(Clone, Debug)]
pub struct Artifacts {
    s3: aws_sdk_s3::Client,
    bucket: String,
}

/// An object that was written, and what its row needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its key.
    pub key: String,
    /// SHA-256 of its bytes, in hex.
    pub sha256: String,
    /// Its size.
    pub size_bytes: i64,
}

/// The object may or may not have been written; nobody knows its key. Try again later.
#[derive(Debug, thiserror::Error)]
#[error("the artifact was not written")]
pub struct PutError(#[source] Box<SdkError<PutObjectError>>);

/// Why an artifact could not be read.
#[derive(Debug, thiserror::Error)]
pub enum GetError {
    /// S3 says that there is no such object. With a row that refers to it, it is gone for good.
    #[error("the artifact is missing")]
    Missing,
    /// S3 did not say. Try again later.
    #[error("the artifact can not be read now")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Artifacts {
    /// The artifacts of `bucket`.
    #[must_use]
    pub fn new(s3: aws_sdk_s3::Client, bucket: &str) -> Self {
        Self { s3, bucket: bucket.to_owned() }
    }

    /// Writes `body` under a new key of `owner`, made of `name` and `written_at`.
    ///
    /// `written_at` is the database's clock: the sweeper finds objects by the hour in their key.
    ///
    /// # Errors
    ///
    /// [`PutError`]. The object may have been written even so; it is an orphan then.
    pub async fn put(
        &self,
        owner: &str,
        name: &str,
        written_at: DateTime<Utc>,
        body: Vec<u8>,
    ) -> Result<Written, PutError> {
        let sha256 = sha256_hex(&body);
        let size_bytes = i64::try_from(body.len()).unwrap_or(i64::MAX);
        let mut tries = 1;
        loop {
            let key = new_key(owner, name, written_at);
            match self.put_once(&key, body.clone()).await {
                Ok(()) => return Ok(Written { key, sha256, size_bytes }),
                Err(error) if is_taken(&error) && tries < KEYS_MAX => tries += 1,
                Err(error) => return Err(PutError(Box::new(error))),
            }
        }
    }

    async fn put_once(&self, key: &str, body: Vec<u8>) -> Result<(), SdkError<PutObjectError>> {
        self.s3
            .put_object()
            .bucket(&self.bucket)
            .key(key)
            .if_none_match("*")
            .content_type("application/json")
            .body(ByteStream::from(body))
            .send()
            .fault_point("s3::put_object")
            .await?;
        Ok(())
    }

    /// Reads the object under `key`.
    ///
    /// # Errors
    ///
    /// [`GetError`]. A bucket that is missing or closed is unavailable: that is not the object's fault.
    pub async fn get(&self, key: &str) -> Result<Vec<u8>, GetError> {
        let call = self.s3.get_object().bucket(&self.bucket).key(key).send().fault_point("s3::get_object");
        let object = call.await.map_err(unread)?;
        let body = object.body.collect().await.map_err(|error| GetError::Unavailable(Box::new(error)))?;
        Ok(body.to_vec())
    }
}

fn new_key(owner: &str, name: &str, written_at: DateTime<Utc>) -> String {
    let hour = keys::hour(written_at);
    format!("{hour}/{owner}/{name}-{}.json", Uuid::new_v4().simple())
}

/// Whether S3 refused because the key is there, or is being written: most likely by an earlier try of
/// this same call whose answer was lost. A new key settles it either way.
fn is_taken(error: &SdkError<PutObjectError>) -> bool {
    matches!(error.code(), Some("PreconditionFailed" | "ConditionalRequestConflict"))
}

fn unread(error: SdkError<GetObjectError>) -> GetError {
    let missing = error.as_service_error().is_some_and(GetObjectError::is_no_such_key);
    if missing { GetError::Missing } else { GetError::Unavailable(Box::new(error)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_names_the_hour_and_the_owner_and_is_new_each_time() {
        let written_at = "2018-04-04T13:31:02Z".parse().unwrap();
        let key = new_key("window", "us8", written_at);
        assert!(key.starts_with("artifacts/2018/04/04/13/window/us8-"), "{key}");
        assert_eq!(key.rsplit_once('.').unwrap().1, "json");
        assert_ne!(key, new_key("window", "us8", written_at));
    }
}
