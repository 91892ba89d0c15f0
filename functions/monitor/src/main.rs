//! Monitor: says once a minute what everything looks like from outside.
//!
//! Invoked on a schedule; the input does not matter. It only reads. Its metrics go to its log.

use intraday::config::Config;
use intraday::config::location::Place;
use intraday::lag;
use lambda_runtime::Error;
use runtime::aws;
use runtime::database::Postgres;
use runtime::events::serve;
use runtime::monitor::{Monitor, SqsDepths};
use runtime::settings::MonitorSettings;
use runtime::telemetry::{self, failed};
use serde_json::{Value, json};
use sqlx::PgPool;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    telemetry::init();
    let MonitorSettings { database, config, dead_letter_queue_urls } =
        MonitorSettings::from_env().map_err(failed)?;
    let aws = aws::load().await;
    let config =
        Place::parse(config.as_deref()).map_err(failed)?.load(&aws::s3(&aws)).await.map_err(failed)?;
    let postgres = Postgres::new(&database, &aws).map_err(failed)?;
    let (depths, destinations) = (SqsDepths(aws::sqs(&aws)), config.destinations.keys());
    let monitor = Monitor::new(postgres.pool().clone(), depths, destinations, dead_letter_queue_urls)
        .map_err(failed)?;
    serve(&postgres, |_| handle(postgres.pool(), &monitor, &config)).await
}

async fn handle(db: &PgPool, monitor: &Monitor<SqsDepths>, config: &Config) -> Result<Value, Error> {
    let windows = lag::lines(db, &config.datasets).await.map_err(failed)?;
    let lines = monitor.run(windows).await.map_err(failed)?;
    Ok(json!({ "lines": lines }))
}
