//! Collector: a schedule's tick or a person's request in, windows and news committed, a report out.
//!
//! It waits for no queue and no consumer: what is slow rides behind it.

use intraday::collect::Collector;
use intraday::collect::request::Request;
use intraday::config::location::Place;
use intraday::sources::Fetcher;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use runtime::artifacts::Artifacts;
use runtime::settings::CollectorSettings;
use runtime::time_left::TimeLeft;
use runtime::{aws, telemetry};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    telemetry::init();
    let settings = CollectorSettings::from_env().map_err(telemetry::failed)?;
    let s3 = aws::s3(&aws::load().await);
    let place = Place::parse(settings.config.as_deref()).map_err(telemetry::failed)?;
    let database = &settings.database;
    let collector = Collector {
        config: place.load(&s3).await.map_err(telemetry::failed)?,
        db: store::pool::connect(&database.url, database.connections_max).await.map_err(telemetry::failed)?,
        artifacts: Artifacts::new(s3.clone(), &settings.artifact_bucket),
        fetcher: Fetcher::new(s3).map_err(telemetry::failed)?,
    };
    lambda_runtime::run(service_fn(|event| handle(&collector, &settings, event))).await
}

async fn handle(
    collector: &Collector<Artifacts>,
    settings: &CollectorSettings,
    event: LambdaEvent<Value>,
) -> Result<Value, Error> {
    let request = Request::parse(event.payload).map_err(telemetry::failed)?;
    let time = TimeLeft::of(&event.context, settings.function_timeout);
    let trace = event.context.xray_trace_id.as_deref();
    let report = collector.run(&request, time, trace).await.map_err(telemetry::failed)?;
    Ok(serde_json::to_value(report)?)
}
