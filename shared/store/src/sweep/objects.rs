//! What the rows say about the objects of a page, and the one statement that decides.

use chrono::{DateTime, Utc};
use fault::FaultPoint;
use sqlx::PgExecutor;

use crate::Error;

/// An artifact's row, as the sweeper compares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The key.
    pub key: String,
    /// The sweeper took it; otherwise rows refer to the object.
    pub reclaimed: bool,
    /// Of the object's bytes; none when reclaimed before it was ever referred to.
    pub sha256: Option<String>,
    /// Of the object.
    pub size_bytes: Option<i64>,
    /// The row was written before the page was listed, so its object must have been there.
    pub before_listing: bool,
    /// A damage was noted for it.
    pub damaged: bool,
}

/// An object to delete, as it was listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doomed {
    /// Its key. Its row says RECLAIMED.
    pub key: String,
    /// Its `ETag`: another object under the key is not meant.
    pub etag: String,
}

/// The rows with keys after `after` up to `through`, in the order of bytes, at most `limit`.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn rows_between(
    db: impl PgExecutor<'_>,
    after: &str,
    through: &str,
    listed_at: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<Row>, Error> {
    let rows = sqlx::query_as!(
        Row,
        r#"
        -- sweep::rows_between
        select a.key,
               a.state = 'RECLAIMED' as "reclaimed!",
               a.sha256,
               a.size_bytes,
               a.created_at < $3 as "before_listing!",
               d.key is not null as "damaged!"
          from artifact a
          left join artifact_damage d on d.key = a.key
         where a.key collate "C" > $1
           and a.key collate "C" <= $2
         order by a.key collate "C"
         limit $4
        "#,
        after,
        through,
        listed_at,
        limit,
    )
    .fetch_all(db)
    .fault_point("sweep::rows_between")
    .await?;
    Ok(rows)
}

/// Takes `objects` whose keys have no row, and those whose row says RECLAIMED already; answers with the
/// objects that may be deleted. One whose writer was faster is not among them.
///
/// Where the writer's transaction is still open this waits for its end, and fails when that takes longer
/// than the server's lock timeout. Keys are inserted in the order in which writers insert them.
///
/// # Errors
///
/// [`Error::Database`]. If the answer was lost the rows are there, and the next look deletes.
pub async fn reclaim(db: impl PgExecutor<'_>, objects: &[Doomed]) -> Result<Vec<Doomed>, Error> {
    let keys: Vec<&str> = objects.iter().map(|object| object.key.as_str()).collect();
    let etags: Vec<&str> = objects.iter().map(|object| object.etag.as_str()).collect();
    let doomed = sqlx::query_as!(
        Doomed,
        r#"
        -- sweep::reclaim
        with seen as (
            select key, etag from unnest($1::text[], $2::text[]) as seen (key, etag)
        ), won as (
            insert into artifact (key, state, owner)
            select key, 'RECLAIMED', 'sweeper' from seen order by key
                on conflict (key) do nothing
            returning key
        ), doomed as (
            select key from won
             union all
            select a.key from artifact a join seen using (key) where a.state = 'RECLAIMED'
        )
        insert into pending_deletion (key, etag)
        select key, etag from doomed join seen using (key) order by key
            on conflict (key) do update set etag = excluded.etag
        returning key, etag
        "#,
        &keys as &[&str],
        &etags as &[&str],
    )
    .fetch_all(db)
    .fault_point("sweep::reclaim")
    .await?;
    Ok(doomed)
}

/// Deletions that S3 has not confirmed, the longest untried first.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn pending(db: impl PgExecutor<'_>, limit: i64) -> Result<Vec<Doomed>, Error> {
    let pending = sqlx::query_as!(
        Doomed,
        r#"
        -- sweep::pending
        select p.key, p.etag
          from pending_deletion p
          join artifact a on a.key = p.key and a.state = 'RECLAIMED'
         order by p.tried_at nulls first, p.key
         limit $1
        "#,
        limit,
    )
    .fetch_all(db)
    .fault_point("sweep::pending")
    .await?;
    Ok(pending)
}

/// S3 says that these are gone.
///
/// # Errors
///
/// [`Error::Database`]. They are deleted once more then, which finds nothing.
pub async fn confirm_deleted(db: impl PgExecutor<'_>, keys: &[&str]) -> Result<u64, Error> {
    let confirmed = sqlx::query!(
        r#"
        -- sweep::confirm_deleted
        delete from pending_deletion where key = any($1)
        "#,
        keys as &[&str],
    )
    .execute(db)
    .fault_point("sweep::confirm_deleted")
    .await?;
    Ok(confirmed.rows_affected())
}

/// S3 refused to delete these, each with its reason; the next run tries again.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn note_failures(db: impl PgExecutor<'_>, failures: &[(&str, &str)]) -> Result<(), Error> {
    let (keys, reasons): (Vec<&str>, Vec<&str>) = failures.iter().copied().unzip();
    sqlx::query!(
        r#"
        -- sweep::note_failures
        update pending_deletion p
           set attempt_count = p.attempt_count + 1,
               last_error    = failed.reason,
               tried_at      = clock_timestamp()
          from unnest($1::text[], $2::text[]) as failed (key, reason)
         where p.key = failed.key
        "#,
        &keys as &[&str],
        &reasons as &[&str],
    )
    .execute(db)
    .fault_point("sweep::note_failures")
    .await?;
    Ok(())
}
