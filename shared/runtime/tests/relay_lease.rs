//! The relay and its lease: what a lane that was lost, or is still in trouble, keeps it from doing.

#![allow(clippy::unwrap_used, reason = "a test that can not go on has failed")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use domain::Backoff;
use runtime::relay::sender::{Answer, CallError, Entry, Sender};
use runtime::relay::{Ending, LaneReport, Relay, Route, Settings};
use sqlx::PgPool;
use testkit::outbox::{count, fill};
use testkit::{Health, Queues};

const NEWS: &str = "news";
const URL: &str = "https://sqs/1/news";

fn settings() -> Settings {
    Settings {
        backoff: Backoff { base: Duration::from_hours(1), cap: Duration::from_hours(1) },
        linger: Duration::ZERO,
        ..Settings::new(vec![Route { destination: NEWS.to_owned(), queue_url: URL.to_owned() }])
    }
}

async fn drain<S: Sender>(relay: &Relay<S>) -> LaneReport {
    let mut report = relay.run(Duration::from_mins(1)).await.unwrap();
    report.destinations.remove(NEWS).unwrap()
}

async fn execute(db: &PgPool, sql: &'static str) {
    sqlx::query(sql).execute(db).await.unwrap();
}

/// A queue that takes everything; while it takes the first call, somebody else takes the lane.
struct Thief {
    db: PgPool,
    calls: AtomicUsize,
}

impl Sender for Thief {
    async fn send(&self, _: &str, entries: &[Entry]) -> Result<Answer, CallError> {
        if self.calls.fetch_add(1, Ordering::SeqCst) == 0 {
            execute(
                &self.db,
                "update lane set lease_token = gen_random_uuid(), lease_until = now() + interval '1 hour'",
            )
            .await;
        }
        Ok(Answer { sent: entries.iter().map(|entry| entry.id.clone()).collect(), refused: Vec::new() })
    }

    async fn message_bytes_max(&self, _: &str) -> Result<usize, CallError> {
        Ok(1_048_576)
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn relay_whose_lane_was_taken_while_a_call_was_out_makes_no_further_call(db: PgPool) {
    fill(&db, NEWS, "a", 100, "{}").await.unwrap();
    // A lease of no length is due to be renewed before each call.
    let settings = Settings { in_flight: 1, lease: Duration::ZERO, ..settings() };
    let relay = Relay::new(db.clone(), Thief { db: db.clone(), calls: AtomicUsize::new(0) }, settings);

    let report = drain(&relay).await;

    assert_eq!(relay.sender().calls.load(Ordering::SeqCst), 1);
    assert_eq!(report.ending, Ending::Held);
    assert_eq!(count(&db, NEWS, "PUBLISHED").await.unwrap(), 10, "what was sent is marked");
}

#[sqlx::test(migrations = "../../migrations")]
async fn probe_that_only_gave_events_up_says_nothing_about_the_queue(db: PgPool) {
    fill(&db, NEWS, "good", 50, "{}").await.unwrap();
    let relay = Relay::new(db.clone(), Queues::default(), settings());
    relay.sender().set_health(URL, Health::Throttled);
    drain(&relay).await;
    fill(&db, NEWS, "bad", 10, "").await.unwrap();
    execute(&db, "update outbox_event set next_attempt_at = now() - interval '1 minute' where body = ''")
        .await;
    execute(&db, "update lane set retry_at = now()").await;

    let report = drain(&relay).await;

    assert_eq!((report.dead, report.batches, report.published), (10, 1, 0));
    let failures: i32 = sqlx::query_scalar("select failure_count from lane").fetch_one(&db).await.unwrap();
    assert_eq!(failures, 2, "the lane has not recovered in between");
}
