//! Who this database is to its bucket, and whether it is in a state to decide anything.

use chrono::{DateTime, Utc};
use fault::FaultPoint;
use sqlx::PgExecutor;
use uuid::Uuid;

use crate::Error;

/// What the guards ask of the database, in one look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Who this database is; the bucket's marker must say the same.
    pub installation_id: Uuid,
    /// The bucket it adopted, if it did.
    pub bucket: Option<String>,
    /// The database's clock.
    pub now: DateTime<Utc>,
    /// It follows another server and may lag behind it.
    pub replica: bool,
    /// It takes no writes.
    pub read_only: bool,
    /// At least one row refers to an object.
    pub holds_artifacts: bool,
}

/// Looks.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn standing(db: impl PgExecutor<'_>) -> Result<Standing, Error> {
    let standing = sqlx::query_as!(
        Standing,
        r#"
        -- sweep::standing
        select installation_id,
               bucket,
               clock_timestamp() as "now!",
               pg_is_in_recovery() as "replica!",
               current_setting('transaction_read_only') = 'on' as "read_only!",
               exists (select from artifact where state = 'REFERENCED') as "holds_artifacts!"
          from installation
        "#,
    )
    .fetch_one(db)
    .fault_point("sweep::standing")
    .await?;
    Ok(standing)
}

/// Notes that `bucket` carries this installation's marker, by the decision of `who` because of `why`.
///
/// # Errors
///
/// [`Error::Database`], also for a `who` or `why` that is empty.
pub async fn adopt(db: impl PgExecutor<'_>, bucket: &str, who: &str, why: &str) -> Result<(), Error> {
    sqlx::query!(
        r#"
        -- sweep::adopt
        update installation
           set bucket = $1, adopted_at = now(), adopted_by = $2, adopted_why = $3
        "#,
        bucket,
        who,
        why,
    )
    .execute(db)
    .fault_point("sweep::adopt")
    .await?;
    Ok(())
}
