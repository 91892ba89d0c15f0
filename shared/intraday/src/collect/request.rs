//! What a collector is asked to do.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;

/// One invocation's work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Catch up, then close the window that just ended.
    Schedule {
        /// Which dataset; `None`: all of them.
        dataset: Option<String>,
        /// As if the schedule had fired at this instant; `None`: now, by the database's clock.
        at: Option<DateTime<Utc>>,
    },
    /// Collect the windows of a range, existing ones as well.
    Range {
        /// Which dataset.
        dataset: String,
        /// Start of the first window.
        from: DateTime<Utc>,
        /// Start of the last window, which belongs to the range.
        to: DateTime<Utc>,
        /// Whether to store what is missing without making jobs, instead of replaying real time.
        backfill: bool,
    },
}

/// Why a request can not be carried out. Correct it.
#[derive(Debug, thiserror::Error)]
pub enum NotARequest {
    /// It is not an object of this form.
    #[error(
        "the request is not understood; {{}}, {{\"dataset\", \"at\"}} or {{\"dataset\", \"from\", \"to\", \"backfill\"}} \
         with times such as 2018-04-04T13:31:00Z are expected"
    )]
    Form(#[source] Option<serde_json::Error>),
    /// It ends before it begins.
    #[error("the range ends before it begins")]
    Backwards,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    dataset: Option<String>,
    at: Option<DateTime<Utc>>,
    from: Option<DateTime<Utc>>,
    to: Option<DateTime<Utc>>,
    #[serde(default)]
    backfill: bool,
}

impl Request {
    /// Reads an invocation's event: a person's request, or whatever a schedule sends.
    ///
    /// # Errors
    ///
    /// [`NotARequest`].
    pub fn parse(event: Value) -> Result<Self, NotARequest> {
        // The marks of an EventBridge event, none of which a request has.
        if event.get("detail-type").is_some() || event.is_null() {
            return Ok(Self::Schedule { dataset: None, at: None });
        }
        let fields: Fields = serde_json::from_value(event).map_err(|error| NotARequest::Form(Some(error)))?;
        match fields {
            Fields { dataset: Some(dataset), at: None, from: Some(from), to: Some(to), backfill } => {
                if from > to {
                    return Err(NotARequest::Backwards);
                }
                Ok(Self::Range { dataset, from, to, backfill })
            }
            Fields { dataset, at, from: None, to: None, backfill: false }
                if at.is_none() || dataset.is_some() =>
            {
                Ok(Self::Schedule { dataset, at })
            }
            _ => Err(NotARequest::Form(None)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Request, NotARequest> {
        Request::parse(serde_json::from_str(text).unwrap())
    }

    #[test]
    fn schedule_asks_for_every_dataset_now() {
        let expected = Request::Schedule { dataset: None, at: None };
        assert_eq!(parse("{}").unwrap(), expected);
        assert_eq!(parse("null").unwrap(), expected);
        let event = r#"{"version":"0","detail-type":"Scheduled Event","source":"aws.events","detail":{}}"#;
        assert_eq!(parse(event).unwrap(), expected);
    }

    #[test]
    fn dataset_and_instant_ask_as_if_the_schedule_had_fired_then() {
        let request = parse(r#"{"dataset":"us8","at":"2018-04-04T09:31:00-04:00"}"#).unwrap();
        let at = Some("2018-04-04T13:31:00Z".parse().unwrap());
        assert_eq!(request, Request::Schedule { dataset: Some("us8".to_owned()), at });
    }

    #[test]
    fn range_is_replayed_unless_it_says_backfill() {
        let range = r#""dataset":"us8","from":"2018-04-04T13:30:00Z","to":"2018-04-04T20:00:00Z""#;
        assert!(matches!(parse(&format!("{{{range}}}")), Ok(Request::Range { backfill: false, .. })));
        let backfill = parse(&format!("{{{range},\"backfill\":true}}"));
        assert!(matches!(backfill, Ok(Request::Range { backfill: true, .. })));
    }

    #[test]
    fn half_a_request_is_refused() {
        for text in [
            r#"{"at":"2018-04-04T13:31:00Z"}"#,
            r#"{"dataset":"us8","from":"2018-04-04T13:31:00Z"}"#,
            r#"{"dataset":"us8","backfill":true}"#,
            r#"{"dataset":"us8","at":"13:31"}"#,
            r#"{"dataset":"us8","until":"2018-04-04T13:31:00Z"}"#,
            "[]",
        ] {
            assert!(matches!(parse(text), Err(NotARequest::Form(_))), "{text}");
        }
        let backwards = r#"{"dataset":"us8","from":"2018-04-04T13:31:00Z","to":"2018-04-04T13:30:00Z"}"#;
        assert!(matches!(parse(backwards), Err(NotARequest::Backwards)));
    }
}
