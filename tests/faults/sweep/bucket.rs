//! A world's bucket, as somebody else sees it.

use std::collections::BTreeSet;

use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{BucketVersioningStatus, VersioningConfiguration};
use chrono::Utc;
use system_tests::Result;
use system_tests::world::Stand;

/// S3's own limit of a key.
const KEY_BYTES_MAX: usize = 1024;

pub struct Objects<'a> {
    s3: &'a aws_sdk_s3::Client,
    bucket: String,
    hour: String,
}

impl<'a> Objects<'a> {
    pub fn new(stand: &'a Stand, bucket: &str) -> Self {
        // One hour for the whole scenario, and one that is over, so that no lap ends before it.
        let hour = Utc::now() - chrono::Duration::hours(2);
        let hour = format!("artifacts/{}/test", hour.format("%Y/%m/%d/%H"));
        Self { s3: stand.s3(), bucket: bucket.to_owned(), hour }
    }

    pub fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.hour)
    }

    /// An object without a row; its text is its name.
    pub async fn put(&self, name: &str) -> Result<String> {
        let key = self.key(name);
        self.put_at(&key, name.as_bytes()).await?;
        Ok(key)
    }

    /// An object with the longest key there is.
    pub async fn put_longest(&self) -> Result<()> {
        let name = "x".repeat(KEY_BYTES_MAX - self.key("").len());
        self.put(&name).await.map(drop)
    }

    pub async fn put_at(&self, key: &str, body: &[u8]) -> Result<()> {
        let body = ByteStream::from(body.to_vec());
        self.s3.put_object().bucket(&self.bucket).key(key).body(body).send().await?;
        Ok(())
    }

    pub async fn keep_versions(&self) -> Result<()> {
        let keep = VersioningConfiguration::builder().status(BucketVersioningStatus::Enabled).build();
        self.s3.put_bucket_versioning().bucket(&self.bucket).versioning_configuration(keep).send().await?;
        Ok(())
    }

    /// Every key.
    pub async fn all(&self) -> Result<BTreeSet<String>> {
        let mut all = BTreeSet::new();
        let mut pages = self.s3.list_objects_v2().bucket(&self.bucket).into_paginator().send();
        while let Some(page) = pages.next().await {
            all.extend(page?.contents.unwrap_or_default().into_iter().filter_map(|object| object.key));
        }
        Ok(all)
    }

    pub async fn artifacts(&self) -> Result<BTreeSet<String>> {
        let all = self.all().await?;
        Ok(all.into_iter().filter(|key| key.starts_with("artifacts/")).collect())
    }

    /// The keys of all versions, and of all delete markers, of artifacts.
    pub async fn versions(&self) -> Result<(Vec<String>, Vec<String>)> {
        let listed = self.s3.list_object_versions().bucket(&self.bucket).prefix("artifacts/").send().await?;
        let versions = listed.versions.unwrap_or_default().into_iter().filter_map(|version| version.key);
        let markers = listed.delete_markers.unwrap_or_default().into_iter().filter_map(|marker| marker.key);
        Ok((versions.collect(), markers.collect()))
    }
}
