//! The reference scenarios: three ways that lose, and this product's under the same blows.
//!
//! Each blow falls N times. A baseline is expected to lose; that it does shows that the blow lands.

use aws_sdk_sqs::types::Message;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use system_tests::crew::{Consumers, Crew};
use system_tests::mapping::Batch;
use system_tests::sandbox::is_137;
use system_tests::world::{FUNCTION_TIMEOUT, Stand, World};
use system_tests::{Result, invariants, subject};

use crate::report::Finding;
use crate::{Extent, Scenario};

/// Processes that die side by side.
const SIDE_BY_SIDE: usize = 4;

/// All of them, in the order of the table.
pub fn all(stand: &Stand, extent: Extent) -> Vec<(&'static str, Scenario<'_>)> {
    let n = extent.n;
    vec![
        ("baseline: commit, then send", Box::pin(commit_then_send(stand, n)) as Scenario),
        ("baseline: send, then commit", Box::pin(send_then_commit(stand, n))),
        ("baseline: send inside, then roll back", Box::pin(send_inside(stand, n))),
        ("die between the job and its event", Box::pin(die_before_commit(stand, n))),
        ("die after COMMIT, relay later", Box::pin(die_after_commit(stand, n))),
        ("every body sent again after completion", Box::pin(repeat_after_completion(stand, n))),
        ("every message twice at the same moment", Box::pin(twice_at_once(stand, n))),
    ]
}

async fn subject_world(stand: &Stand) -> Result<World> {
    let world = stand.world("reference").await?;
    subject::create_tables(&world.db).await?;
    Ok(world)
}

/// Runs the subject N times, each time under another name, and counts those that ended with 137.
async fn strike(world: &World, n: u32, role: &[&str], fault: Option<&str>) -> Result<i64> {
    let environment = world.environment(subject::DESTINATION);
    let environment = fault.map_or(environment.clone(), |fault| environment.with_fault(fault));
    let runs = (0..n).map(|number| {
        let environment = &environment;
        async move {
            let name = format!("job-{number}");
            let mut arguments = vec![role[0], name.as_str()];
            arguments.extend(&role[1..]);
            world.run_subject(&arguments, environment).await
        }
    });
    let ends: Vec<_> = stream::iter(runs).buffer_unordered(SIDE_BY_SIDE).try_collect().await?;
    Ok(i64::try_from(ends.into_iter().filter(|status| is_137(*status)).count())?)
}

async fn jobs_events_sent(world: &World, finding: &mut Finding, expected: [i64; 3]) -> Result<()> {
    finding.expect("jobs", world.count("select count(*) from job").await?, expected[0]);
    finding.expect("events", world.count("select count(*) from outbox_event").await?, expected[1]);
    finding.expect("sent", i64::try_from(world.queue(subject::DESTINATION).depth().await?)?, expected[2]);
    Ok(())
}

async fn commit_then_send(stand: &Stand, n: u32) -> Result<Finding> {
    let (world, n) = (subject_world(stand).await?, i64::from(n));
    let mut finding = Finding::default();
    let deaths =
        strike(&world, u32::try_from(n)?, &["commit-then-send"], Some("subject::send.before:kill:1")).await?;
    finding.expect("deaths", deaths, n);
    jobs_events_sent(&world, &mut finding, [n, 0, 0]).await?;
    let missing = world
        .count("select count(*) from job where not exists (select from outbox_event e where e.job_id = job.job_id)")
        .await?;
    finding.expect("missing_publish_intents", missing, n);
    world.end().await?;
    Ok(finding)
}

async fn send_then_commit(stand: &Stand, n: u32) -> Result<Finding> {
    let world = subject_world(stand).await?;
    let mut finding = Finding::default();
    let deaths = strike(&world, n, &["send-then-commit"], Some("subject::send.after:kill:1")).await?;
    finding.expect("deaths", deaths, n);
    messages_without_job(world, n, finding).await
}

async fn send_inside(stand: &Stand, n: u32) -> Result<Finding> {
    let world = subject_world(stand).await?;
    strike(&world, n, &["send-inside"], None).await?;
    messages_without_job(world, n, Finding::default()).await
}

async fn messages_without_job(world: World, n: u32, mut finding: Finding) -> Result<Finding> {
    jobs_events_sent(&world, &mut finding, [0, 0, i64::from(n)]).await?;
    let mut without = 0;
    loop {
        let received = world.queue(subject::DESTINATION).receive().await?;
        if received.is_empty() {
            break;
        }
        for message in received {
            let body: Value = serde_json::from_str(message.body().unwrap_or_default())?;
            let known: bool = sqlx::query_scalar("select exists (select from job where job_id = $1)")
                .bind(body["job_id"].as_str())
                .fetch_one(&world.db)
                .await?;
            without += i64::from(!known);
        }
    }
    finding.expect("messages_without_job", without, n);
    world.end().await?;
    Ok(finding)
}

/// The job and its event are one statement of one transaction: between them there is only this.
async fn die_before_commit(stand: &Stand, n: u32) -> Result<Finding> {
    let world = subject_world(stand).await?;
    let mut finding = Finding::default();
    let deaths =
        strike(&world, n, &["enqueue", "succeed", "1"], Some("enqueue::insert.after:kill:1")).await?;
    finding.expect("deaths", deaths, n);
    jobs_events_sent(&world, &mut finding, [0, 0, 0]).await?;
    finding.expect("partial_commits", partial_commits(&world).await?, 0);
    world.end().await?;
    Ok(finding)
}

async fn partial_commits(world: &World) -> Result<i64> {
    let query = "select count(*) from job full join outbox_event using (job_id, redrive_generation) \
                 where job.job_type is null or outbox_event.event_id is null";
    world.count(query).await
}

async fn die_after_commit(stand: &Stand, n: u32) -> Result<Finding> {
    let (world, n) = (subject_world(stand).await?, i64::from(n));
    let mut finding = Finding::default();
    let role = ["enqueue", "succeed", "1"];
    finding.expect(
        "deaths",
        strike(&world, u32::try_from(n)?, &role, Some("subject::commit.after:kill:1")).await?,
        n,
    );
    jobs_events_sent(&world, &mut finding, [n, n, 0]).await?;
    finding.expect("partial_commits", partial_commits(&world).await?, 0);

    let mut crew = Crew::new(&world, Consumers::Subject);
    let report = crew.relay().await?;
    let lane = &report["destinations"][subject::DESTINATION];
    finding.expect("batches", lane["batches"].as_i64().unwrap_or(-1), (n + 9) / 10);
    finding.note("idle_looks", lane["idle_looks"].as_i64().unwrap_or(-1));
    if lane["idle_looks"].as_i64().is_none_or(|looks| looks < 1) {
        finding.violate("the relay did not look once more");
    }
    let published = world.count("select count(*) from outbox_event where status = 'PUBLISHED'").await?;
    finding.expect("published", published, n);
    let sent = i64::try_from(world.queue(subject::DESTINATION).depth().await?)?;
    finding.expect("missing_messages", n - sent, 0);
    crew.settle().await?;
    finding.violate_all(invariants::broken_with_subject(&world.db).await?);
    world.end().await?;
    Ok(finding)
}

/// A world with N jobs whose messages are in the queue, and their bodies.
async fn sent_jobs(stand: &Stand, n: u32) -> Result<(World, Vec<String>)> {
    let world = subject_world(stand).await?;
    let jobs: Vec<_> = (0..i64::from(n)).map(|number| subject::job("job", number, "succeed")).collect();
    subject::commit(&world.db, &jobs).await?;
    Crew::new(&world, Consumers::Subject).relay().await?;
    let bodies =
        sqlx::query_scalar("select body from outbox_event order by sequence").fetch_all(&world.db).await?;
    Ok((world, bodies))
}

async fn ran_and_had_effect(world: &World, finding: &mut Finding, n: u32) -> Result<()> {
    finding.expect("handler_runs", world.count("select count(*) from subject_run").await?, n);
    finding.expect("succeeded", world.count("select count(*) from job where status = 'SUCCEEDED'").await?, n);
    let effects = world.count("select count(*) from subject_effect").await?;
    finding.expect("effects", effects, n);
    let distinct = world.count("select count(distinct job_id) from subject_effect").await?;
    finding.expect("duplicate_business_effects", effects - distinct, 0);
    finding.violate_all(invariants::broken_with_subject(&world.db).await?);
    Ok(())
}

async fn repeat_after_completion(stand: &Stand, n: u32) -> Result<Finding> {
    let (world, bodies) = sent_jobs(stand, n).await?;
    let mut finding = Finding::default();
    let mut crew = Crew::new(&world, Consumers::Subject);
    crew.consume().await?;
    let first = crew.counts();
    world.queue(subject::DESTINATION).send(&bodies).await?;
    crew.consume().await?;
    let both = crew.counts();
    let runs = world.count("select count(*) from subject_run").await?;
    finding.expect("deliveries", i64::try_from(both.deliveries)?, 2 * n);
    let skips = i64::try_from(both.deletes - first.deletes)? - (runs - i64::from(n));
    finding.expect("duplicate_terminal_skips", skips, n);
    finding.expect("message_deletes", i64::try_from(both.deletes)?, 2 * n);
    ran_and_had_effect(&world, &mut finding, n).await?;
    world.end().await?;
    Ok(finding)
}

/// Two sandboxes are handed copies of the same ten messages at once, in opposite order.
async fn twice_at_once(stand: &Stand, n: u32) -> Result<Finding> {
    let (world, bodies) = sent_jobs(stand, n).await?;
    let mut finding = Finding::default();
    world.queue(subject::DESTINATION).send(&bodies).await?;
    let environment = world.environment(subject::DESTINATION);
    let mut one = world.start("subject", &environment).await?;
    let mut other = world.start("subject", &environment).await?;
    let mut mapping = world.mapping(subject::DESTINATION);
    // Warm both, so that neither is ahead by its start.
    let nothing = json!({ "Records": [] });
    futures::join!(one.invoke(nothing.clone(), FUNCTION_TIMEOUT), other.invoke(nothing, FUNCTION_TIMEOUT));

    let mut batches = Vec::new();
    while let Some(batch) = mapping.receive().await? {
        batches.push(batch);
    }
    let (firsts, seconds) = pair_up(batches);
    for (first, second) in firsts.iter().zip(&seconds) {
        let (a, b) = (mapping.event(first), mapping.event(second));
        let (a, b) = futures::join!(one.invoke(a, FUNCTION_TIMEOUT), other.invoke(b, FUNCTION_TIMEOUT));
        mapping.settle(first, &a).await?;
        mapping.settle(second, &b).await?;
    }
    let mut crew = Crew::new(&world, Consumers::Subject);
    crew.mappings.insert(subject::DESTINATION, mapping);
    crew.settle().await?;
    finding.note("deliveries", i64::try_from(crew.counts().deliveries)?);
    ran_and_had_effect(&world, &mut finding, n).await?;
    world.end().await?;
    Ok(finding)
}

/// Sorts all messages into pairs with the same body, ten pairs to a batch; the second batch backwards.
fn pair_up(batches: Vec<Batch>) -> (Vec<Batch>, Vec<Batch>) {
    let mut messages: Vec<_> = batches.into_iter().flat_map(Batch::into_messages).collect();
    messages.sort_by(|one, other| one.body().cmp(&other.body()));
    let (mut firsts, mut seconds) = (Vec::new(), Vec::new());
    for (position, message) in messages.into_iter().enumerate() {
        if position % 2 == 0 { firsts.push(message) } else { seconds.push(message) }
    }
    let forwards = |ten: &[Message]| Batch::of(ten.to_vec());
    let backwards = |ten: &[Message]| Batch::of(ten.iter().rev().cloned().collect());
    (firsts.chunks(10).map(forwards).collect(), seconds.chunks(10).map(backwards).collect())
}
