//! Sweeper: reclaims objects no row refers to, and reports rows whose object is not there.
//!
//! Invoked on a schedule; a person may ask for an audit or an adoption. Answers with what it found.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use runtime::aws;
use runtime::settings::SweeperSettings;
use runtime::sweeper::{self, Order, S3};
use runtime::telemetry::{self, failed};
use runtime::time_left::TimeLeft;
use serde_json::Value;
use sqlx::PgPool;
use store::pool;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    telemetry::init();
    let settings = SweeperSettings::from_env().map_err(failed)?;
    let database = &settings.database;
    let db = pool::connect(&database.url, database.connections_max).await.map_err(failed)?;
    let bucket = S3::new(aws::s3(&aws::load().await), &settings.artifact_bucket);
    lambda_runtime::run(service_fn(|event| handle(&db, &bucket, &settings, event))).await
}

async fn handle(
    db: &PgPool,
    bucket: &S3,
    settings: &SweeperSettings,
    event: LambdaEvent<Value>,
) -> Result<Value, Error> {
    let order = Order::parse(&event.payload).map_err(failed)?;
    let time = TimeLeft::of(&event.context, settings.function_timeout);
    let report = sweeper::run(db, bucket, &settings.policy, &order, time).await.map_err(failed)?;
    Ok(serde_json::to_value(report)?)
}
