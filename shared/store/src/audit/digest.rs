//! Whether any row changed.
//!
//! `lane` is left out: its rows say who drains a destination now, and change with every run of the
//! relay, whatever it sends.

use sqlx::PgExecutor;

use crate::Error;

/// A table's rows and a digest of all their columns; equal digests mean that no row changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    /// The table.
    pub table: String,
    /// Its rows.
    pub rows: i64,
    /// The sum of the rows' 64-bit hashes, which does not depend on their order.
    pub digest: String,
}

/// Digests of `artifact`, `collection_window`, `job` and `outbox_event`, in one snapshot.
///
/// # Errors
///
/// [`Error::Database`]
pub async fn digests(db: impl PgExecutor<'_>) -> Result<Vec<Digest>, Error> {
    let digests = sqlx::query_as!(
        Digest,
        r#"
        -- audit::digests
        with hashed as (
            select 'artifact' as name, hashtextextended(artifact::text, 0) as hash from artifact
            union all
            select 'collection_window', hashtextextended(collection_window::text, 0) from collection_window
            union all
            select 'job', hashtextextended(job::text, 0) from job
            union all
            select 'outbox_event', hashtextextended(outbox_event::text, 0) from outbox_event
        )
        select name as "table!", count(*) as "rows!", sum(hash)::text as "digest!"
          from hashed
         group by name
         order by name
        "#
    )
    .fetch_all(db)
    .await?;
    Ok(digests)
}
