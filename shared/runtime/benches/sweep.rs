//! The sweeper over a large bucket: pages, statements, seconds, memory; then once more, for what is new.
//!
//! ```text
//! BENCH_DATABASE_URL=postgres://…/ cargo bench -p runtime --bench sweep
//! ```
//!
//! The bucket is in memory and answers at once, so the seconds are the sweeper's and PostgreSQL's; each page
//! costs one listing more in S3. A database `bench_sweep` is made and dropped. Counts are asserted, the
//! rest is only reported. `BENCH_OBJECTS` changes the size.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a benchmark that can not go on has failed"
)]

use std::str::FromStr;
use std::time::{Duration, Instant};

use chrono::Utc;
use domain::identity::sha256_hex;
use runtime::sweeper::{self, Order, Policy, Report, keys};
use runtime::time_left::TimeLeft;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{PgPool, Row};
use store::artifact::{NewArtifact, refer};
use testkit::TwinBucket;

const OBJECTS: usize = 200_000;
/// One object in so many is an orphan.
const ORPHAN_EACH: usize = 100;
/// About what an hour of three windows a minute leaves.
const OBJECTS_AN_HOUR: usize = 200;
/// What comes between the two runs.
const NEW: usize = 500;
const HOUR: Duration = Duration::from_hours(1);

#[tokio::main]
async fn main() {
    let objects = std::env::var("BENCH_OBJECTS").map_or(OBJECTS, |text| text.parse().unwrap());
    let (admin, db) = database().await;
    let bucket = TwinBucket::default();
    let policy = Policy {
        delete: true,
        grace: HOUR,
        max_pages: 10_000,
        max_deletes: objects,
        // The second look would list most of them again in the same run.
        late: HOUR * 24 * 365,
        ..Policy::default()
    };
    sweep(&db, &bucket, &Policy { max_pages: 0, ..policy }).await;
    fill(&db, &bucket, 0, objects, |number| {
        HOUR * u32::try_from(2 + (objects - number) / OBJECTS_AN_HOUR).unwrap()
    })
    .await;
    sqlx::query("vacuum analyze artifact").execute(&db).await.unwrap();

    let first = measure("first run", &db, &bucket, &policy).await;
    assert_eq!(first.listed as usize, objects);
    assert_eq!(first.reclaimed as usize, objects / ORPHAN_EACH);

    // Drawn in an hour that is not swept through yet, and old enough.
    fill(&db, &bucket, objects, NEW, |_| HOUR + Duration::from_secs(90)).await;
    let second = measure("second run", &db, &bucket, &policy).await;
    assert!(second.listed as usize <= NEW + OBJECTS_AN_HOUR, "{second:?}");
    assert_eq!(second.reclaimed as usize, NEW / ORPHAN_EACH);

    let idle = measure("third run, nothing new", &db, &bucket, &policy).await;
    assert_eq!(idle.reclaimed, 0);
    db.close().await;
    sqlx::query("drop database bench_sweep with (force)").execute(&admin).await.unwrap();
}

/// One connection, so that its statistics are all there are.
async fn database() -> (PgPool, PgPool) {
    let url = std::env::var("BENCH_DATABASE_URL").or_else(|_| std::env::var("DATABASE_URL"));
    let options =
        PgConnectOptions::from_str(&url.expect("BENCH_DATABASE_URL or DATABASE_URL names a server")).unwrap();
    let admin = PgPoolOptions::new().connect_with(options.clone().database("postgres")).await.unwrap();
    for sql in ["drop database if exists bench_sweep with (force)", "create database bench_sweep"] {
        sqlx::query(sql).execute(&admin).await.unwrap();
    }
    let one = PgPoolOptions::new().max_connections(1).test_before_acquire(false);
    let db = one.connect_with(options.database("bench_sweep")).await.unwrap();
    store::migrate::migrate(&db).await.unwrap();
    (admin, db)
}

/// Objects and, for all but one in a hundred, their rows.
async fn fill(db: &PgPool, bucket: &TwinBucket, from: usize, count: usize, age: impl Fn(usize) -> Duration) {
    const BATCH: usize = 5_000;
    let sha256 = sha256_hex(b"x");
    let mut live = Vec::with_capacity(BATCH);
    for number in from..from + count {
        let age = age(number);
        let key = format!("{}/window/us8-{number:09}.json", keys::hour(Utc::now() - age));
        bucket.put(&key, b"x", age);
        if number % ORPHAN_EACH != 0 {
            live.push(key);
        }
        if live.len() == BATCH || number + 1 == from + count {
            let row = |key| NewArtifact { key, sha256: &sha256, size_bytes: 1, owner: "window" };
            let rows: Vec<_> = live.iter().map(|key: &String| row(key)).collect();
            refer(db, &rows).await.unwrap();
            live.clear();
        }
    }
}

async fn sweep(db: &PgPool, bucket: &TwinBucket, policy: &Policy) -> Report {
    sweeper::run(db, bucket, policy, &Order::Sweep, TimeLeft::lasting(HOUR)).await.unwrap()
}

async fn measure(name: &str, db: &PgPool, bucket: &TwinBucket, policy: &Policy) -> Report {
    let (statements, deletions) = (transactions(db).await, bucket.calls().1);
    let memory = start_of_peak();
    let started = Instant::now();
    let report = sweep(db, bucket, policy).await;
    let took = started.elapsed();
    let grown = peak().saturating_sub(memory);
    // Less the one that read the number before.
    let statements = transactions(db).await - statements - 1;
    println!(
        "{name}: {} objects, {} orphans, {} reclaimed; {} listings, {} deletions, {statements} statements, {:.2} s, peak grown by {grown} KiB",
        report.listed,
        report.orphans,
        report.reclaimed,
        report.pages,
        bucket.calls().1 - deletions,
        took.as_secs_f64(),
    );
    report
}

/// Transactions of the database so far; a statement of the sweeper is one, and its first preparation another.
async fn transactions(db: &PgPool) -> i64 {
    sqlx::query("select pg_stat_force_next_flush()").execute(db).await.unwrap();
    sqlx::query("select 1").execute(db).await.unwrap();
    let row = sqlx::query("select xact_commit from pg_stat_database where datname = current_database()");
    row.fetch_one(db).await.unwrap().get(0)
}

/// Forgets the peak of this process's memory; what it has now, in KiB. The bucket itself is in it.
fn start_of_peak() -> u64 {
    std::fs::write("/proc/self/clear_refs", "5").ok();
    peak()
}

fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
