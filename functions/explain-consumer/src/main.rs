//! Explain consumer: says why a trigger may have happened.
//!
//! Messages come from the queue of the destination `explain`; the job's row decides everything else.

use std::sync::Arc;

use intraday::config::location::Place;
use intraday::explain::ExplainHandler;
use lambda_runtime::Error;
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
    let config = Arc::new(place.load(&aws::s3(&aws)).await.map_err(telemetry::failed)?);
    let postgres = Postgres::new(&settings.database, &aws).map_err(telemetry::failed)?;

    let queue = Sqs::new(aws::sqs(&aws), &settings.queue_url);
    let engine =
        Engine::new(postgres.pool().clone(), queue, ExplainHandler::new(config), Limits::from(&settings));
    consumer::serve(&postgres, &engine, settings.function_timeout).await
}
