//! Explain consumer: says why a trigger may have happened.
//!
//! Messages come from the queue of the destination `explain`; the job's row decides everything else.

use std::sync::Arc;

use intraday::config::location::Place;
use intraday::explain::ExplainHandler;
use runtime::aws;
use runtime::serve::{self, Failed};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    serve::consumer(async |start| {
        let place = Place::parse(start.settings.config.as_deref())?;
        let config = Arc::new(place.load(&aws::s3(&start.aws)).await?);
        Ok(ExplainHandler::new(config))
    })
    .await
}
