//! Every answer, and what becomes of its message.

use std::time::Duration;

use domain::{Identity, JobId, JobStatus};
use sqlx::PgPool;
use store::enqueue::NewJob;
use store::job;
use testkit::inbox::body;
use testkit::jobs::{
    age, claimed, end_lease, new_job, put_in_state, queued, queued_job, redrive, state_of, wait,
};
use testkit::windows::{corrected, first_minute, opened};

use crate::script::Bench;

async fn in_state(db: &PgPool, status: JobStatus) -> JobId {
    let id = queued_job(db).await;
    put_in_state(db, &id, status).await;
    id
}

/// Consumes one message; answers whether it is kept and when it comes back.
async fn fate(bench: &Bench, body: String) -> (bool, Option<i32>) {
    let kept = bench.consume(&[("m", body)]).await;
    (!kept.is_empty(), bench.visibility_of("m"))
}

const ACKNOWLEDGED: (bool, Option<i32>) = (false, None);

#[sqlx::test(migrations = "../../migrations")]
async fn won_job_is_done_and_its_message_acknowledged(db: PgPool) {
    let id = queued_job(&db).await;
    let bench = Bench::new(&db, &[]).await;

    assert_eq!(fate(&bench, body(&id, 0)).await, ACKNOWLEDGED);

    assert_eq!(state_of(&db, &id).await, JobStatus::Succeeded);
    assert_eq!(bench.effects_of(&id).await, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn message_of_a_terminal_or_younger_job_is_acknowledged_without_the_handler(db: PgPool) {
    let again = in_state(&db, JobStatus::Dead).await;
    redrive(&db, &again).await;
    let ids = [in_state(&db, JobStatus::Succeeded).await, in_state(&db, JobStatus::Dead).await, again];
    let bench = Bench::new(&db, &[]).await;

    for id in ids {
        assert_eq!(fate(&bench, body(&id, 0)).await, ACKNOWLEDGED);
    }

    assert_eq!(bench.prepared(), []);
}

#[sqlx::test(migrations = "../../migrations")]
async fn message_of_a_job_that_is_dead_now_is_acknowledged_without_the_handler(db: PgPool) {
    let window = opened(&db, first_minute()).await;
    let stale = queued(&db, &NewJob { window: Some(window.clone()), ..new_job("stale") }).await;
    corrected(&db, &window).await;
    let max_age = Some(Duration::from_mins(10));
    let expired = queued(&db, &NewJob { max_age, ..new_job("expired") }).await;
    age(&db, &expired).await;
    let exhausted = queued(&db, &NewJob { max_attempts: 1, ..new_job("exhausted") }).await;
    let _ = job::release(&db, &claimed(&db, &exhausted).await.claim).await.unwrap();
    let bench = Bench::new(&db, &[]).await;

    for id in [stale, expired, exhausted] {
        assert_eq!(fate(&bench, body(&id, 0)).await, ACKNOWLEDGED);
        assert_eq!(state_of(&db, &id).await, JobStatus::Dead);
    }

    assert_eq!(bench.prepared(), []);
}

#[sqlx::test(migrations = "../../migrations")]
async fn held_message_comes_back_when_the_lease_ends(db: PgPool) {
    let id = in_state(&db, JobStatus::Claimed).await;
    let bench = Bench::new(&db, &[]).await;

    let (kept, visibility) = fate(&bench, body(&id, 0)).await;

    assert!(kept);
    assert!((55..=60).contains(&visibility.unwrap()), "{visibility:?}");
    assert_eq!(bench.prepared(), []);
}

#[sqlx::test(migrations = "../../migrations")]
async fn early_message_comes_back_when_its_job_is_due(db: PgPool) {
    let id = in_state(&db, JobStatus::Retry).await;
    wait(&db, &id, Duration::from_secs(100)).await;
    let bench = Bench::new(&db, &[]).await;

    let (kept, visibility) = fate(&bench, body(&id, 0)).await;

    assert!(kept);
    assert!((95..=100).contains(&visibility.unwrap()), "{visibility:?}");
    assert_eq!(bench.prepared(), []);
}

#[sqlx::test(migrations = "../../migrations")]
async fn message_nobody_can_decide_is_left_and_soon_back(db: PgPool) {
    let elsewhere = queued(&db, &NewJob { destination: "price".to_owned(), ..new_job("elsewhere") }).await;
    let bodies = [
        String::new(),
        "not a message".to_owned(),
        body(&Identity::new("no such job").job_id(), 0),
        body(&elsewhere, 0),
        body(&queued_job(&db).await, 1),
    ];
    let bench = Bench::new(&db, &[]).await;

    for body in bodies {
        assert_eq!(fate(&bench, body.clone()).await, (true, Some(10)), "{body}");
    }

    assert_eq!(bench.prepared(), []);
}

#[sqlx::test(migrations = "../../migrations")]
async fn job_that_was_tried_before_is_run_after_the_others(db: PgPool) {
    let retried = in_state(&db, JobStatus::Retry).await;
    let abandoned = in_state(&db, JobStatus::Claimed).await;
    end_lease(&db, &abandoned).await;
    let new = queued_job(&db).await;
    let bench = Bench::new(&db, &[]).await;

    let kept =
        bench.consume(&[("r", body(&retried, 0)), ("a", body(&abandoned, 0)), ("n", body(&new, 0))]).await;

    assert_eq!(kept, Vec::<String>::new());
    assert_eq!(bench.prepared(), [new, retried, abandoned]);
}
