//! Outbox rows to begin with, many at once, and what they have become.

use sqlx::{PgConnection, PgPool};

/// Writes `count` jobs of `destination`, each with its NEW event, in one statement.
///
/// `label` keeps apart what several calls make. Bodies are `body`, whatever the job.
///
/// # Errors
///
/// What PostgreSQL says.
pub async fn fill(db: &PgPool, destination: &str, label: &str, count: i64, body: &str) -> sqlx::Result<()> {
    sqlx::query(
        r"
        -- testkit::outbox::fill
        with made as (
            insert into job (job_id, job_type, destination, max_attempts, payload)
            select encode(sha256(convert_to($1 || $2 || n, 'utf8')), 'hex'), $1, $1, 8, '{}'
              from generate_series(1, $3) as n
            returning job_id
        )
        insert into outbox_event (event_id, job_id, event_type, destination, redrive_generation, body)
        select $1 || ':' || job_id || ':0', job_id, $1, $1, 0, $4
          from made
        ",
    )
    .bind(destination)
    .bind(label)
    .bind(count)
    .bind(body)
    .execute(db)
    .await?;
    Ok(())
}

/// How many events of `destination` are `status`.
///
/// # Errors
///
/// What PostgreSQL says.
pub async fn count(db: &PgPool, destination: &str, status: &str) -> sqlx::Result<i64> {
    sqlx::query_scalar("select count(*) from outbox_event where destination = $1 and status = $2")
        .bind(destination)
        .bind(status)
        .fetch_one(db)
        .await
}

/// What `act` returns, and the buffers of `outbox_event` and its indexes that it touched.
///
/// # Errors
///
/// What PostgreSQL says.
pub async fn buffers_of<T>(
    db: &mut PgConnection,
    act: impl AsyncFnOnce(&mut PgConnection) -> T,
) -> sqlx::Result<(T, i64)> {
    buffers_in(db, &["outbox_event"], act).await
}

/// What `act` returns, and the buffers of `tables` and their indexes that it touched.
///
/// # Errors
///
/// What PostgreSQL says.
pub async fn buffers_in<T>(
    db: &mut PgConnection,
    tables: &[&str],
    act: impl AsyncFnOnce(&mut PgConnection) -> T,
) -> sqlx::Result<(T, i64)> {
    let before = buffers(db, tables).await?;
    let value = act(db).await;
    Ok((value, buffers(db, tables).await? - before))
}

async fn buffers(db: &mut PgConnection, tables: &[&str]) -> sqlx::Result<i64> {
    sqlx::query("select pg_stat_force_next_flush()").execute(&mut *db).await?;
    sqlx::query_scalar(
        "select sum(heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit)::bigint
           from pg_statio_user_tables where relname = any($1)",
    )
    .bind(tables)
    .fetch_one(db)
    .await
}
