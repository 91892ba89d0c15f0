//! The mains of a pipeline's own functions: everything between `fn main` and the first invocation.
//!
//! Each starts logging, reads and checks its settings, and serves for as long as its sandbox lives. Who
//! brings a pipeline of their own brings its names and its handlers; nothing here knows any. The loop is
//! boxed, so that a `main` around it stays a shallow type.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

use aws_config::SdkConfig;
use domain::JobType;
use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::{Value, json};
use sqlx::PgPool;
use sqlx::migrate::Migrator;
use store::dead_letter::Policy;
use store::{migrate, pool};

use crate::artifacts::Artifacts;
use crate::aws;
use crate::consumer::{self, Engine, Handler, Limits, Sqs};
use crate::dead_letter::{DeadLetter, Lanes};
use crate::relay::{self, Relay, Settings};
use crate::settings::{ConsumerSettings, Database, DeadLetterSettings, Faults, RelaySettings};
use crate::telemetry::{self, Chain, failed};
use crate::time_left::TimeLeft;

/// A function that can not go on; Lambda starts another sandbox.
pub type Failed = lambda_runtime::Error;

/// What a handler is made from.
#[derive(Debug)]
pub struct Start {
    /// The consumer's settings.
    pub settings: ConsumerSettings,
    /// What AWS clients have in common.
    pub aws: SdkConfig,
}

impl Start {
    /// Connections of the handler's own, at most `max`, for what its `prepare` reads and writes. Those of
    /// the engine are for completions, which must not wait for a `prepare`.
    ///
    /// # Errors
    ///
    /// The settings of the database can not be understood.
    pub async fn connections(&self, max: u32) -> Result<PgPool, store::Error> {
        pool::connect(&self.settings.database.url, max).await
    }

    /// The artifacts of its jobs.
    ///
    /// # Errors
    ///
    /// [`Faults`]: there is no `ARTIFACT_BUCKET`.
    pub fn artifacts(&self) -> Result<Artifacts, Faults> {
        let bucket = self.settings.artifact_bucket.as_deref();
        let bucket = bucket.ok_or_else(|| Faults(vec!["ARTIFACT_BUCKET is not set".to_owned()]))?;
        Ok(Artifacts::new(aws::s3(&self.aws), bucket))
    }
}

/// A consumer: does the jobs of the handler that `make` makes.
///
/// ```no_run
/// # use domain::JobType;
/// # use runtime::consumer::{Failure, Handler, Job};
/// # struct Greeter;
/// # impl Handler for Greeter {
/// #     type Payload = ();
/// #     type Prepared = ();
/// #     fn job_type(&self) -> JobType { JobType::new("greeting") }
/// #     async fn prepare(&self, _: &Job<()>) -> Result<(), Failure> { Ok(()) }
/// #     async fn apply(&self, _: &mut sqlx::PgConnection, _: &Job<()>, (): ()) -> Result<(), Failure> { Ok(()) }
/// # }
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() -> Result<(), runtime::serve::Failed> {
///     runtime::serve::consumer(async |_| Ok(Greeter)).await
/// }
/// ```
///
/// # Errors
///
/// The settings are wrong, the handler was not made, or the Lambda runtime gives up.
pub async fn consumer<H: Handler>(
    make: impl AsyncFnOnce(&Start) -> Result<H, Box<dyn Error + Send + Sync>>,
) -> Result<(), Failed> {
    telemetry::init();
    let start = Start { settings: ConsumerSettings::from_env().map_err(failed)?, aws: aws::load().await };
    let handler = make(&start).await.inspect_err(|error| {
        tracing::error!(error = %Chain(&**error), "the handler was not made");
    })?;
    let Start { settings, aws } = start;
    let database = &settings.database;
    let db = pool::connect(&database.url, database.connections_max).await.map_err(failed)?;
    let queue = Sqs::new(aws::sqs(&aws), &settings.queue_url);
    let engine = Engine::new(db, queue, handler, Limits::from(&settings));
    Box::pin(consumer::serve(&engine, settings.function_timeout)).await
}

/// A relay: sends the events of the destinations of `job_types`, which must be those of `QUEUE_URLS`.
///
/// # Errors
///
/// The settings are wrong, or the Lambda runtime gives up.
pub async fn relay(job_types: &[JobType]) -> Result<(), Failed> {
    telemetry::init();
    let RelaySettings { database, function_timeout } = RelaySettings::from_env().map_err(failed)?;
    let settings = Settings::from_env(&destinations(job_types), function_timeout).map_err(failed)?;
    let db = pool::connect(&database.url, database.connections_max).await.map_err(failed)?;
    let sqs = relay::sqs::Sqs::new(&aws::load().await, settings.send_timeout);
    let relay = Relay::new(db, sqs, settings);
    let run = async |event: LambdaEvent<Value>| {
        let left = TimeLeft::of(&event.context, function_timeout);
        let report = relay.run(left.remaining()).await.map_err(failed)?;
        Ok::<_, Failed>(serde_json::to_value(report)?)
    };
    Box::pin(lambda_runtime::run(service_fn(run))).await
}

/// The destinations of `job_types`, each once.
fn destinations(job_types: &[JobType]) -> Vec<String> {
    let names: BTreeSet<&str> = job_types.iter().map(|job_type| job_type.destination).collect();
    names.into_iter().map(str::to_owned).collect()
}

/// A dead-letter function: judges what lies in the dead-letter queues of the destinations of `job_types`,
/// which must be those of `QUEUE_URLS`. A job with attempts left goes back to work.
///
/// # Errors
///
/// The settings are wrong, or the Lambda runtime gives up.
pub async fn dead_letter(job_types: &[JobType]) -> Result<(), Failed> {
    let policies = destinations(job_types).into_iter().map(|name| (name, Policy::default()));
    dead_letter_by(&policies.collect()).await
}

/// The same with a policy for each destination.
///
/// # Errors
///
/// As [`dead_letter`].
pub async fn dead_letter_by(policies: &BTreeMap<String, Policy>) -> Result<(), Failed> {
    telemetry::init();
    let DeadLetterSettings { database, queue_urls, .. } = DeadLetterSettings::from_env().map_err(failed)?;
    let sqs = aws::sqs(&aws::load().await);
    let lanes = Lanes::new(policies, &queue_urls, |url| Sqs::new(sqs.clone(), url)).map_err(failed)?;
    let db = pool::connect(&database.url, database.connections_max).await.map_err(failed)?;
    let dead_letter = DeadLetter::new(db, lanes);
    let judge = async |event: LambdaEvent<Value>| dead_letter.handle(&event.payload).await.map_err(failed);
    Box::pin(lambda_runtime::run(service_fn(judge))).await
}

/// A migrator: brings the protocol's schema up to this release, then that of the pipeline, and says which
/// migrations that took.
///
/// # Errors
///
/// The settings are wrong, or the Lambda runtime gives up.
pub async fn migrator(own: &Migrator) -> Result<(), Failed> {
    telemetry::init();
    let database = Database::from_env().map_err(failed)?;
    let db = pool::connect(&database.url, database.connections_max).await.map_err(failed)?;
    let run = async |_: LambdaEvent<Value>| {
        let protocol = migrate::migrate(&db).await.map_err(failed)?;
        let own = migrate::migrate_own(&db, own).await.map_err(failed)?;
        Ok::<_, Failed>(json!({ "applied": protocol, "own": own }))
    };
    Box::pin(lambda_runtime::run(service_fn(run))).await
}
