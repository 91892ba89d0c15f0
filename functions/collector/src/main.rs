//! Collector: a schedule's tick or a person's request in, windows and news committed, a report out.
//!
//! It waits for no queue and no consumer: what is slow rides behind it.

use intraday::collect::Collector;
use intraday::collect::request::Request;
use intraday::config::location::Place;
use intraday::sources::Fetcher;
use lambda_runtime::{Error, LambdaEvent};
use runtime::artifacts::Artifacts;
use runtime::database::Postgres;
use runtime::events::serve;
use runtime::settings::CollectorSettings;
use runtime::time_left::TimeLeft;
use runtime::{aws, metrics, telemetry};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    telemetry::init();
    let settings = CollectorSettings::from_env().map_err(telemetry::failed)?;
    let aws = aws::load().await;
    let s3 = aws::s3(&aws);
    let place = Place::parse(settings.config.as_deref()).map_err(telemetry::failed)?;
    let postgres = Postgres::new(&settings.database, &aws).map_err(telemetry::failed)?;
    let collector = Collector {
        config: place.load(&s3).await.map_err(telemetry::failed)?,
        db: postgres.pool().clone(),
        artifacts: Artifacts::new(s3.clone(), &settings.artifact_bucket),
        fetcher: Fetcher::new(s3).map_err(telemetry::failed)?,
    };
    serve(&postgres, |event| handle(&collector, &settings, event)).await
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
    metrics::heartbeat("collector");
    Ok(serde_json::to_value(report)?)
}
