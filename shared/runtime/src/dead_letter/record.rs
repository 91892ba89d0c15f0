//! One record of an SQS event, read so that nothing in it can fail its batch mates.

use serde_json::{Value, json};
use store::quarantine::Evidence;

/// A record of a dead-letter queue, with everything that could be evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Names the record in the response; not empty.
    pub message_id: String,
    /// Names this receive to SQS.
    pub receipt_handle: Option<String>,
    /// The queue; empty if the record names none.
    pub queue_arn: String,
    /// Anything at all.
    pub body: Option<String>,
    attributes: Value,
    receive_count: Option<i32>,
}

/// An event that can not be answered record by record.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAnEvent {
    /// It has no list of records.
    #[error("it is not an SQS event")]
    NoRecords,
    /// The response could not say that this record stays. An empty id there would fail them all.
    #[error("record {0} has no message id")]
    NoMessageId(usize),
}

impl Record {
    /// Reads all records, before any of them is acted upon.
    ///
    /// # Errors
    ///
    /// [`NotAnEvent`]; fail the invocation.
    pub fn read_all(event: &Value) -> Result<Vec<Self>, NotAnEvent> {
        let records = event.get("Records").and_then(Value::as_array).ok_or(NotAnEvent::NoRecords)?;
        let read = |(nth, record)| Self::read(record).ok_or(NotAnEvent::NoMessageId(nth));
        records.iter().enumerate().map(read).collect()
    }

    fn read(record: &Value) -> Option<Self> {
        let text = |name: &str| record.get(name).and_then(Value::as_str).map(str::to_owned);
        let system = record.get("attributes").cloned().unwrap_or_default();
        let count = system.get("ApproximateReceiveCount").and_then(Value::as_str);
        let receive_count = count.and_then(|count| count.parse().ok()).filter(|count| *count >= 1);
        Some(Self {
            message_id: text("messageId").filter(|id| !id.is_empty())?,
            receipt_handle: text("receiptHandle"),
            queue_arn: text("eventSourceARN").unwrap_or_default(),
            body: text("body"),
            attributes: json!({ "system": system, "message": record.get("messageAttributes") }),
            receive_count,
        })
    }

    /// Everything the record said, and why it can not be decided.
    #[must_use]
    pub fn evidence(&self, reason: &str, detail: &str) -> Evidence {
        Evidence {
            message_id: self.message_id.clone(),
            queue: self.queue_arn.clone(),
            body: self.body.clone(),
            attributes: self.attributes.clone(),
            receive_count: self.receive_count,
            reason: reason.to_owned(),
            detail: detail.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_an_sqs_event_is_refused_as_a_whole() {
        for event in [json!(null), json!({}), json!("x"), json!([]), json!({ "Records": {} })] {
            assert_eq!(Record::read_all(&event), Err(NotAnEvent::NoRecords), "{event}");
        }
        for nameless in [json!({}), json!({ "messageId": "" }), json!({ "messageId": 7 }), json!(null)] {
            let event = json!({ "Records": [{ "messageId": "m" }, nameless] });
            assert_eq!(Record::read_all(&event), Err(NotAnEvent::NoMessageId(1)), "{event}");
        }
    }

    #[test]
    fn record_with_parts_of_the_wrong_type_is_read_without_them() {
        let event = json!({ "Records": [{
            "messageId": "m", "receiptHandle": 1, "body": null, "attributes": [], "messageAttributes": "x",
            "eventSourceARN": {},
        }] });

        let record = Record::read_all(&event).unwrap().remove(0);

        assert_eq!((record.receipt_handle.as_ref(), record.queue_arn.as_str()), (None, ""));
        let evidence = record.evidence("NO_BODY", "there is no body");
        assert_eq!((evidence.body, evidence.receive_count), (None, None));
        assert_eq!(evidence.attributes, json!({ "system": [], "message": "x" }));
    }
}
