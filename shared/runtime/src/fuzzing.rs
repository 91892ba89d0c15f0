//! What holds for any bytes that arrive from outside: no panic, an answer, and in the answer no id that
//! was not asked about.
//!
//! Each function here is one property. The tests below hold them to a bounded number of damaged
//! documents; `make fuzz` looks for bytes that break them, led by coverage.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a property that does not hold panics")]

use domain::Message;
use serde_json::Value;

use crate::consumer::record;
use crate::dead_letter::evidence::evidence;
use crate::dead_letter::judge::Undecided;
use crate::operator::Request;

/// A body is refused, or read as a message that is written and read back alike.
pub fn message(bytes: &[u8]) {
    let Ok(body) = std::str::from_utf8(bytes) else { return };
    if let Ok(message) = Message::parse(body) {
        assert_eq!(Message::parse(&message.to_body()).unwrap(), message);
    }
}

/// An event is refused, or each of its records is read by itself, can be named in a reply, and can be
/// kept as evidence.
pub fn records(bytes: &[u8]) {
    let Ok(event) = serde_json::from_slice::<Value>(bytes) else { return };
    let Ok(records) = record::parse(&event) else { return };
    let raws = event["Records"].as_array().unwrap();
    let asked: Vec<_> = raws.iter().map(|raw| raw["messageId"].as_str().unwrap()).collect();

    let reply = record::reply(records.iter());
    let named = reply["batchItemFailures"].as_array().unwrap();
    let named: Vec<_> = named.iter().map(|failure| failure["itemIdentifier"].as_str().unwrap()).collect();
    assert_eq!(named, asked, "a reply that keeps everything names exactly what was asked");

    let why = Undecided { reason: "NOT_A_MESSAGE", detail: String::new() };
    for (id, raw) in asked.iter().zip(raws) {
        let evidence = evidence(id, raw, &why);
        assert!(evidence.receive_count.is_none_or(|count| count >= 1));
    }
}

/// A request is understood, or every fault is named.
pub fn operator(bytes: &[u8]) {
    let Ok(request) = serde_json::from_slice::<Value>(bytes) else { return };
    if let Err(bad) = Request::parse(&request) {
        assert!(!bad.faults.is_empty(), "a request was refused without a reason");
    }
}

#[cfg(test)]
mod tests {
    use testkit::damage::withstand;

    const MESSAGE: &str = r#"{"version":1,"event_id":"news:cded11b8263d0dffcac669f8a5f950a7f8e6059eb2dc753a1c62381b020963cb:0","event_type":"news","job_id":"cded11b8263d0dffcac669f8a5f950a7f8e6059eb2dc753a1c62381b020963cb","redrive_generation":0}"#;

    const EVENT: &str = r#"{"Records":[{"messageId":"a","receiptHandle":"r","body":"{\"version\":1}","attributes":{"ApproximateReceiveCount":"1","SentTimestamp":"1"},"messageAttributes":{},"eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:eu-central-1:1:news"},{"messageId":"b","body":null}]}"#;

    const BY_ID: &str = r#"{"action":"redrive","who":"ada","why":"fixed","dry_run":true,"rate_per_second":2.5,"job_ids":["cded11b8263d0dffcac669f8a5f950a7f8e6059eb2dc753a1c62381b020963cb"]}"#;

    const BY_FILTER: &str = r#"{"action":"dismiss","who":"ada","why":"old","limit":5,"filter":{"reason":"DLQ","job_type":"news","dead_at_least_seconds":60}}"#;

    #[test]
    fn body_of_any_bytes_is_refused_or_read_back_as_it_is_written() {
        withstand(&[MESSAGE], super::message);
    }

    #[test]
    fn event_of_any_bytes_is_refused_or_answered_by_its_own_ids() {
        withstand(&[EVENT, "{}", "null"], super::records);
    }

    #[test]
    fn request_of_any_bytes_is_understood_or_refused_with_its_faults() {
        withstand(&[BY_ID, BY_FILTER], super::operator);
    }
}
