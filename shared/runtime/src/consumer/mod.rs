//! The consumer: messages in, finished jobs out.
//!
//! A message is only a hint. One statement asks the database about the whole batch; what was won is
//! prepared side by side, each job's effects are committed together with its completion, and the reply
//! names exactly the messages to keep. So effects in PostgreSQL happen once, whatever is delivered how
//! often, and one bad message or job never touches its neighbours.
//!
//! ```text
//! record ──▶ claim_batch ─┬─ Won ──▶ prepare ──▶ apply + complete ──▶ acknowledge
//!                         │            └─ fails ──▶ retry, bury ──▶ keep, acknowledge
//!                         ├─ Suspect ──▶ claimed alone, last ──▶ as Won
//!                         ├─ settled, superseded, now dead ──▶ acknowledge
//!                         └─ held, early, undecidable ──▶ keep, with the visibility that fits
//! ```

mod attempt;
mod batch;
mod engine;
mod fate;
mod handler;
mod job;
pub(crate) mod record;
mod tally;
pub mod visibility;

use std::time::Duration;

use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::Value;

pub use engine::{Engine, Error, Limits};
pub use handler::{Failure, Handler};
pub use job::{Job, Unfit};
pub use record::EventError;
pub use visibility::{Change, Queue, Refusal, Sqs};

use crate::settings::ConsumerSettings;
use crate::telemetry;
use crate::time_left::TimeLeft;

/// Runs a consumer for as long as its sandbox lives: the last line of its `main`.
///
/// # Errors
///
/// Whatever the Lambda runtime gives up for.
pub async fn serve<H: Handler, Q: Queue>(
    engine: &Engine<H, Q>,
    function_timeout: Duration,
) -> Result<(), lambda_runtime::Error> {
    lambda_runtime::run(service_fn(|event: LambdaEvent<Value>| async move {
        let time_left = TimeLeft::of(&event.context, function_timeout);
        engine.consume(event.payload, time_left).await.map_err(telemetry::failed)
    }))
    .await
}

impl From<&ConsumerSettings> for Limits {
    fn from(settings: &ConsumerSettings) -> Self {
        Self { lease_margin: settings.lease_margin, prepare_width: settings.prepare_width, ..Self::default() }
    }
}
