//! Explanations: why a trigger may have happened, with the evidence for it.
//!
//! [`gather`] reads what was known around a trigger, [`compose`] makes a verdict and a text of it. An
//! explanation belongs to one revision of its trigger and goes when that is replaced or withdrawn.

use chrono::{DateTime, SecondsFormat, Utc};
use domain::{Identity, JobType};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::enqueue::NewJob;
use store::window::WindowRef;

pub mod compose;
pub mod evidence;
pub mod gather;
pub mod market;

use crate::job_types::EXPLAIN;
use crate::triggers::{Direction, Key, Rule};

/// One revision of one trigger: what an explain job is about, and its payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// The dataset.
    pub dataset: String,
    /// The ticker.
    pub symbol: String,
    /// What the move was measured against.
    pub rule: Rule,
    /// Which way it went.
    pub direction: Direction,
    /// The window in which the threshold was crossed.
    pub window_start: DateTime<Utc>,
    /// The revision to explain.
    pub revision: i32,
}

impl Subject {
    /// Revision `revision` of the trigger `key` of `dataset`.
    #[must_use]
    pub fn new(dataset: &str, key: &Key, revision: i32) -> Self {
        Self {
            dataset: dataset.to_owned(),
            symbol: key.symbol.clone(),
            rule: key.rule,
            direction: key.direction,
            window_start: key.at,
            revision,
        }
    }

    /// The job that explains it, tied to `cause`, the window whose job wrote the trigger.
    #[must_use]
    pub fn job(&self, cause: &WindowRef, job_type: &JobType, trace_header: Option<String>) -> NewJob {
        NewJob {
            window: Some(cause.clone()),
            ordering_key: Some(self.dataset.clone()),
            trace_header,
            ..NewJob::new(job_type, self.identity(cause), json!(self))
        }
    }

    /// Who that job is.
    pub(crate) fn identity(&self, cause: &WindowRef) -> Identity {
        let minute = |instant: DateTime<Utc>| instant.to_rfc3339_opts(SecondsFormat::Secs, true);
        EXPLAIN
            .identity()
            .text("dataset", &self.dataset)
            .text("symbol", &self.symbol)
            .text("rule", self.rule.as_str())
            .text("direction", self.direction.as_str())
            .text("window_start", &minute(self.window_start))
            .integer("trigger_revision", self.revision.into())
            .text("cause_window_start", &minute(cause.start))
            .integer("window_generation", cause.generation.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::triggers::fixture::at;

    fn subject() -> Subject {
        Subject {
            dataset: "us8".to_owned(),
            symbol: "AAPL".to_owned(),
            rule: Rule::ThirtyMinutes,
            direction: Direction::Down,
            window_start: at(35),
            revision: 2,
        }
    }

    #[test]
    fn identity_of_a_known_explanation_never_changes() {
        let cause = WindowRef { dataset: "us8".to_owned(), start: at(5), generation: 3 };
        assert_eq!(
            subject().identity(&cause).canonical_json(),
            r#"{"job_type":"explain","dataset":"us8","symbol":"AAPL","rule":"THIRTY_MINUTES","direction":"DOWN","window_start":"2018-04-04T14:05:00Z","trigger_revision":2,"cause_window_start":"2018-04-04T13:35:00Z","window_generation":3}"#
        );
    }

    #[test]
    fn payload_is_read_back_as_it_is_written() {
        let payload = json!(subject());
        assert_eq!(payload["window_start"], "2018-04-04T14:05:00Z");
        assert_eq!(serde_json::from_value::<Subject>(payload).unwrap(), subject());
    }
}
