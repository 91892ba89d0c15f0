//! News consumer: reads one revision of a news item and what it says about which symbol.
//!
//! Messages come from the queue of the destination `news`; the job's row decides everything else.

use std::sync::Arc;

use intraday::config::location::Place;
use intraday::extraction::rehearsal::Rehearsal;
use intraday::extraction::rules::RulesExtractor;
use intraday::news::NewsHandler;
use runtime::aws;
use runtime::serve::{self, Failed};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    serve::consumer(async |start| {
        let place = Place::parse(start.settings.config.as_deref())?;
        let config = Arc::new(place.load(&aws::s3(&start.aws)).await?);
        let extractor = Rehearsal::new(RulesExtractor::new(&config), &config.extraction);
        Ok(NewsHandler::new(config, start.artifacts()?, extractor))
    })
    .await
}
