//! Dead-letter: decides about the messages that SQS gave up on, one destination's queue at a time.
//!
//! Acknowledges what is settled or goes back to work; leaves what nobody can decide, with its evidence
//! in the database.

use intraday::config::location::Place;
use lambda_runtime::Error;
use runtime::aws;
use runtime::consumer::Sqs;
use runtime::database::Postgres;
use runtime::dead_letter::{DeadLetter, Lanes};
use runtime::serve::serve;
use runtime::settings::DeadLetterSettings;
use runtime::telemetry::{self, failed};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    telemetry::init();
    let DeadLetterSettings { database, config, queue_urls } =
        DeadLetterSettings::from_env().map_err(failed)?;
    let aws = aws::load().await;
    let place = Place::parse(config.as_deref()).map_err(failed)?;
    let config = place.load(&aws::s3(&aws)).await.map_err(failed)?;
    let sqs = aws::sqs(&aws);
    let policies =
        config.destinations.into_iter().map(|(name, one)| (name, one.dead_letter_policy)).collect();
    let lanes = Lanes::new(&policies, &queue_urls, |url| Sqs::new(sqs.clone(), url)).map_err(failed)?;

    let postgres = Postgres::new(&database, &aws).map_err(failed)?;
    let dead_letter = DeadLetter::new(postgres.pool().clone(), lanes);
    serve(&postgres, |event| handle(&dead_letter, event.payload)).await
}

async fn handle(dead_letter: &DeadLetter<Sqs>, event: Value) -> Result<Value, Error> {
    dead_letter.handle(&event).await.map_err(failed)
}
