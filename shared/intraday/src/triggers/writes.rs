//! Writes what changed: one guarded statement a change.
//!
//! The caller holds the locks of [`super::rows`], so a guard that does not hold is a bug, not a race;
//! the job is tried again even so.

use fault::FaultPoint;
use sqlx::PgConnection;

use super::{Cause, Key, Values, changes::Change};

/// A row that said something else than what its guard expected, though its session is locked.
#[derive(Debug, thiserror::Error)]
#[error("the trigger of {} at {} is not in revision {revision} any more", .key.symbol, .key.at)]
pub struct Moved {
    /// The row.
    pub key: Key,
    /// The revision that stood when the session was locked.
    pub revision: i32,
}

/// Why a change could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Come back later.
    #[error("the database did not write a trigger")]
    Database(#[from] sqlx::Error),
    /// Come back later: somebody wrote without the session's lock.
    #[error(transparent)]
    Moved(#[from] Moved),
}

/// Writes one change; answers the revision that needs an explanation now, if any.
///
/// The trigger before its explanation, as the explain job locks them.
///
/// # Errors
///
/// [`Error`].
pub async fn write(
    tx: &mut PgConnection,
    dataset: &str,
    key: &Key,
    change: &Change,
    cause: Cause,
) -> Result<Option<i32>, Error> {
    match change {
        Change::Insert(values) => {
            insert(tx, dataset, key, values, cause).await?;
            Ok(Some(1))
        }
        Change::Replace { revision, values } => {
            let replaced = replace(&mut *tx, dataset, key, *revision, values, cause).await?;
            expect_one(replaced, key, *revision)?;
            remove_explanation(tx, dataset, key).await?;
            Ok(Some(revision + 1))
        }
        Change::Withdraw { revision } => {
            let withdrawn = withdraw(&mut *tx, dataset, key, *revision).await?;
            expect_one(withdrawn, key, *revision)?;
            remove_explanation(tx, dataset, key).await?;
            Ok(None)
        }
    }
}

fn expect_one(written: u64, key: &Key, revision: i32) -> Result<(), Moved> {
    if written == 1 { Ok(()) } else { Err(Moved { key: key.clone(), revision }) }
}

async fn insert(
    tx: &mut PgConnection,
    dataset: &str,
    key: &Key,
    values: &Values,
    cause: Cause,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"
        -- triggers::writes::insert
        insert into price_trigger
               (dataset, symbol, rule, direction, window_start, session_date, reference_window,
                reference_close, close, move, cause_window_start, cause_window_generation)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
        "#,
        dataset,
        key.symbol,
        key.rule.as_str(),
        key.direction.as_str(),
        key.at,
        values.session,
        values.reference_at,
        values.reference_close,
        values.close,
        values.r#move(),
        cause.window_start,
        cause.generation,
    )
    .execute(tx)
    .fault_point("triggers::writes::insert")
    .await?;
    Ok(())
}

async fn replace(
    tx: &mut PgConnection,
    dataset: &str,
    key: &Key,
    revision: i32,
    values: &Values,
    cause: Cause,
) -> Result<u64, sqlx::Error> {
    let replaced = sqlx::query!(
        r#"
        -- triggers::writes::replace
        update price_trigger
           set revision                = revision + 1,
               session_date            = $7,
               reference_window        = $8,
               reference_close         = $9,
               close                   = $10,
               move                    = $11,
               cause_window_start      = $12,
               cause_window_generation = $13,
               withdrawn_at            = null
         where dataset = $1
           and symbol = $2
           and rule = $3
           and direction = $4
           and window_start = $5
           and revision = $6
        "#,
        dataset,
        key.symbol,
        key.rule.as_str(),
        key.direction.as_str(),
        key.at,
        revision,
        values.session,
        values.reference_at,
        values.reference_close,
        values.close,
        values.r#move(),
        cause.window_start,
        cause.generation,
    )
    .execute(tx)
    .fault_point("triggers::writes::replace")
    .await?;
    Ok(replaced.rows_affected())
}

async fn withdraw(
    tx: &mut PgConnection,
    dataset: &str,
    key: &Key,
    revision: i32,
) -> Result<u64, sqlx::Error> {
    let withdrawn = sqlx::query!(
        r#"
        -- triggers::writes::withdraw
        update price_trigger
           set withdrawn_at = clock_timestamp()
         where dataset = $1
           and symbol = $2
           and rule = $3
           and direction = $4
           and window_start = $5
           and revision = $6
           and withdrawn_at is null
        "#,
        dataset,
        key.symbol,
        key.rule.as_str(),
        key.direction.as_str(),
        key.at,
        revision,
    )
    .execute(tx)
    .fault_point("triggers::writes::withdraw")
    .await?;
    Ok(withdrawn.rows_affected())
}

async fn remove_explanation(tx: &mut PgConnection, dataset: &str, key: &Key) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"
        -- triggers::writes::remove_explanation
        delete from explanation
         where dataset = $1
           and symbol = $2
           and rule = $3
           and direction = $4
           and window_start = $5
        "#,
        dataset,
        key.symbol,
        key.rule.as_str(),
        key.direction.as_str(),
        key.at,
    )
    .execute(tx)
    .fault_point("triggers::writes::remove_explanation")
    .await?;
    Ok(())
}
