//! Bars as committed: those of each window's current generation, with the digits their source wrote.

use chrono::{DateTime, Utc};
use fault::FaultPoint;
use rust_decimal::Decimal;
use sqlx::PgConnection;

use crate::bars::{Bar, Minute};

/// Puts `minute` in place of whatever bars the window had.
///
/// Run it in the transaction that opened or corrected the window: that row's lock keeps others away.
///
/// # Errors
///
/// What the database said; roll back.
pub async fn replace(
    tx: &mut PgConnection,
    dataset: &str,
    start: DateTime<Utc>,
    minute: &Minute,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"
        -- price_bar::replace, the old
        delete from price_bar
         where dataset = $1
           and window_start = $2
        "#,
        dataset,
        start,
    )
    .execute(&mut *tx)
    .fault_point("price_bar::replace, the old")
    .await?;
    insert(tx, dataset, start, minute).await
}

/// Inserts the bars of a window that has none.
///
/// # Errors
///
/// What the database said; roll back.
pub async fn insert(
    tx: &mut PgConnection,
    dataset: &str,
    start: DateTime<Utc>,
    minute: &Minute,
) -> Result<(), sqlx::Error> {
    if minute.is_empty() {
        return Ok(());
    }
    let symbols: Vec<&str> = minute.keys().map(String::as_str).collect();
    let column = |value: fn(&Bar) -> Decimal| minute.values().map(value).collect::<Vec<Decimal>>();
    sqlx::query!(
        r#"
        -- price_bar::insert
        insert into price_bar (dataset, window_start, symbol, open, high, low, close, volume)
        select $1, $2, symbol, open, high, low, close, volume
          from unnest($3::text[], $4::numeric[], $5::numeric[], $6::numeric[], $7::numeric[], $8::numeric[])
               as bar (symbol, open, high, low, close, volume)
         order by symbol
        "#,
        dataset,
        start,
        &symbols as &[&str],
        &column(|bar| bar.open),
        &column(|bar| bar.high),
        &column(|bar| bar.low),
        &column(|bar| bar.close),
        &column(|bar| bar.volume),
    )
    .execute(tx)
    .fault_point("price_bar::insert")
    .await?;
    Ok(())
}
