//! Outbox moves against a real PostgreSQL: each guard, and what a dead event does to its job.

#![allow(clippy::unwrap_used, reason = "a test that can not go on has failed")]

use std::time::Duration;

use sqlx::PgPool;
use store::outbox::{self, Bounds, Burial, Cursor, Event, Key, Postponed, Unsendable};
use testkit::outbox::{count, fill};

const NEWS: &str = "news";
const BOUNDS: Bounds = Bounds { events: 100, bytes: 1_000_000, body_bytes: 1_000 };

async fn due(db: &PgPool) -> Vec<Event> {
    outbox::read_due(db, NEWS, Cursor::START, BOUNDS).await.unwrap().events
}

async fn one_due(db: &PgPool) -> Key {
    fill(db, NEWS, "a", 1, "{}").await.unwrap();
    due(db).await.remove(0).key
}

fn unsendable(key: &Key) -> [Unsendable; 1] {
    [Unsendable { key: key.clone(), reason: "EMPTY_BODY", error: "the body is empty".to_owned() }]
}

fn postponed(key: &Key, delay: Duration) -> [Postponed; 1] {
    [Postponed { key: key.clone(), delay, error: "InternalError".to_owned() }]
}

async fn execute(db: &PgPool, sql: &'static str) {
    sqlx::query(sql).execute(db).await.unwrap();
}

/// `(status, dead_reason, last_error)` of the only job.
async fn job(db: &PgPool) -> (String, Option<String>, Option<String>) {
    sqlx::query_as("select status, dead_reason, last_error from job").fetch_one(db).await.unwrap()
}

/// `(status, dead_reason, attempt_count)` of the only event.
async fn event(db: &PgPool) -> (String, Option<String>, i32) {
    sqlx::query_as("select status, dead_reason, attempt_count from outbox_event").fetch_one(db).await.unwrap()
}

#[sqlx::test(migrations = "../../migrations")]
async fn events_are_read_in_order_by_bounded_batches_until_none_is_left(db: PgPool) {
    fill(&db, NEWS, "a", 25, "{}").await.unwrap();
    fill(&db, "price", "a", 5, "{}").await.unwrap();

    let (mut cursor, mut lengths, mut ids) = (Cursor::START, Vec::new(), Vec::new());
    loop {
        let batch = outbox::read_due(&db, NEWS, cursor, Bounds { events: 10, ..BOUNDS }).await.unwrap();
        lengths.push((batch.events.len(), batch.more));
        cursor = batch.cursor;
        ids.extend(batch.events.iter().map(|event| event.key.event_id.clone()));
        if batch.events.is_empty() {
            break;
        }
    }

    assert_eq!(lengths, [(10, true), (10, true), (5, false), (0, false)]);
    let order = "select event_id from outbox_event where destination = 'news' order by sequence";
    assert_eq!(ids, sqlx::query_scalar::<_, String>(order).fetch_all(&db).await.unwrap());
}

#[sqlx::test(migrations = "../../migrations")]
async fn bodies_of_a_read_are_bounded_and_one_too_long_stays_in_the_database(db: PgPool) {
    fill(&db, NEWS, "a", 3, &"x".repeat(600)).await.unwrap();
    fill(&db, NEWS, "b", 1, &"x".repeat(1_001)).await.unwrap();

    let by_bytes =
        outbox::read_due(&db, NEWS, Cursor::START, Bounds { bytes: 1_000, ..BOUNDS }).await.unwrap();
    let all = due(&db).await;

    assert_eq!((by_bytes.events.len(), by_bytes.more), (2, true));
    assert_eq!(all.iter().map(|event| event.body.is_some()).collect::<Vec<_>>(), [true, true, true, false]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn event_committed_late_is_behind_a_bare_cursor_and_found_from_the_start(db: PgPool) {
    let mut late = db.begin().await.unwrap();
    let early_sequence = "select nextval(pg_get_serial_sequence('outbox_event', 'sequence'))";
    sqlx::query(early_sequence).execute(&mut *late).await.unwrap();
    insert_one(&mut late).await;
    fill(&db, NEWS, "b", 1, "{}").await.unwrap();
    let first = outbox::read_due(&db, NEWS, Cursor::START, BOUNDS).await.unwrap();
    assert_eq!(first.events.len(), 1);

    late.commit().await.unwrap();

    let behind = outbox::read_due(&db, NEWS, first.cursor, BOUNDS).await.unwrap();
    assert_eq!(behind.events.len(), 0, "the trap is real");
    outbox::mark_published(&db, &[first.events[0].key.clone()]).await.unwrap();
    assert_eq!(due(&db).await.len(), 1);
}

async fn insert_one(tx: &mut sqlx::PgConnection) {
    let job = "insert into job (job_id, job_type, destination, max_attempts, payload) values (repeat('a', 64), 'news', 'news', 8, '{}')";
    let event =
        "insert into outbox_event (event_id, job_id, event_type, destination, redrive_generation, body)
                 values ('news:' || repeat('a', 64) || ':0', repeat('a', 64), 'news', 'news', 0, '{}')";
    sqlx::query(job).execute(&mut *tx).await.unwrap();
    sqlx::query(event).execute(&mut *tx).await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn event_is_published_once_and_leaves_the_lane(db: PgPool) {
    let key = one_due(&db).await;

    assert_eq!(outbox::mark_published(&db, std::slice::from_ref(&key)).await.unwrap(), 1);
    assert_eq!(outbox::mark_published(&db, &[key]).await.unwrap(), 0);

    assert_eq!(count(&db, NEWS, "PUBLISHED").await.unwrap(), 1);
    assert!(due(&db).await.is_empty());
}

#[sqlx::test(migrations = "../../migrations")]
async fn stale_relay_can_neither_swallow_nor_kill_nor_delay_a_later_ring(db: PgPool) {
    let stale = one_due(&db).await;
    outbox::mark_published(&db, std::slice::from_ref(&stale)).await.unwrap();
    execute(&db, "update outbox_event set status = 'NEW', published_at = null, ring = ring + 1").await;

    assert_eq!(outbox::mark_published(&db, std::slice::from_ref(&stale)).await.unwrap(), 0);
    assert_eq!(outbox::postpone(&db, &postponed(&stale, Duration::from_mins(1))).await.unwrap(), 0);
    assert_eq!(outbox::bury(&db, &unsendable(&stale)).await.unwrap(), Burial::default());

    assert_eq!(event(&db).await, ("NEW".to_owned(), None, 0));
    assert_eq!(job(&db).await.0, "PENDING");
    assert_eq!(due(&db).await[0].key, Key { ring: 1, ..stale });
}

#[sqlx::test(migrations = "../../migrations")]
async fn dead_event_is_not_moved_by_anybody(db: PgPool) {
    let key = one_due(&db).await;
    assert_eq!(outbox::bury(&db, &unsendable(&key)).await.unwrap(), Burial { dead: 1, jobs: 1, deferred: 0 });

    assert_eq!(outbox::mark_published(&db, std::slice::from_ref(&key)).await.unwrap(), 0);
    assert_eq!(outbox::postpone(&db, &postponed(&key, Duration::ZERO)).await.unwrap(), 0);
    assert_eq!(outbox::bury(&db, &unsendable(&key)).await.unwrap(), Burial::default());

    assert_eq!(event(&db).await, ("DEAD".to_owned(), Some("EMPTY_BODY".to_owned()), 0));
}

#[sqlx::test(migrations = "../../migrations")]
async fn event_postponed_counts_its_failure_and_waits(db: PgPool) {
    let key = one_due(&db).await;

    assert_eq!(outbox::postpone(&db, &postponed(&key, Duration::from_mins(1))).await.unwrap(), 1);

    assert!(due(&db).await.is_empty());
    assert_eq!(event(&db).await, ("NEW".to_owned(), None, 1));
    let waits = "select next_attempt_at between now() + interval '50 s' and now() + interval '60 s' from outbox_event";
    assert!(sqlx::query_scalar::<_, bool>(waits).fetch_one(&db).await.unwrap());
}

#[sqlx::test(migrations = "../../migrations")]
async fn dead_event_takes_its_unfinished_job_with_it(db: PgPool) {
    for (label, state) in [
        ("pending", "update job set status = 'PENDING'"),
        ("retry", "update job set status = 'RETRY', attempt_count = 1"),
        (
            "abandoned",
            "update job set status = 'CLAIMED', attempt_count = 1, claimed_by = gen_random_uuid(), lease_until = now() - interval '1 s'",
        ),
    ] {
        execute(&db, "truncate job cascade").await;
        let key = one_due(&db).await;
        execute(&db, state).await;

        assert_eq!(
            outbox::bury(&db, &unsendable(&key)).await.unwrap(),
            Burial { dead: 1, jobs: 1, deferred: 0 },
            "{label}"
        );

        let error = Some("EMPTY_BODY: the body is empty".to_owned());
        assert_eq!(job(&db).await, ("DEAD".to_owned(), Some("UNSENDABLE".to_owned()), error), "{label}");
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn dead_event_leaves_alone_a_job_that_is_finished_or_of_another_generation(db: PgPool) {
    for state in [
        "update job set status = 'SUCCEEDED', attempt_count = 1, finished_at = now()",
        "update job set status = 'DEAD', dead_reason = 'STALE', finished_at = now()",
        "update job set redrive_generation = 1",
        "update job set redrive_generation = 1, status = 'CLAIMED', attempt_count = 1, claimed_by = gen_random_uuid(), lease_until = now() + interval '1 h'",
    ] {
        execute(&db, "truncate job cascade").await;
        let key = one_due(&db).await;
        execute(&db, state).await;
        let before = job(&db).await;

        assert_eq!(
            outbox::bury(&db, &unsendable(&key)).await.unwrap(),
            Burial { dead: 1, jobs: 0, deferred: 0 },
            "{state}"
        );

        assert_eq!(job(&db).await, before, "{state}");
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn event_whose_job_is_being_worked_on_stays_new_and_is_looked_at_when_that_lease_ends(db: PgPool) {
    let key = one_due(&db).await;
    execute(
        &db,
        "update job set status = 'CLAIMED', attempt_count = 1, claimed_by = gen_random_uuid(), lease_until = now() + interval '1 h'",
    )
    .await;

    assert_eq!(outbox::bury(&db, &unsendable(&key)).await.unwrap(), Burial { dead: 0, jobs: 0, deferred: 1 });

    assert_eq!(event(&db).await.0, "NEW");
    assert_eq!(job(&db).await.0, "CLAIMED");
    let waits = "select next_attempt_at = (select lease_until from job) from outbox_event";
    assert!(sqlx::query_scalar::<_, bool>(waits).fetch_one(&db).await.unwrap());
}

#[sqlx::test(migrations = "../../migrations")]
async fn claim_that_wins_the_race_against_a_burial_keeps_its_job(db: PgPool) {
    let key = one_due(&db).await;
    let mut claim = db.begin().await.unwrap();
    sqlx::query(
        "update job set status = 'CLAIMED', attempt_count = 1, claimed_by = gen_random_uuid(), lease_until = now() + interval '1 h'",
    )
    .execute(&mut *claim)
    .await
    .unwrap();

    let rival = db.clone();
    let burial = tokio::spawn(async move { outbox::bury(&rival, &unsendable(&key)).await.unwrap() });
    wait_for_a_blocked_statement(&db).await;
    claim.commit().await.unwrap();

    assert_eq!(burial.await.unwrap(), Burial { dead: 0, jobs: 0, deferred: 1 });
    assert_eq!(job(&db).await.0, "CLAIMED");
}

async fn wait_for_a_blocked_statement(db: &PgPool) {
    let blocked = "select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')";
    while !sqlx::query_scalar::<_, bool>(blocked).fetch_one(db).await.unwrap() {
        tokio::task::yield_now().await;
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn events_of_unknown_destinations_are_found_after_the_grace_and_no_more_than_asked_for(db: PgPool) {
    for destination in ["alpha", NEWS, "omega", "price"] {
        fill(&db, destination, "a", 3, "{}").await.unwrap();
    }
    let configured = [NEWS.to_owned(), "price".to_owned()];
    let grace = Duration::from_mins(10);
    let find = async |limit| outbox::find_unroutable(&db, &configured, grace, limit).await.unwrap();
    assert!(find(100).await.is_empty(), "a rolling deploy may still bring their relay");

    execute(&db, "update outbox_event set next_attempt_at = now() - interval '11 min'").await;

    let mut destinations: Vec<_> = find(100).await.into_iter().map(|event| event.destination).collect();
    destinations.sort();
    assert_eq!(destinations, ["alpha", "alpha", "alpha", "omega", "omega", "omega"]);
    assert_eq!(find(4).await.len(), 4);
}
