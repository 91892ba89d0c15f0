//! Reconciler: rings again for jobs whose wake-up was lost.
//!
//! Invoked on a schedule; the input does not matter. Answers with what it did.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use runtime::reconciler;
use runtime::settings::ReconcilerSettings;
use runtime::telemetry::{self, failed};
use serde_json::Value;
use sqlx::PgPool;
use store::pool;
use store::reconcile::Pace;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    telemetry::init();
    let ReconcilerSettings { database, pace } = ReconcilerSettings::from_env().map_err(failed)?;
    let db = pool::connect(&database.url, database.connections_max).await.map_err(failed)?;
    lambda_runtime::run(service_fn(|_: LambdaEvent<Value>| handle(&db, &pace))).await
}

async fn handle(db: &PgPool, pace: &Pace) -> Result<Value, Error> {
    let status = reconciler::run(db, pace).await.map_err(failed)?;
    Ok(serde_json::to_value(status)?)
}
