//! How far the bucket was looked at: one position a lap, with a swept-through mark and a cursor.
//!
//! A lap walks the keys in the order of their bytes, from the mark to an end that is fixed when it
//! starts. Every move compares the step it read, so that a sweeper that was overtaken moves nothing back;
//! it may have looked twice, which harms nobody.

use chrono::{DateTime, Utc};
use fault::FaultPoint;
use sqlx::PgExecutor;

use crate::Error;

/// Which walk over the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lap {
    /// What has outlived the grace period.
    Fresh,
    /// The same hours again much later, for uploads that landed late.
    Late,
    /// Everything, because somebody asked.
    Audit,
}

/// Where a lap is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// Compared by every move.
    pub step: i64,
    /// Everything up to this key was looked at in this lap.
    pub cursor_key: String,
    /// Where the lap ends; `None` between laps.
    pub until_key: Option<String>,
    /// When it started.
    pub started_at: Option<DateTime<Utc>>,
    /// The swept-through mark: where the next lap begins.
    pub swept_from: String,
    /// An audit that reads the objects themselves.
    pub checksums: bool,
}

/// What came of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a sweeper that was overtaken has to stop"]
pub enum Moved {
    /// The position is as asked.
    Done,
    /// Another sweeper moved it meanwhile.
    Overtaken,
}

/// A wish for an audit.
#[derive(Clone, Copy, Debug)]
pub struct AuditWish<'a> {
    /// Where it ends.
    pub until_key: &'a str,
    /// Whether to read every object and compare its checksum.
    pub checksums: bool,
    /// Who asks.
    pub who: &'a str,
    /// Why.
    pub why: &'a str,
}

impl Lap {
    /// As it is stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fresh => "FRESH",
            Self::Late => "LATE",
            Self::Audit => "AUDIT",
        }
    }
}

/// The position of `lap`; `None` before its first.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn position(db: impl PgExecutor<'_>, lap: Lap, dry_run: bool) -> Result<Option<Position>, Error> {
    let position = sqlx::query_as!(
        Position,
        r#"
        -- sweep::position
        select step, cursor_key, until_key, started_at, swept_from, checksums
          from sweep_lap
         where lap = $1 and dry_run = $2
        "#,
        lap.as_str(),
        dry_run,
    )
    .fetch_optional(db)
    .fault_point("sweep::position")
    .await?;
    Ok(position)
}

/// Starts `lap` at its mark, to end before `until_key`; `None` when it runs already.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn start(
    db: impl PgExecutor<'_>,
    lap: Lap,
    dry_run: bool,
    until_key: &str,
) -> Result<Option<Position>, Error> {
    let position = sqlx::query_as!(
        Position,
        r#"
        -- sweep::start
        insert into sweep_lap as l (lap, dry_run, until_key, started_at)
        values ($1, $2, $3, clock_timestamp())
            on conflict (lap, dry_run) do update
           set until_key  = excluded.until_key,
               started_at = excluded.started_at,
               cursor_key = l.swept_from,
               step       = l.step + 1
         where l.until_key is null
        returning step, cursor_key, until_key, started_at, swept_from, checksums
        "#,
        lap.as_str(),
        dry_run,
        until_key,
    )
    .fetch_optional(db)
    .fault_point("sweep::start")
    .await?;
    Ok(position)
}

/// Starts an audit from the first key on; `false` when one runs already.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn start_audit(
    db: impl PgExecutor<'_>,
    dry_run: bool,
    wish: &AuditWish<'_>,
) -> Result<bool, Error> {
    let started = sqlx::query!(
        r#"
        -- sweep::start_audit
        insert into sweep_lap as l (lap, dry_run, until_key, started_at, checksums, requested_by, requested_why)
        values ('AUDIT', $1, $2, clock_timestamp(), $3, $4, $5)
            on conflict (lap, dry_run) do update
           set until_key     = excluded.until_key,
               started_at    = excluded.started_at,
               checksums     = excluded.checksums,
               requested_by  = excluded.requested_by,
               requested_why = excluded.requested_why,
               cursor_key    = '',
               step          = l.step + 1
         where l.until_key is null
        "#,
        dry_run,
        wish.until_key,
        wish.checksums,
        wish.who,
        wish.why,
    )
    .execute(db)
    .fault_point("sweep::start_audit")
    .await?;
    Ok(started.rows_affected() == 1)
}

/// Everything up to `cursor_key` was looked at.
///
/// # Errors
///
/// [`Error::Database`]. The page is looked at again then.
pub async fn advance(
    db: impl PgExecutor<'_>,
    lap: Lap,
    dry_run: bool,
    step: i64,
    cursor_key: &str,
) -> Result<Moved, Error> {
    let moved = sqlx::query!(
        r#"
        -- sweep::advance
        update sweep_lap
           set cursor_key = $4, step = step + 1
         where lap = $1 and dry_run = $2 and step = $3
        "#,
        lap.as_str(),
        dry_run,
        step,
        cursor_key,
    )
    .execute(db)
    .fault_point("sweep::advance")
    .await?;
    Ok(Moved::of(moved.rows_affected()))
}

/// The lap is over, and every key before `mark` is done for good. A mark never moves back.
///
/// # Errors
///
/// [`Error::Database`]. The lap's last page is looked at again then.
pub async fn finish(
    db: impl PgExecutor<'_>,
    lap: Lap,
    dry_run: bool,
    step: i64,
    mark: &str,
) -> Result<Moved, Error> {
    let moved = sqlx::query!(
        r#"
        -- sweep::finish
        update sweep_lap
           set until_key   = null,
               started_at  = null,
               cursor_key  = '',
               swept_from  = greatest(swept_from collate "C", $4 collate "C"),
               finished_at = clock_timestamp(),
               step        = step + 1
         where lap = $1 and dry_run = $2 and step = $3
        "#,
        lap.as_str(),
        dry_run,
        step,
        mark,
    )
    .execute(db)
    .fault_point("sweep::finish")
    .await?;
    Ok(Moved::of(moved.rows_affected()))
}

impl Moved {
    fn of(rows: u64) -> Self {
        if rows == 1 { Self::Done } else { Self::Overtaken }
    }
}
