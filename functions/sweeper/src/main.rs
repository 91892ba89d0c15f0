//! Sweeper: reclaims objects no row refers to, and reports rows whose object is not there.
//!
//! Invoked on a schedule; a person may ask for an audit or an adoption. Answers with what it found.

use lambda_runtime::{Error, LambdaEvent};
use runtime::database::Postgres;
use runtime::settings::SweeperSettings;
use runtime::sweeper::{self, Order, S3};
use runtime::telemetry::{self, failed};
use runtime::time_left::TimeLeft;
use runtime::{aws, events, metrics};
use serde_json::Value;
use sqlx::PgPool;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    telemetry::init();
    let settings = SweeperSettings::from_env().map_err(failed)?;
    let aws = aws::load().await;
    let postgres = Postgres::new(&settings.database, &aws).map_err(failed)?;
    let bucket = S3::new(aws::s3(&aws), &settings.artifact_bucket);
    events::serve(&postgres, |event| handle(postgres.pool(), &bucket, &settings, event)).await
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
    report.emit();
    metrics::heartbeat("sweeper");
    Ok(serde_json::to_value(report)?)
}
