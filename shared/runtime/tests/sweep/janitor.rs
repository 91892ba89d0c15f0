//! The janitor removes what has served its time, and nothing that anybody may still need.

use std::time::Duration;

use domain::{JobId, JobStatus};
use runtime::janitor::{Retention, Status, run};
use runtime::time_left::TimeLeft;
use sqlx::PgPool;
use store::sweep::{NewRun, runs};
use testkit::jobs::{put_in_state, queued_job};

use crate::fixtures::count;

const DAY: Duration = Duration::from_hours(24);

async fn clean(db: &PgPool) -> Status {
    run(db, &Retention::default(), TimeLeft::lasting(DAY)).await.unwrap()
}

/// A job in `status` whose message was sent, everything `days` ago.
async fn old_job(db: &PgPool, status: JobStatus, days: i32) -> JobId {
    let id = queued_job(db).await;
    put_in_state(db, &id, status).await;
    sqlx::query("update outbox_event set status = 'PUBLISHED', published_at = now() where job_id = $1")
        .bind(id.as_str())
        .execute(db)
        .await
        .unwrap();
    sqlx::query(
        "update job set finished_at = finished_at - make_interval(days => $2), created_at = created_at - make_interval(days => $2)
          where job_id = $1",
    )
    .bind(id.as_str())
    .bind(days)
    .execute(db)
    .await
    .unwrap();
    id
}

async fn is_there(db: &PgPool, id: &JobId) -> bool {
    sqlx::query_scalar("select exists (select from job where job_id = $1)")
        .bind(id.as_str())
        .fetch_one(db)
        .await
        .unwrap()
}

async fn set(db: &PgPool, statement: &'static str, id: &JobId) {
    let set = sqlx::query(statement).bind(id.as_str()).execute(db).await.unwrap();
    assert_eq!(set.rows_affected(), 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn job_that_is_done_goes_with_its_events_when_no_message_can_be_left(db: PgPool) {
    let old = old_job(&db, JobStatus::Succeeded, 36).await;
    let young = old_job(&db, JobStatus::Succeeded, 34).await;

    let status = clean(&db).await;

    assert_eq!((status.events, status.jobs, status.limit_reached), (1, 1, false));
    assert_eq!((is_there(&db, &old).await, is_there(&db, &young).await), (false, true));
    assert_eq!(clean(&db).await, Status::default());
}

#[sqlx::test(migrations = "../../migrations")]
async fn nothing_unfinished_and_no_dead_job_that_nobody_accepted_is_removed(db: PgPool) {
    for status in [JobStatus::Pending, JobStatus::Claimed, JobStatus::Retry, JobStatus::Dead] {
        let id = old_job(&db, status, 1_000).await;
        assert_eq!(clean(&db).await, Status::default(), "{status:?}");
        assert!(is_there(&db, &id).await, "{status:?}");
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn stale_and_dismissed_jobs_are_removed(db: PgPool) {
    let stale = old_job(&db, JobStatus::Dead, 36).await;
    set(&db, "update job set dead_reason = 'STALE' where job_id = $1", &stale).await;
    let dismissed = old_job(&db, JobStatus::Dead, 36).await;
    set(&db, "update job set dismissed_at = now() where job_id = $1", &dismissed).await;

    assert_eq!(clean(&db).await.jobs, 2);
}

#[sqlx::test(migrations = "../../migrations")]
async fn job_with_an_event_that_was_not_published_stays(db: PgPool) {
    let waiting = old_job(&db, JobStatus::Succeeded, 36).await;
    set(&db, "update outbox_event set status = 'NEW', published_at = null where job_id = $1", &waiting).await;
    let dead = old_job(&db, JobStatus::Succeeded, 36).await;
    set(
        &db,
        "update outbox_event set status = 'DEAD', published_at = null, dead_reason = 'EMPTY_BODY' where job_id = $1",
        &dead,
    )
    .await;

    assert_eq!(clean(&db).await, Status::default());
    assert!(is_there(&db, &waiting).await && is_there(&db, &dead).await);
}

#[sqlx::test(migrations = "../../migrations")]
async fn row_that_somebody_holds_is_left_for_the_next_run(db: PgPool) {
    let (held, free) =
        (old_job(&db, JobStatus::Succeeded, 36).await, old_job(&db, JobStatus::Succeeded, 36).await);
    let mut tx = db.begin().await.unwrap();
    sqlx::query("select from job where job_id = $1 for update")
        .bind(held.as_str())
        .execute(&mut *tx)
        .await
        .unwrap();

    assert_eq!(clean(&db).await.jobs, 1);
    assert!(!is_there(&db, &free).await);
    tx.rollback().await.unwrap();
    assert_eq!(clean(&db).await.jobs, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn run_is_bounded_and_says_that_there_is_more(db: PgPool) {
    for _ in 0..5 {
        old_job(&db, JobStatus::Succeeded, 36).await;
    }
    let small = Retention { batch: 2, batches_max: 2, ..Retention::default() };

    let first = run(&db, &small, TimeLeft::lasting(DAY)).await.unwrap();
    let second = run(&db, &small, TimeLeft::lasting(DAY)).await.unwrap();

    assert_eq!((first.events, first.jobs, first.limit_reached), (4, 4, true));
    assert_eq!((second.events, second.jobs, second.limit_reached), (1, 1, false));
}

#[sqlx::test(migrations = "../../migrations")]
async fn janitors_at_the_same_moment_remove_each_row_once(db: PgPool) {
    for _ in 0..40 {
        old_job(&db, JobStatus::Succeeded, 36).await;
    }
    let removed = futures::future::join_all((0..4).map(|_| clean(&db))).await;
    let total: u64 = removed.iter().map(|status| status.events).sum();
    clean(&db).await;
    assert_eq!(total, 40);
    assert_eq!(count(&db, "select count(*) from job").await, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn newest_result_of_the_sweeper_is_kept(db: PgPool) {
    let report = serde_json::Value::Null;
    let result = NewRun {
        dry_run: true,
        listed: 0,
        orphans: 0,
        reclaimed: 0,
        refused: 0,
        missing: 0,
        report: &report,
    };
    for _ in 0..3 {
        runs::record(&db, &result).await.unwrap();
    }
    sqlx::query("update sweep_run set ended_at = now() - interval '1 year'").execute(&db).await.unwrap();

    assert_eq!(clean(&db).await.sweep_runs, 2);
    assert_eq!(count(&db, "select max(run_id) from sweep_run").await, 3);
}
