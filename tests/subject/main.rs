//! What the scenarios kill where the product's own functions would bring a subject along.
//!
//! A producer that enqueues as the product does, three producers that do it wrongly (the baselines this
//! design has to beat), and a consumer whose handler behaves as its job says.

mod handler;
mod producer;

use runtime::consumer::{Engine, Limits, Sqs, serve};
use runtime::database::Postgres;
use runtime::settings::ConsumerSettings;
use runtime::{aws, telemetry};
use store::pool;

use handler::Subject;

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    telemetry::init();
    let settings = ConsumerSettings::from_env()?;
    let aws = aws::load().await;
    let postgres = Postgres::new(&settings.database, &aws)?;
    let db = postgres.pool().clone();
    let sqs = aws_sdk_sqs::Client::new(&aws);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["consumer"] => consume(&postgres, sqs, &settings).await,
        ["enqueue", name, behave, count] => producer::enqueue(&db, name, behave, count.parse()?).await,
        ["commit-then-send", name] => producer::commit_then_send(&db, &sqs, &settings.queue_url, name).await,
        ["send-then-commit", name] => producer::send_then_commit(&db, &sqs, &settings.queue_url, name).await,
        ["send-inside", name] => producer::send_inside(&db, &sqs, &settings.queue_url, name).await,
        other => Err(format!("{other:?} is no role of the subject").into()),
    }
}

async fn consume(
    postgres: &Postgres,
    sqs: aws_sdk_sqs::Client,
    settings: &ConsumerSettings,
) -> Result<(), Error> {
    let queue = Sqs::new(sqs, &settings.queue_url);
    // Little time is asked for a start, so that short invocations can be tried too.
    let limits = Limits { start_time_min: std::time::Duration::from_millis(500), ..Limits::from(settings) };
    // Connections of its own: one that `prepare` holds must not be one that a completion waits for.
    let notes = pool::lazy((*postgres.pool().connect_options()).clone(), 1);
    let engine = Engine::new(postgres.pool().clone(), queue, Subject { notes }, limits);
    serve(postgres, &engine, settings.function_timeout).await
}
