//! Windows: one closed minute of one dataset, and the generation that each correction raises.
//!
//! A window is inserted once and corrected by compare-and-set on its generation, so that of two
//! collectors exactly one has its way. A job made for an older generation is stale, and [`lock_current`]
//! is how its transaction makes sure that it is not.

use std::collections::HashMap;

use chrono::{DateTime, NaiveDate, Utc};
use fault::FaultPoint;
use sqlx::PgExecutor;

use crate::Error;

/// A window in one of its generations, as a job is tied to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WindowRef {
    /// The dataset's name.
    pub dataset: String,
    /// The first instant of the minute.
    pub start: DateTime<Utc>,
    /// The generation the work is made for; at least 1.
    pub generation: i32,
}

/// A window as it was read, before anything was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its generation; a correction compares it.
    pub generation: i32,
    /// The digest of its canonical bars.
    pub content_digest: String,
    /// Stored after the fact, without jobs.
    pub backfilled: bool,
}

/// The content of a window, new or corrected.
#[derive(Clone, Copy, Debug)]
pub struct NewWindow<'a> {
    /// The dataset's name.
    pub dataset: &'a str,
    /// The first instant of the minute.
    pub start: DateTime<Utc>,
    /// The trading day it belongs to.
    pub session_date: NaiveDate,
    /// SHA-256 of the canonical bars, in hex.
    pub content_digest: &'a str,
    /// How many bars; an artifact is needed exactly when there are some.
    pub bar_count: i32,
    /// The raw input, already referred to in the same transaction.
    pub artifact_key: Option<&'a str>,
    /// Stored after the fact. A correction leaves the column as it is.
    pub backfilled: bool,
}

/// What came of inserting a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// It is there now, in generation 1.
    Opened,
    /// Somebody else inserted it; nothing was changed.
    Exists,
}

/// What came of correcting a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corrected {
    /// Its content was replaced.
    Corrected {
        /// The generation it has now.
        generation: i32,
    },
    /// It is not in the expected generation any more: fetch again.
    Moved,
}

/// Whether a window still is what a job was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// It is, and stays so until the transaction ends.
    Current,
    /// It has another generation, or is not there: the work is stale.
    Moved,
}

/// What the database knows of those of `starts` that have a row: one round trip for a whole look-back.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn read_many(
    db: impl PgExecutor<'_>,
    dataset: &str,
    starts: &[DateTime<Utc>],
) -> Result<HashMap<DateTime<Utc>, Seen>, Error> {
    let rows = sqlx::query!(
        r#"
        -- window::read_many
        select window_start, generation, content_digest, backfilled
          from collection_window
         where dataset = $1
           and window_start = any($2)
        "#,
        dataset,
        starts,
    )
    .fetch_all(db)
    .fault_point("window::read_many")
    .await?;
    let seen = |generation, content_digest, backfilled| Seen { generation, content_digest, backfilled };
    Ok(rows
        .into_iter()
        .map(|row| (row.window_start, seen(row.generation, row.content_digest, row.backfilled)))
        .collect())
}

/// Inserts a window in generation 1, unless it exists.
///
/// Waits for a collector that is inserting the same one right now.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn open(tx: impl PgExecutor<'_>, window: &NewWindow<'_>) -> Result<Opened, Error> {
    let inserted = sqlx::query!(
        r#"
        -- window::open
        insert into collection_window
               (dataset, window_start, session_date, content_digest, bar_count, artifact_key, backfilled)
        values ($1, $2, $3, $4, $5, $6, $7)
            on conflict (dataset, window_start) do nothing
        "#,
        window.dataset,
        window.start,
        window.session_date,
        window.content_digest,
        window.bar_count,
        window.artifact_key,
        window.backfilled,
    )
    .execute(tx)
    .fault_point("window::open")
    .await?;
    Ok(if inserted.rows_affected() == 1 { Opened::Opened } else { Opened::Exists })
}

/// Replaces a window's content and raises its generation, if it still is `from_generation`.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn correct(
    tx: impl PgExecutor<'_>,
    window: &NewWindow<'_>,
    from_generation: i32,
) -> Result<Corrected, Error> {
    let generation = sqlx::query_scalar!(
        r#"
        -- window::correct
        update collection_window
           set generation     = generation + 1,
               content_digest = $4,
               bar_count      = $5,
               artifact_key   = $6,
               corrected_at   = clock_timestamp()
         where dataset = $1
           and window_start = $2
           and generation = $3
        returning generation
        "#,
        window.dataset,
        window.start,
        from_generation,
        window.content_digest,
        window.bar_count,
        window.artifact_key,
    )
    .fetch_optional(tx)
    .fault_point("window::correct")
    .await?;
    Ok(generation.map_or(Corrected::Moved, |generation| Corrected::Corrected { generation }))
}

/// Checks that a window still is in the generation of `window`, and holds off a correction until the
/// transaction ends.
///
/// The lock is shared: the jobs of one window do not wait for each other, and rows that refer to the
/// window can be inserted meanwhile. Whoever holds it must not correct the window in the same
/// transaction.
///
/// # Errors
///
/// [`Error::Database`], transient when a correction held the row for too long.
pub async fn lock_current(tx: impl PgExecutor<'_>, window: &WindowRef) -> Result<Lock, Error> {
    let generation = sqlx::query_scalar!(
        r#"
        -- window::lock_current
        select generation
          from collection_window
         where dataset = $1
           and window_start = $2
           for share
        "#,
        window.dataset,
        window.start,
    )
    .fetch_optional(tx)
    .fault_point("window::lock_current")
    .await?;
    Ok(if generation == Some(window.generation) { Lock::Current } else { Lock::Moved })
}

/// The database's clock: the only one that decides anything.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn database_now(db: impl PgExecutor<'_>) -> Result<DateTime<Utc>, Error> {
    let now = sqlx::query_scalar!(
        r#"
        -- window::database_now
        select clock_timestamp() as "now!"
        "#
    )
    .fetch_one(db)
    .fault_point("window::database_now")
    .await?;
    Ok(now)
}
