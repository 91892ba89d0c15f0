//! The audit against rows that the real statements wrote, and against rows that no correct program could
//! have left behind.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::{DeadReason, Identity, JobId};
use sqlx::PgPool;

use super::{Balance, absent, balance, digests, events, jobs, latencies, published, windows};
use crate::claim::{Asked, Claim, claim_batch};
use crate::enqueue::{NewJob, enqueue};
use crate::job::{Moved, bury, complete};
use crate::window::{NewWindow, open};

const LEASE: Duration = Duration::from_mins(1);

fn identity(number: i64) -> Identity {
    Identity::new("news").integer("number", number)
}

async fn commit(db: &PgPool, numbers: std::ops::Range<i64>) {
    let jobs: Vec<NewJob> = numbers
        .map(|number| NewJob {
            identity: identity(number),
            job_type: "news".to_owned(),
            destination: "news".to_owned(),
            payload: serde_json::json!({"number": number}),
            artifact_key: None,
            window: None,
            max_attempts: 8,
            max_age: None,
            ordering_key: None,
            trace_header: None,
        })
        .collect();
    let mut tx = db.begin().await.unwrap();
    enqueue(&mut tx, &jobs).await.unwrap();
    tx.commit().await.unwrap();
}

async fn claimed(db: &PgPool, number: i64) -> Claim {
    let asked = Asked { job_id: identity(number).job_id(), redrive_generation: 0 };
    let answered = claim_batch(db, "news", &[asked], LEASE).await.unwrap().remove(0);
    answered.job.unwrap().claim
}

async fn publish(db: &PgPool) {
    sqlx::query!("update outbox_event set status = 'PUBLISHED', published_at = now() where status = 'NEW'")
        .execute(db)
        .await
        .unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn empty_database_has_a_balance_of_nothing(db: PgPool) {
    assert_eq!(balance(&db).await.unwrap(), Balance::default());
    assert!(balance(&db).await.unwrap().holds());
    assert_eq!(digests(&db).await.unwrap(), []);
}

#[sqlx::test(migrations = "../../migrations")]
async fn balance_counts_every_job_once_where_it_stands(db: PgPool) {
    commit(&db, 0..3).await;
    publish(&db).await;
    commit(&db, 3..5).await;
    assert_eq!(complete(&db, &claimed(&db, 0).await).await.unwrap(), Moved::Done);
    let reason = DeadReason::ArtifactMissing;
    assert_eq!(bury(&db, &claimed(&db, 1).await, &reason, "gone").await.unwrap(), Moved::Done);
    let _held = claimed(&db, 3).await;

    let counted = balance(&db).await.unwrap();

    let expected = Balance {
        committed: 5,
        succeeded: 1,
        dead: 1,
        unfinished: 3,
        held: 1,
        unsent: 2,
        awaiting_delivery: 1,
        unwakeable: 0,
    };
    assert_eq!(counted, expected);
    assert!(counted.holds() && !counted.is_settled());
}

#[sqlx::test(migrations = "../../migrations")]
async fn job_that_no_event_can_wake_breaks_the_balance(db: PgPool) {
    commit(&db, 0..2).await;
    let job_id = identity(0).job_id();
    sqlx::query!("delete from outbox_event where job_id = $1", job_id.as_str()).execute(&db).await.unwrap();
    let other = identity(1).job_id();
    sqlx::query!(
        "update outbox_event set status = 'DEAD', dead_reason = 'MESSAGE_TOO_LARGE' where job_id = $1",
        other.as_str()
    )
    .execute(&db)
    .await
    .unwrap();

    let counted = balance(&db).await.unwrap();

    assert_eq!(counted.unwakeable, 2);
    assert!(!counted.holds());
}

#[sqlx::test(migrations = "../../migrations")]
async fn event_of_an_older_generation_wakes_nobody(db: PgPool) {
    commit(&db, 0..1).await;
    publish(&db).await;
    sqlx::query!("update job set redrive_generation = 1").execute(&db).await.unwrap();

    assert_eq!(balance(&db).await.unwrap().unwakeable, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn absent_names_exactly_the_jobs_without_a_row(db: PgPool) {
    commit(&db, 0..2).await;
    let expected: Vec<JobId> = (0..4).map(|number| identity(number).job_id()).collect();

    let mut missing = absent(&db, &expected).await.unwrap();

    missing.sort();
    let mut never_made = vec![expected[2].to_string(), expected[3].to_string()];
    never_made.sort();
    assert_eq!(missing, never_made);
}

#[sqlx::test(migrations = "../../migrations")]
async fn jobs_and_events_are_counted_by_state(db: PgPool) {
    commit(&db, 0..2).await;
    publish(&db).await;
    commit(&db, 2..3).await;
    let reason = DeadReason::ArtifactMissing;
    assert_eq!(bury(&db, &claimed(&db, 0).await, &reason, "gone").await.unwrap(), Moved::Done);

    let counted: Vec<_> =
        jobs(&db).await.unwrap().into_iter().map(|row| (row.status, row.jobs, row.attempts)).collect();
    assert_eq!(counted, [("DEAD".to_owned(), 1, 1), ("PENDING".to_owned(), 2, 0)]);
    let counted: Vec<_> =
        events(&db).await.unwrap().into_iter().map(|row| (row.status, row.events)).collect();
    assert_eq!(counted, [("NEW".to_owned(), 1), ("PUBLISHED".to_owned(), 2)]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn published_offers_only_what_was_sent(db: PgPool) {
    commit(&db, 0..1).await;
    publish(&db).await;
    commit(&db, 1..2).await;

    let offered = published(&db, 10).await.unwrap();

    assert_eq!(offered.len(), 1);
    assert!(offered[0].body.contains(identity(0).job_id().as_str()));
}

#[sqlx::test(migrations = "../../migrations")]
async fn latency_is_measured_from_commit_to_end(db: PgPool) {
    commit(&db, 0..3).await;
    assert_eq!(complete(&db, &claimed(&db, 0).await).await.unwrap(), Moved::Done);
    assert_eq!(complete(&db, &claimed(&db, 1).await).await.unwrap(), Moved::Done);
    sqlx::query!("update job set created_at = finished_at - interval '2 s' where finished_at is not null")
        .execute(&db)
        .await
        .unwrap();

    let measured = latencies(&db).await.unwrap();

    assert_eq!((measured.len(), measured[0].jobs), (1, 2));
    assert_eq!([measured[0].p50, measured[0].p95, measured[0].max], [Duration::from_secs(2); 3]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn windows_are_counted_by_dataset(db: PgPool) {
    let first: DateTime<Utc> = "2018-04-04T13:30:00Z".parse().unwrap();
    for minute in 0..3 {
        let window = NewWindow {
            dataset: "us8",
            start: first + TimeDelta::minutes(minute),
            session_date: first.date_naive(),
            content_digest: &"a".repeat(64),
            bar_count: 0,
            artifact_key: None,
            backfilled: minute == 2,
        };
        open(&db, &window).await.unwrap();
    }

    let counted = windows(&db).await.unwrap().remove(0);

    assert_eq!((counted.windows, counted.with_bars, counted.bars), (3, 0, 0));
    assert_eq!((counted.backfilled, counted.corrected), (1, 0));
    assert_eq!((counted.first, counted.last), (first, first + TimeDelta::minutes(2)));
}

#[sqlx::test(migrations = "../../migrations")]
async fn digest_changes_with_a_row_and_only_then(db: PgPool) {
    commit(&db, 0..3).await;
    let before = digests(&db).await.unwrap();
    commit(&db, 0..3).await;
    assert_eq!(digests(&db).await.unwrap(), before);

    let _held = claimed(&db, 1).await;

    let after = digests(&db).await.unwrap();
    let changed: Vec<&str> = before
        .iter()
        .zip(&after)
        .filter(|(one, other)| one != other)
        .map(|(one, _)| one.table.as_str())
        .collect();
    assert_eq!(changed, ["job"]);
}
