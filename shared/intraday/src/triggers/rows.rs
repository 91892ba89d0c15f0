//! What a window's triggers follow from, and the rows that stand, read under the locks of their sessions.
//!
//! Whoever computes holds the lock of every session it writes to, taken before it reads a bar. Two jobs
//! of one session so run one after the other, and the later one sees every bar the earlier one saw.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use fault::FaultPoint;
use sqlx::PgConnection;

use super::{Cause, Close, Direction, Key, Rule, Values, changes::Standing, influence::REACH, rules::Closes};

/// A window's trading day first, then those its influence reaches into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sessions(Vec<NaiveDate>);

impl Sessions {
    /// The window's own trading day; `None` when the window has no row.
    #[must_use]
    pub fn own(&self) -> Option<NaiveDate> {
        self.0.first().copied()
    }
}

/// Locks every trading day with a window in the reach of `window_start`, until the transaction ends.
///
/// # Errors
///
/// [`sqlx::Error`]; transient when a lock was not to be had in time.
pub async fn lock_sessions(
    tx: &mut PgConnection,
    dataset: &str,
    window_start: DateTime<Utc>,
) -> Result<Sessions, sqlx::Error> {
    sqlx::query!(
        r#"
        -- triggers::rows::lock_sessions (1)
        insert into trading_session (dataset, session_date)
        select distinct dataset, session_date
          from collection_window
         where dataset = $1
           and window_start between $2 and $3
         order by session_date
            on conflict (dataset, session_date) do nothing
        "#,
        dataset,
        window_start,
        window_start + REACH,
    )
    .execute(&mut *tx)
    .fault_point("triggers::rows::lock_sessions (1)")
    .await?;
    let days = sqlx::query_scalar!(
        r#"
        -- triggers::rows::lock_sessions (2)
        select session_date
          from trading_session
         where dataset = $1
           and session_date in (select session_date
                                  from collection_window
                                 where dataset = $1
                                   and window_start between $2 and $3)
         order by session_date
           for update
        "#,
        dataset,
        window_start,
        window_start + REACH,
    )
    .fetch_all(tx)
    .fault_point("triggers::rows::lock_sessions (2)")
    .await?;
    Ok(Sessions(days))
}

/// The closes that decide what `window_start` can change: those of its trading day, and those in reach
/// of it in other days. Windows that were backfilled take no part.
///
/// # Errors
///
/// [`sqlx::Error`].
pub async fn read_closes(
    tx: &mut PgConnection,
    dataset: &str,
    session: NaiveDate,
    window_start: DateTime<Utc>,
) -> Result<Closes, sqlx::Error> {
    let rows = sqlx::query!(
        r#"
        -- triggers::rows::read_closes
        select bar.symbol, bar.window_start, win.session_date, bar.close
          from collection_window win
          join price_bar bar using (dataset, window_start)
         where win.dataset = $1
           and not win.backfilled
           and (win.session_date = $2 or win.window_start between $3 and $4)
         order by bar.symbol, bar.window_start
        "#,
        dataset,
        session,
        window_start - REACH,
        window_start + REACH,
    )
    .fetch_all(tx)
    .fault_point("triggers::rows::read_closes")
    .await?;

    let mut closes = Closes::new();
    for row in rows {
        let close = Close { at: row.window_start, session: row.session_date, price: row.close };
        closes.entry(row.symbol).or_default().push(close);
    }
    Ok(closes)
}

/// The rows of these trading days, withdrawn ones included.
///
/// # Errors
///
/// [`sqlx::Error`].
pub async fn read_standing(
    tx: &mut PgConnection,
    dataset: &str,
    sessions: &Sessions,
) -> Result<BTreeMap<Key, Standing>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"
        -- triggers::rows::read_standing
        select symbol, rule, direction, window_start, session_date, revision,
               reference_window, reference_close, close, cause_window_start, cause_window_generation,
               withdrawn_at is not null as "withdrawn!",
               exists (select
                         from explanation
                        where (dataset, symbol, rule, direction, window_start)
                              = (trigger.dataset, trigger.symbol, trigger.rule, trigger.direction,
                                 trigger.window_start)) as "explained!"
          from price_trigger trigger
         where dataset = $1
           and session_date = any ($2)
        "#,
        dataset,
        &sessions.0,
    )
    .fetch_all(tx)
    .fault_point("triggers::rows::read_standing")
    .await?;

    let standing = rows.into_iter().filter_map(|row| {
        let (rule, direction) = (Rule::parse(&row.rule)?, Direction::parse(&row.direction)?);
        let values = Values {
            session: row.session_date,
            reference_at: row.reference_window,
            reference_close: row.reference_close,
            close: row.close,
        };
        let cause = Cause { window_start: row.cause_window_start, generation: row.cause_window_generation };
        Some((
            Key { symbol: row.symbol, rule, direction, at: row.window_start },
            Standing {
                values,
                revision: row.revision,
                withdrawn: row.withdrawn,
                explained: row.explained,
                cause,
            },
        ))
    });
    Ok(standing.collect())
}
