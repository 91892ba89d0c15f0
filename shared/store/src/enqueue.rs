//! Enqueue: the job and the event that will wake somebody up for it, in the caller's transaction.
//!
//! Enqueuing the same job again is a silent no-op; the event is inserted only for job rows that were
//! really inserted. Enqueue a job only when its subject's own row was inserted or changed in the same
//! transaction: otherwise a job whose row retention has removed would be born again.
//!
//! Writers in other languages call the SQL function `tailcar_enqueue` (`migrations/0005_enqueue.sql`),
//! which follows the same rules; a test holds the two together.

use std::collections::HashSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::{Identity, JobId, JobType, Message, event_id};
use fault::FaultPoint;
use serde_json::Value;
use sqlx::PgConnection;
use sqlx::postgres::types::PgInterval;

use crate::Error;
use crate::values::interval;
use crate::window::WindowRef;

/// A job to enqueue.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// What makes it the job it is; gives its id.
    pub identity: Identity,
    /// What kind of work it is, and the type of its event.
    pub job_type: String,
    /// Whose queue wakes its consumer.
    pub destination: String,
    /// References only; logical content.
    pub payload: Value,
    /// The object the work reads, already referred to. A reference, not content.
    pub artifact_key: Option<String>,
    /// The window it is tied to: behind that window's generation, the job is stale.
    pub window: Option<WindowRef>,
    /// Claims before it is given up; at least 1.
    pub max_attempts: i32,
    /// Older than this since enqueuing it is not worth doing any more; rounded down to microseconds.
    pub max_age: Option<Duration>,
    /// Events of one key are spread fairly against those of other keys.
    pub ordering_key: Option<String>,
    /// The trace that caused it, as `AWSTraceHeader`.
    pub trace_header: Option<String>,
}

impl NewJob {
    /// A job of `job_type`, tied to no window, with the attempts, age and destination of its type.
    ///
    /// `payload` holds references, and whatever the identity names; it is what the handler reads.
    ///
    /// ```
    /// use domain::JobType;
    /// use serde_json::json;
    /// use store::enqueue::NewJob;
    ///
    /// const RECEIPT: JobType = JobType::new("receipt").sent_to("receipts").tried(5);
    ///
    /// let order_id = "A-17";
    /// let job = NewJob::new(&RECEIPT, RECEIPT.identity().text("order_id", order_id), json!({ "order_id": order_id }));
    ///
    /// assert_eq!((job.destination.as_str(), job.max_attempts), ("receipts", 5));
    /// ```
    #[must_use]
    pub fn new(job_type: &JobType, identity: Identity, payload: Value) -> Self {
        Self {
            identity,
            job_type: job_type.name.to_owned(),
            destination: job_type.destination.to_owned(),
            payload,
            artifact_key: None,
            window: None,
            max_attempts: job_type.max_attempts,
            max_age: job_type.max_age,
            ordering_key: None,
            trace_header: None,
        }
    }

    /// The id it will have.
    #[must_use]
    pub fn id(&self) -> JobId {
        self.identity.job_id()
    }
}

/// What came of enqueuing one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueued {
    /// Job and event were inserted.
    Created,
    /// The same job is there already; nothing was done.
    Known,
    /// A job of that id with other content is there; nothing was done. A bug of the caller.
    Conflict,
}

/// Enqueues `jobs` in one round trip and says of each, in their order, what came of it.
///
/// A second statement runs only when some job was not inserted: the first can not see the row it met.
/// Rows are inserted in the order of their ids, so that overlapping calls do not deadlock; a call that
/// meets a row somebody is inserting right now waits for that transaction. Content is the job's type,
/// destination, payload and window.
///
/// # Errors
///
/// [`Error::Database`]; roll back.
pub async fn enqueue(tx: &mut PgConnection, jobs: &[NewJob]) -> Result<Vec<Enqueued>, Error> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let columns = Columns::of(jobs);
    let mut created = insert(&mut *tx, &columns, jobs).await?;
    let mut outcomes: Vec<Option<Enqueued>> =
        columns.id_texts.iter().map(|id| created.remove(id).then_some(Enqueued::Created)).collect();

    if outcomes.contains(&None) {
        let conflicts = conflicts(tx, &columns).await?;
        let met = |position| if conflicts.contains(&position) { Enqueued::Conflict } else { Enqueued::Known };
        for (position, outcome) in outcomes.iter_mut().enumerate() {
            outcome.get_or_insert_with(|| met(position));
        }
    }
    Ok(outcomes.into_iter().flatten().collect())
}

/// Enqueues one job: [`enqueue`] for a writer that has no more than that.
///
/// It is the call for every Rust service that writes to this database, inside whatever transaction its
/// own rows are written in:
///
/// ```
/// # use domain::JobType;
/// # use serde_json::json;
/// use sqlx::PgPool;
/// use store::enqueue::{Enqueued, NewJob, enqueue_one};
/// # const RECEIPT: JobType = JobType::new("receipt");
///
/// async fn place(db: &PgPool, order_id: &str) -> Result<(), store::Error> {
///     let mut tx = db.begin().await?;
///     sqlx::query("insert into purchase (order_id) values ($1)").bind(order_id).execute(&mut *tx).await?;
///     let job = NewJob::new(&RECEIPT, RECEIPT.identity().text("order_id", order_id), json!({ "order_id": order_id }));
///     let outcome = enqueue_one(&mut tx, &job).await?;
///     assert_ne!(outcome, Enqueued::Conflict, "one identity, two contents");
///     tx.commit().await?;
///     Ok(())
/// }
///
/// # #[tokio::main]
/// # async fn main() {
/// # testkit::pools::scratch(async |db| {
/// #     sqlx::query("create table purchase (order_id text primary key)").execute(&db).await.unwrap();
/// place(&db, "A-17").await.unwrap();
/// #     let events: i64 = sqlx::query_scalar("select count(*) from outbox_event").fetch_one(&db).await.unwrap();
/// #     assert_eq!(events, 1);
/// # }).await;
/// # }
/// ```
///
/// # Errors
///
/// [`Error::Database`]; roll back.
pub async fn enqueue_one(tx: &mut PgConnection, job: &NewJob) -> Result<Enqueued, Error> {
    let outcomes = enqueue(tx, std::slice::from_ref(job)).await?;
    outcomes.first().copied().ok_or(Error::Database(sqlx::Error::RowNotFound))
}

/// What is compared to tell a known job from a conflict, by column, as `unnest` takes it.
struct Columns<'a> {
    ids: Vec<JobId>,
    id_texts: Vec<String>,
    job_types: Vec<&'a str>,
    destinations: Vec<&'a str>,
    payloads: Vec<Value>,
    datasets: Vec<Option<&'a str>>,
    window_starts: Vec<Option<DateTime<Utc>>>,
    window_generations: Vec<Option<i32>>,
}

impl<'a> Columns<'a> {
    fn of(jobs: &'a [NewJob]) -> Self {
        let windows = || jobs.iter().map(|job| job.window.as_ref());
        let ids: Vec<JobId> = jobs.iter().map(|job| job.identity.job_id()).collect();
        Self {
            id_texts: ids.iter().map(ToString::to_string).collect(),
            ids,
            job_types: jobs.iter().map(|job| job.job_type.as_str()).collect(),
            destinations: jobs.iter().map(|job| job.destination.as_str()).collect(),
            payloads: jobs.iter().map(|job| job.payload.clone()).collect(),
            datasets: windows().map(|window| Some(window?.dataset.as_str())).collect(),
            window_starts: windows().map(|window| Some(window?.start)).collect(),
            window_generations: windows().map(|window| Some(window?.generation)).collect(),
        }
    }

    /// The events that go with the jobs: their ids and their bodies.
    fn events(&self) -> (Vec<String>, Vec<String>) {
        let jobs = || self.job_types.iter().zip(&self.ids);
        let ids = jobs().map(|(job_type, id)| event_id(job_type, id, 0)).collect();
        let bodies = jobs().map(|(job_type, id)| Message::new(job_type, id.clone(), 0).to_body()).collect();
        (ids, bodies)
    }
}

/// Inserts the jobs that are not there, each with its event, and answers their ids.
async fn insert(
    tx: &mut PgConnection,
    columns: &Columns<'_>,
    jobs: &[NewJob],
) -> Result<HashSet<String>, Error> {
    let artifact_keys: Vec<Option<&str>> = jobs.iter().map(|job| job.artifact_key.as_deref()).collect();
    let max_attempts: Vec<i32> = jobs.iter().map(|job| job.max_attempts).collect();
    let max_ages: Vec<Option<PgInterval>> = jobs.iter().map(|job| job.max_age.map(interval)).collect();
    let ordering_keys: Vec<Option<&str>> = jobs.iter().map(|job| job.ordering_key.as_deref()).collect();
    let trace_headers: Vec<Option<&str>> = jobs.iter().map(|job| job.trace_header.as_deref()).collect();
    let (event_ids, bodies) = columns.events();
    let created = sqlx::query_scalar!(
        r#"
        -- enqueue::insert
        with asked as (
            select *
              from unnest($1::text[], $2::text[], $3::text[], $4::jsonb[], $5::text[], $6::timestamptz[],
                          $7::int[], $8::text[], $9::int[], $10::interval[], $11::text[], $12::text[],
                          $13::text[], $14::text[])
                   with ordinality
                   as asked (job_id, job_type, destination, payload, dataset, window_start,
                             window_generation, artifact_key, max_attempts, max_age, trace_header,
                             ordering_key, event_id, body, position)
        ), inserted as (
            insert into job (job_id, job_type, destination, payload, dataset, window_start,
                             window_generation, artifact_key, max_attempts, max_age, trace_header)
            select job_id, job_type, destination, payload, dataset, window_start,
                   window_generation, artifact_key, max_attempts, max_age, trace_header
              from asked
             order by job_id, position
                on conflict (job_id) do nothing
            returning job_id
        )
        insert into outbox_event (event_id, job_id, event_type, destination, redrive_generation, body,
                                  ordering_key, trace_header)
        select distinct on (asked.job_id)
               event_id, job_id, job_type, destination, 0, body, ordering_key, trace_header
          from inserted
          join asked using (job_id)
         order by asked.job_id, asked.position
            on conflict (event_id) do nothing
        returning job_id
        "#,
        &columns.id_texts,
        &columns.job_types as &[&str],
        &columns.destinations as &[&str],
        &columns.payloads,
        &columns.datasets as &[Option<&str>],
        &columns.window_starts as &[Option<DateTime<Utc>>],
        &columns.window_generations as &[Option<i32>],
        &artifact_keys as &[Option<&str>],
        &max_attempts,
        &max_ages as &[Option<PgInterval>],
        &trace_headers as &[Option<&str>],
        &ordering_keys as &[Option<&str>],
        &event_ids,
        &bodies,
    )
    .fetch_all(tx)
    .fault_point("enqueue::insert")
    .await?;
    Ok(created.into_iter().collect())
}

/// The positions (from 0) of those jobs whose row has other content.
///
/// A row that is not there any more was removed by retention between the two statements: its work was
/// done long ago, which is no conflict.
async fn conflicts(tx: &mut PgConnection, columns: &Columns<'_>) -> Result<HashSet<usize>, Error> {
    let positions = sqlx::query_scalar!(
        r#"
        -- enqueue::conflicts
        select asked.position as "position!"
          from unnest($1::text[], $2::text[], $3::text[], $4::jsonb[], $5::text[], $6::timestamptz[],
                      $7::int[])
               with ordinality
               as asked (job_id, job_type, destination, payload, dataset, window_start,
                         window_generation, position)
          join job using (job_id)
         where (asked.job_type, asked.destination, asked.payload,
                asked.dataset, asked.window_start, asked.window_generation)
               is distinct from
               (job.job_type, job.destination, job.payload,
                job.dataset, job.window_start, job.window_generation)
        "#,
        &columns.id_texts,
        &columns.job_types as &[&str],
        &columns.destinations as &[&str],
        &columns.payloads,
        &columns.datasets as &[Option<&str>],
        &columns.window_starts as &[Option<DateTime<Utc>>],
        &columns.window_generations as &[Option<i32>],
    )
    .fetch_all(tx)
    .fault_point("enqueue::conflicts")
    .await?;
    Ok(positions.into_iter().filter_map(|position| usize::try_from(position - 1).ok()).collect())
}
