//! Operator: inspects, redrives and dismisses jobs for a person who says who they are and why.
//!
//! Invoked directly with one request; answers with what came of it. A request that is not clear fails
//! with everything that is wrong with it and does nothing.

use lambda_runtime::Error;
use runtime::database::Postgres;
use runtime::events::serve;
use runtime::settings::Database;
use runtime::telemetry::{self, failed};
use runtime::{aws, operator};
use serde_json::Value;
use sqlx::PgPool;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    telemetry::init();
    let database = Database::from_env().map_err(failed)?;
    let postgres = Postgres::new(&database, &aws::load().await).map_err(failed)?;
    serve(&postgres, |event| handle(postgres.pool(), event.payload)).await
}

async fn handle(db: &PgPool, request: Value) -> Result<Value, Error> {
    operator::answer(db, &request).await.map_err(failed)
}
