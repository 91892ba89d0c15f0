//! Dead-letter: decides about the messages that SQS gave up on, one destination's queue at a time.
//!
//! Acknowledges what is settled or goes back to work; leaves what nobody can decide, with its evidence
//! in the database.

use intraday::config::location::Place;
use runtime::serve::{self, Failed};
use runtime::settings::DeadLetterSettings;
use runtime::telemetry::{self, failed};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    telemetry::init();
    let settings = DeadLetterSettings::from_env().map_err(failed)?;
    let place = Place::parse(settings.config.as_deref()).map_err(failed)?;
    let s3 = runtime::aws::s3(&runtime::aws::load().await);
    let config = place.load(&s3).await.map_err(failed)?;
    let policies = config.destinations.into_iter().map(|(name, one)| (name, one.dead_letter_policy));
    serve::dead_letter_by(&policies.collect()).await
}
