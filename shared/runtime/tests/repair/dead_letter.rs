//! The dead-letter consumer: what it acknowledges, what it leaves, and for how long that is hidden.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::sync::Mutex;

use domain::{JobId, Message};
use runtime::consumer::{Change, Queue, Refusal};
use runtime::dead_letter::{DeadLetter, Error, Lanes};
use serde_json::{Value, json};
use sqlx::PgPool;
use store::dead_letter::Policy;

use crate::{execute, job, status};

const QUEUE_ARN: &str = "arn:aws:sqs:eu-central-1:000000000000:news-dlq";

/// Remembers what was hidden, by receipt handle; refuses all of it if it has to.
#[derive(Default)]
struct Curtain {
    hidden: Mutex<Vec<(String, i32)>>,
    broken: bool,
}

impl Queue for &Curtain {
    async fn change_visibility(
        &self,
        changes: &[Change],
    ) -> Result<Vec<(usize, Refusal)>, Box<dyn StdError + Send + Sync>> {
        if self.broken {
            return Err("no route to the queue".into());
        }
        let hidden = changes.iter().map(|change| (change.receipt_handle.clone(), change.seconds));
        self.hidden.lock().unwrap().extend(hidden);
        Ok(vec![(0, Refusal::Gone)])
    }
}

fn dead_letter<'a>(db: &PgPool, curtain: &'a Curtain, policy: Policy) -> DeadLetter<&'a Curtain> {
    let policies = BTreeMap::from([("news".to_owned(), policy)]);
    let urls = BTreeMap::from([("news".to_owned(), "http://sqs/0/news-dlq".to_owned())]);
    DeadLetter::new(db.clone(), Lanes::new(&policies, &urls, |_| curtain).unwrap())
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

    let answer = dead_letter(&db, &curtain, Policy::Return)
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
    let hidden = curtain.hidden.into_inner().unwrap();
    assert_eq!(hidden[1], ("r-bad".into(), 42_000));
    assert!(hidden[0].0 == "r-held" && (60..=90).contains(&hidden[0].1), "{hidden:?}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn policy_dead_buries_at_once(db: PgPool) {
    let job_id = job(&db, "a").await;

    let answer = dead_letter(&db, &Curtain::default(), Policy::Dead)
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
    let dead_letter = dead_letter(&db, &curtain, Policy::Return);

    for delivery in 1..=2 {
        let mut answer = dead_letter.handle(&odd).await.unwrap();
        let failures = answer["batchItemFailures"].as_array_mut().unwrap();
        failures.sort_by_key(|failure| failure["itemIdentifier"].to_string());
        assert_eq!(answer, left(&["a", "b", "c", "d", "e", "f"]), "delivery {delivery}");
    }

    let reasons: Vec<_> = kept(&db).await.into_iter().map(|(_, reason)| reason).collect();
    let expected = [
        "NOT_A_MESSAGE",
        "NOT_A_MESSAGE",
        "FUTURE_GENERATION",
        "UNKNOWN_JOB",
        "UNKNOWN_VERSION",
        "NOT_A_MESSAGE",
    ];
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

    let answer = dead_letter(&db, &curtain, Policy::Return).handle(&event(&[stray])).await.unwrap();

    assert_eq!(answer, left(&["stray"]));
    assert_eq!(kept(&db).await, [("stray".into(), "UNKNOWN_QUEUE".into())]);
    assert_eq!(status(&db, &job_id).await, "PENDING");
    assert!(curtain.hidden.into_inner().unwrap().is_empty());
}

#[sqlx::test(migrations = "../../migrations")]
async fn event_that_can_not_be_answered_fails_before_anything_moves(db: PgPool) {
    let job_id = job(&db, "a").await;
    let curtain = Curtain::default();
    let dead_letter = dead_letter(&db, &curtain, Policy::Return);
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
    let dead_letter = dead_letter(&db, &curtain, Policy::Return);
    db.close().await;

    for records in [[record("m", body(&job_id, 0))], [record("m", "not json")]] {
        let failed = dead_letter.handle(&event(&records)).await;
        assert!(matches!(failed, Err(Error::Store(_))), "{failed:?}");
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn message_that_can_not_be_hidden_is_left_all_the_same(db: PgPool) {
    let curtain = Curtain { broken: true, ..Curtain::default() };

    let answer =
        dead_letter(&db, &curtain, Policy::Return).handle(&event(&[record("m", "not json")])).await.unwrap();

    assert_eq!(answer, left(&["m"]));
    assert_eq!(kept(&db).await.len(), 1);
}
