//! Migrator: brings the schema up to this release and says which migrations that took.
//!
//! Invoked by CloudFormation as a custom resource, or directly with `{}`. Calling it again is harmless,
//! and so is calling it on a schema that is newer than this release.

mod custom_resource;
mod handle;
mod migration;

use std::sync::Arc;

use lambda_runtime::{Error, LambdaEvent, service_fn};
use runtime::aws;
use runtime::database::Postgres;
use runtime::settings::MigratorSettings;
use runtime::telemetry::{self, failed};
use runtime::time_left::TimeLeft;
use serde_json::Value;

use crate::migration::Migration;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    telemetry::init();
    let MigratorSettings { database, logins, function_timeout } =
        MigratorSettings::from_env().map_err(failed)?;
    let database = Postgres::new(&database, &aws::load().await).map_err(failed)?;
    let migration = Migration { database: Arc::new(database), logins };
    lambda_runtime::run(service_fn(|event: LambdaEvent<Value>| {
        let time_left = TimeLeft::of(&event.context, function_timeout);
        handle::handle(&migration, event.payload, time_left)
    }))
    .await
}
