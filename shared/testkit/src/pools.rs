//! Pools for tests that let statements meet.

use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

/// Connections to the test's database for `size` rivals, all opened.
///
/// Whoever waits for a lock longer than two seconds fails, so that a statement which must not wait is
/// found out and does not hang the test.
pub async fn crowd(db: &PgPool, size: u32) -> PgPool {
    let options = (*db.connect_options()).clone().options([("lock_timeout", "2s")]);
    PgPoolOptions::new().min_connections(size).max_connections(size).connect_with(options).await.unwrap()
}
