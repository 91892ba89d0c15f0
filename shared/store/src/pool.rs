//! The way to PostgreSQL: a few lazy connections that fail readably.
//!
//! Nothing is connected before the first statement, so a database that is away is an error of the
//! invocation and not a crash of the sandbox. Limits on statements, locks and idle transactions are
//! the server's: it keeps them also while this sandbox is frozen, and a statement is never cut off
//! from this side (a cancelled one leaves a poisoned connection behind).

use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use crate::Error;

/// How long a statement waits for a free connection, connecting included.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// Below the 350 s after which network paths drop an idle flow without a word.
const IDLE_TIMEOUT: Duration = Duration::from_mins(4);
/// A connection is replaced now and then, so that a fail-over or a new password is noticed.
const MAX_LIFETIME: Duration = Duration::from_mins(9);
/// What the server enforces for each session.
pub(crate) const SESSION: [(&str, &str); 3] = [
    ("statement_timeout", "30s"),
    ("lock_timeout", "5s"),
    // A frozen sandbox must not keep its row locks.
    ("idle_in_transaction_session_timeout", "30s"),
];
/// How sessions name themselves unless the URL says otherwise.
const APPLICATION_NAME: &str = "tailcar";

/// A pool of at most `max_connections` connections to `url`; none is opened yet.
///
/// An `application_name` in the URL wins over the default.
///
/// # Errors
///
/// [`Error::Database`] when `url` can not be understood. It is never transient.
#[expect(clippy::unused_async, reason = "nobody who opens a pool is outside of async code")]
pub async fn connect(url: &str, max_connections: u32) -> Result<PgPool, Error> {
    Ok(lazy(with_limits(url.parse()?), max_connections))
}

/// `options` with the limits that the server keeps for each session.
///
/// Not behind a pooler that gives out its connections by the transaction: it has no sessions to keep
/// anything for. There the login user has them ([`crate::roles`]).
#[must_use]
pub fn with_limits(options: PgConnectOptions) -> PgConnectOptions {
    options.options(SESSION)
}

/// A pool of at most `max_connections` connections with `options`; none is opened yet.
#[must_use]
pub fn lazy(options: PgConnectOptions, max_connections: u32) -> PgPool {
    let options = match options.get_application_name() {
        Some(_) => options,
        None => options.application_name(APPLICATION_NAME),
    };
    PgPoolOptions::new()
        .max_connections(max_connections)
        .min_connections(0)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .idle_timeout(IDLE_TIMEOUT)
        .max_lifetime(MAX_LIFETIME)
        .test_before_acquire(true)
        .connect_lazy_with(options)
}
