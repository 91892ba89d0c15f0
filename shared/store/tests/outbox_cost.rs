//! What a read and a mark touch, in buffers, when the outbox is in bad weather. Counts, never time.
//!
//! The same assertions at full size (10,000,000 published, 1,000,000 in back-off) are in the relay's
//! benchmark. The counts are PostgreSQL's own, of the very statements the relay runs.

#![allow(clippy::unwrap_used, reason = "a test that can not go on has failed")]

use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, PgPool, Postgres};
use store::outbox::{self, Bounds, Cursor, Event};
use testkit::outbox::{buffers_of, fill};

const BATCH: usize = 100;
const BOUNDS: Bounds = Bounds { events: BATCH, bytes: 1_000_000, body_bytes: 1_000 };
/// The goal: three buffers for each event of a batch.
const BUFFERS_MAX: i64 = 3 * 100;

async fn execute(db: &PgPool, sql: &'static str) {
    sqlx::query(sql).execute(db).await.unwrap();
}

/// 10,000 events of a broken lane in back-off and 20,000 published ones of history; statistics as they
/// are in an idle outbox, where nothing is due.
async fn bad_weather(db: &PgPool) {
    fill(db, "broken", "a", 10_000, "{}").await.unwrap();
    fill(db, "news", "history", 20_000, "{}").await.unwrap();
    execute(
        db,
        "update outbox_event set next_attempt_at = now() + interval '1 h' where destination = 'broken'",
    )
    .await;
    execute(
        db,
        "update outbox_event set status = 'PUBLISHED', published_at = now() where destination = 'news'",
    )
    .await;
    execute(db, "vacuum analyze outbox_event").await;
}

/// Reads on behind `cursor`, and says what it cost.
async fn read(db: &mut PgConnection, cursor: Cursor) -> (Vec<Event>, Cursor, i64) {
    let (batch, buffers) =
        buffers_of(db, async |db| outbox::read_due(db, "news", cursor, BOUNDS).await.unwrap()).await.unwrap();
    (batch.events, batch.cursor, buffers)
}

async fn connection(db: &PgPool) -> PoolConnection<Postgres> {
    db.acquire().await.unwrap()
}

#[sqlx::test(migrations = "../../migrations")]
async fn healthy_lane_reads_three_buffers_an_event_at_most_beside_history_and_a_broken_lane(db: PgPool) {
    bad_weather(&db).await;
    fill(&db, "news", "new", 1_000, "{}").await.unwrap();
    let mut db = connection(&db).await;

    let mut cursor = Cursor::START;
    for _ in 0..10 {
        let (events, next, buffers) = read(&mut db, cursor).await;
        assert_eq!(events.len(), BATCH);
        assert!(buffers <= BUFFERS_MAX, "{buffers} buffers for {BATCH} events");
        cursor = next;
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn lane_with_everything_in_back_off_reads_next_to_nothing(db: PgPool) {
    bad_weather(&db).await;
    let mut db = connection(&db).await;

    let (batch, buffers) =
        buffers_of(&mut db, async |db| outbox::read_due(db, "broken", Cursor::START, BOUNDS).await.unwrap())
            .await
            .unwrap();

    assert!(batch.events.is_empty());
    assert!(buffers <= 10, "{buffers} buffers for nothing");
}

#[sqlx::test(migrations = "../../migrations")]
async fn read_behind_the_cursor_costs_the_same_while_an_old_snapshot_is_held(db: PgPool) {
    bad_weather(&db).await;
    let mut holder = db.begin().await.unwrap();
    sqlx::query("set transaction isolation level repeatable read").execute(&mut *holder).await.unwrap();
    sqlx::query("select count(*) from lane").execute(&mut *holder).await.unwrap();
    fill(&db, "news", "since", 5_000, "{}").await.unwrap();
    let mut relay = connection(&db).await;

    let mut cursor = Cursor::START;
    let mut costs = Vec::new();
    for _ in 0..50 {
        let (events, next, buffers) = read(&mut relay, cursor).await;
        let keys: Vec<_> = events.into_iter().map(|event| event.key).collect();
        assert_eq!(outbox::mark_published(&mut *relay, &keys).await.unwrap(), 100);
        cursor = next;
        costs.push(buffers);
    }
    fill(&db, "news", "last", 1_000, "{}").await.unwrap();
    let (events, _, last) = read(&mut relay, cursor).await;
    let (_, _, from_start) = read(&mut relay, Cursor::START).await;
    holder.rollback().await.unwrap();

    assert_eq!(events.len(), BATCH);
    assert!(costs.iter().chain([&last]).all(|&buffers| buffers <= BUFFERS_MAX), "{costs:?}, then {last}");
    assert!(from_start > BUFFERS_MAX, "{from_start}: without the cursor the snapshot would be felt");
}

#[sqlx::test(migrations = "../../migrations")]
async fn mark_reads_no_backlog_under_the_statistics_of_an_idle_outbox(db: PgPool) {
    bad_weather(&db).await;
    fill(&db, "news", "new", 20_000, "{}").await.unwrap();
    let mut db = connection(&db).await;
    let (events, _, _) = read(&mut db, Cursor::START).await;
    let keys: Vec<_> = events.into_iter().map(|event| event.key).collect();

    let (marked, buffers) =
        buffers_of(&mut db, async |db| outbox::mark_published(db, &keys).await.unwrap()).await.unwrap();

    assert_eq!(marked, 100);
    assert!(buffers <= 30 * 100, "{buffers} buffers to mark 100 events");
}
