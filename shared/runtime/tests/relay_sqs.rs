//! The relay through the SDK, against an emulator: what SQS itself says, read as the relay reads it.
//!
//! `make test` starts an emulator; without `AWS_ENDPOINT_URL` there is none, and nothing to test.

#![allow(clippy::unwrap_used, reason = "a test that can not go on has failed")]

use std::time::Duration;

use aws_config::{BehaviorVersion, SdkConfig};
use aws_sdk_sqs::types::QueueAttributeName;
use runtime::relay::sqs::Sqs;
use runtime::relay::{Ending, LaneReport, Relay, Route, Settings};
use sqlx::PgPool;
use testkit::outbox::fill;

const NEWS: &str = "news";
const MIB: usize = 1_048_576;

async fn emulator() -> Option<SdkConfig> {
    std::env::var_os("AWS_ENDPOINT_URL")?;
    Some(runtime::aws::load().await)
}

async fn drain(db: &PgPool, aws: &SdkConfig, queue_url: String) -> LaneReport {
    let route = Route { destination: NEWS.to_owned(), queue_url };
    let settings = Settings { linger: Duration::ZERO, ..Settings::new(vec![route]) };
    let relay = Relay::new(db.clone(), Sqs::new(aws, settings.send_timeout), settings);
    relay.run(Duration::from_mins(1)).await.unwrap().destinations.remove(NEWS).unwrap()
}

/// A queue of its own, which takes messages of `bytes`.
async fn queue(aws: &SdkConfig, bytes: usize) -> String {
    let name = format!("relay-{}", uuid::Uuid::new_v4());
    let queue = runtime::aws::sqs(aws)
        .create_queue()
        .queue_name(name)
        .attributes(QueueAttributeName::MaximumMessageSize, bytes.to_string());
    queue.send().await.unwrap().queue_url.unwrap()
}

async fn arrived(aws: &SdkConfig, queue_url: &str) -> usize {
    let name = QueueAttributeName::ApproximateNumberOfMessages;
    let asked =
        runtime::aws::sqs(aws).get_queue_attributes().queue_url(queue_url).attribute_names(name.clone());
    asked.send().await.unwrap().attributes.unwrap()[&name].parse().unwrap()
}

#[sqlx::test(migrations = "../../migrations")]
async fn messages_of_every_size_arrive_and_what_the_queue_can_not_take_is_dead(db: PgPool) {
    let Some(aws) = emulator().await else { return };
    let queue_url = queue(&aws, MIB).await;
    fill(&db, NEWS, "full", 1, &"x".repeat(MIB)).await.unwrap();
    fill(&db, NEWS, "over", 1, &"x".repeat(MIB + 1)).await.unwrap();
    fill(&db, NEWS, "large", 10, &"y".repeat(200 * 1024)).await.unwrap();
    fill(&db, NEWS, "small", 100, "{}").await.unwrap();
    let with_key = "update outbox_event set ordering_key = 'us8:AAPL', trace_header = 'Root=1-5759e988-bd862e3fe1be46a994272793'";
    sqlx::query(with_key).execute(&db).await.unwrap();

    let report = drain(&db, &aws, queue_url.clone()).await;

    assert_eq!((report.published, report.dead, report.ending), (111, 1, Ending::Drained), "{report:?}");
    assert_eq!(arrived(&aws, &queue_url).await, 111);
}

#[sqlx::test(migrations = "../../migrations")]
async fn maximum_of_the_queue_itself_is_asked_for_and_respected(db: PgPool) {
    let Some(aws) = emulator().await else { return };
    let queue_url = queue(&aws, 1_024).await;
    fill(&db, NEWS, "fits", 3, &"x".repeat(1_024)).await.unwrap();
    fill(&db, NEWS, "over", 1, &"x".repeat(1_025)).await.unwrap();

    let report = drain(&db, &aws, queue_url).await;

    assert_eq!((report.published, report.dead, report.batches), (3, 1, 1), "{report:?}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn queue_that_is_missing_is_the_lanes_trouble(db: PgPool) {
    let Some(aws) = emulator().await else { return };
    let queue_url = queue(&aws, MIB).await.replace("relay-", "missing-");
    fill(&db, NEWS, "a", 10, "{}").await.unwrap();

    let report = drain(&db, &aws, queue_url).await;

    assert_eq!((report.ending, report.dead, report.transient), (Ending::BackingOff, 0, 0), "{report:?}");
    let reason = report.last_error.unwrap();
    assert!(reason.contains("QueueDoesNotExist") || reason.contains("NonExistentQueue"), "{reason}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn endpoint_that_can_not_be_reached_is_the_lanes_trouble(db: PgPool) {
    let Some(_) = emulator().await else { return };
    // A closed port of this machine.
    let aws = aws_config::defaults(BehaviorVersion::latest()).endpoint_url("http://127.0.0.1:9").load().await;
    fill(&db, NEWS, "a", 10, "{}").await.unwrap();

    let report = drain(&db, &aws, "http://127.0.0.1:9/1/news".to_owned()).await;

    assert_eq!((report.ending, report.dead, report.transient), (Ending::BackingOff, 0, 0), "{report:?}");
    assert!(report.last_error.unwrap().starts_with("no answer"));
}
