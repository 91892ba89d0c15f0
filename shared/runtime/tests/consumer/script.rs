//! A handler that does what its script says, and whose effect can be counted.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use domain::{Backoff, DeadReason, JobId, JobType};
use runtime::consumer::{Engine, Failure, Handler, Job, Limits};
use runtime::time_left::TimeLeft;
use serde::Deserialize;
use serde_json::Value;
use sqlx::{PgConnection, PgPool};
use store::window::WindowRef;
use testkit::Inbox;
use testkit::jobs::{DESTINATION, claimed, end_lease};
use testkit::windows::corrected;

/// What the handler does with one job, instead of its work.
#[derive(Clone, Debug)]
pub enum Act {
    PrepareFails,
    PrepareFailsForGood,
    PreparePanics,
    /// While it prepares, the lease ends and another claim takes over.
    TakenOver,
    /// While it prepares, its window is corrected.
    Corrected(WindowRef),
    ApplyFails,
    ApplyIsStale,
    ApplyPanics,
    /// Its effect breaks a constraint.
    ApplyIsRefused,
    /// Its effect breaks a constraint that is only checked by the commit.
    CommitFails,
    /// While it prepares, the database goes away.
    DatabaseGone,
}

/// The payload of the jobs that [`testkit::jobs`] makes.
#[derive(Deserialize)]
#[expect(dead_code, reason = "it is only read")]
pub struct Item {
    item_id: String,
    revision: String,
}

/// The handler; a job that is not in the script has its effect and nothing else.
pub struct Scripted {
    db: PgPool,
    script: HashMap<JobId, Act>,
    prepared: Mutex<Vec<JobId>>,
}

impl Scripted {
    pub async fn new(db: &PgPool, script: &[(&JobId, Act)]) -> Self {
        sqlx::query(
            "create table if not exists effect (
                 job_id text not null, attempt integer not null,
                 constraint effect_once unique (job_id, attempt) deferrable initially deferred)",
        )
        .execute(db)
        .await
        .unwrap();
        let script = script.iter().map(|(id, act)| ((*id).clone(), act.clone())).collect();
        Self { db: db.clone(), script, prepared: Mutex::default() }
    }
}

impl Handler for Scripted {
    type Payload = Item;
    type Prepared = i32;

    fn job_type(&self) -> JobType {
        let wait = Duration::from_secs(40);
        JobType::new(DESTINATION).backing_off(Backoff { base: wait, cap: wait })
    }

    async fn prepare(&self, job: &Job<Item>) -> Result<i32, Failure> {
        let id = job.id();
        self.prepared.lock().unwrap().push(id.clone());
        match self.script.get(id) {
            Some(Act::PrepareFails) => return Err(Failure::Transient("no answer".into())),
            Some(Act::PrepareFailsForGood) => {
                let reason = DeadReason::ArtifactMissing;
                return Err(Failure::Permanent { reason, source: "no such key".into() });
            }
            Some(Act::PreparePanics) => panic!("prepare fell over"),
            Some(Act::TakenOver) => {
                end_lease(&self.db, id).await;
                let _ = claimed(&self.db, id).await;
            }
            Some(Act::Corrected(window)) => {
                corrected(&self.db, window).await;
            }
            Some(Act::DatabaseGone) => self.db.close().await,
            _ => {}
        }
        Ok(job.attempt())
    }

    async fn apply(&self, tx: &mut PgConnection, job: &Job<Item>, attempt: i32) -> Result<(), Failure> {
        let id = job.id();
        sqlx::query("insert into effect (job_id, attempt) values ($1, $2)")
            .bind(id.as_str())
            .bind(attempt)
            .execute(&mut *tx)
            .await?;
        match self.script.get(id) {
            Some(Act::ApplyFails) => Err(Failure::Transient("not now".into())),
            Some(Act::ApplyIsStale) => Err(Failure::Stale),
            Some(Act::ApplyPanics) => panic!("apply fell over"),
            Some(Act::ApplyIsRefused) => {
                sqlx::query("insert into effect (job_id) values (null)").execute(tx).await?;
                Ok(())
            }
            Some(Act::CommitFails) => {
                sqlx::query("insert into effect select * from effect where job_id = $1")
                    .bind(id.as_str())
                    .execute(tx)
                    .await?;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// An engine with the script, and everything a test asks about afterwards.
pub struct Bench {
    pub engine: Engine<Scripted, Inbox>,
    db: PgPool,
}

impl Bench {
    pub async fn new(db: &PgPool, script: &[(&JobId, Act)]) -> Self {
        Self::with(db, script, Inbox::default()).await
    }

    pub async fn with(db: &PgPool, script: &[(&JobId, Act)], inbox: Inbox) -> Self {
        let handler = Scripted::new(db, script).await;
        Self { engine: Engine::new(db.clone(), inbox, handler, Limits::default()), db: db.clone() }
    }

    /// Consumes with a minute left; answers the messages that are kept.
    pub async fn consume(&self, messages: &[(&str, String)]) -> Vec<String> {
        self.consume_within(messages, Duration::from_mins(1)).await
    }

    pub async fn consume_within(&self, messages: &[(&str, String)], left: Duration) -> Vec<String> {
        testkit::inbox::kept(&self.consume_event(testkit::inbox::event(messages), left).await)
    }

    pub async fn consume_event(&self, event: Value, left: Duration) -> Value {
        self.engine.consume(event, TimeLeft::lasting(left)).await.unwrap()
    }

    pub fn visibility_of(&self, message_id: &str) -> Option<i32> {
        self.engine.queue().visibility_of(message_id)
    }

    /// The jobs whose handler was started, in that order.
    pub fn prepared(&self) -> Vec<JobId> {
        self.engine.handler().prepared.lock().unwrap().clone()
    }

    /// How many effects of the job are committed.
    pub async fn effects_of(&self, id: &JobId) -> i64 {
        sqlx::query_scalar("select count(*) from effect where job_id = $1")
            .bind(id.as_str())
            .fetch_one(&self.db)
            .await
            .unwrap()
    }
}
