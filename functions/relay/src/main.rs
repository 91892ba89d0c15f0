//! Relay: sends the outbox's events to their queues, each destination on its own.
//!
//! Invoked every minute and lingering beyond the next, so that a commit is on its queue in milliseconds.
//! Answers with what it did, lane by lane; the input does not matter.

use intraday::config::location::Place;
use lambda_runtime::Error;
use runtime::database::Postgres;
use runtime::metrics;
use runtime::relay::sqs::Sqs;
use runtime::relay::{self, Relay, Settings};
use runtime::serve::serve;
use runtime::settings::RelaySettings;
use runtime::telemetry::{self, failed};
use runtime::time_left::TimeLeft;
use serde_json::Value;

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

    let postgres = Postgres::new(&database, &aws).map_err(failed)?;
    let sqs = Sqs::new(&aws, settings.send_timeout);
    let relay = Relay::new(postgres.pool().clone(), sqs, settings);
    serve(&postgres, |event| handle(&relay, TimeLeft::of(&event.context, function_timeout))).await
}

async fn handle(relay: &Relay<Sqs>, left: TimeLeft) -> Result<Value, Error> {
    let report = relay.run(left.remaining()).await;
    relay::count(&report);
    let report = report.map_err(failed)?;
    metrics::heartbeat("relay");
    Ok(serde_json::to_value(report)?)
}
