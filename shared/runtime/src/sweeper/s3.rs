//! The port's implementation on S3.
//!
//! Keys travel percent-encoded in listings, since XML can not say every key. In a bucket that keeps
//! versions the very version that was listed is deleted where that is permitted, and else hidden behind a
//! delete marker, which the bucket's lifecycle completes.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_s3::Client;
use aws_sdk_s3::config::interceptors::BeforeDeserializationInterceptorContextRef;
use aws_sdk_s3::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_s3::error::{BoxError, ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::get_object::GetObjectError;
use aws_sdk_s3::primitives::{ByteStream, DateTime as SdkTime};
use aws_sdk_s3::types::{EncodingType, Object as SdkObject};
use chrono::{DateTime, Utc};
use domain::identity::sha256_hex;
use fault::FaultPoint;
use percent_encoding::percent_decode_str;
use store::sweep::Doomed;
use tokio::sync::OnceCell;

use super::bucket::{
    Bucket, BucketError, LIST_KEYS_MAX, Listing, MARKER_KEY, MarkerAnswer, Object, Undeleted,
};
use super::keys::PREFIX;

mod deletion;

/// The artifact bucket in S3.
#[derive(Debug)]
pub struct S3 {
    client: Client,
    bucket: String,
    versioned: OnceCell<bool>,
}

impl S3 {
    /// The bucket `bucket`.
    #[must_use]
    pub fn new(client: Client, bucket: &str) -> Self {
        Self { client, bucket: bucket.to_owned(), versioned: OnceCell::new() }
    }
}

impl Bucket for S3 {
    fn name(&self) -> &str {
        &self.bucket
    }

    async fn list(&self, after: &str) -> Result<Listing, BucketError> {
        let after = (!after.is_empty()).then(|| after.to_owned());
        let listed = self
            .client
            .list_objects_v2()
            .bucket(&self.bucket)
            .prefix(PREFIX)
            .set_start_after(after)
            .max_keys(i32::try_from(LIST_KEYS_MAX).unwrap_or(i32::MAX))
            .encoding_type(EncodingType::Url)
            .send()
            .fault_point("s3::list_objects_v2")
            .await
            .map_err(unanswered("a listing (s3:ListBucket)"))?;
        let more = listed.is_truncated.unwrap_or(false);
        let objects: Result<Vec<Object>, _> =
            listed.contents.unwrap_or_default().into_iter().map(object).collect();
        Ok(Listing { objects: objects.map_err(unanswered("a listing of readable keys"))?, more })
    }

    async fn marker(&self) -> Result<MarkerAnswer, BucketError> {
        const ASKED: &str = "its marker (s3:GetObject)";
        let date = AnswerDate::default();
        let read = self
            .client
            .get_object()
            .bucket(&self.bucket)
            .key(MARKER_KEY)
            .customize()
            .interceptor(date.clone())
            .send()
            .fault_point("s3::get_marker")
            .await;
        let body = match read {
            Ok(object) => {
                let bytes = object.body.collect().await.map_err(unanswered(ASKED))?.to_vec();
                Some(String::from_utf8_lossy(&bytes).into_owned())
            }
            Err(error) if error.as_service_error().is_some_and(GetObjectError::is_no_such_key) => None,
            Err(error) => return Err(unanswered(ASKED)(error)),
        };
        Ok(MarkerAnswer { body, answered_at: date.read() })
    }

    async fn write_marker(&self, body: String, overwrite: bool) -> Result<bool, BucketError> {
        let written = self
            .client
            .put_object()
            .bucket(&self.bucket)
            .key(MARKER_KEY)
            .set_if_none_match((!overwrite).then(|| "*".to_owned()))
            .content_type("application/json")
            .body(ByteStream::from(body.into_bytes()))
            .send()
            .fault_point("s3::put_marker")
            .await;
        match written {
            Ok(_) => Ok(true),
            Err(error) if is_taken(&error) => Ok(false),
            Err(error) => Err(unanswered("its marker to be written (s3:PutObject)")(error)),
        }
    }

    async fn delete(&self, objects: &[Doomed]) -> Result<Vec<Undeleted>, BucketError> {
        self.delete_objects(objects).await
    }

    async fn digest(&self, key: &str) -> Result<Option<String>, BucketError> {
        const ASKED: &str = "an artifact's bytes (s3:GetObject)";
        let read = self.client.get_object().bucket(&self.bucket).key(key).send();
        match read.fault_point("s3::get_object_to_digest").await {
            Ok(object) => {
                let bytes = object.body.collect().await.map_err(unanswered(ASKED))?.to_vec();
                Ok(Some(sha256_hex(&bytes)))
            }
            Err(error) if error.as_service_error().is_some_and(GetObjectError::is_no_such_key) => Ok(None),
            Err(error) => Err(unanswered(ASKED)(error)),
        }
    }
}

/// An answer that can not be understood.
#[derive(Debug, thiserror::Error)]
#[error("S3 listed an object without a readable key or ETag")]
struct Unreadable;

fn object(listed: SdkObject) -> Result<Object, Unreadable> {
    let key = decoded(&listed.key.ok_or(Unreadable)?)?;
    let etag = listed.e_tag.ok_or(Unreadable)?;
    let written_at = listed.last_modified.as_ref().and_then(instant);
    Ok(Object { key, etag, size_bytes: listed.size.unwrap_or(0), written_at })
}

/// As S3 encodes: a space as `+`, whatever else is not plain by percent.
fn decoded(encoded: &str) -> Result<String, Unreadable> {
    let spaced = encoded.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8().map(std::borrow::Cow::into_owned).map_err(|_| Unreadable)
}

fn instant(time: &SdkTime) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(time.secs(), time.subsec_nanos())
}

fn is_taken(error: &impl ProvideErrorMetadata) -> bool {
    matches!(error.code(), Some("PreconditionFailed" | "ConditionalRequestConflict"))
}

fn unanswered<E: Error + Send + Sync + 'static>(asked: &'static str) -> impl FnOnce(E) -> BucketError {
    move |source| BucketError { asked, source: Box::new(source) }
}

/// The status of an answer that has no words, as those to a HEAD.
fn status<E>(error: &SdkError<E>) -> Option<u16> {
    error.raw_response().map(|response| response.status().as_u16())
}

/// Remembers the `Date` of an answer: S3's clock.
#[derive(Clone, Debug, Default)]
struct AnswerDate(Arc<Mutex<Option<DateTime<Utc>>>>);

impl AnswerDate {
    fn read(&self) -> Option<DateTime<Utc>> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Intercept for AnswerDate {
    fn name(&self) -> &'static str {
        "AnswerDate"
    }

    fn read_before_deserialization(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let date = context.response().headers().get("date");
        let date = date.and_then(|date| DateTime::parse_from_rfc2822(date).ok());
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = date.map(|date| date.to_utc());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_they_were_written() {
        for (encoded, key) in [
            ("a+b", "a b"),
            ("a%2Bb", "a+b"),
            ("a%252Bb", "a%2Bb"),
            ("%C3%BC/%E9%9B%AA", "ü/雪"),
            ("line%0Abreak%0D", "line\nbreak\r"),
        ] {
            assert_eq!(decoded(encoded).unwrap(), key);
        }
        assert!(decoded("%FF").is_err());
    }
}
