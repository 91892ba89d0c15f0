//! Reconciler: rings again for jobs whose wake-up was lost.
//!
//! Invoked on a schedule; the input does not matter. Answers with what it did.

use lambda_runtime::Error;
use runtime::database::Postgres;
use runtime::events::serve;
use runtime::settings::ReconcilerSettings;
use runtime::telemetry::{self, failed};
use runtime::{aws, metrics, reconciler};
use serde_json::Value;
use sqlx::PgPool;
use store::reconcile::Pace;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    telemetry::init();
    let ReconcilerSettings { database, pace } = ReconcilerSettings::from_env().map_err(failed)?;
    let postgres = Postgres::new(&database, &aws::load().await).map_err(failed)?;
    serve(&postgres, |_| handle(postgres.pool(), &pace)).await
}

async fn handle(db: &PgPool, pace: &Pace) -> Result<Value, Error> {
    let status = reconciler::run(db, pace).await.map_err(failed)?;
    metrics::heartbeat("reconciler");
    Ok(serde_json::to_value(status)?)
}
