//! What can go wrong between the protocol and PostgreSQL, by what the caller can do about it.

use sqlx::migrate::MigrateError;

/// A statement that did not do its work.
///
/// An expected refusal (a lost claim, a window that moved) is a value, never an error. After an error
/// whose answer was lost on the way, the statement may have been carried out even so.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// PostgreSQL refused, or could not be asked. [`Error::is_transient`] says whether to come back.
    #[error("the database did not carry out a statement")]
    Database(#[from] sqlx::Error),
    /// The sweeper took the key before its writer committed. Write the object again under a new key.
    #[error("an artifact key was already used or reclaimed")]
    ArtifactReclaimed,
    /// The schema is not what this release was built for. A person has to look.
    #[error("the migrations were not applied")]
    Migration(#[source] MigrateError),
    /// The migrator did not run yet. Invoke it; nothing works before.
    #[error(
        "the schema is too old: migration {needed} is needed, the newest there is {there}; run the migrator"
    )]
    SchemaTooOld {
        /// The newest migration of this release.
        needed: String,
        /// The newest that was applied.
        there: String,
    },
    /// A role does not exist or may not be granted. A person has to look.
    #[error("the login users were not made")]
    Logins(#[source] sqlx::Error),
}

impl Error {
    /// Whether the same call may succeed later, with nothing changed by the caller.
    ///
    /// True for a reclaimed key as well: the work that wrote it simply runs again.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Database(error) => is_transient(error),
            Self::ArtifactReclaimed => true,
            Self::Migration(_) | Self::SchemaTooOld { .. } | Self::Logins(_) => false,
        }
    }
}

/// Whether `error`, or a cause of it, is a deadlock or a serialization failure: two did at once what only
/// one after the other could do, and the one that met it runs again.
#[must_use]
pub fn is_conflict(error: &(dyn std::error::Error + 'static)) -> bool {
    let refusal = error.downcast_ref::<sqlx::Error>().and_then(sqlx::Error::as_database_error);
    let conflict = refusal.and_then(sqlx::error::DatabaseError::code);
    let conflict = conflict.is_some_and(|code| matches!(code.as_ref(), "40001" | "40P01"));
    conflict || error.source().is_some_and(is_conflict)
}

fn is_transient(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(refusal) => refusal.code().is_some_and(|code| is_passing(&code)),
        sqlx::Error::Io(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        _ => false,
    }
}

/// Whether a SQLSTATE describes a moment rather than a mistake.
fn is_passing(code: &str) -> bool {
    const PASSING: [&str; 10] = [
        "25006", // read only: a fail-over left us on the old writer
        "40001", // serialization failure
        "40P01", // deadlock
        "53300", // too many connections
        "55P03", // lock not available in time
        "57014", // cancelled by a timeout of the server
        "57P01", // the server shuts down
        "57P02", // the server crashed
        "57P03", // the server is not up yet
        "25P03", // idle in a transaction for too long
    ];
    code.starts_with("08") || PASSING.contains(&code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_pass_and_mistakes_do_not() {
        for code in ["40P01", "40001", "55P03", "57P01", "57P02", "57P03", "08006", "08P01", "25006"] {
            assert!(is_passing(code), "{code}");
        }
        for code in ["23505", "23514", "42P01", "22P02", ""] {
            assert!(!is_passing(code), "{code}");
        }
    }

    #[test]
    fn lost_connection_is_transient_and_a_wrong_column_is_not() {
        assert!(Error::from(sqlx::Error::PoolTimedOut).is_transient());
        assert!(Error::from(sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into())).is_transient());
        assert!(!Error::from(sqlx::Error::RowNotFound).is_transient());
        assert!(Error::ArtifactReclaimed.is_transient());
    }
}
