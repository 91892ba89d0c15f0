//! Janitor: removes events and jobs that have served their time.
//!
//! Invoked on a schedule; the input does not matter. Answers with what it removed.

use lambda_runtime::{Error, LambdaEvent};
use runtime::database::Postgres;
use runtime::settings::JanitorSettings;
use runtime::telemetry::{self, failed};
use runtime::time_left::TimeLeft;
use runtime::{aws, events, janitor, metrics};
use serde_json::Value;
use sqlx::PgPool;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    telemetry::init();
    let settings = JanitorSettings::from_env().map_err(failed)?;
    let postgres = Postgres::new(&settings.database, &aws::load().await).map_err(failed)?;
    events::serve(&postgres, |event| handle(postgres.pool(), &settings, event)).await
}

async fn handle(db: &PgPool, settings: &JanitorSettings, event: LambdaEvent<Value>) -> Result<Value, Error> {
    let time = TimeLeft::of(&event.context, settings.function_timeout);
    let status = janitor::run(db, &settings.retention, time).await.map_err(failed)?;
    metrics::heartbeat("janitor");
    Ok(serde_json::to_value(status)?)
}
