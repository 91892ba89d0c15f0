//! One event: of CloudFormation, or of a person.

use lambda_runtime::Error;
use runtime::telemetry::failed;
use runtime::time_left::TimeLeft;
use serde_json::Value;

use crate::custom_resource::{self, Request};
use crate::migration::Migration;

/// Migrates for whoever asks. CloudFormation is answered where it wants its answer.
///
/// # Errors
///
/// A direct call failed, or CloudFormation could not be told how it went.
pub async fn handle(migration: &Migration, event: Value, time_left: TimeLeft) -> Result<Value, Error> {
    match Request::parse(&event).map_err(failed)? {
        None => Ok(migration.run(time_left).await.map_err(failed)?.to_json()),
        Some(request) => custom_resource::answer(&request, migration, time_left).await.map_err(failed),
    }
}
