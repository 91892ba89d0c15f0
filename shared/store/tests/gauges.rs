//! What the gauges count, and that history costs them nothing. Buffers, never time.

#![allow(clippy::unwrap_used, reason = "a test that can not go on has failed")]

use domain::JobStatus;
use sqlx::PgPool;
use store::gauges::{self, Dead};
use testkit::jobs::{put_in_state, queued_job};
use testkit::outbox::{buffers_in, fill};

/// Of all statements together, whatever the history. An index's way down and a few rows.
const BUFFERS_MAX: i64 = 60;

async fn execute(db: &PgPool, sql: &'static str) {
    sqlx::query(sql).execute(db).await.unwrap();
}

/// Jobs that SUCCEEDED with their events PUBLISHED, as a long life leaves them.
async fn history(db: &PgPool) {
    fill(db, "news", "history", 30_000, "{}").await.unwrap();
    execute(
        db,
        "update job set status = 'SUCCEEDED', attempt_count = 1, finished_at = now() where destination = 'news'",
    )
    .await;
    execute(db, "update outbox_event set status = 'PUBLISHED', published_at = now()").await;
    execute(db, "vacuum analyze job, outbox_event").await;
}

#[sqlx::test(migrations = "../../migrations")]
async fn history_costs_the_gauges_nothing(db: PgPool) {
    history(&db).await;
    fill(&db, "price", "open", 10, "{}").await.unwrap();
    let mut db = db.acquire().await.unwrap();

    let (estimate, buffers) = buffers_in(&mut db, &["job", "outbox_event"], async |db| {
        gauges::unfinished(&mut *db).await.unwrap();
        gauges::dead(&mut *db).await.unwrap();
        gauges::new_events(&mut *db).await.unwrap();
        gauges::dead_events(&mut *db).await.unwrap();
        gauges::estimated_jobs(db).await.unwrap()
    })
    .await
    .unwrap();

    assert!(buffers <= BUFFERS_MAX, "{buffers} buffers beside 30,000 finished jobs");
    assert!((29_000..=31_000).contains(&estimate), "{estimate}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn newest_window_is_found_at_the_end_of_its_index(db: PgPool) {
    execute(
        &db,
        "insert into collection_window (dataset, window_start, session_date, content_digest, bar_count)
         select 'us8', start, start::date, repeat('0', 64), 0
           from generate_series('2018-01-01 00:00Z'::timestamptz, '2018-01-20', '1 minute') as start",
    )
    .await;
    execute(&db, "vacuum analyze collection_window").await;
    let mut db = db.acquire().await.unwrap();

    let names = ["us8".to_owned(), "never".to_owned()];
    let (windows, buffers) = buffers_in(&mut db, &["collection_window"], async |db| {
        gauges::newest_windows(db, &names).await.unwrap()
    })
    .await
    .unwrap();

    let newest: Vec<_> = windows.iter().map(|window| (window.dataset.as_str(), window.start)).collect();
    assert_eq!(newest, [("never", None), ("us8", Some("2018-01-20T00:00:00Z".parse().unwrap()))]);
    assert!(buffers <= 10, "{buffers}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn every_state_is_counted_by_destination_and_reason(db: PgPool) {
    for status in JobStatus::ALL {
        let id = queued_job(&db).await;
        put_in_state(&db, &id, status).await;
    }
    let dismissed = queued_job(&db).await;
    put_in_state(&db, &dismissed, JobStatus::Dead).await;
    sqlx::query("update job set dismissed_at = now() where job_id = $1")
        .bind(dismissed.as_str())
        .execute(&db)
        .await
        .unwrap();

    let unfinished = gauges::unfinished(&db).await.unwrap();
    let dead = gauges::dead(&db).await.unwrap();
    let new = gauges::new_events(&db).await.unwrap();

    let counts: Vec<_> = unfinished.iter().map(|job| (job.status.as_str(), job.count)).collect();
    assert_eq!(counts, [("CLAIMED", 1), ("PENDING", 1), ("RETRY", 1)]);
    let unreadable = |dismissed| Dead {
        destination: "news".to_owned(),
        reason: "UNREADABLE".to_owned(),
        dismissed,
        count: 1,
    };
    assert_eq!(dead, [unreadable(false), unreadable(true)]);
    assert_eq!((new[0].destination.as_str(), new[0].count), ("news", 6));
    assert_eq!(gauges::estimated_jobs(&db).await.unwrap(), 6, "counted before the first vacuum");
    assert!(gauges::dead_events(&db).await.unwrap().is_empty());
    assert_eq!(gauges::quarantined(&db).await.unwrap(), 0);
    assert!(gauges::lanes(&db).await.unwrap().is_empty());
}
