//! Operator: inspects, redrives and dismisses jobs for a person who says who they are and why.
//!
//! Invoked directly with one request; answers with what came of it. A request that is not clear fails
//! with everything that is wrong with it and does nothing.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use runtime::operator;
use runtime::settings::Database;
use runtime::telemetry::{self, failed};
use serde_json::Value;
use sqlx::PgPool;
use store::pool;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    telemetry::init();
    let database = Database::from_env().map_err(failed)?;
    let db = pool::connect(&database.url, database.connections_max).await.map_err(failed)?;
    lambda_runtime::run(service_fn(|event: LambdaEvent<Value>| handle(&db, event.payload))).await
}

async fn handle(db: &PgPool, request: Value) -> Result<Value, Error> {
    operator::answer(db, &request).await.map_err(failed)
}
