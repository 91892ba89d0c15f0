//! Properties that need a situation of their own: who is frozen, lost, late or a killer at the same time.

use std::time::{Duration, Instant};

use serde_json::json;
use sqlx::AssertSqlSafe;
use store::reconcile::{Pace, ring};
use system_tests::crew::{Consumers, Crew, STEP};
use system_tests::market::Market;
use system_tests::sandbox::{Invoked, Sandbox};
use system_tests::subject::{self, DESTINATION};
use system_tests::world::{FUNCTION_TIMEOUT, Stand, World, timeout_of};
use system_tests::{Result, invariants};
use tokio::sync::oneshot::Receiver;

use crate::Scenario;
use crate::report::Finding;

/// How long a row may stay locked by a frozen sandbox: the server's limit, and what a slow machine adds.
const HELD_MAX: Duration = Duration::from_secs(45);
/// A simulated day, in steps of the reconciler's schedule.
const DAY_STEPS: u32 = 288;
const DAY_STEP: Duration = Duration::from_mins(5);
/// 5, 15, 35, 75, … minutes, then every six hours: what a day holds, and one to spare.
const RINGS_A_DAY_MAX: i64 = 10;

/// All of them. Those that wait for the server's own limit come first: they only wait.
pub fn all(stand: &Stand) -> Vec<(&'static str, Scenario<'_>)> {
    vec![
        ("frozen with an open transaction", Box::pin(frozen_in_transaction(stand)) as Scenario),
        ("one killer and nine good", Box::pin(one_killer(stand))),
        ("a panic and one that never ends", Box::pin(panic_and_hang(stand))),
        ("backend killed while idle", Box::pin(backend_killed(stand))),
        ("database read-only for a while", Box::pin(read_only(stand))),
        ("database away", Box::pin(database_away(stand))),
        ("relay frozen while the reconciler rings", Box::pin(ring_survives(stand))),
        ("collector frozen while a correction commits", Box::pin(correction_survives(stand))),
        ("live last attempt and a duplicate", Box::pin(last_attempt(stand))),
        ("consumers down for a day", Box::pin(rings_are_bounded(stand))),
    ]
}

/// A world whose subject jobs, one for each behaviour, are in the queue.
async fn sent(stand: &Stand, behaviours: &[&str]) -> Result<World> {
    sent_in(stand.world("hold").await?, behaviours).await
}

/// The same in a world that was made otherwise.
pub async fn sent_in(world: World, behaviours: &[&str]) -> Result<World> {
    subject::create_tables(&world.db).await?;
    let jobs: Vec<_> =
        (0..).zip(behaviours).map(|(number, behave)| subject::job("job", number, behave)).collect();
    subject::commit(&world.db, &jobs).await?;
    Crew::new(&world, Consumers::Subject).relay().await?;
    Ok(world)
}

/// Lets everything come to rest and checks the invariants.
async fn rest(mut crew: Crew<'_>, world: &World, finding: &mut Finding) -> Result<()> {
    crew.settle().await?;
    finding.violate_all(invariants::broken_with_subject(&world.db).await?);
    Ok(())
}

async fn outcomes(world: &World, finding: &mut Finding, succeeded: i64, dead: i64) -> Result<()> {
    finding.expect(
        "succeeded",
        world.count("select count(*) from job where status = 'SUCCEEDED'").await?,
        succeeded,
    );
    finding.expect("dead", world.count("select count(*) from job where status = 'DEAD'").await?, dead);
    Ok(())
}

/// Starts a sandbox that freezes at `passage` of its first batch; the answer comes after a thaw.
async fn frozen_consumer(
    world: &World,
    crew: &mut Crew<'_>,
    passage: &str,
) -> Result<(Sandbox, Receiver<system_tests::runtime_api::Answer>)> {
    let environment = world.environment(DESTINATION).with_fault(&format!("{passage}:stop:1"));
    let mut sandbox = world.start("subject", &environment).await?;
    let mapping = crew.mapping(DESTINATION);
    let batch = mapping.receive().await?.ok_or("no message")?;
    let answer = sandbox.begin(mapping.event(&batch), FUNCTION_TIMEOUT);
    sandbox.frozen().await?;
    Ok((sandbox, answer))
}

async fn frozen_in_transaction(stand: &Stand) -> Result<Finding> {
    let world = sent(stand, &["succeed"]).await?;
    let mut finding = Finding::default();
    let mut crew = Crew::new(&world, Consumers::Subject);
    let (sandbox, answer) = frozen_consumer(&world, &mut crew, "job::complete.after").await?;

    let started = Instant::now();
    let free = "select count(*) from (select from job for update skip locked) as free";
    while world.count(free).await? == 0 && started.elapsed() < HELD_MAX {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let held = started.elapsed();
    finding.note("held_seconds", i64::try_from(held.as_secs())?);
    if held >= HELD_MAX {
        finding.violate("the row stayed locked");
    }
    crew.settle().await?;
    let before = world.count("select attempt_count::bigint from job").await?;
    sandbox.thaw();
    // Whatever it says, it must not have changed anything.
    let _ = tokio::time::timeout(FUNCTION_TIMEOUT, answer).await;
    finding.expect(
        "attempts_after_thaw",
        world.count("select attempt_count::bigint from job").await?,
        before,
    );
    finding.expect("effects", world.count("select count(*) from subject_effect").await?, 1);
    rest(crew, &world, &mut finding).await?;
    world.end().await?;
    Ok(finding)
}

async fn one_killer(stand: &Stand) -> Result<Finding> {
    let mut behaviours = ["succeed"; 10];
    behaviours[4] = "kill";
    let world = sent(stand, &behaviours).await?;
    let mut finding = Finding::default();
    rest(Crew::new(&world, Consumers::Subject), &world, &mut finding).await?;
    outcomes(&world, &mut finding, 9, 1).await?;
    let tried = world.count("select max(attempt_count)::bigint from job where status = 'SUCCEEDED'").await?;
    finding.note("attempts_of_good_jobs", tried);
    if tried > 2 {
        finding.violate("a good job paid for the killer more than once");
    }
    world.end().await?;
    Ok(finding)
}

async fn panic_and_hang(stand: &Stand) -> Result<Finding> {
    let mut behaviours = ["succeed"; 10];
    behaviours[2] = "panic";
    behaviours[7] = "hang";
    let world = sent(stand, &behaviours).await?;
    let mut finding = Finding::default();
    rest(Crew::new(&world, Consumers::Subject), &world, &mut finding).await?;
    outcomes(&world, &mut finding, 9, 1).await?;
    let tried = world.count("select max(attempt_count)::bigint from job where status = 'SUCCEEDED'").await?;
    finding.note("attempts_of_mates", tried);
    if tried > 2 {
        finding.violate("a batch mate was tried more than twice");
    }
    world.end().await?;
    Ok(finding)
}

async fn backend_killed(stand: &Stand) -> Result<Finding> {
    let world = sent(stand, &["succeed"]).await?;
    let mut finding = Finding::default();
    let mut crew = Crew::new(&world, Consumers::Subject);
    crew.consume().await?;
    cut_sessions(&world).await?;
    subject::commit(&world.db, &[subject::job("after", 0, "succeed")]).await?;
    crew.relay().await?;
    crew.consume().await?;
    finding.expect("failed_batches", i64::try_from(crew.counts().failed_batches)?, 0);
    outcomes(&world, &mut finding, 2, 0).await?;
    finding.expect("attempts", world.count("select sum(attempt_count)::bigint from job").await?, 2);
    rest(crew, &world, &mut finding).await?;
    world.end().await?;
    Ok(finding)
}

/// Ends every session of the world but the harness's own.
async fn cut_sessions(world: &World) -> Result<()> {
    sqlx::query(
        "select pg_terminate_backend(pid) from pg_stat_activity \
         where datname = current_database() and application_name = 'tailcar'",
    )
    .execute(&world.db)
    .await?;
    Ok(())
}

async fn set_read_only(world: &World, on: bool) -> Result<()> {
    let database: String = sqlx::query_scalar("select current_database()").fetch_one(&world.db).await?;
    let setting = if on { "on" } else { "off" };
    let command = format!(
        r#"set transaction read write; alter database "{database}" set default_transaction_read_only = {setting}"#
    );
    sqlx::raw_sql(AssertSqlSafe(command)).execute(&world.db).await?;
    cut_sessions(world).await
}

async fn read_only(stand: &Stand) -> Result<Finding> {
    let world = sent(stand, &["succeed", "succeed"]).await?;
    let mut finding = Finding::default();
    let mut crew = Crew::new(&world, Consumers::Subject);
    crew.consume_nothing().await?;
    set_read_only(&world, true).await?;
    crew.consume().await?;
    set_read_only(&world, false).await?;
    if crew.counts().failed_batches == 0 {
        finding.violate("the batch did not fail as a whole");
    }
    finding.expect(
        "attempts_while_read_only",
        world.count("select sum(attempt_count)::bigint from job").await?,
        0,
    );
    rest(crew, &world, &mut finding).await?;
    outcomes(&world, &mut finding, 2, 0).await?;
    finding.expect("attempts", world.count("select sum(attempt_count)::bigint from job").await?, 2);
    world.end().await?;
    Ok(finding)
}

async fn database_away(stand: &Stand) -> Result<Finding> {
    let world = sent(stand, &["succeed", "succeed"]).await?;
    let mut finding = Finding::default();
    let proxy = system_tests::proxy::Proxy::start(&world.server).await?;
    let environment = world.environment(DESTINATION).through(proxy.address());
    let mut crew = Crew::new(&world, Consumers::Subject);
    let mut sandbox = world.start("subject", &environment).await?;
    let warm = sandbox.invoke(json!({ "Records": [] }), FUNCTION_TIMEOUT).await;
    proxy.go_away();
    let failed = crew.mapping(DESTINATION).drain(&mut sandbox).await?;
    if !matches!((&warm, &failed), (Invoked::Answered(_), Some(Invoked::Failed(_)))) {
        finding.violate(format!("it neither worked nor failed as a whole: {failed:?}"));
    }
    finding.expect(
        "attempts_while_away",
        world.count("select sum(attempt_count)::bigint from job").await?,
        0,
    );
    proxy.come_back();
    crew.mapping(DESTINATION).time_passes().await;
    crew.mapping(DESTINATION).drain(&mut sandbox).await?;
    outcomes(&world, &mut finding, 2, 0).await?;
    rest(crew, &world, &mut finding).await?;
    world.end().await?;
    Ok(finding)
}

/// The frozen relay has sent the first ring; it must not mark the second one as sent.
async fn ring_survives(stand: &Stand) -> Result<Finding> {
    let world = stand.world("hold").await?;
    subject::create_tables(&world.db).await?;
    subject::commit(&world.db, &[subject::job("job", 0, "succeed")]).await?;
    let mut finding = Finding::default();
    let environment = world.environment(DESTINATION).with_fault("sqs::send_message_batch.after:stop:1");
    let mut frozen = world.start("relay", &environment).await?;
    let answer = frozen.begin(json!({}), FUNCTION_TIMEOUT);
    frozen.frozen().await?;

    let mut crew = Crew::new(&world, Consumers::Subject);
    crew.time_passes(STEP).await?;
    crew.relay().await?;
    world.queue(DESTINATION).purge().await?;
    crew.time_passes(STEP).await?;
    finding.expect("rings", i64::try_from(ring(&world.db, &Pace::default()).await?.len())?, 1);
    frozen.thaw();
    let _ = tokio::time::timeout(FUNCTION_TIMEOUT, answer).await;

    // Still to be sent, or sent by the thawed relay itself: not marked without a message.
    let waiting = world.count("select count(*) from outbox_event where status = 'NEW' and ring = 1").await?;
    let sent = i64::try_from(world.queue(DESTINATION).depth().await?)?;
    finding.expect("rings_that_survive", (waiting + sent).min(1), 1);
    rest(crew, &world, &mut finding).await?;
    outcomes(&world, &mut finding, 1, 0).await?;
    world.end().await?;
    Ok(finding)
}

/// The frozen collector holds what the source said first; it must not correct the window back to it.
async fn correction_survives(stand: &Stand) -> Result<Finding> {
    let world = stand.world("hold").await?;
    subject::create_tables(&world.db).await?;
    let mut market = Market::open(&world)?;
    market.next_day()?;
    let mut finding = Finding::default();
    let mut crew = Crew::new(&world, Consumers::Product);
    crew.invoke("collector", market.request()).await?;
    market.correct("115")?;
    let environment = world.environment(DESTINATION).with_fault("s3::put_object.after:stop:1");
    let mut frozen = world.start("collector", &environment).await?;
    let answer = frozen.begin(market.request(), timeout_of("collector"));
    frozen.frozen().await?;

    market.correct("130")?;
    crew.invoke("collector", market.request()).await?;
    frozen.thaw();
    let _ = tokio::time::timeout(timeout_of("collector"), answer).await;

    let close = world.count("select max(close)::bigint from price_bar").await?;
    finding.expect("close", close, 130);
    let generation = world.count("select max(generation)::bigint from collection_window").await?;
    finding.expect("generation", generation, 2);
    crew.settle().await?;
    finding.violate_all(invariants::broken_with_market(&world).await?);
    world.end().await?;
    Ok(finding)
}

/// A duplicate meets the last allowed attempt while it is alive: it is neither exhausted nor settled.
async fn last_attempt(stand: &Stand) -> Result<Finding> {
    let world = sent(stand, &["succeed"]).await?;
    let mut finding = Finding::default();
    sqlx::query("update job set attempt_count = max_attempts - 1, status = 'RETRY'")
        .execute(&world.db)
        .await?;
    let mut crew = Crew::new(&world, Consumers::Subject);
    let (frozen, answer) = frozen_consumer(&world, &mut crew, "job::complete.before").await?;
    crew.mapping(DESTINATION).time_passes().await;
    crew.consume().await?;
    finding.expect("claimed", world.count("select count(*) from job where status = 'CLAIMED'").await?, 1);
    frozen.thaw();
    let _ = tokio::time::timeout(FUNCTION_TIMEOUT, answer).await;
    outcomes(&world, &mut finding, 1, 0).await?;
    rest(crew, &world, &mut finding).await?;
    world.end().await?;
    Ok(finding)
}

async fn rings_are_bounded(stand: &Stand) -> Result<Finding> {
    let world = sent(stand, &["succeed", "succeed", "succeed"]).await?;
    let mut finding = Finding::default();
    let mut crew = Crew::new(&world, Consumers::Subject);
    for _ in 0..DAY_STEPS {
        world.time_passes(DAY_STEP).await?;
        if !ring(&world.db, &Pace::default()).await?.is_empty() {
            crew.relay().await?;
        }
    }
    let rings = world.count("select max(requeue_count)::bigint from job").await?;
    finding.note("rings", rings);
    if rings == 0 || rings > RINGS_A_DAY_MAX {
        finding.violate(format!("{rings} rings of one job in a day"));
    }
    finding.note("messages", i64::try_from(world.queue(DESTINATION).depth().await?)?);
    rest(crew, &world, &mut finding).await?;
    outcomes(&world, &mut finding, 3, 0).await?;
    world.end().await?;
    Ok(finding)
}
