//! Which silence is a lost wake-up, and how often it is rung for.

use std::time::Duration;

use domain::{JobId, JobStatus};
use sqlx::PgPool;
use store::reconcile::{Pace, ring};

use crate::fixtures::{events, job, job_in, order, pass, put, read, relay};

const MINUTE: Duration = Duration::from_mins(1);

async fn rung(db: &PgPool) -> Vec<String> {
    ring(db, &Pace::default()).await.unwrap().into_iter().map(|rung| rung.job_id).collect()
}

async fn execute(db: &PgPool, statement: &'static str, job_id: &JobId) {
    sqlx::query(statement).bind(job_id.as_str()).execute(db).await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn job_in_every_state_is_rung_exactly_if_it_is_not_terminal(db: PgPool) {
    for status in JobStatus::ALL {
        let job_id = job_in(&db, status.as_str(), status).await;
        pass(&db, 6 * MINUTE).await;
        let before = read(&db, &job_id).await;

        let found = rung(&db).await.contains(&job_id.to_string());

        assert_eq!(found, !status.is_terminal(), "{status}");
        let (after, event) = (read(&db, &job_id).await, &events(&db, &job_id).await[0]);
        assert_eq!(after.requeue_count, i32::from(found), "{status}");
        assert_eq!((after.status, after.attempt_count), (before.status, before.attempt_count), "{status}");
        let expected = if found { ("NEW", 1) } else { ("PUBLISHED", 0) };
        assert_eq!((event.status.as_str(), event.ring), expected, "{status}");
    }
}

/// Each instant alone, with all others long ago.
#[sqlx::test(migrations = "../../migrations")]
async fn anything_that_happened_within_the_safe_delay_keeps_the_job_quiet(db: PgPool) {
    let job_id = job_in(&db, "quiet", JobStatus::Claimed).await;
    for recent in [
        "update job set next_attempt_at = now() where job_id = $1",
        "update job set last_requeued_at = now() where job_id = $1",
        "update job set lease_until = now() where job_id = $1",
        "update outbox_event set published_at = now() where job_id = $1",
    ] {
        pass(&db, 10 * MINUTE).await;
        execute(&db, recent, &job_id).await;
        assert!(rung(&db).await.is_empty(), "{recent}");
        pass(&db, Duration::from_secs(290)).await;
        assert!(rung(&db).await.is_empty(), "{recent}");
    }
    pass(&db, Duration::from_secs(20)).await;
    assert_eq!(rung(&db).await, [job_id.to_string()]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn job_waiting_for_a_late_attempt_or_a_live_lease_is_not_rung(db: PgPool) {
    let late = job_in(&db, "late", JobStatus::Retry).await;
    let held = job(&db, "held").await;
    pass(&db, 10 * MINUTE).await;
    execute(&db, "update job set next_attempt_at = now() + interval '1 hour' where job_id = $1", &late).await;
    put(&db, &held, JobStatus::Claimed, 3600.0).await;

    assert!(rung(&db).await.is_empty());
}

#[sqlx::test(migrations = "../../migrations")]
async fn event_the_relay_still_has_to_send_or_of_an_older_generation_is_not_rung(db: PgPool) {
    let unsent = job(&db, "unsent").await;
    let redriven = job_in(&db, "redriven", JobStatus::Dead).await;
    store::redrive::redrive(&db, &order(&[&redriven]), None).await.unwrap();
    execute(&db, "update outbox_event set status = 'NEW', published_at = null where job_id = $1", &unsent)
        .await;
    pass(&db, 10 * MINUTE).await;

    assert!(rung(&db).await.is_empty());

    relay(&db).await;
    pass(&db, 10 * MINUTE).await;
    assert_eq!(rung(&db).await.len(), 2);
    let statuses: Vec<_> = events(&db, &redriven).await.into_iter().map(|event| event.status).collect();
    assert_eq!(statuses, ["PUBLISHED", "NEW"], "only the younger generation rings");
}

#[sqlx::test(migrations = "../../migrations")]
async fn reconcilers_at_the_same_moment_ring_once(db: PgPool) {
    for name in 0..40 {
        job(&db, &name.to_string()).await;
    }
    pass(&db, 6 * MINUTE).await;

    let (a, b, c) = tokio::join!(rung(&db), rung(&db), rung(&db));

    assert_eq!(a.len() + b.len() + c.len(), 40);
    let rings: i64 =
        sqlx::query_scalar("select sum(ring)::bigint from outbox_event").fetch_one(&db).await.unwrap();
    assert_eq!(rings, 40);
}

/// The second one reads before the first commits and goes on after it: the race decided by the row.
#[sqlx::test(migrations = "../../migrations")]
async fn reconciler_that_meets_an_uncommitted_ring_leaves_it_alone(db: PgPool) {
    job(&db, "contended").await;
    pass(&db, 6 * MINUTE).await;

    let mut first = db.begin().await.unwrap();
    assert_eq!(ring(&mut *first, &Pace::default()).await.unwrap().len(), 1);
    assert!(rung(&db).await.is_empty(), "skipped while it is locked");
    first.commit().await.unwrap();

    assert!(rung(&db).await.is_empty());
}

#[sqlx::test(migrations = "../../migrations")]
async fn interval_doubles_with_each_ring_up_to_six_hours(db: PgPool) {
    let job_id = job(&db, "nobody comes").await;
    let mut intervals = Vec::new();
    for _ in 0..9 {
        let mut minutes = 0;
        while rung(&db).await.is_empty() {
            pass(&db, MINUTE).await;
            minutes += 1;
        }
        relay(&db).await;
        intervals.push(minutes);
    }

    assert_eq!(intervals, [5, 10, 20, 40, 80, 160, 320, 360, 360]);
    assert_eq!(read(&db, &job_id).await.requeue_count, 9);
}

#[sqlx::test(migrations = "../../migrations")]
async fn consumers_down_for_a_day_get_few_messages_a_job(db: PgPool) {
    for name in 0..3 {
        job(&db, &name.to_string()).await;
    }
    for _ in 0..24 * 60 / 5 {
        pass(&db, 5 * MINUTE).await;
        rung(&db).await;
        relay(&db).await;
    }

    let most: i32 = sqlx::query_scalar("select max(requeue_count) from job").fetch_one(&db).await.unwrap();
    assert!((7..=10).contains(&most), "{most} rings");
}

#[sqlx::test(migrations = "../../migrations")]
async fn longest_unfinished_are_rung_first_and_no_more_than_the_limit(db: PgPool) {
    let mut oldest = Vec::new();
    for name in 0..5 {
        oldest.push(job(&db, &name.to_string()).await.to_string());
        pass(&db, 6 * MINUTE).await;
    }
    let pace = Pace { limit: 3, ..Pace::default() };

    let mut first: Vec<_> =
        ring(&db, &pace).await.unwrap().into_iter().map(|rung| (rung.job_id, rung.requeue_count)).collect();
    first.sort_by_key(|(job_id, _)| oldest.iter().position(|id| id == job_id));

    let expected: Vec<_> = oldest[..3].iter().map(|id| (id.clone(), 1)).collect();
    assert_eq!(first, expected);
    assert_eq!(ring(&db, &pace).await.unwrap().len(), 2);
}
