//! The database under test: made anew, filled, measured.

use std::str::FromStr;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, PgPool};

/// A database of its own on the server of `DATABASE_URL`.
pub struct Server {
    admin: PgPool,
    /// The database `bench_relay`.
    pub db: PgPool,
}

/// A size from the environment.
pub fn size(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

impl Server {
    /// Makes the database and its schema.
    pub async fn start() -> Self {
        let url = std::env::var("BENCH_DATABASE_URL").or_else(|_| std::env::var("DATABASE_URL"));
        let url = url.expect("BENCH_DATABASE_URL or DATABASE_URL names a server");
        let options = PgConnectOptions::from_str(&url).unwrap();
        let admin = PgPoolOptions::new().connect_with(options.clone().database("postgres")).await.unwrap();
        for sql in ["drop database if exists bench_relay with (force)", "create database bench_relay"] {
            sqlx::query(sql).execute(&admin).await.unwrap();
        }
        let options = options.database("bench_relay");
        let db = PgPoolOptions::new().max_connections(24).connect_with(options).await.unwrap();
        store::migrate::migrate(&db).await.unwrap();
        Self { admin, db }
    }

    /// Says what it measures on.
    pub async fn describe(&self) {
        let settings: String = sqlx::query_scalar(
            "select version() || ', fsync ' || current_setting('fsync') || ', shared_buffers ' || current_setting('shared_buffers')",
        )
        .fetch_one(&self.db)
        .await
        .unwrap();
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        println!("{settings}; load {}", load.trim());
    }

    /// Empties the outbox, fills each lane with its share of `events`, and lets the server rest.
    pub async fn fill(&self, lanes: &[&str], events: usize) {
        self.execute("truncate lane, job cascade").await;
        for lane in lanes {
            let count = i64::try_from(events / lanes.len()).unwrap();
            testkit::outbox::fill(&self.db, lane, "bench", count, &body()).await.unwrap();
        }
        self.execute("vacuum analyze outbox_event").await;
        self.execute("checkpoint").await;
    }

    /// Runs one statement.
    pub async fn execute(&self, sql: &str) {
        sqlx::query(AssertSqlSafe(sql.to_owned())).execute(&self.db).await.unwrap();
    }

    /// Transactions that wrote so far, and WAL bytes written.
    pub async fn meter(&self) -> (i64, i64) {
        sqlx::query_as(
            "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint, (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint",
        )
        .fetch_one(&self.db)
        .await
        .unwrap()
    }

    /// Another pool for the same database, to be thrown away.
    pub async fn other_pool(&self) -> PgPool {
        let options = (*self.db.connect_options()).clone();
        PgPoolOptions::new().max_connections(10).connect_with(options).await.unwrap()
    }

    /// How many events are PUBLISHED.
    pub async fn published(&self) -> i64 {
        let sql = "select count(*) from outbox_event where status = 'PUBLISHED'";
        sqlx::query_scalar(sql).fetch_one(&self.db).await.unwrap()
    }

    /// Drops the database.
    pub async fn stop(self) {
        self.db.close().await;
        sqlx::query("drop database bench_relay with (force)").execute(&self.admin).await.unwrap();
    }
}

/// As long as the product's messages.
fn body() -> String {
    "x".repeat(240)
}
