//! A source that is an S3 prefix, through the SDK, against an emulator.
//!
//! `make test` starts an emulator; without `AWS_ENDPOINT_URL` there is none, and nothing to test.

#![allow(clippy::unwrap_used, reason = "a test that can not go on has failed")]

use std::time::Duration;

use aws_sdk_s3::Client;
use intraday::config::{Location, Source};
use intraday::sources::{Fetched, Fetcher, Kind};

/// Longer than any source of these tests may take.
const MOST: Duration = Duration::from_secs(30);

/// A bucket of its own, and what reads it.
async fn bucket() -> Option<(Client, String)> {
    std::env::var_os("AWS_ENDPOINT_URL")?;
    let s3 = runtime::aws::s3(&runtime::aws::load().await);
    let bucket = format!("source-{}", uuid::Uuid::new_v4());
    s3.create_bucket().bucket(&bucket).send().await.unwrap();
    Some((s3, bucket))
}

async fn put(s3: &Client, bucket: &str, key: &str, body: &str) {
    s3.put_object().bucket(bucket).key(key).body(body.as_bytes().to_vec().into()).send().await.unwrap();
}

async fn fetch(s3: Client, bucket: &str, prefix: &str) -> Fetched {
    let location = Location::S3 { bucket: bucket.to_owned(), prefix: prefix.to_owned() };
    let source = Source { name: "s".to_owned(), location, timeout: Duration::from_secs(10), max_bytes: 100 };
    Fetcher::new(s3).unwrap().fetch_all(&[source], Kind::Bars, MOST).await.remove(0)
}

fn messages(fetched: &Fetched) -> Vec<String> {
    fetched.faults.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn prefix_brings_its_objects_by_key_and_names_what_it_leaves_out() {
    let Some((s3, bucket)) = bucket().await else { return };
    for (key, body) in [
        ("bars/b c+ü%.csv", "2"),
        ("bars/a.csv", "1"),
        ("bars/", ""),
        ("bars/feed.xml", "news"),
        ("bars/large.csv", &"x".repeat(101)),
        ("elsewhere/a.csv", "not ours"),
    ] {
        put(&s3, &bucket, key, body).await;
    }

    let fetched = fetch(s3, &bucket, "bars/").await;

    let found: Vec<_> = fetched
        .documents
        .iter()
        .map(|document| (document.name.as_str(), document.bytes.as_slice()))
        .collect();
    assert_eq!(found, [("bars/a.csv", &b"1"[..]), ("bars/b c+ü%.csv", b"2")]);
    assert!(!fetched.failed);
    let [fault] = messages(&fetched).try_into().unwrap();
    assert!(fault.starts_with("s/large.csv: "), "{fault}");
}

#[tokio::test]
async fn bucket_that_is_not_there_fails_its_source_by_name() {
    let Some((s3, bucket)) = bucket().await else { return };
    s3.delete_bucket().bucket(&bucket).send().await.unwrap();

    let fetched = fetch(s3, &bucket, "bars/").await;

    assert!(fetched.failed);
    let [fault] = messages(&fetched).try_into().unwrap();
    assert!(fault.contains("NoSuchBucket"), "{fault}");
}
