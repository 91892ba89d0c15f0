//! Migrator: brings the schema up to this release and says which migrations that took.
//!
//! Invoked directly, after a deploy; its input does not matter and calling it again is harmless.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use runtime::settings::Database;
use runtime::telemetry;
use serde_json::{Value, json};
use sqlx::PgPool;
use store::{migrate, pool};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    telemetry::init();
    let database = Database::from_env().map_err(telemetry::failed)?;
    let db = pool::connect(&database.url, database.connections_max).await.map_err(telemetry::failed)?;
    lambda_runtime::run(service_fn(|_: LambdaEvent<Value>| handle(&db))).await
}

async fn handle(db: &PgPool) -> Result<Value, Error> {
    let applied = migrate::migrate(db).await.map_err(telemetry::failed)?;
    Ok(json!({ "applied": applied }))
}
