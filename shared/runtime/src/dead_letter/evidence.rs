//! Everything a record says, for whoever has to decide about it by hand.

use serde_json::{Value, json};
use store::quarantine::Evidence;

use super::judge::Undecided;

/// The queue a raw record comes from; empty if it names none.
pub(super) fn queue_arn(raw: &Value) -> &str {
    raw.get("eventSourceARN").and_then(Value::as_str).unwrap_or_default()
}

/// The evidence in the raw record of message `message_id`. Parts of the wrong type are kept as they are
/// where a column takes them, and left out where none does.
pub(crate) fn evidence(message_id: &str, raw: &Value, why: &Undecided) -> Evidence {
    let system = raw.get("attributes");
    let receive_count = system.and_then(|system| system.get("ApproximateReceiveCount"));
    let receive_count = receive_count.and_then(Value::as_str).and_then(|count| count.parse().ok());
    let body = raw.get("body").filter(|body| !body.is_null());
    Evidence {
        message_id: message_id.to_owned(),
        queue: queue_arn(raw).to_owned(),
        body: body.map(|body| body.as_str().map_or_else(|| body.to_string(), str::to_owned)),
        attributes: json!({ "system": system, "message": raw.get("messageAttributes") }),
        receive_count: receive_count.filter(|count| *count >= 1),
        reason: why.reason.to_owned(),
        detail: why.detail.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_with_parts_of_the_wrong_type_is_evidence_all_the_same() {
        let raw = json!({
            "messageId": "m", "body": { "an": "object" }, "attributes": { "ApproximateReceiveCount": 3 },
            "messageAttributes": "x", "eventSourceARN": [],
        });
        let why = Undecided { reason: "NOT_A_MESSAGE", detail: "the body is not a Tailcar message".into() };

        let evidence = evidence("m", &raw, &why);

        assert_eq!(evidence.body.as_deref(), Some(r#"{"an":"object"}"#));
        assert_eq!((evidence.receive_count, evidence.queue.as_str()), (None, ""));
        assert_eq!(
            evidence.attributes,
            json!({ "system": { "ApproximateReceiveCount": 3 }, "message": "x" })
        );
    }
}
