//! The message: identifiers and routing, never the subject.
//!
//! Whoever receives it reads the job's row and the artifact again, so a message can be old, repeated
//! or out of order without harm. A body this module can not read is *undecidable*: it is neither run
//! nor deleted.

use serde::{Deserialize, Serialize};

use crate::{EventId, JobId, event_id};

/// The version this code writes. Every version ever written stays readable through an upgrade.
pub const VERSION: u32 = 1;

/// The body of an SQS message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    version: u32,
    /// Names this wake-up of the job; the same in every redelivery.
    pub event_id: EventId,
    /// What kind of wake-up it is; a job type today.
    pub event_type: String,
    /// The job to look at.
    pub job_id: JobId,
    /// The redrive this message belongs to; at least 0.
    pub redrive_generation: i32,
}

/// Why a body can not be acted upon.
#[derive(Debug, thiserror::Error)]
pub enum Undecidable {
    /// It is not a message at all.
    #[error("the body is not a Tailcar message")]
    NotAMessage(#[source] serde_json::Error),
    /// It was written by a newer release than this one.
    #[error("message version {0} is unknown here; this release reads up to {VERSION}")]
    UnknownVersion(u32),
    /// Its parts contradict each other.
    #[error("event id {0} does not belong to the rest of the message")]
    Inconsistent(EventId),
}

#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

impl Message {
    /// The message that wakes `job_id` up in `redrive_generation`.
    #[must_use]
    pub fn new(event_type: &str, job_id: JobId, redrive_generation: i32) -> Self {
        Self {
            version: VERSION,
            event_id: event_id(event_type, &job_id, redrive_generation),
            event_type: event_type.to_owned(),
            job_id,
            redrive_generation,
        }
    }

    /// The message as it is sent: one line of JSON.
    #[must_use]
    #[expect(clippy::missing_panics_doc, reason = "text and whole numbers always serialize")]
    pub fn to_body(&self) -> String {
        serde_json::to_string(self).expect("text and whole numbers serialize")
    }

    /// Reads a body.
    ///
    /// # Errors
    ///
    /// [`Undecidable`]; leave such a message alone, it will reach the DLQ with its evidence.
    pub fn parse(body: &str) -> Result<Self, Undecidable> {
        let Versioned { version } = serde_json::from_str(body).map_err(Undecidable::NotAMessage)?;
        if version != VERSION {
            return Err(Undecidable::UnknownVersion(version));
        }
        let message: Self = serde_json::from_str(body).map_err(Undecidable::NotAMessage)?;
        if message.redrive_generation < 0
            || message != Self::new(&message.event_type, message.job_id.clone(), message.redrive_generation)
        {
            return Err(Undecidable::Inconsistent(message.event_id));
        }
        Ok(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Identity;

    fn message() -> Message {
        Message::new("news", Identity::new("news").text("item_id", "a").text("revision", "b").job_id(), 0)
    }

    #[test]
    fn body_has_exactly_these_fields() {
        let job_id = "cded11b8263d0dffcac669f8a5f950a7f8e6059eb2dc753a1c62381b020963cb";
        let expected = format!(
            r#"{{"version":1,"event_id":"news:{job_id}:0","event_type":"news","job_id":"{job_id}","redrive_generation":0}}"#
        );
        assert_eq!(message().to_body(), expected);
    }

    #[test]
    fn body_that_was_written_is_read_back() {
        assert_eq!(Message::parse(&message().to_body()).unwrap(), message());
    }

    #[test]
    fn unreadable_bodies_are_undecidable() {
        let body = message().to_body();
        assert!(matches!(Message::parse(""), Err(Undecidable::NotAMessage(_))));
        assert!(matches!(Message::parse("[]"), Err(Undecidable::NotAMessage(_))));
        assert!(matches!(Message::parse(r#"{"version":1}"#), Err(Undecidable::NotAMessage(_))));
        assert!(matches!(
            Message::parse(&body.replace(r#""version":1"#, r#""version":2"#)),
            Err(Undecidable::UnknownVersion(2))
        ));
        assert!(matches!(Message::parse(&body.replace(":0}", ":1}")), Err(Undecidable::Inconsistent(_))));
        assert!(matches!(
            Message::parse(&body.replace('}', r#","body":1}"#)),
            Err(Undecidable::NotAMessage(_))
        ));
    }
}
