//! One event: what is asked for is collected, and what came of it is the answer.

use intraday::collect::Collector;
use intraday::collect::request::Request;
use lambda_runtime::{Error, LambdaEvent};
use runtime::artifacts::Artifacts;
use runtime::settings::CollectorSettings;
use runtime::time_left::TimeLeft;
use runtime::{metrics, telemetry};
use serde_json::Value;

/// Collects, and says that the run came to its end.
///
/// # Errors
///
/// The request can not be understood, or the run failed as a whole.
pub async fn handle(
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
