//! The way to PostgreSQL for a function: who asks, whether the answer can be believed, and whether the
//! schema is new enough.
//!
//! Nothing is fetched and nothing connected while a sandbox starts, so a database or a secret that is
//! away is an error of the invocation and never a crash at init. Before each event [`Postgres::ready`]
//! renews what may have grown old: an IAM token each time (signing one is no call), a secret when it was
//! refused or has been held for a while. The schema is compared once.

mod secret;
mod tls;
mod token;

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use aws_config::SdkConfig;
use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;
use store::{migrate, pool};

pub use secret::SecretError;
pub use token::TokenError;

use crate::settings::{Access, Database, Pooler, Tls};

/// A secret is fetched again after this: a connection beside an old one that still holds would be
/// refused until then.
const SECRET_HELD_MAX: Duration = Duration::from_mins(5);

/// Why an event can not be worked on. Its invocation fails; the next one tries again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A person has to look at `DATABASE_URL`, or at the file of `DATABASE_TLS_ROOT`.
    #[error("the settings of the database can not be used")]
    Settings(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Secrets Manager is away, or does not give this function the secret.
    #[error("the database's secret was not read")]
    Secret(#[from] SecretError),
    /// This sandbox has no credentials of AWS.
    #[error("no token for the database was signed")]
    Token(#[from] TokenError),
    /// PostgreSQL is away or refuses, or its schema is too old.
    #[error("the database is not ready")]
    Store(#[from] store::Error),
}

/// A pool, and what it takes to open a connection of it at any time.
#[derive(Debug)]
pub struct Postgres {
    pool: PgPool,
    /// Further pools of the same function.
    others: Mutex<Vec<PgPool>>,
    access: Access,
    aws: SdkConfig,
    /// Everything but the password, and with a secret everything but what it says.
    options: PgConnectOptions,
    secret_read_at: Mutex<Option<Instant>>,
    schema_is_known: AtomicBool,
}

impl Postgres {
    /// The database of `settings`. Nothing is connected or fetched yet.
    ///
    /// # Errors
    ///
    /// [`Error::Settings`]: the function must not start.
    pub fn new(settings: &Database, aws: &SdkConfig) -> Result<Self, Error> {
        let options = match &settings.access {
            Access::Url(url) => {
                url.parse::<PgConnectOptions>().map_err(|error| Error::Settings(error.into()))?
            }
            Access::Secret { .. } => PgConnectOptions::new_without_pgpass(),
            Access::Iam { user, host, port, name } => {
                PgConnectOptions::new_without_pgpass().username(user).host(host).port(*port).database(name)
            }
        };
        let options = match settings.pooler {
            Pooler::None => pool::with_limits(options),
            Pooler::Transaction => options,
        };
        let options = match &settings.tls {
            Tls::AsUrl => options,
            Tls::Disable => tls::disable(options),
            Tls::VerifyFull { root } => {
                tls::verify(options, root.as_deref()).map_err(|error| Error::Settings(error.into()))?
            }
        };
        Ok(Self {
            pool: pool::lazy(options.clone(), settings.connections_max),
            others: Mutex::new(Vec::new()),
            access: settings.access.clone(),
            aws: aws.clone(),
            options,
            secret_read_at: Mutex::new(None),
            schema_is_known: AtomicBool::new(false),
        })
    }

    /// The pool. Before [`Postgres::ready`] its connections may be refused.
    #[must_use]
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Another pool to the same database, of at most `max` connections; it logs in as the first one does.
    #[must_use]
    pub fn another(&self, max: u32) -> PgPool {
        let pool = pool::lazy((*self.pool.connect_options()).clone(), max);
        self.others.lock().unwrap_or_else(PoisonError::into_inner).push(pool.clone());
        pool
    }

    /// Makes sure that connections can be opened and that the schema is new enough.
    ///
    /// # Errors
    ///
    /// [`Error`]; the invocation must fail with it.
    pub async fn ready(&self) -> Result<(), Error> {
        self.connectable().await?;
        if !self.schema_is_known.load(Ordering::Relaxed) {
            migrate::require(&self.pool).await?;
            self.schema_is_known.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Makes sure that connections can be opened, whatever the schema.
    ///
    /// # Errors
    ///
    /// [`Error`].
    pub async fn connectable(&self) -> Result<(), Error> {
        match &self.access {
            Access::Url(_) => {}
            Access::Iam { .. } => self.renew_token().await?,
            Access::Secret { .. } => self.renew_secret().await?,
        }
        Ok(())
    }

    /// From now on connections are opened with `options`; open ones stay.
    fn connect_with(&self, options: PgConnectOptions) {
        for other in self.others.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            other.set_connect_options(options.clone());
        }
        self.pool.set_connect_options(options);
    }

    async fn renew_token(&self) -> Result<(), Error> {
        let token = token::sign(&self.aws, &self.options).await?;
        self.connect_with(self.options.clone().password(&token));
        Ok(())
    }

    /// A secret that may be old is read again; one that PostgreSQL refuses is, at once.
    async fn renew_secret(&self) -> Result<(), Error> {
        let read_at = *self.secret_read_at.lock().unwrap_or_else(PoisonError::into_inner);
        if read_at.is_none_or(|at| at.elapsed() >= SECRET_HELD_MAX) {
            return self.read_secret().await;
        }
        // With an idle connection nothing has to be proved; opening one is the proof.
        if self.pool.num_idle() > 0 {
            return Ok(());
        }
        match self.pool.acquire().await {
            Err(error) if is_refused(&error) => self.read_secret().await,
            Err(error) => Err(Error::Store(error.into())),
            Ok(_) => Ok(()),
        }
    }

    async fn read_secret(&self) -> Result<(), Error> {
        let options = secret::read(&self.aws, &self.access, self.options.clone()).await?;
        self.connect_with(options);
        *self.secret_read_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        Ok(())
    }
}

/// Whether PostgreSQL does not believe who asks: a wrong password, or no such user any more.
fn is_refused(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(refusal) = error else { return false };
    refusal.code().is_some_and(|code| code == "28P01" || code == "28000")
}
