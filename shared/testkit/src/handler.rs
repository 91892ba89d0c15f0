//! A handler put through what will happen to it: deliveries, repeats, and deaths in the middle.
//!
//! Each test has a database of its own (`#[sqlx::test(migrations = false)]`); the kit brings both
//! schemas there. Jobs are enqueued, claimed and completed by the product's own statements; only time is
//! moved by hand.
//!
//! ```
//! # use domain::JobType;
//! # use runtime::consumer::{Failure, Handler, Job};
//! # use serde_json::{Value, json};
//! # use sqlx::migrate::{Migration, MigrationType, Migrator};
//! # use sqlx::{PgConnection, SqlSafeStr};
//! # use store::enqueue::NewJob;
//! # const GREETING: JobType = JobType::new("greeting");
//! # #[derive(Debug)]
//! # struct Greeter;
//! # impl Handler for Greeter {
//! #     type Payload = Value;
//! #     type Prepared = ();
//! #     fn job_type(&self) -> JobType { GREETING }
//! #     async fn prepare(&self, _: &Job<Value>) -> Result<(), Failure> { Ok(()) }
//! #     async fn apply(&self, tx: &mut PgConnection, job: &Job<Value>, (): ()) -> Result<(), Failure> {
//! #         sqlx::query("insert into greeting values ($1)").bind(job.id().as_str()).execute(tx).await?;
//! #         Ok(())
//! #     }
//! # }
//! # fn greeting(name: &str) -> NewJob {
//! #     NewJob::new(&GREETING, GREETING.identity().text("name", name), json!({ "name": name }))
//! # }
//! # #[tokio::main]
//! # async fn main() {
//! # let table = "create table greeting (job_id text primary key)".into_sql_str();
//! # let first = Migration::new(1, "greetings".into(), MigrationType::Simple, table, false);
//! # let migrations = Migrator::with_migrations(vec![first]);
//! # testkit::pools::scratch(async |db| {
//! let kit = testkit::HandlerKit::new(db, &migrations, Greeter).await;
//! let job = kit.enqueue(&greeting("Ada")).await;
//!
//! kit.die_between_prepare_and_apply(&job).await;
//! kit.die_before_commit(&job).await;
//! kit.deliver_twice(&job).await;
//!
//! kit.assert_succeeded(&job).await;
//! assert_eq!(kit.count("select count(*) from greeting").await, 1);
//! # }).await;
//! # }
//! ```

use std::time::Duration;

use domain::{JobId, JobStatus, Message};
use runtime::consumer::{Engine, Handler, Job, Limits};
use runtime::time_left::TimeLeft;
use sqlx::PgPool;
use sqlx::migrate::Migrator;
use store::claim::{Asked, ClaimedJob, claim_suspect};
use store::enqueue::{Enqueued, NewJob, enqueue_one};
use store::migrate;

use crate::inbox::{self, Inbox};
use crate::jobs;

/// What an invocation has; longer than any test runs.
const INVOCATION: Duration = Duration::from_mins(1);

/// A handler, its database, and the consumer's own engine around them.
#[derive(Debug)]
pub struct HandlerKit<H> {
    /// The test's database.
    pub db: PgPool,
    engine: Engine<H, Inbox>,
}

impl<H: Handler> HandlerKit<H> {
    /// Brings the protocol's tables and those of `own` into `db`, and `handler` to work.
    pub async fn new(db: PgPool, own: &Migrator, handler: H) -> Self {
        migrate::migrate(&db).await.unwrap();
        migrate::migrate_own(&db, own).await.unwrap();
        Self::beside(db, handler)
    }

    /// The same in a database that has its tables: for the second handler of a pipeline.
    #[must_use]
    pub fn beside(db: PgPool, handler: H) -> Self {
        let engine = Engine::new(db.clone(), Inbox::default(), handler, Limits::default());
        Self { db, engine }
    }

    /// The handler.
    pub fn handler(&self) -> &H {
        self.engine.handler()
    }

    /// Enqueues `job`, which must not be there with other content.
    pub async fn enqueue(&self, job: &NewJob) -> JobId {
        let mut tx = self.db.begin().await.unwrap();
        assert_ne!(enqueue_one(&mut tx, job).await.unwrap(), Enqueued::Conflict, "{:?}", job.identity);
        tx.commit().await.unwrap();
        job.id()
    }

    /// Delivers the job's message once, due or not, and whoever held the job is dead. Answers the state
    /// it is in afterwards.
    pub async fn deliver(&self, job: &JobId) -> JobStatus {
        self.let_time_pass(job).await;
        self.consume(&[("message", self.body(job).await)]).await;
        jobs::state_of(&self.db, job).await
    }

    /// Delivers it as queues do: two copies in one batch, and another one afterwards.
    pub async fn deliver_twice(&self, job: &JobId) -> JobStatus {
        self.let_time_pass(job).await;
        let body = self.body(job).await;
        self.consume(&[("first", body.clone()), ("second", body.clone())]).await;
        self.consume(&[("third", body)]).await;
        jobs::state_of(&self.db, job).await
    }

    /// Delivers the message of every unfinished job of the handler's destination, until none is left or none
    /// is tried any more. Answers how many are left.
    pub async fn deliver_all(&self) -> usize {
        let mut left = self.unfinished().await;
        loop {
            for (job, _) in &left {
                self.deliver(job).await;
            }
            let still = self.unfinished().await;
            if still.is_empty() || still == left {
                return still.len();
            }
            left = still;
        }
    }

    /// The consumer dies with its outside work done and nothing written.
    pub async fn die_between_prepare_and_apply(&self, job: &JobId) {
        let claimed = self.claim(job).await;
        let prepared = self.handler().prepare(&claimed).await;
        assert!(prepared.is_ok(), "prepare failed: {:?}", prepared.err());
    }

    /// The consumer dies with its effects written and not committed.
    pub async fn die_before_commit(&self, job: &JobId) {
        let claimed = self.claim(job).await;
        let prepared = self.handler().prepare(&claimed).await.unwrap();
        let mut tx = self.db.begin().await.unwrap();
        self.handler().apply(&mut tx, &claimed, prepared).await.unwrap();
        tx.rollback().await.unwrap();
    }

    /// Expects the job to have been done.
    pub async fn assert_succeeded(&self, job: &JobId) {
        let row = jobs::row(&self.db, job).await;
        assert_eq!(row["status"], "SUCCEEDED", "{row:#}");
    }

    /// Expects the job to have been given up for `reason`.
    pub async fn assert_dead(&self, job: &JobId, reason: &str) {
        let row = jobs::row(&self.db, job).await;
        assert_eq!(row["dead_reason"], reason, "{row:#}");
    }

    /// A number out of the database.
    pub async fn count(&self, query: &'static str) -> i64 {
        sqlx::query_scalar(query).fetch_one(&self.db).await.unwrap()
    }

    /// Claims the job as an invocation does that will not end well.
    async fn claim(&self, job: &JobId) -> Job<H::Payload> {
        self.let_time_pass(job).await;
        let asked = self.asked(job).await;
        let job_type = self.handler().job_type();
        let answered = claim_suspect(&self.db, job_type.destination, &asked, INVOCATION).await.unwrap();
        let claimed: ClaimedJob = answered.job.unwrap_or_else(|| panic!("{job}: {:?}", answered.answer));
        Job::read(&job_type, claimed).unwrap()
    }

    async fn asked(&self, job: &JobId) -> Asked {
        jobs::asked(&self.db, job).await
    }

    async fn body(&self, job: &JobId) -> String {
        let generation = self.asked(job).await.redrive_generation;
        Message::new(self.handler().job_type().name, job.clone(), generation).to_body()
    }

    async fn consume(&self, messages: &[(&str, String)]) {
        self.engine.consume(inbox::event(messages), TimeLeft::lasting(INVOCATION)).await.unwrap();
    }

    /// A lease ends, and a wait is over.
    async fn let_time_pass(&self, job: &JobId) {
        sqlx::query(
            "update job set lease_until = now() - interval '1 second' where job_id = $1 and status = 'CLAIMED'",
        )
        .bind(job.as_str())
        .execute(&self.db)
        .await
        .unwrap();
        sqlx::query("update job set next_attempt_at = now() where job_id = $1 and status = 'RETRY'")
            .bind(job.as_str())
            .execute(&self.db)
            .await
            .unwrap();
    }

    /// Every unfinished job, and how often it was tried.
    async fn unfinished(&self) -> Vec<(JobId, i32)> {
        let rows: Vec<(String, i32)> = sqlx::query_as(
            "select job_id, attempt_count from job where destination = $1 and finished_at is null order by enqueued_at, job_id",
        )
        .bind(self.handler().job_type().destination)
        .fetch_all(&self.db)
        .await
        .unwrap();
        rows.into_iter().map(|(id, attempts)| (JobId::try_from(id).unwrap(), attempts)).collect()
    }
}
