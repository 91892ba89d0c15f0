//! The objects of one S3 prefix, by key.

use aws_sdk_s3::Client;
use fault::FaultPoint;
use futures::{StreamExt, TryStreamExt, stream};

use super::intake::Intake;
use super::{DOCUMENTS_MAX, Document, Error, Fetched, Kind};
use crate::config::Source;

/// Objects read at once.
const WIDTH: usize = 8;

pub(super) async fn fetch(
    s3: &Client,
    bucket: &str,
    prefix: &str,
    source: &Source,
    kind: Kind,
) -> Result<Fetched, Error> {
    let mut intake = Intake::new(source, kind);
    let mut wanted = Vec::new();
    for (key, size) in list(s3, bucket, prefix).await? {
        if intake.admits(key.rsplit('/').next().unwrap_or_default(), size) {
            wanted.push(key);
        }
    }
    // Each future owns its key, so that the stream borrows nothing of the list.
    let documents = stream::iter(wanted).map(|key| read(s3, bucket, key, source.max_bytes)).buffered(WIDTH);
    intake.fetched.documents = documents.try_collect().await?;
    Ok(intake.fetched)
}

async fn list(s3: &Client, bucket: &str, prefix: &str) -> Result<Vec<(String, u64)>, Error> {
    let mut pages = s3.list_objects_v2().bucket(bucket).prefix(prefix).into_paginator().send();
    let mut objects = Vec::new();
    while let Some(page) =
        pages.try_next().fault_point("source::list_objects").await.map_err(Error::unreadable)?
    {
        for object in page.contents() {
            let size = object.size().and_then(|size| u64::try_from(size).ok()).unwrap_or_default();
            objects.extend(object.key().filter(|key| !key.ends_with('/')).map(|key| (key.to_owned(), size)));
        }
        if objects.len() >= DOCUMENTS_MAX {
            break;
        }
    }
    objects.truncate(DOCUMENTS_MAX);
    Ok(objects)
}

/// The object may have been replaced by a larger one since it was listed.
async fn read(s3: &Client, bucket: &str, key: String, max_bytes: u64) -> Result<Document, Error> {
    let object = s3
        .get_object()
        .bucket(bucket)
        .key(&key)
        .send()
        .fault_point("source::get_object")
        .await
        .map_err(Error::unreadable)?;
    let size = object.content_length().and_then(|size| u64::try_from(size).ok());
    if size.is_none_or(|size| size > max_bytes) {
        return Err(Error::TooLarge(max_bytes));
    }
    let bytes = object.body.collect().await.map_err(Error::unreadable)?.to_vec();
    Ok(Document { name: key, bytes })
}
