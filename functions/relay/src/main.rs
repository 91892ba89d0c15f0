//! Relay: sends the outbox's events to their queues, each destination on its own.
//!
//! Invoked every minute and lingering beyond the next, so that a commit is on its queue in milliseconds.
//! Answers with what it did, lane by lane; the input does not matter.

use intraday::config::location::Place;
use runtime::serve::{self, Failed};
use runtime::settings::RelaySettings;
use runtime::telemetry::{self, failed};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    telemetry::init();
    let settings = RelaySettings::from_env().map_err(failed)?;
    let place = Place::parse(settings.config.as_deref()).map_err(failed)?;
    let s3 = runtime::aws::s3(&runtime::aws::load().await);
    let config = place.load(&s3).await.map_err(failed)?;
    let destinations: Vec<_> = config.destinations.into_keys().collect();
    serve::relay(&destinations).await
}
