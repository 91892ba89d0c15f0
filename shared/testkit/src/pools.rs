//! Pools for tests that let statements meet, and databases for examples.

use std::str::FromStr;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, PgPool};
use store::migrate::migrate;
use uuid::Uuid;

/// Connections to the test's database for `size` rivals, all opened.
///
/// Whoever waits for a lock longer than two seconds fails, so that a statement which must not wait is
/// found out and does not hang the test.
pub async fn crowd(db: &PgPool, size: u32) -> PgPool {
    let options = (*db.connect_options()).clone().options([("lock_timeout", "2s")]);
    PgPoolOptions::new().min_connections(size).max_connections(size).connect_with(options).await.unwrap()
}

/// Lets an example of the documentation run in a migrated database of its own, on the server that
/// `DATABASE_URL` names. Where none is named nothing is run. Tests have `#[sqlx::test]`.
pub async fn scratch(example: impl AsyncFnOnce(PgPool)) {
    let Ok(url) = std::env::var("DATABASE_URL") else { return };
    let options = PgConnectOptions::from_str(&url).unwrap();
    let mut server = options.connect().await.unwrap();
    // Letters, digits and `_` alone.
    let name = format!("scratch_{}", Uuid::new_v4().simple());
    sqlx::raw_sql(AssertSqlSafe(format!("create database {name}"))).execute(&mut server).await.unwrap();
    let db = PgPoolOptions::new().max_connections(4).connect_with(options.database(&name)).await.unwrap();
    migrate(&db).await.unwrap();
    example(db.clone()).await;
    db.close().await;
    sqlx::raw_sql(AssertSqlSafe(format!("drop database {name}"))).execute(&mut server).await.unwrap();
}
