//! Settings of the sweeper and of the janitor.

use std::time::Duration;

use super::{Database, Faults, Reader, environment};
use crate::janitor::Retention;
use crate::sweeper::Policy;

const DAY: Duration = Duration::from_hours(24);

/// What the sweeper needs.
#[derive(Clone, Debug, PartialEq)]
pub struct SweeperSettings {
    /// Where the rows are.
    pub database: Database,
    /// `ARTIFACT_BUCKET`: where the objects are.
    pub artifact_bucket: String,
    /// How patient and how cautious it is: `SWEEP_…`.
    pub policy: Policy,
    /// `FUNCTION_TIMEOUT_SECONDS`, as the function is configured.
    pub function_timeout: Duration,
}

/// What the janitor needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JanitorSettings {
    /// Where the rows are.
    pub database: Database,
    /// `RETENTION_DAYS`, more than `QUEUE_RETENTION_SECONDS` and `DEAD_LETTER_RETENTION_SECONDS` together.
    pub retention: Retention,
    /// `FUNCTION_TIMEOUT_SECONDS`, as the function is configured.
    pub function_timeout: Duration,
}

impl SweeperSettings {
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
        let function_timeout = reader.timeout();
        let policy = policy(&mut reader);
        if let Some(fault) = policy.as_ref().and_then(Policy::fault) {
            reader.require(false, fault);
        }
        let settings = || {
            Some(Self {
                database: database?,
                artifact_bucket: artifact_bucket?,
                policy: policy?,
                function_timeout: function_timeout?,
            })
        };
        reader.finish(settings())
    }
}

fn policy(reader: &mut Reader<impl Fn(&str) -> Option<String>>) -> Option<Policy> {
    let default = Policy::default();
    let delete = reader.parsed_or("SWEEP_DELETE", default.delete);
    let grace = reader.seconds("SWEEP_GRACE_SECONDS");
    let longest_write = reader.seconds("SWEEP_LONGEST_WRITE_SECONDS");
    let backup_window = reader.seconds_or("SWEEP_BACKUP_WINDOW_SECONDS", default.backup_window);
    let late = reader.seconds_or("SWEEP_LATE_SECONDS", default.late);
    let max_deletes = reader.positive_or("SWEEP_MAX_DELETES", u32::try_from(default.max_deletes).ok()?);
    let max_orphan_ratio = reader.parsed_or("SWEEP_MAX_ORPHAN_RATIO", default.max_orphan_ratio);
    let is_share = max_orphan_ratio.is_none_or(|ratio| (0.0..=1.0).contains(&ratio));
    reader.require(is_share, "SWEEP_MAX_ORPHAN_RATIO must lie between 0 and 1");
    let max_pages = reader.positive_or("SWEEP_MAX_PAGES", default.max_pages);
    Some(Policy {
        delete: delete?,
        grace: grace?,
        longest_write: longest_write?,
        backup_window: backup_window?,
        late: late?,
        max_deletes: usize::try_from(max_deletes?).ok()?,
        max_orphan_ratio: max_orphan_ratio?,
        max_pages: max_pages?,
    })
}

impl JanitorSettings {
    /// Reads the environment.
    ///
    /// # Errors
    ///
    /// [`Faults`]: the function must not start.
    pub fn from_env() -> Result<Self, Faults> {
        Self::read(environment)
    }

    fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, Faults> {
        const DAYS: u32 = 35;
        let mut reader = Reader::new(lookup);
        let database = reader.database();
        let function_timeout = reader.timeout();
        let age = reader.positive_or("RETENTION_DAYS", DAYS).map(|days| DAY * days);
        let queue = reader.seconds("QUEUE_RETENTION_SECONDS");
        let dead_letters = reader.seconds("DEAD_LETTER_RETENTION_SECONDS");
        if let (Some(age), Some(queue), Some(dead_letters)) = (age, queue, dead_letters) {
            let outlives = age > queue + dead_letters;
            reader.require(
                outlives,
                "RETENTION_DAYS must be more than QUEUE_RETENTION_SECONDS + DEAD_LETTER_RETENTION_SECONDS",
            );
        }
        let settings = || {
            let retention = Retention { age: age?, ..Retention::default() };
            Some(Self { database: database?, retention, function_timeout: function_timeout? })
        };
        reader.finish(settings())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: [(&str, &str); 8] = [
        ("DATABASE_URL", "postgres://host/db"),
        ("DATABASE_CONNECTIONS_MAX", "1"),
        ("ARTIFACT_BUCKET", "bucket"),
        ("FUNCTION_TIMEOUT_SECONDS", "300"),
        ("SWEEP_GRACE_SECONDS", "86400"),
        ("SWEEP_LONGEST_WRITE_SECONDS", "55"),
        ("QUEUE_RETENTION_SECONDS", "345600"),
        ("DEAD_LETTER_RETENTION_SECONDS", "1209600"),
    ];

    fn with<'a>(changes: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        move |name| {
            let mut variables = changes.iter().chain(&BASE);
            variables.find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        }
    }

    fn sweeper_faults(changes: &[(&str, &str)]) -> Vec<String> {
        SweeperSettings::read(with(changes)).map_or_else(|faults| faults.0, |_| Vec::new())
    }

    #[test]
    fn sweeper_is_a_dry_run_until_it_is_switched_on() {
        let policy = SweeperSettings::read(with(&[])).unwrap().policy;
        assert_eq!(policy, Policy { longest_write: Duration::from_secs(55), ..Policy::default() });
        assert!(!policy.delete);
        assert!(SweeperSettings::read(with(&[("SWEEP_DELETE", "true")])).unwrap().policy.delete);
    }

    #[test]
    fn grace_that_a_late_writer_or_a_backup_can_outlast_is_refused() {
        let late = sweeper_faults(&[("SWEEP_GRACE_SECONDS", "55")]);
        assert_eq!(late, ["SWEEP_GRACE_SECONDS must be more than SWEEP_LONGEST_WRITE_SECONDS"]);
        let restored = sweeper_faults(&[("SWEEP_BACKUP_WINDOW_SECONDS", "86400")]);
        assert_eq!(restored, ["SWEEP_GRACE_SECONDS must be more than SWEEP_BACKUP_WINDOW_SECONDS"]);
    }

    #[test]
    fn bounds_that_make_no_sense_are_refused() {
        for (name, value) in [
            ("SWEEP_DELETE", "yes"),
            ("SWEEP_MAX_ORPHAN_RATIO", "1.1"),
            ("SWEEP_MAX_ORPHAN_RATIO", "NaN"),
            ("SWEEP_MAX_DELETES", "0"),
            ("SWEEP_MAX_PAGES", "0"),
            ("SWEEP_GRACE_SECONDS", ""),
        ] {
            assert_eq!(sweeper_faults(&[(name, value)]).len(), 1, "{name}={value}");
        }
    }

    #[test]
    fn retention_that_a_message_can_outlive_is_refused() {
        let eighteen = [("RETENTION_DAYS", "18")];
        assert_eq!(JanitorSettings::read(with(&[])).unwrap().retention, Retention::default());
        assert!(JanitorSettings::read(with(&[("RETENTION_DAYS", "19")])).is_ok());
        assert_eq!(JanitorSettings::read(with(&eighteen)).unwrap_err().0.len(), 1);
    }
}
