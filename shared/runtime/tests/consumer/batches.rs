//! Whole batches: duplicates, rivals, odd records, and replies that name nobody else.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::{JobId, JobStatus};
use runtime::time_left::TimeLeft;
use serde_json::json;
use sqlx::PgPool;
use testkit::inbox::{body, event, kept};
use testkit::jobs::{fence_of, put_in_state, queued_job, state_of};

use crate::script::{Act, Bench};

const MINUTE: Duration = Duration::from_mins(1);

#[sqlx::test(migrations = "../../migrations")]
async fn duplicates_in_one_batch_have_one_effect(db: PgPool) {
    let id = queued_job(&db).await;
    let bench = Bench::new(&db, &[]).await;

    let kept = bench.consume(&[("a", body(&id, 0)), ("b", body(&id, 0)), ("c", body(&id, 0))]).await;

    assert_eq!(kept, ["b", "c"]);
    assert_eq!(bench.effects_of(&id).await, 1);
    assert_eq!(bench.consume(&[("b", body(&id, 0)), ("c", body(&id, 0))]).await, Vec::<String>::new());
    assert_eq!(bench.effects_of(&id).await, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn duplicates_of_a_job_tried_before_have_one_effect(db: PgPool) {
    let id = queued_job(&db).await;
    put_in_state(&db, &id, JobStatus::Retry).await;
    let bench = Bench::new(&db, &[]).await;

    bench.consume(&[("a", body(&id, 0)), ("b", body(&id, 0))]).await;

    assert_eq!(bench.effects_of(&id).await, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn two_engines_with_the_same_messages_have_one_effect_each(db: PgPool) {
    let mut ids: Vec<JobId> = Vec::new();
    for _ in 0..10 {
        ids.push(queued_job(&db).await);
    }
    let messages: Vec<(String, String)> =
        ids.iter().enumerate().map(|(n, id)| (n.to_string(), body(id, 0))).collect();
    let messages: Vec<(&str, String)> = messages.iter().map(|(n, body)| (&**n, body.clone())).collect();
    let (one, other) = (Bench::new(&db, &[]).await, Bench::new(&db, &[]).await);

    futures::join!(one.consume(&messages), other.consume(&messages));

    for id in &ids {
        assert_eq!(one.effects_of(id).await, 1);
        assert_eq!(state_of(&db, id).await, JobStatus::Succeeded);
        assert_eq!(fence_of(&db, id).await.0, 1, "nobody claimed it in vain");
    }
    assert_eq!(one.prepared().len() + other.prepared().len(), ids.len());
}

#[sqlx::test(migrations = "../../migrations")]
async fn odd_records_are_left_and_their_batch_mates_are_done(db: PgPool) {
    let id = queued_job(&db).await;
    let bench = Bench::new(&db, &[]).await;
    let event = json!({"Records": [
        {"messageId": "no body"},
        {"messageId": "odd body", "receiptHandle": "receipt:odd body", "body": {"an": "object"}},
        {"messageId": "fine", "receiptHandle": "receipt:fine", "body": body(&id, 0)},
        {"messageId": "newer", "receiptHandle": "receipt:newer", "body": body(&id, 0).replace("\"version\":1", "\"version\":2")},
    ]});

    let reply = bench.consume_event(event, MINUTE).await;

    assert_eq!(kept(&reply), ["newer", "no body", "odd body"]);
    assert_eq!(bench.effects_of(&id).await, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn record_without_a_message_id_fails_the_invocation_before_anything_is_claimed(db: PgPool) {
    let id = queued_job(&db).await;
    let bench = Bench::new(&db, &[]).await;
    let mut event = event(&[("a", body(&id, 0)), ("b", body(&id, 0))]);
    event["Records"][1]["messageId"] = json!("");

    let error = bench.engine.consume(event, TimeLeft::lasting(MINUTE)).await.unwrap_err();

    assert!(matches!(error, runtime::consumer::Error::Event(_)), "{error:?}");
    assert_eq!(state_of(&db, &id).await, JobStatus::Pending);
}

#[sqlx::test(migrations = "../../migrations")]
async fn reply_names_only_messages_of_its_batch_whatever_happens(db: PgPool) {
    let acts = [Act::PrepareFails, Act::ApplyPanics, Act::TakenOver, Act::ApplyIsStale];
    let mut script = Vec::new();
    for act in acts {
        script.push((queued_job(&db).await, act));
    }
    let held = queued_job(&db).await;
    put_in_state(&db, &held, JobStatus::Claimed).await;
    let done = queued_job(&db).await;
    put_in_state(&db, &done, JobStatus::Succeeded).await;
    let ids: Vec<&JobId> = script.iter().map(|(id, _)| id).chain([&held, &done]).collect();
    let bodies = ids.iter().map(|id| body(id, 0)).chain([String::new()]);
    let messages: Vec<(String, String)> =
        bodies.enumerate().map(|(n, body)| (format!("m{n}"), body)).collect();
    let messages: Vec<(&str, String)> = messages.iter().map(|(n, body)| (&**n, body.clone())).collect();
    let by_reference: Vec<(&JobId, Act)> = script.iter().map(|(id, act)| (id, act.clone())).collect();
    let bench = Bench::new(&db, &by_reference).await;

    let reply = bench.consume_event(event(&messages), MINUTE).await;

    let named = reply["batchItemFailures"].as_array().unwrap().len();
    let kept: BTreeSet<String> = kept(&reply).into_iter().collect();
    assert_eq!(kept.len(), named, "each of them once");
    assert_eq!(kept, ["m0", "m1", "m2", "m4", "m6"].map(str::to_owned).into());
}

#[sqlx::test(migrations = "../../migrations")]
async fn batch_wider_than_the_pool_and_the_queue_call_is_done(db: PgPool) {
    let mut ids = Vec::new();
    for n in 0..33 {
        let id = queued_job(&db).await;
        if n % 3 == 0 {
            put_in_state(&db, &id, JobStatus::Claimed).await;
        }
        ids.push(id);
    }
    let messages: Vec<(String, String)> =
        ids.iter().enumerate().map(|(n, id)| (format!("m{n}"), body(id, 0))).collect();
    let messages: Vec<(&str, String)> = messages.iter().map(|(n, body)| (&**n, body.clone())).collect();
    let bench = Bench::new(&db, &[]).await;

    let kept = bench.consume(&messages).await;

    assert_eq!(kept.len(), 11);
    assert!(kept.iter().all(|id| bench.visibility_of(id).is_some()));
}

#[sqlx::test(migrations = "../../migrations")]
async fn empty_batch_is_an_empty_reply(db: PgPool) {
    let bench = Bench::new(&db, &[]).await;
    let reply = bench.consume_event(json!({"Records": []}), MINUTE).await;
    assert_eq!(reply, json!({"batchItemFailures": []}));
}
