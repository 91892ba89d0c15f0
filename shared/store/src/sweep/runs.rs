//! What each run found, for the gauges and for people.

use fault::FaultPoint;
use serde_json::Value;
use sqlx::PgExecutor;

use crate::Error;

/// The result of a run.
#[derive(Clone, Copy, Debug)]
pub struct NewRun<'a> {
    /// Nothing was deleted, on purpose.
    pub dry_run: bool,
    /// Objects looked at.
    pub listed: i64,
    /// Of them without a row.
    pub orphans: i64,
    /// Of them deleted.
    pub reclaimed: i64,
    /// Guards that refused.
    pub refused: i64,
    /// Rows without an object.
    pub missing: i64,
    /// The whole answer.
    pub report: &'a Value,
}

/// What the monitor shows of the sweeper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Orphans that the newest run saw.
    pub orphans_seen: i64,
    /// Of them reclaimed.
    pub orphans_reclaimed: i64,
    /// Artifacts that rows refer to and the bucket does not hold, until a later look finds them.
    pub artifacts_missing: i64,
    /// Artifacts whose size or checksum differs, until a later look finds them whole.
    pub artifacts_differing: i64,
    /// Guards that refused in the newest run.
    pub sweep_refusals: i64,
}

/// Keeps the result of a run.
///
/// # Errors
///
/// [`Error::Database`]. The work of the run is done all the same.
pub async fn record(db: impl PgExecutor<'_>, run: &NewRun<'_>) -> Result<(), Error> {
    sqlx::query!(
        r#"
        -- sweep::record
        insert into sweep_run (dry_run, listed, orphans, reclaimed, refused, missing, report)
        values ($1, $2, $3, $4, $5, $6, $7)
        "#,
        run.dry_run,
        run.listed,
        run.orphans,
        run.reclaimed,
        run.refused,
        run.missing,
        run.report,
    )
    .execute(db)
    .fault_point("sweep::record")
    .await?;
    Ok(())
}

/// What there is to show; all zero before the first run.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn gauges(db: impl PgExecutor<'_>) -> Result<Gauges, Error> {
    let gauges = sqlx::query_as!(
        Gauges,
        r#"
        -- sweep::gauges
        with newest as (
            select orphans, reclaimed, refused from sweep_run order by run_id desc limit 1
        ), damage as (
            select count(*) filter (where kind = 'MISSING') as missing,
                   count(*) filter (where kind <> 'MISSING') as differing
              from artifact_damage
        )
        select coalesce(newest.orphans, 0) as "orphans_seen!",
               coalesce(newest.reclaimed, 0) as "orphans_reclaimed!",
               damage.missing as "artifacts_missing!",
               damage.differing as "artifacts_differing!",
               coalesce(newest.refused, 0) as "sweep_refusals!"
          from damage
          left join newest on true
        "#,
    )
    .fetch_one(db)
    .fault_point("sweep::gauges")
    .await?;
    Ok(gauges)
}
