//! Deleting in S3: conditional, key by key, and by version where the bucket keeps them.

use std::collections::HashMap;

use aws_sdk_s3::types::builders::ObjectIdentifierBuilder;
use aws_sdk_s3::types::{BucketVersioningStatus, Delete, ObjectIdentifier};
use fault::FaultPoint;
use futures::{StreamExt, TryStreamExt, stream};
use store::sweep::Doomed;

use super::{S3, status, unanswered};
use crate::sweeper::bucket::{BucketError, Undeleted};

/// Versions asked for at once.
const ASKED_AT_ONCE: usize = 16;

/// What is under a key now.
enum Found {
    /// The object that was listed, in this version.
    Same(Option<String>),
    /// Nothing.
    Nothing,
    /// Another object.
    Other,
}

impl S3 {
    pub(super) async fn delete_objects(&self, objects: &[Doomed]) -> Result<Vec<Undeleted>, BucketError> {
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let refused = if self.is_versioned().await? {
            self.delete_versions(objects).await?
        } else {
            self.call(objects.iter().map(by_etag).collect()).await?
        };
        self.without_those_gone(refused).await
    }

    async fn is_versioned(&self) -> Result<bool, BucketError> {
        let ask = || async {
            let call = self.client.get_bucket_versioning().bucket(&self.bucket).send();
            let answer = call.fault_point("s3::get_bucket_versioning").await;
            let answer = answer.map_err(unanswered("whether it keeps versions (s3:GetBucketVersioning)"))?;
            Ok(matches!(
                answer.status,
                Some(BucketVersioningStatus::Enabled | BucketVersioningStatus::Suspended)
            ))
        };
        self.versioned.get_or_try_init(ask).await.copied()
    }

    /// By version; those that may not be deleted so are hidden behind a delete marker.
    async fn delete_versions(&self, objects: &[Doomed]) -> Result<Vec<Undeleted>, BucketError> {
        let asked: Vec<_> = objects.iter().map(|object| self.find(&object.key, Some(&object.etag))).collect();
        let found: Vec<Found> = stream::iter(asked).buffered(ASKED_AT_ONCE).try_collect().await?;
        let mut identifiers = Vec::new();
        let mut undeleted = Vec::new();
        for (object, found) in objects.iter().zip(found) {
            match found {
                Found::Same(Some(version)) => identifiers.push(identifier(object).version_id(version)),
                Found::Same(None) => identifiers.push(identifier(object).e_tag(&object.etag)),
                Found::Nothing => {}
                Found::Other => undeleted.push(changed(&object.key)),
            }
        }
        let refused = self.call(identifiers).await?;
        let (forbidden, others): (Vec<_>, Vec<_>) =
            refused.into_iter().partition(|refused| refused.reason.starts_with("AccessDenied"));
        undeleted.extend(others);
        if !forbidden.is_empty() {
            let by_key: HashMap<&str, &Doomed> =
                objects.iter().map(|object| (object.key.as_str(), object)).collect();
            let hidden = forbidden.iter().filter_map(|refused| by_key.get(refused.key.as_str()));
            undeleted.extend(self.call(hidden.map(|object| by_etag(object)).collect()).await?);
        }
        Ok(undeleted)
    }

    /// One call. S3 answers 200 and names what it refused.
    async fn call(&self, identifiers: Vec<ObjectIdentifierBuilder>) -> Result<Vec<Undeleted>, BucketError> {
        const ASKED: &str = "a deletion (s3:DeleteObject, s3:GetObject)";
        let identifiers: Result<Vec<ObjectIdentifier>, _> =
            identifiers.into_iter().map(ObjectIdentifierBuilder::build).collect();
        let identifiers = identifiers.map_err(unanswered(ASKED))?;
        if identifiers.is_empty() {
            return Ok(Vec::new());
        }
        let delete = Delete::builder().set_objects(Some(identifiers)).quiet(true).build();
        let call =
            self.client.delete_objects().bucket(&self.bucket).delete(delete.map_err(unanswered(ASKED))?);
        let answer = call.send().fault_point("s3::delete_objects").await.map_err(unanswered(ASKED))?;
        let refused = answer.errors.unwrap_or_default().into_iter();
        Ok(refused
            .map(|error| Undeleted {
                key: error.key.unwrap_or_default(),
                reason: format!("{}: {}", error.code.unwrap_or_default(), error.message.unwrap_or_default()),
            })
            .collect())
    }

    /// S3 refuses a condition on what is not there: those are deleted already.
    async fn without_those_gone(&self, refused: Vec<Undeleted>) -> Result<Vec<Undeleted>, BucketError> {
        let mut undeleted = Vec::new();
        for refused in refused {
            let conditional = ["PreconditionFailed", "NoSuchKey", "NotFound"];
            let may_be_gone = conditional.iter().any(|code| refused.reason.starts_with(code));
            if may_be_gone && matches!(self.find(&refused.key, None).await?, Found::Nothing) {
                continue;
            }
            undeleted.push(refused);
        }
        Ok(undeleted)
    }

    async fn find(&self, key: &str, etag: Option<&str>) -> Result<Found, BucketError> {
        let call =
            self.client.head_object().bucket(&self.bucket).key(key).set_if_match(etag.map(str::to_owned));
        match call.send().fault_point("s3::head_object").await {
            Ok(found) => Ok(Found::Same(found.version_id)),
            Err(error) if status(&error) == Some(404) => Ok(Found::Nothing),
            Err(error) if status(&error) == Some(412) => Ok(Found::Other),
            Err(error) => Err(unanswered("an object's version (s3:GetObject)")(error)),
        }
    }
}

fn identifier(object: &Doomed) -> ObjectIdentifierBuilder {
    ObjectIdentifier::builder().key(&object.key)
}

fn by_etag(object: &Doomed) -> ObjectIdentifierBuilder {
    identifier(object).e_tag(&object.etag)
}

fn changed(key: &str) -> Undeleted {
    Undeleted { key: key.to_owned(), reason: "PreconditionFailed: another object is there now".to_owned() }
}
