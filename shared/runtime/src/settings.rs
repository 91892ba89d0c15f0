//! Settings from the environment, checked before the first invocation.
//!
//! Every fault is named at once, by its variable and never with its value. The times must fit each
//! other: function timeout < lease < visibility timeout <= reconciler delay, so that a lease always
//! ends before anybody else may look at its job.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

mod repair;
mod sweep;

pub use repair::{DeadLetterSettings, ReconcilerSettings};
pub use sweep::{JanitorSettings, SweeperSettings};

/// How many prepares of one batch run side by side unless `PREPARE_WIDTH` says otherwise.
const PREPARE_WIDTH: usize = 10;

/// Everything that is wrong with the settings.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the settings are wrong: {}", .0.join("; "))]
pub struct Faults(pub(crate) Vec<String>);

/// Where PostgreSQL is, and how much of it a sandbox may use.
#[derive(Clone, PartialEq, Eq)]
pub struct Database {
    /// `DATABASE_URL`. Holds a password, so it is never shown.
    pub url: String,
    /// `DATABASE_CONNECTIONS_MAX`; at least 1.
    pub connections_max: u32,
}

/// What a consumer needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerSettings {
    /// Where the jobs are.
    pub database: Database,
    /// `ARTIFACT_BUCKET`: where the artifacts of its jobs are; `None` if they have none.
    pub artifact_bucket: Option<String>,
    /// `TAILCAR_CONFIG`: where the pipeline's own configuration is; `None` for the bundled one.
    pub config: Option<String>,
    /// `QUEUE_URL`: where its messages come from.
    pub queue_url: String,
    /// `FUNCTION_TIMEOUT_SECONDS`, as the function is configured.
    pub function_timeout: Duration,
    /// `LEASE_MARGIN_SECONDS`: how much longer than this invocation a claim holds.
    pub lease_margin: Duration,
    /// `PREPARE_WIDTH`, 10 if not set: how many handlers of one batch do their outside work at once.
    pub prepare_width: usize,
}

/// What the relay needs beside its pace, which is in
/// [`relay::Settings`](crate::relay::Settings).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelaySettings {
    /// Where the events are.
    pub database: Database,
    /// `FUNCTION_TIMEOUT_SECONDS`, as the function is configured.
    pub function_timeout: Duration,
}

/// What the collector needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectorSettings {
    /// Where the windows are.
    pub database: Database,
    /// `ARTIFACT_BUCKET`.
    pub artifact_bucket: String,
    /// `TAILCAR_CONFIG`: where the pipeline's own configuration is; `None` for the bundled one.
    pub config: Option<String>,
    /// `FUNCTION_TIMEOUT_SECONDS`, as the function is configured.
    pub function_timeout: Duration,
}

impl Database {
    /// Reads the environment.
    ///
    /// # Errors
    ///
    /// [`Faults`]: the function must not start.
    pub fn from_env() -> Result<Self, Faults> {
        let mut reader = Reader::new(environment);
        let database = reader.database();
        reader.finish(database)
    }
}

impl ConsumerSettings {
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
        let artifact_bucket = reader.optional("ARTIFACT_BUCKET");
        let config = reader.optional("TAILCAR_CONFIG");
        let queue_url = reader.text("QUEUE_URL");
        let function_timeout = reader.timeout();
        let lease_margin = reader.positive("LEASE_MARGIN_SECONDS").map(Duration::from_secs);
        let prepare_width = reader.positive_or("PREPARE_WIDTH", PREPARE_WIDTH);
        reader.check_times(function_timeout, lease_margin);
        let settings = || {
            Some(Self {
                database: database?,
                artifact_bucket,
                config,
                queue_url: queue_url?,
                function_timeout: function_timeout?,
                lease_margin: lease_margin?,
                prepare_width: prepare_width?,
            })
        };
        reader.finish(settings())
    }
}

impl RelaySettings {
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
        let function_timeout = reader.timeout();
        let settings = || Some(Self { database: database?, function_timeout: function_timeout? });
        reader.finish(settings())
    }
}

impl CollectorSettings {
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
        let artifact_bucket = reader.text("ARTIFACT_BUCKET");
        let config = reader.optional("TAILCAR_CONFIG");
        let function_timeout = reader.timeout();
        let settings = || {
            Some(Self {
                database: database?,
                artifact_bucket: artifact_bucket?,
                config,
                function_timeout: function_timeout?,
            })
        };
        reader.finish(settings())
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("connections_max", &self.connections_max).finish_non_exhaustive()
    }
}

pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Reads variables and gathers what is wrong with them. A variable that is empty is not set.
pub(crate) struct Reader<L> {
    lookup: L,
    pub(crate) faults: Vec<String>,
}

impl<L: Fn(&str) -> Option<String>> Reader<L> {
    pub(crate) fn new(lookup: L) -> Self {
        Self { lookup, faults: Vec::new() }
    }

    fn optional(&self, name: &str) -> Option<String> {
        (self.lookup)(name).filter(|value| !value.is_empty())
    }

    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        let value = self.optional(name);
        if value.is_none() {
            self.faults.push(format!("{name} is not set"));
        }
        value
    }

    fn parsed<T: FromStr>(&mut self, name: &str) -> Option<T> {
        let value = self.text(name)?.parse().ok();
        if value.is_none() {
            self.faults.push(format!("{name} is not a whole number that fits"));
        }
        value
    }

    pub(crate) fn parsed_or<T: FromStr>(&mut self, name: &str, default: T) -> Option<T> {
        if self.optional(name).is_none() { Some(default) } else { self.parsed(name) }
    }

    /// A number of seconds that has to be said.
    pub(crate) fn seconds(&mut self, name: &str) -> Option<Duration> {
        self.text(name)?;
        self.seconds_or(name, Duration::ZERO)
    }

    /// A number of seconds with a fraction.
    pub(crate) fn seconds_or(&mut self, name: &str, default: Duration) -> Option<Duration> {
        let Some(text) = self.optional(name) else {
            return Some(default);
        };
        let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        if seconds.is_none() {
            self.faults.push(format!("{name} is not a number of seconds"));
        }
        seconds
    }

    fn positive<T: FromStr + PartialOrd + From<u8>>(&mut self, name: &str) -> Option<T> {
        let value = self.parsed(name)?;
        if value >= T::from(1) {
            return Some(value);
        }
        self.faults.push(format!("{name} must be at least 1"));
        None
    }

    fn positive_or<T: FromStr + PartialOrd + From<u8>>(&mut self, name: &str, default: T) -> Option<T> {
        if self.optional(name).is_none() { Some(default) } else { self.positive(name) }
    }

    fn database(&mut self) -> Option<Database> {
        let url = self.text("DATABASE_URL");
        let connections_max = self.positive("DATABASE_CONNECTIONS_MAX");
        Some(Database { url: url?, connections_max: connections_max? })
    }

    /// `QUEUE_URLS`: a JSON object of destination and queue.
    fn queue_urls(&mut self) -> Option<BTreeMap<String, String>> {
        let urls = serde_json::from_str(&self.text("QUEUE_URLS")?).ok();
        if urls.is_none() {
            self.faults.push("QUEUE_URLS is not a JSON object of texts".to_owned());
        }
        urls
    }

    fn timeout(&mut self) -> Option<Duration> {
        self.positive("FUNCTION_TIMEOUT_SECONDS").map(Duration::from_secs)
    }

    /// The longest lease is a whole invocation and its margin.
    fn check_times(&mut self, function_timeout: Option<Duration>, lease_margin: Option<Duration>) {
        let (visibility, _) = self.queue_times();
        if let (Some(timeout), Some(margin), Some(visibility)) = (function_timeout, lease_margin, visibility)
        {
            let fits = timeout + margin < visibility;
            self.require(fits, "FUNCTION_TIMEOUT_SECONDS + LEASE_MARGIN_SECONDS must be less than VISIBILITY_TIMEOUT_SECONDS");
        }
    }

    /// The visibility timeout of the queues and the reconciler's delay.
    fn queue_times(&mut self) -> (Option<Duration>, Option<Duration>) {
        let visibility = self.positive("VISIBILITY_TIMEOUT_SECONDS").map(Duration::from_secs);
        let reconciler = self.positive("RECONCILER_DELAY_SECONDS").map(Duration::from_secs);
        if let (Some(visibility), Some(reconciler)) = (visibility, reconciler) {
            let fits = visibility <= reconciler;
            self.require(fits, "VISIBILITY_TIMEOUT_SECONDS must not exceed RECONCILER_DELAY_SECONDS");
        }
        (visibility, reconciler)
    }

    pub(crate) fn require(&mut self, holds: bool, fault: &str) {
        if !holds {
            self.faults.push(fault.to_owned());
        }
    }

    /// `settings` is `None` only when a fault was found.
    pub(crate) fn finish<T>(self, settings: Option<T>) -> Result<T, Faults> {
        settings.filter(|_| self.faults.is_empty()).ok_or(Faults(self.faults))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONSUMER: [(&str, &str); 8] = [
        ("DATABASE_URL", "postgres://secret@host/db"),
        ("DATABASE_CONNECTIONS_MAX", "2"),
        ("ARTIFACT_BUCKET", "bucket"),
        ("QUEUE_URL", "https://sqs/queue"),
        ("FUNCTION_TIMEOUT_SECONDS", "30"),
        ("LEASE_MARGIN_SECONDS", "10"),
        ("VISIBILITY_TIMEOUT_SECONDS", "180"),
        ("RECONCILER_DELAY_SECONDS", "300"),
    ];

    /// The consumer's variables with some of them set otherwise; an empty one is as good as none.
    fn with<'a>(changes: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        move |name| {
            let mut variables = changes.iter().chain(&CONSUMER);
            variables.find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        }
    }

    fn faults(changes: &[(&str, &str)]) -> Vec<String> {
        ConsumerSettings::read(with(changes)).map_or_else(|faults| faults.0, |_| Vec::new())
    }

    #[test]
    fn settings_that_fit_are_read() {
        let settings = ConsumerSettings::read(with(&[])).unwrap();
        assert_eq!(settings.lease_margin, Duration::from_secs(10));
        assert_eq!(settings.prepare_width, PREPARE_WIDTH);
        assert_eq!(settings.config, None);
    }

    #[test]
    fn every_fault_is_named_at_once() {
        let changes = [
            ("DATABASE_URL", ""),
            ("QUEUE_URL", ""),
            ("DATABASE_CONNECTIONS_MAX", "0"),
            ("PREPARE_WIDTH", "-1"),
            ("LEASE_MARGIN_SECONDS", "ten"),
            ("RECONCILER_DELAY_SECONDS", "170"),
        ];
        assert_eq!(
            faults(&changes),
            [
                "DATABASE_URL is not set",
                "DATABASE_CONNECTIONS_MAX must be at least 1",
                "QUEUE_URL is not set",
                "LEASE_MARGIN_SECONDS is not a whole number that fits",
                "PREPARE_WIDTH is not a whole number that fits",
                "VISIBILITY_TIMEOUT_SECONDS must not exceed RECONCILER_DELAY_SECONDS",
            ]
        );
    }

    #[test]
    fn lease_that_outlives_the_visibility_timeout_is_refused() {
        assert_eq!(faults(&[("VISIBILITY_TIMEOUT_SECONDS", "41")]), Vec::<String>::new());
        assert_eq!(faults(&[("VISIBILITY_TIMEOUT_SECONDS", "40")]).len(), 1);
    }

    #[test]
    fn password_is_shown_neither_by_debug_nor_by_a_fault() {
        let shown = format!("{:?}", ConsumerSettings::read(with(&[])).unwrap());
        let faults = ConsumerSettings::read(with(&[("QUEUE_URL", "")])).unwrap_err().to_string();
        assert!(!shown.contains("secret"), "{shown}");
        assert!(!faults.contains("secret"), "{faults}");
    }

    #[test]
    fn collector_and_consumer_read_where_the_configuration_is() {
        let settings = CollectorSettings::read(with(&[("TAILCAR_CONFIG", "s3://bucket/key")])).unwrap();
        assert_eq!(settings.config.as_deref(), Some("s3://bucket/key"));
    }
}
