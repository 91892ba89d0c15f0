//! The dead-letter consumer: what it acknowledges, what it leaves, and for how long that is hidden.

use std::{sync::Mutex, time::Duration};

use domain::{JobId, Message};
use runtime::dead_letter::{DeadLetter, Error, HIDDEN_MAX, Hidden, Hide, Lanes};
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::{execute, job, status};

const QUEUE_ARN: &str = "arn:aws:sqs:eu-central-1:000000000000:news-dlq";

/// Remembers what was hidden, by receipt handle.
#[derive(Default)]
struct Curtain(Mutex<Vec<(String, i32)>>);

impl Hide for &Curtain {
    async fn hide(&self, queue_url: &str, messages: &[Hidden]) {
        assert_eq!(queue_url, "http://sqs/0/news-dlq");
        let hidden = messages.iter().map(|message| (message.receipt_handle.clone(), message.seconds));
        self.0.lock().unwrap().extend(hidden);
    }
}

fn dead_letter<'a>(db: &PgPool, curtain: &'a Curtain, policies: &str) -> DeadLetter<&'a Curtain> {
    let lanes = Lanes::parse(r#"{"news":"http://sqs/0/news-dlq"}"#, policies).unwrap();
    DeadLetter::new(db.clone(), lanes, curtain)
}

/// A record named `id` whose receipt handle is `r-{id}`.
fn record(id: &str, body: impl Into<Value>) -> Value {
    json!({
        "messageId": id, "receiptHandle": format!("r-{id}"), "body": body.into(), "eventSourceARN": QUEUE_ARN,
        "attributes": { "ApproximateReceiveCount": "12", "SentTimestamp": "1522848600000" },
        "messageAttributes": { "note": { "stringValue": "x", "dataType": "String" } },
    })
}

fn event(records: &[Value]) -> Value {
    json!({ "Records": records })
}

fn body(job_id: &JobId, generation: i32) -> String {
    Message::new("news", job_id.clone(), generation).to_body()
}

fn left(ids: &[&str]) -> Value {
    json!({ "batchItemFailures": ids.iter().map(|id| json!({ "itemIdentifier": id })).collect::<Vec<_>>() })
}

async fn kept(db: &PgPool) -> Vec<(String, String)> {
    sqlx::query_as("select message_id, reason from quarantined_message order by message_id")
        .fetch_all(db)
        .await
        .unwrap()
}

#[sqlx::test(migrations = "../../migrations")]
async fn each_message_is_acknowledged_or_left_by_what_its_job_is(db: PgPool) {
    let [waiting, done, redriven, held] =
        [job(&db, "1").await, job(&db, "2").await, job(&db, "3").await, job(&db, "4").await];
    execute(
        &db,
        "update job set status = 'SUCCEEDED', attempt_count = 1, finished_at = now() where job_id = $1",
        &done,
    )
    .await;
    execute(&db, "update job set redrive_generation = 1 where job_id = $1", &redriven).await;
    execute(
        &db,
        "update job set status = 'CLAIMED', attempt_count = 1, claimed_by = gen_random_uuid(),
                        lease_until = now() + interval '90 seconds' where job_id = $1",
        &held,
    )
    .await;
    let curtain = Curtain::default();

    let answer = dead_letter(&db, &curtain, "{}")
        .handle(&event(&[
            record("bad", "{}"),
            record("waiting", body(&waiting, 0)),
            record("done", body(&done, 0)),
            record("held", body(&held, 0)),
            record("redriven", body(&redriven, 0)),
        ]))
        .await
        .unwrap();

    assert_eq!(answer, left(&["held", "bad"]));
    assert_eq!(status(&db, &waiting).await, "RETRY");
    assert_eq!(status(&db, &held).await, "CLAIMED");
    let hidden = curtain.0.into_inner().unwrap();
    let hours = i32::try_from(HIDDEN_MAX.as_secs()).unwrap();
    assert_eq!(hidden[1], ("r-bad".into(), hours));
    assert!(hours < 12 * 3600);
    assert!(hidden[0].0 == "r-held" && (60..=90).contains(&hidden[0].1), "{hidden:?}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn policy_dead_buries_at_once(db: PgPool) {
    let job_id = job(&db, "a").await;

    let answer = dead_letter(&db, &Curtain::default(), r#"{"news":"dead"}"#)
        .handle(&event(&[record("m", body(&job_id, 0))]))
        .await
        .unwrap();

    assert_eq!((answer, status(&db, &job_id).await.as_str()), (left(&[]), "DEAD"));
}

#[sqlx::test(migrations = "../../migrations")]
async fn undecidable_messages_leave_their_evidence_once_and_are_never_acknowledged(db: PgPool) {
    let known = job(&db, "known").await;
    let unknown = JobId::try_from("0".repeat(64)).unwrap();
    let odd = event(&[
        record("a", "not json"),
        record("b", Value::Null),
        record("c", body(&known, 7)),
        record("d", body(&unknown, 0)),
        record("e", body(&known, 0).replace(r#""version":1"#, r#""version":2"#)),
        json!({ "messageId": "f", "body": 7, "eventSourceARN": QUEUE_ARN, "attributes": [] }),
    ]);
    let curtain = Curtain::default();
    let dead_letter = dead_letter(&db, &curtain, "{}");

    for delivery in 1..=2 {
        let mut answer = dead_letter.handle(&odd).await.unwrap();
        let failures = answer["batchItemFailures"].as_array_mut().unwrap();
        failures.sort_by_key(|failure| failure["itemIdentifier"].to_string());
        assert_eq!(answer, left(&["a", "b", "c", "d", "e", "f"]), "delivery {delivery}");
    }

    let reasons: Vec<_> = kept(&db).await.into_iter().map(|(_, reason)| reason).collect();
    let expected =
        ["NOT_A_MESSAGE", "NO_BODY", "FUTURE_GENERATION", "UNKNOWN_JOB", "UNKNOWN_VERSION", "NO_BODY"];
    assert_eq!(reasons, expected);
    let (body, queue, count, attributes): (String, String, i32, Value) = sqlx::query_as(
        "select body, queue, receive_count, attributes from quarantined_message where message_id = 'a'",
    )
    .fetch_one(&db)
    .await
    .unwrap();
    assert_eq!((body.as_str(), queue.as_str(), count), ("not json", QUEUE_ARN, 12));
    assert_eq!(attributes["system"]["SentTimestamp"], "1522848600000");
    assert_eq!(attributes["message"]["note"]["stringValue"], "x");
    assert_eq!(status(&db, &known).await, "PENDING");
}

#[sqlx::test(migrations = "../../migrations")]
async fn message_of_a_queue_nobody_knows_is_kept_and_left(db: PgPool) {
    let job_id = job(&db, "a").await;
    let mut stray = record("stray", body(&job_id, 0));
    stray["eventSourceARN"] = json!("arn:aws:sqs:eu-central-1:0:elsewhere");
    let curtain = Curtain::default();

    let answer = dead_letter(&db, &curtain, "{}").handle(&event(&[stray])).await.unwrap();

    assert_eq!(answer, left(&["stray"]));
    assert_eq!(kept(&db).await, [("stray".into(), "UNKNOWN_QUEUE".into())]);
    assert_eq!(status(&db, &job_id).await, "PENDING");
    assert!(curtain.0.into_inner().unwrap().is_empty());
}

#[sqlx::test(migrations = "../../migrations")]
async fn event_that_can_not_be_answered_fails_before_anything_moves(db: PgPool) {
    let job_id = job(&db, "a").await;
    let curtain = Curtain::default();
    let dead_letter = dead_letter(&db, &curtain, "{}");
    let mut nameless = record("", "x");
    let good = record("m", body(&job_id, 0));

    for id in [json!(""), json!(null), json!(7)] {
        nameless["messageId"] = id;
        let refused = dead_letter.handle(&event(&[good.clone(), nameless.clone()])).await;
        assert!(matches!(refused, Err(Error::Event(_))), "{refused:?}");
    }
    for odd in [json!(null), json!({}), json!("scheduled"), json!([good])] {
        assert!(matches!(dead_letter.handle(&odd).await, Err(Error::Event(_))), "{odd}");
    }

    assert_eq!(status(&db, &job_id).await, "PENDING");
    assert_eq!(dead_letter.handle(&event(&[])).await.unwrap(), left(&[]));
}

#[sqlx::test(migrations = "../../migrations")]
async fn database_away_fails_the_invocation_as_a_whole(db: PgPool) {
    let job_id = job(&db, "a").await;
    let curtain = Curtain::default();
    let dead_letter = dead_letter(&db, &curtain, "{}");
    db.close().await;

    for records in [[record("m", body(&job_id, 0))], [record("m", "not json")]] {
        let failed = dead_letter.handle(&event(&records)).await;
        assert!(matches!(failed, Err(Error::Store(_))), "{failed:?}");
    }
}

#[test]
fn message_is_hidden_at_least_until_its_time_and_never_past_what_sqs_allows() {
    let record = runtime::dead_letter::Record::read_all(&event(&[record("m", "x")])).unwrap().remove(0);
    let seconds = |time| Hidden::new(&record, time).unwrap().seconds;

    assert_eq!(seconds(Duration::from_millis(1)), 1);
    assert_eq!(seconds(Duration::from_millis(89_001)), 90);
    assert_eq!(seconds(Duration::ZERO), 1);
    assert_eq!(seconds(Duration::from_hours(99)), 42_000);
}
