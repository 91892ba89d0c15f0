//! A bucket and a database that belong together.

use std::time::Duration;

use chrono::Utc;
use domain::identity::sha256_hex;
use runtime::sweeper::{self, Order, Policy, Report, keys};
use runtime::time_left::TimeLeft;
use sqlx::PgPool;
use store::artifact::{NewArtifact, refer};
use testkit::TwinBucket;

pub const HOUR: Duration = Duration::from_hours(1);
/// Older than the grace period of [`policy`].
pub const OLD: Duration = Duration::from_hours(5);

/// An hour of grace, switched on.
pub fn policy() -> Policy {
    Policy { delete: true, grace: HOUR, ..Policy::default() }
}

/// A dry run of the same.
pub fn dry() -> Policy {
    Policy { delete: false, ..policy() }
}

pub async fn sweep(db: &PgPool, bucket: &TwinBucket, policy: &Policy) -> Report {
    order(db, bucket, policy, &Order::Sweep).await.unwrap()
}

pub async fn order(
    db: &PgPool,
    bucket: &TwinBucket,
    policy: &Policy,
    order: &Order,
) -> Result<Report, sweeper::Error> {
    sweeper::run(db, bucket, policy, order, TimeLeft::lasting(HOUR)).await
}

/// A policy that looks at the guards and begins no page.
pub fn guards_only() -> Policy {
    Policy { max_pages: 0, ..policy() }
}

/// A bucket that `db` adopted, with one live artifact.
pub async fn adopted(db: &PgPool) -> TwinBucket {
    let bucket = TwinBucket::default();
    live(db, &bucket, &key("live", OLD)).await;
    assert!(sweep(db, &bucket, &guards_only()).await.adopted);
    bucket
}

/// A key drawn `age` ago.
pub fn key(name: &str, age: Duration) -> String {
    format!("{}/window/{name}", keys::hour(Utc::now() - age))
}

/// An object without a row, written when its key was drawn.
pub fn orphan(bucket: &TwinBucket, name: &str, age: Duration) -> String {
    let key = key(name, age);
    bucket.put(&key, name.as_bytes(), age);
    key
}

/// An object that a row refers to.
pub async fn live(db: &PgPool, bucket: &TwinBucket, key: &str) {
    bucket.put(key, key.as_bytes(), OLD);
    let sha256 = sha256_hex(key.as_bytes());
    let size_bytes = i64::try_from(key.len()).unwrap();
    refer(db, &[NewArtifact { key, sha256: &sha256, size_bytes, owner: "window" }]).await.unwrap();
}

/// The row's state.
pub async fn state(db: &PgPool, key: &str) -> Option<String> {
    sqlx::query_scalar("select state from artifact where key = $1")
        .bind(key)
        .fetch_optional(db)
        .await
        .unwrap()
}

pub async fn count(db: &PgPool, query: &'static str) -> i64 {
    sqlx::query_scalar(query).fetch_one(db).await.unwrap()
}
