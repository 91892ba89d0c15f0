//! Settings of the functions that repair.

use std::collections::BTreeMap;
use std::time::Duration;

use store::reconcile::Pace;

use super::{Database, Faults, Pooler, Reader, environment};

/// What the dead-letter function needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetterSettings {
    /// Where the jobs are.
    pub database: Database,
    /// `TAILCAR_CONFIG`: where the pipeline's own configuration is; `None` for the bundled one.
    pub config: Option<String>,
    /// `QUEUE_URLS`: a JSON object of destination and its dead-letter queue.
    pub queue_urls: BTreeMap<String, String>,
}

/// What the migrator needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigratorSettings {
    /// The database, as its owner: never through a pooler that gives out connections by the transaction.
    pub database: Database,
    /// `DATABASE_LOGINS` is `iam`: the functions' login users are made as well.
    pub logins: bool,
    /// `FUNCTION_TIMEOUT_SECONDS`, as the function is configured.
    pub function_timeout: Duration,
}

/// What the monitor needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorSettings {
    /// Where the rows are.
    pub database: Database,
    /// `TAILCAR_CONFIG`: where the pipeline's own configuration is; `None` for the bundled one.
    pub config: Option<String>,
    /// `DEAD_LETTER_QUEUE_URLS`: a JSON object of destination and its dead-letter queue.
    pub dead_letter_queue_urls: BTreeMap<String, String>,
}

/// What the reconciler needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReconcilerSettings {
    /// Where the jobs are.
    pub database: Database,
    /// How patient it is: `RECONCILER_DELAY_SECONDS`, not less than `VISIBILITY_TIMEOUT_SECONDS`.
    pub pace: Pace,
}

impl DeadLetterSettings {
    /// Reads the environment.
    ///
    /// # Errors
    ///
    /// [`Faults`]: the function must not start.
    pub fn from_env() -> Result<Self, Faults> {
        Self::read(environment)
    }

    fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, Faults> {
        let mut reader = Reader::new(lookup);
        let database = reader.database();
        let config = reader.optional("TAILCAR_CONFIG");
        let queue_urls = reader.queue_urls("QUEUE_URLS");
        let settings = || Some(Self { database: database?, config, queue_urls: queue_urls? });
        reader.finish(settings())
    }
}

impl MigratorSettings {
    /// Reads the environment.
    ///
    /// # Errors
    ///
    /// [`Faults`]: the function must not start.
    pub fn from_env() -> Result<Self, Faults> {
        let mut reader = Reader::new(environment);
        let database = reader.database();
        let logins = match reader.optional("DATABASE_LOGINS").as_deref() {
            None | Some("none") => false,
            Some("iam") => true,
            Some(_) => {
                reader.require(false, "DATABASE_LOGINS is neither none nor iam");
                false
            }
        };
        let direct = database.as_ref().is_none_or(|database| database.pooler == Pooler::None);
        reader.require(direct, "DATABASE_POOLER must be none here: migrations need a session of their own");
        let function_timeout = reader.timeout();
        let settings = || Some(Self { database: database?, logins, function_timeout: function_timeout? });
        reader.finish(settings())
    }
}

impl MonitorSettings {
    /// Reads the environment.
    ///
    /// # Errors
    ///
    /// [`Faults`]: the function must not start.
    pub fn from_env() -> Result<Self, Faults> {
        let mut reader = Reader::new(environment);
        let database = reader.database();
        let config = reader.optional("TAILCAR_CONFIG");
        let urls = reader.queue_urls("DEAD_LETTER_QUEUE_URLS");
        let settings = || Some(Self { database: database?, config, dead_letter_queue_urls: urls? });
        reader.finish(settings())
    }
}

impl ReconcilerSettings {
    /// Reads the environment.
    ///
    /// # Errors
    ///
    /// [`Faults`]: the function must not start.
    pub fn from_env() -> Result<Self, Faults> {
        Self::read(environment)
    }

    fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, Faults> {
        let mut reader = Reader::new(lookup);
        let database = reader.database();
        let (_, delay) = reader.queue_times();
        let pace = |safe_delay: Duration| {
            let longest_delay = Pace::default().longest_delay.max(safe_delay);
            Pace { safe_delay, longest_delay, ..Pace::default() }
        };
        let settings = || Some(Self { database: database?, pace: pace(delay?) });
        reader.finish(settings())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reconciler(visibility: &str, delay: &str) -> Result<ReconcilerSettings, Faults> {
        ReconcilerSettings::read(|name| match name {
            "DATABASE_URL" => Some("postgres://host/db".to_owned()),
            "DATABASE_CONNECTIONS_MAX" => Some("1".to_owned()),
            "VISIBILITY_TIMEOUT_SECONDS" => Some(visibility.to_owned()),
            "RECONCILER_DELAY_SECONDS" => Some(delay.to_owned()),
            _ => None,
        })
    }

    #[test]
    fn dead_letter_queues_that_are_no_object_of_texts_are_refused() {
        let malformed = "is not a JSON object of texts";
        for (urls, fault) in [("", "is not set"), ("[]", malformed), (r#"{"news": 1}"#, malformed)] {
            let faults = DeadLetterSettings::read(|name| match name {
                "QUEUE_URLS" => Some(urls.to_owned()),
                "DATABASE_CONNECTIONS_MAX" => Some("1".to_owned()),
                _ => None,
            });
            let expected = format!(
                "the settings are wrong: none of DATABASE_URL, DATABASE_SECRET_ARN, DATABASE_IAM_USER is set; QUEUE_URLS {fault}"
            );
            assert_eq!(faults.unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn reconciler_that_would_ring_for_work_in_hand_is_refused() {
        assert_eq!(reconciler("180", "180").unwrap().pace.safe_delay, Duration::from_mins(3));
        assert_eq!(
            reconciler("180", "179").unwrap_err().to_string(),
            "the settings are wrong: VISIBILITY_TIMEOUT_SECONDS must not exceed RECONCILER_DELAY_SECONDS"
        );
    }
}
