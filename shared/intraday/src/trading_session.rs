//! Trading sessions: one row per dataset and day, locked by whoever computes its triggers.

use chrono::NaiveDate;
use fault::FaultPoint;
use sqlx::PgExecutor;

/// Makes sure that the session has its row.
///
/// # Errors
///
/// What the database said; roll back.
pub async fn ensure(tx: impl PgExecutor<'_>, dataset: &str, date: NaiveDate) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"
        -- trading_session::ensure
        insert into trading_session (dataset, session_date)
        values ($1, $2)
            on conflict (dataset, session_date) do nothing
        "#,
        dataset,
        date,
    )
    .execute(tx)
    .fault_point("trading_session::ensure")
    .await?;
    Ok(())
}
