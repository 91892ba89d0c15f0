//! Janitor: removes events and jobs that have served their time.
//!
//! Invoked on a schedule; the input does not matter. Answers with what it removed.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use runtime::janitor;
use runtime::settings::JanitorSettings;
use runtime::telemetry::{self, failed};
use runtime::time_left::TimeLeft;
use serde_json::Value;
use sqlx::PgPool;
use store::pool;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    telemetry::init();
    let settings = JanitorSettings::from_env().map_err(failed)?;
    let database = &settings.database;
    let db = pool::connect(&database.url, database.connections_max).await.map_err(failed)?;
    lambda_runtime::run(service_fn(|event| handle(&db, &settings, event))).await
}

async fn handle(db: &PgPool, settings: &JanitorSettings, event: LambdaEvent<Value>) -> Result<Value, Error> {
    let time = TimeLeft::of(&event.context, settings.function_timeout);
    let status = janitor::run(db, &settings.retention, time).await.map_err(failed)?;
    Ok(serde_json::to_value(status)?)
}
