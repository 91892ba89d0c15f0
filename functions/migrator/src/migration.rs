//! The work itself, on a task of its own: a panic in it, or time that runs out, is an answer like others.

use std::sync::Arc;
use std::time::Duration;

use runtime::database::{self, Postgres};
use runtime::time_left::TimeLeft;
use serde_json::{Value, json};
use store::{migrate, roles};

/// What is kept of the invocation's time to say that it was too short.
const MARGIN: Duration = Duration::from_secs(5);

/// Why the schema is not what this release needs.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database can not be asked. Nothing was done.
    #[error("the database can not be reached")]
    Database(#[from] database::Error),
    /// A migration failed; those before it stay.
    #[error("the schema was not brought up to date")]
    Migration(#[from] store::Error),
    /// A bug.
    #[error("the migrator panicked")]
    Panicked(#[source] tokio::task::JoinError),
    /// It may end all the same; call again to find out, with a longer timeout if need be.
    #[error("the migrations take longer than this function may run")]
    OutOfTime,
}

/// What a run did and found.
#[derive(Debug, PartialEq, Eq)]
pub struct Migrated {
    /// Migrations that this run applied, oldest first.
    pub applied: Vec<String>,
    /// The newest that is applied now; a newer release may have applied more than this one knows.
    pub version: i64,
}

impl Migrated {
    /// The answer to a direct call, and what CloudFormation is told.
    pub fn to_json(&self) -> Value {
        let hash = migrate::schema_hash();
        json!({ "applied": self.applied, "schema_version": self.version, "schema_hash": hash })
    }
}

/// Brings the schema up to date, and the login users where that is asked for.
pub struct Migration {
    pub database: Arc<Postgres>,
    pub logins: bool,
}

impl Migration {
    /// Does it, in the time that is left.
    ///
    /// # Errors
    ///
    /// [`Error`]. Whatever it is, calling again is harmless.
    pub async fn run(&self, time_left: TimeLeft) -> Result<Migrated, Error> {
        let work = tokio::spawn(migrate(Arc::clone(&self.database), self.logins));
        // The task is only left alone, not cut off: a statement that was sent comes to its end.
        match tokio::time::timeout(time_left.remaining().saturating_sub(MARGIN), work).await {
            Ok(Ok(migrated)) => migrated,
            Ok(Err(panic)) => Err(Error::Panicked(panic)),
            Err(_) => Err(Error::OutOfTime),
        }
    }
}

async fn migrate(database: Arc<Postgres>, logins: bool) -> Result<Migrated, Error> {
    database.connectable().await?;
    let applied = migrate::migrate(database.pool()).await?;
    if logins {
        roles::create_logins(database.pool()).await?;
    }
    let newest = migrate::newest(database.pool()).await?;
    Ok(Migrated { applied, version: newest.map_or(0, |(version, _)| version) })
}
