//! Relay: sends the outbox's events to their queues, each destination on its own.
//!
//! Invoked every minute and lingering beyond the next, so that a commit is on its queue in milliseconds.
//! Answers with what it did, lane by lane; the input does not matter.

use intraday::config::location::Place;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use runtime::relay::sqs::Sqs;
use runtime::relay::{Relay, Settings};
use runtime::settings::RelaySettings;
use runtime::telemetry::{self, failed};
use runtime::time_left::TimeLeft;
use serde_json::Value;
use store::pool;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    telemetry::init();
    let RelaySettings { database, config, function_timeout } = RelaySettings::from_env().map_err(failed)?;
    let aws = runtime::aws::load().await;
    let config = Place::parse(config.as_deref())
        .map_err(failed)?
        .load(&runtime::aws::s3(&aws))
        .await
        .map_err(failed)?;
    let destinations: Vec<_> = config.destinations.into_keys().collect();
    let settings = Settings::from_env(&destinations, function_timeout).map_err(failed)?;

    let db = pool::connect(&database.url, database.connections_max).await.map_err(failed)?;
    let sqs = Sqs::new(&aws, settings.send_timeout);
    let relay = Relay::new(db, sqs, settings);
    let handle = |event: LambdaEvent<Value>| handle(&relay, TimeLeft::of(&event.context, function_timeout));
    lambda_runtime::run(service_fn(handle)).await
}

async fn handle(relay: &Relay<Sqs>, left: TimeLeft) -> Result<Value, Error> {
    let report = relay.run(left.remaining()).await.map_err(failed)?;
    Ok(serde_json::to_value(report)?)
}
