//! What a healthy lane's reads touch beside a long history, a broken lane and an old snapshot, at full
//! size. The assertions are those of the store's tests, with rows by the million.

use store::outbox::{self, Bounds, Cursor};
use testkit::outbox::{buffers_of, fill};

use crate::server::{Server, size};

const BATCH: usize = 100;
const BOUNDS: Bounds = Bounds { events: BATCH, bytes: 1_000_000, body_bytes: 1_000 };
const HEALTHY: [&str; 2] = ["news", "price"];
const STEP: usize = 500_000;

/// Builds the weather and reads through it.
pub async fn measure(server: &Server) {
    let (history, backoff) = (size("BENCH_HISTORY", 10_000_000), size("BENCH_BACKOFF", 1_000_000));
    println!("\n{history} published, {backoff} of one lane in back-off; buffers of one read of {BATCH}:");
    server.execute("truncate lane, job cascade").await;
    write(server, "news", history, "'PUBLISHED', now(), now()").await;
    write(server, "broken", backoff, "'NEW', null, now() + interval '1 day'").await;
    server.execute("vacuum analyze outbox_event").await;
    for lane in HEALTHY {
        fill(&server.db, lane, "new", 1_000, "{}").await.unwrap();
        read_all(server, lane, "1,000 new events, statistics of an idle outbox").await;
    }
    let mut holder = server.db.begin().await.unwrap();
    sqlx::query("set transaction isolation level repeatable read").execute(&mut *holder).await.unwrap();
    sqlx::query("select count(*) from lane").execute(&mut *holder).await.unwrap();
    fill(&server.db, "news", "since", 50_000, "{}").await.unwrap();
    read_all(server, "news", "50,000 published under an old snapshot").await;
    holder.rollback().await.unwrap();
}

/// Rows without their jobs: only the outbox is measured.
async fn write(server: &Server, lane: &str, rows: usize, state: &str) {
    for first in (0..rows).step_by(STEP) {
        let last = rows.min(first + STEP);
        let mut tx = server.db.begin().await.unwrap();
        sqlx::query("set local session_replication_role = replica").execute(&mut *tx).await.unwrap();
        let sql = format!(
            "insert into outbox_event (event_id, job_id, event_type, destination, redrive_generation, body, status, published_at, next_attempt_at)
             select '{lane}:' || id || ':0', id, '{lane}', '{lane}', 0, repeat('x', 240), {state}
               from (select encode(sha256(convert_to('{lane}' || n, 'utf8')), 'hex') as id from generate_series({first} + 1, {last}) as n) as made"
        );
        sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
    }
}

/// Reads and marks everything due in `lane`, and holds each read to its goal.
async fn read_all(server: &Server, lane: &str, label: &str) {
    let mut db = server.db.acquire().await.unwrap();
    let (mut cursor, mut costs) = (Cursor::START, Vec::new());
    loop {
        let read =
            async |db: &mut sqlx::PgConnection| outbox::read_due(db, lane, cursor, BOUNDS).await.unwrap();
        let (batch, buffers) = buffers_of(&mut db, read).await.unwrap();
        if batch.events.is_empty() {
            break;
        }
        costs.push(buffers);
        cursor = batch.cursor;
        let keys: Vec<_> = batch.events.into_iter().map(|event| event.key).collect();
        outbox::mark_published(&mut *db, &keys).await.unwrap();
    }
    // The first read is from the start, and pays for what an old snapshot keeps in the index.
    let first = costs.remove(0);
    let worst = *costs.iter().max().unwrap();
    println!("- {lane}, {label}: {first} from the start, then {worst} at most (goal: {})", 3 * BATCH);
    assert!(worst <= i64::try_from(3 * BATCH).unwrap(), "{worst} buffers for {BATCH} events");
}
