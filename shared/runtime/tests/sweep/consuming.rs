//! A consumer that writes an artifact: losing its key to the sweeper costs it a try, and nothing else.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use domain::{JobStatus, JobType};
use runtime::consumer::{Engine, Failure, Handler, Job, Limits};
use runtime::time_left::TimeLeft;
use serde_json::Value;
use sqlx::{PgConnection, PgPool};
use store::artifact::{NewArtifact, refer};
use testkit::inbox::{body, event, kept};
use testkit::jobs::{DESTINATION, queued_job, state_of};
use testkit::windows::digest;
use testkit::{Inbox, TwinBucket};

use crate::fixtures::{OLD, adopted, key, policy, state, sweep};

/// Writes an object in `prepare`, and refers to it in `apply`. The first time a sweeper comes between.
struct Late {
    db: PgPool,
    bucket: TwinBucket,
    prepared: AtomicU32,
}

impl Handler for Late {
    type Payload = Value;
    type Prepared = String;

    fn job_type(&self) -> JobType {
        JobType::new(DESTINATION)
    }

    async fn prepare(&self, _: &Job<Value>) -> Result<String, Failure> {
        let attempt = self.prepared.fetch_add(1, Ordering::Relaxed);
        let key = key(&format!("written-{attempt}"), OLD);
        self.bucket.put(&key, b"x", OLD);
        if attempt == 0 {
            assert_eq!(sweep(&self.db, &self.bucket, &policy()).await.reclaimed, 1);
        }
        Ok(key)
    }

    async fn apply(&self, tx: &mut PgConnection, _: &Job<Value>, key: String) -> Result<(), Failure> {
        let new = NewArtifact { key: &key, sha256: &digest('a'), size_bytes: 1, owner: "test" };
        Ok(refer(tx, &[new]).await?)
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn key_that_was_reclaimed_before_apply_is_transient_and_the_next_try_writes_a_new_one(db: PgPool) {
    let id = queued_job(&db).await;
    let handler = Late { db: db.clone(), bucket: adopted(&db).await, prepared: AtomicU32::new(0) };
    let engine = Engine::new(db.clone(), Inbox::default(), handler, Limits::default());
    let message = || event(&[("m", body(&id, 0))]);
    let minute = || TimeLeft::lasting(Duration::from_mins(1));

    assert_eq!(kept(&engine.consume(message(), minute()).await.unwrap()), ["m"]);
    assert_eq!(state_of(&db, &id).await, JobStatus::Retry);
    assert_eq!(state(&db, &key("written-0", OLD)).await.as_deref(), Some("RECLAIMED"));
    sqlx::query("update job set next_attempt_at = now()").execute(&db).await.unwrap();
    assert_eq!(kept(&engine.consume(message(), minute()).await.unwrap()), Vec::<String>::new());

    assert_eq!(state_of(&db, &id).await, JobStatus::Succeeded);
    assert_eq!(state(&db, &key("written-1", OLD)).await.as_deref(), Some("REFERENCED"));
}
