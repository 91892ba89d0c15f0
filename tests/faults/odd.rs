//! Events that no caller should send, to every function as its real process: a clear answer or a clear
//! error, never a panic, never a process that ends, and never an id that was not in the request.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use system_tests::Result;
use system_tests::crew::{Consumers, Crew};
use system_tests::market::Market;
use system_tests::sandbox::{Invoked, Sandbox};
use system_tests::subject::{self, DESTINATION};
use system_tests::world::{Stand, World, timeout_of};

use crate::Scenario;
use crate::report::Finding;

/// Functions that are handed batches, and the destination of each.
const OF_QUEUES: [(&str, &str); 5] = [
    ("news-consumer", "news"),
    ("price-consumer", "price"),
    ("explain-consumer", "explain"),
    ("subject", DESTINATION),
    ("dead-letter", DESTINATION),
];
/// Functions whose input does not matter at all: they answer whatever it is.
const OF_SCHEDULES: [&str; 2] = ["relay", "reconciler"];
/// Functions that are invoked with a request: they answer or say what is wrong with it.
const OF_REQUESTS: [&str; 3] = ["collector", "operator", "migrator"];

/// All of them.
pub fn all(stand: &Stand) -> Vec<(&'static str, Scenario<'_>)> {
    vec![
        ("odd events to every function", Box::pin(odd_events(stand)) as Scenario),
        ("odd records beside a good one", Box::pin(odd_records(stand))),
    ]
}

/// What is neither the event of a queue nor a request.
fn events() -> Vec<Value> {
    vec![
        json!({}),
        json!(null),
        json!("a string"),
        json!(7),
        json!([]),
        json!([{}]),
        json!({ "Records": null }),
        json!({ "Records": "none" }),
        json!({ "Records": {} }),
        json!({ "Records": [null] }),
        json!({ "Records": [{ "Sns": { "Message": "{}" }, "EventSource": "aws:sns" }] }),
        json!({ "version": "0", "id": "1", "detail-type": "Scheduled Event", "source": "aws.events", "detail": {} }),
        json!({ "version": "0", "detail-type": null, "detail": [] }),
    ]
}

/// Records that are wrong each in its own way; all but the last have an id.
fn records() -> Vec<Value> {
    vec![
        json!({ "messageId": "null-body", "body": null }),
        json!({ "messageId": "no-body" }),
        json!({ "messageId": "object-body", "body": { "job_id": "a" } }),
        json!({ "messageId": "number-body", "body": 7 }),
        json!({ "messageId": "empty-body", "body": "", "receiptHandle": "r" }),
        json!({ "messageId": "text-body", "body": "\u{0}\u{fffd}{", "receiptHandle": 9 }),
        json!({ "messageId": "list-body", "body": "[]", "attributes": [] }),
        json!({ "messageId": "attributes", "body": "{}", "attributes": { "ApproximateReceiveCount": {} } }),
        json!({ "messageId": "more", "body": "{}", "attributes": "x", "messageAttributes": 7, "eventSourceARN": [] }),
        json!({ "body": "{}", "receiptHandle": "r" }),
    ]
}

async fn odd_events(stand: &Stand) -> Result<Finding> {
    let world = stand.world("odd").await?;
    subject::create_tables(&world.db).await?;
    Market::open(&world)?;
    let mut finding = Finding::default();
    let mut asked = 0;
    let functions = OF_QUEUES.into_iter().chain(OF_SCHEDULES.map(|name| (name, DESTINATION)));
    for (component, destination) in functions.chain(OF_REQUESTS.map(|name| (name, DESTINATION))) {
        let mut sandbox = world.start(component, &world.environment_for(component, destination)).await?;
        for event in events() {
            asked += 1;
            let invoked = sandbox.invoke(event.clone(), timeout_of(component)).await;
            if OF_SCHEDULES.contains(&component) && !matches!(invoked, Invoked::Answered(_)) {
                finding.violate(format!("{component} did not answer {event}: {invoked:?}"));
            }
            finding.violate_all(unclear(component, &event, &invoked));
        }
        lives_on(component, &mut sandbox, &mut finding).await;
    }
    finding.note("events", asked);
    finding.expect("jobs", world.count("select count(*) from job").await?, 0);
    world.end().await?;
    Ok(finding)
}

/// What is wrong with how an invocation ended, whatever it was invoked with.
fn unclear(component: &str, event: &Value, invoked: &Invoked) -> Vec<String> {
    let mut wrong = Vec::new();
    match invoked {
        Invoked::Answered(answer) => {
            let known = ids(&event["Records"], "messageId");
            if !ids(&answer["batchItemFailures"], "itemIdentifier").is_subset(&known) {
                wrong.push(format!("{component} named a message it was not given: {answer} to {event}"));
            }
        }
        Invoked::Failed(error) => {
            let said = error["errorMessage"].as_str().unwrap_or_default();
            if said.is_empty() || error.to_string().contains("panic") {
                wrong.push(format!("{component} gave no clear error: {error} to {event}"));
            }
        }
        other => wrong.push(format!("{component} ended: {other:?} at {event}")),
    }
    wrong
}

/// The ids that a list names; a name that is no text is one that nobody was given.
fn ids(list: &Value, field: &str) -> BTreeSet<String> {
    let entries = list.as_array().into_iter().flatten();
    entries.map(|entry| entry[field].as_str().unwrap_or_default().to_owned()).collect()
}

/// The same process still takes an event of its own kind.
async fn lives_on(component: &str, sandbox: &mut Sandbox, finding: &mut Finding) {
    let event = match component {
        "operator" => json!({ "action": "list" }),
        _ if OF_QUEUES.iter().any(|(name, _)| *name == component) => json!({ "Records": [] }),
        _ => json!({}),
    };
    let invoked = sandbox.invoke(event, timeout_of(component)).await;
    let expected = component == "operator" || matches!(invoked, Invoked::Answered(_));
    if !expected || !sandbox.lives() {
        finding.violate(format!("{component} did not go on afterwards: {invoked:?}"));
    }
}

/// A real message beside nine odd records: it is done, they are kept; one without an id fails them all
/// and costs the good one no attempt.
async fn odd_records(stand: &Stand) -> Result<Finding> {
    let world = stand.world("odd").await?;
    subject::create_tables(&world.db).await?;
    let mut finding = Finding::default();
    for component in ["subject", "dead-letter"] {
        nameless(&world, component, &mut finding).await?;
    }
    subject::commit(&world.db, &[subject::job("job", 0, "succeed")]).await?;
    let mut crew = Crew::new(&world, Consumers::Subject);
    crew.relay().await?;
    let mut sandbox = world.start("subject", &world.environment(DESTINATION)).await?;
    let batch = crew.mapping(DESTINATION).receive().await?.ok_or("no message")?;
    let good = crew.mapping(DESTINATION).event(&batch)["Records"][0].clone();
    let all: Vec<Value> = std::iter::once(good.clone()).chain(records()).collect();

    let failed = sandbox.invoke(json!({ "Records": all }), timeout_of("subject")).await;
    if !matches!(failed, Invoked::Failed(_)) {
        finding.violate(format!("a record without an id did not fail the batch: {failed:?}"));
    }
    finding.expect("attempts", world.count("select attempt_count::bigint from job").await?, 0);

    let named = &all[..all.len() - 1];
    let event = json!({ "Records": named });
    let answered = sandbox.invoke(event.clone(), timeout_of("subject")).await;
    finding.violate_all(unclear("subject", &event, &answered));
    let Invoked::Answered(answer) = &answered else { return Ok(finding) };
    let mut kept = ids(&json!(named), "messageId");
    kept.remove(good["messageId"].as_str().unwrap_or_default());
    if ids(&answer["batchItemFailures"], "itemIdentifier") != kept {
        finding.violate(format!("not exactly the odd ones were kept: {answer}"));
    }
    finding.expect("succeeded", world.count("select count(*) from job where status = 'SUCCEEDED'").await?, 1);
    world.end().await?;
    Ok(finding)
}

/// Odd records alone, with and without the one that has no id.
async fn nameless(world: &World, component: &str, finding: &mut Finding) -> Result<()> {
    let mut sandbox = world.start(component, &world.environment_for(component, DESTINATION)).await?;
    for count in [records().len(), records().len() - 1] {
        let event = json!({ "Records": records()[..count] });
        let invoked = sandbox.invoke(event.clone(), timeout_of(component)).await;
        finding.violate_all(unclear(component, &event, &invoked));
        let all_named = count < records().len();
        if matches!(invoked, Invoked::Answered(_)) != all_named && component == "subject" {
            finding.violate(format!("{component} answered {invoked:?} to {event}"));
        }
    }
    Ok(())
}
