//! Evidence is complete, kept once, and never replaced.

use serde_json::{Value, json};
use sqlx::PgPool;
use store::quarantine::{Evidence, keep};

fn evidence(message_id: &str) -> Evidence {
    Evidence {
        message_id: message_id.into(),
        queue: "arn:aws:sqs:eu-central-1:123456789012:news-dlq".into(),
        body: Some("not json, \u{0} and all".into()),
        attributes: json!({ "system": { "SentTimestamp": "1" }, "message": { "note": "a\u{0}b" } }),
        receive_count: Some(7),
        reason: "NOT_A_MESSAGE".into(),
        detail: "the body is not a Tailcar message".into(),
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn evidence_is_copied_at_first_sight_and_only_dated_afterwards(db: PgPool) {
    let later = Evidence { body: None, receive_count: None, ..evidence("m-1") };
    let again = [evidence("m-2"), later, evidence("m-2")];
    assert_eq!(keep(&db, &[evidence("m-1")]).await.unwrap(), ["m-1"]);
    assert_eq!(keep(&db, &again).await.unwrap(), ["m-2"]);
    assert!(keep(&db, &again).await.unwrap().is_empty());

    let (body, count, attributes, moved): (String, i32, Value, bool) = sqlx::query_as(
        "select body, receive_count, attributes, last_seen_at > first_seen_at
           from quarantined_message where message_id = 'm-1'",
    )
    .fetch_one(&db)
    .await
    .unwrap();
    assert_eq!(body, "not json, \u{fffd} and all");
    assert_eq!((count, moved), (7, true));
    assert_eq!(attributes["system"]["SentTimestamp"], "1");
}
