//! The loop of a function that has a database: an event is worked on when the database is ready for it.

use std::future::Future;

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;

use crate::database::Postgres;
use crate::telemetry::failed;

/// Runs `handle` on each event for as long as the sandbox lives: the last line of a `main`.
///
/// While the database is away, or its schema is too old, each invocation fails and says so.
///
/// # Errors
///
/// Whatever the Lambda runtime gives up for.
pub async fn serve<F>(database: &Postgres, handle: impl Fn(LambdaEvent<Value>) -> F) -> Result<(), Error>
where
    F: Future<Output = Result<Value, Error>>,
{
    let handle = &handle;
    // Boxed: the type of a whole function inside the runtime's own is too deep for the compiler.
    lambda_runtime::run(service_fn(|event: LambdaEvent<Value>| {
        Box::pin(async move {
            database.ready().await.map_err(failed)?;
            Box::pin(handle(event)).await
        })
    }))
    .await
}
