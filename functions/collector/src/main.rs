//! Collector: a schedule's tick or a person's request in, windows and news committed, a report out.
//!
//! It waits for no queue and no consumer: what is slow rides behind it.

mod handle;

use intraday::collect::Collector;
use intraday::config::location::Place;
use intraday::sources::Fetcher;
use lambda_runtime::Error;
use runtime::artifacts::Artifacts;
use runtime::database::Postgres;
use runtime::events::serve;
use runtime::settings::CollectorSettings;
use runtime::{aws, telemetry};

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
    serve(&postgres, |event| handle::handle(&collector, &settings, event)).await
}
