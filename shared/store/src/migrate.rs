//! Brings the schema up to this release: forward only, each migration once.
//!
//! A migration that was applied and then edited is refused, since no two databases would be alike any
//! more. One that this release does not know is passed over: after a rolled back deploy the older code
//! runs on the newer schema, which every migration allows for. Needs a session of its own, so never a
//! transaction pooler: the migrations of a database run one at a time under a session lock.

use sqlx::migrate::{Migrate, MigrateError, Migrator};
use sqlx::{Connection, PgConnection, PgPool};

use fault::FaultPoint;
use sqlx::migrate::Migration;

use crate::Error;

/// Where sqlx keeps its record of the protocol's migrations.
const RECORD: &str = "_sqlx_migrations";
/// The SQLSTATE of a database that no migration ever saw.
const UNDEFINED_TABLE: &str = "42P01";
/// Where it keeps that of a pipeline's own: apart, so that the numbers of the two never meet.
const OWN_RECORD: &str = "_own_migrations";

/// Applies what is missing and says what that was, oldest first, as `number description`.
///
/// # Errors
///
/// [`Error::Migration`]: an edited or a failing migration; each one runs in a transaction of its own,
/// so those before it stay applied. [`Error::Database`] when there is no connection.
pub async fn migrate(db: &PgPool) -> Result<Vec<String>, Error> {
    run(db, migrator(), RECORD).await
}

/// Applies what is missing of `own`, the migrations of a pipeline that stands on this one's tables.
///
/// After [`migrate`], so that they may refer to the protocol's tables. They may have any numbers, but a
/// database has one such set: as it has one relay, it has one pipeline.
///
/// # Errors
///
/// As [`migrate`].
pub async fn migrate_own(db: &PgPool, own: &Migrator) -> Result<Vec<String>, Error> {
    run(db, Migrator::with_migrations(own.iter().cloned().collect()), OWN_RECORD).await
}

async fn run(db: &PgPool, mut migrator: Migrator, record: &'static str) -> Result<Vec<String>, Error> {
    migrator.set_ignore_missing(true);
    migrator.dangerous_set_table_name(record);
    // Out of the pool, and closed at the end: that gives back the session's lock whatever happened.
    let mut connection = db.acquire().await?.detach();
    let applied = apply(&mut connection, &migrator, record).await;
    connection.close().await?;
    applied.map_err(Error::Migration)
}

fn migrator() -> Migrator {
    sqlx::migrate!("../../migrations")
}

/// A digest of this release's migrations, in hex: a deploy that compares it knows when to migrate again.
#[must_use]
pub fn schema_hash() -> String {
    let all = migrator();
    let parts =
        all.iter().flat_map(|migration| [&migration.version.to_be_bytes()[..], &migration.checksum].concat());
    domain::identity::sha256_hex(&parts.collect::<Vec<u8>>())
}

/// Makes sure that the schema is at least that of this release. A newer one is fine.
///
/// # Errors
///
/// [`Error::SchemaTooOld`] names the migration that is needed and the newest there is; run the migrator.
/// [`Error::Database`] when nobody could be asked.
pub async fn require(db: &PgPool) -> Result<(), Error> {
    let migrator = migrator();
    let Some(needed) = migrator.iter().last() else { return Ok(()) };
    let newest = newest(db).await?;
    if newest.as_ref().is_some_and(|(version, _)| *version >= needed.version) {
        return Ok(());
    }
    let there = newest.map_or("none".to_owned(), |(version, description)| named(version, &description));
    Err(Error::SchemaTooOld { needed: name(needed), there })
}

/// The newest migration that was applied, its number and description; `None` where there is none.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn newest(db: &PgPool) -> Result<Option<(i64, String)>, Error> {
    let newest = sqlx::query_as(
        r"
        -- migrate::newest
        select version, description
          from _sqlx_migrations
         where success
         order by version desc
         limit 1
        ",
    )
    .fetch_optional(db)
    .fault_point("migrate::newest")
    .await;
    match newest {
        Err(sqlx::Error::Database(refusal)) if refusal.code().as_deref() == Some(UNDEFINED_TABLE) => Ok(None),
        newest => Ok(newest?),
    }
}

fn name(migration: &Migration) -> String {
    named(migration.version, &migration.description)
}

fn named(version: i64, description: &str) -> String {
    format!("{version:04} {description}")
}

async fn apply(
    connection: &mut PgConnection,
    migrator: &Migrator,
    record: &str,
) -> Result<Vec<String>, MigrateError> {
    // An index over a big table takes longer than any statement of a function may.
    sqlx::query!("-- migrate\nset statement_timeout = 0").execute(&mut *connection).await?;
    connection.lock().await?;
    connection.ensure_migrations_table(record).await?;
    let before = connection.list_applied_migrations(record).await?;
    migrator.run_direct(None, &mut *connection, false).await?;

    let is_new = |version| before.iter().all(|applied| applied.version != version);
    let missing = migrator.iter().filter(|migration| is_new(migration.version));
    Ok(missing.map(name).collect())
}
