//! News consumer: reads one revision of a news item and what it says about which symbol.
//!
//! Messages come from the queue of the destination `news`; the job's row decides everything else.

use std::sync::Arc;

use intraday::config::location::Place;
use intraday::extraction::rehearsal::Rehearsal;
use intraday::extraction::rules::RulesExtractor;
use intraday::news::NewsHandler;
use lambda_runtime::Error;
use runtime::artifacts::Artifacts;
use runtime::consumer::{self, Engine, Limits, Sqs};
use runtime::database::Postgres;
use runtime::settings::ConsumerSettings;
use runtime::{aws, telemetry};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    telemetry::init();
    let settings = ConsumerSettings::from_env().map_err(telemetry::failed)?;
    let aws = aws::load().await;
    let place = Place::parse(settings.config.as_deref()).map_err(telemetry::failed)?;
    let s3 = aws::s3(&aws);
    let config = Arc::new(place.load(&s3).await.map_err(telemetry::failed)?);
    let postgres = Postgres::new(&settings.database, &aws).map_err(telemetry::failed)?;

    let queue = Sqs::new(aws::sqs(&aws), &settings.queue_url);
    let artifacts = Artifacts::new(s3, &settings.artifact_bucket);
    let extractor = Rehearsal::new(RulesExtractor::new(&config), &config.extraction);
    let handler = NewsHandler::new(config, artifacts, extractor);
    let engine = Engine::new(postgres.pool().clone(), queue, handler, Limits::from(&settings));
    consumer::serve(&postgres, &engine, settings.function_timeout).await
}
