//! Reads the event of an SQS invocation, each record on its own, and writes the reply.
//!
//! The record types of the event crate refuse a whole batch for one odd attribute; here only the ids
//! are needed, and whatever else is wrong with a record concerns that record alone.

use aws_lambda_events::sqs::SqsBatchResponse;
use domain::Message;
use domain::message::Undecidable;
use serde_json::Value;

/// The event can not be answered record by record, so the whole invocation fails.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// It is not the event of a queue.
    #[error("the event has no list of records")]
    NoRecords,
    /// A reply could not name this record, and Lambda would take an empty name for all of them.
    #[error("record {0} has no message id")]
    Unnamed(usize),
}

/// One delivered message.
#[derive(Debug)]
pub(crate) struct Record {
    /// Names it in the reply; never empty.
    pub message_id: String,
    /// Names this delivery of it; without one its visibility can not be changed.
    pub receipt_handle: Option<String>,
    /// What it says.
    pub message: Result<Message, Undecidable>,
}

/// Reads every record of `event`.
pub(crate) fn parse(event: &Value) -> Result<Vec<Record>, EventError> {
    let records = event.get("Records").and_then(Value::as_array).ok_or(EventError::NoRecords)?;
    records.iter().enumerate().map(|(position, record)| read(position, record)).collect()
}

fn read(position: usize, record: &Value) -> Result<Record, EventError> {
    let text = |name| record.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    Ok(Record {
        message_id: text("messageId").ok_or(EventError::Unnamed(position))?.to_owned(),
        receipt_handle: text("receiptHandle").map(str::to_owned),
        message: Message::parse(text("body").unwrap_or_default()),
    })
}

/// The reply that keeps exactly the messages of `kept` in the queue.
pub(crate) fn reply<'a>(kept: impl Iterator<Item = &'a Record>) -> Value {
    let mut response = SqsBatchResponse::default();
    for record in kept {
        response.add_failure(record.message_id.clone());
    }
    serde_json::json!(response)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn record_that_is_odd_in_every_other_way_is_read() {
        let event = json!({"Records": [
            {"messageId": "a", "body": {"an": "object"}, "attributes": {"ApproximateReceiveCount": 1}},
            {"messageId": "b", "body": null, "messageAttributes": {"x": {"binaryValue": "%%"}}},
            {"messageId": "c", "receiptHandle": 7},
        ]});

        let records = parse(&event).unwrap();

        assert_eq!(records.iter().map(|record| &record.message_id).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert!(records.iter().all(|record| record.message.is_err() && record.receipt_handle.is_none()));
    }

    #[test]
    fn record_without_a_message_id_fails_the_invocation() {
        for unnamed in [json!({}), json!({"messageId": ""}), json!({"messageId": null}), json!("text")] {
            let event = json!({"Records": [{"messageId": "a"}, unnamed]});
            assert_eq!(parse(&event).unwrap_err(), EventError::Unnamed(1));
        }
    }

    #[test]
    fn event_without_records_fails_the_invocation() {
        for event in [json!({}), json!({"Records": null}), json!([]), json!("text")] {
            assert_eq!(parse(&event).unwrap_err(), EventError::NoRecords);
        }
    }

    #[test]
    fn reply_names_the_kept_messages_in_the_form_lambda_expects() {
        let records = parse(&json!({"Records": [{"messageId": "a"}, {"messageId": "b"}]})).unwrap();
        assert_eq!(reply(records[1..].iter()), json!({"batchItemFailures": [{"itemIdentifier": "b"}]}));
        assert_eq!(reply(std::iter::empty()), json!({"batchItemFailures": []}));
    }
}
