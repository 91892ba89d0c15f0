//! Outages that last: what waits for their end goes on by itself, and nothing that only waits is given up.

use std::time::Duration;

use serde_json::json;
use sqlx::{Connection, PgConnection};
use system_tests::crew::{Consumers, Crew, STEP};
use system_tests::mapping::Mapping;
use system_tests::proxy::Proxy;
use system_tests::sandbox::Invoked;
use system_tests::subject::DESTINATION;
use system_tests::world::{FUNCTION_TIMEOUT, Stand, World};
use system_tests::{Result, invariants};

use crate::Scenario;
use crate::hold::sent_in;
use crate::report::Finding;

/// What the deployed queues allow: above the attempts of a job and two more.
const RECEIVES_MAX: u32 = 6;
/// Deliveries of a message that only waits: many times what a real one sees before its job is due.
const DELIVERIES: u32 = 4;

/// All of them.
pub fn all(stand: &Stand) -> Vec<(&'static str, Scenario<'_>)> {
    vec![
        ("database away until SQS gives up", Box::pin(away_for_long(stand)) as Scenario),
        ("no connection left", Box::pin(no_connection(stand))),
        ("early and held are no dead letters", Box::pin(waiting(stand))),
        ("redrive while a dead letter is looked at", Box::pin(redrive_meets_dead_letter(stand))),
        ("purged job enqueued again", Box::pin(purged(stand))),
    ]
}

/// A world whose subject jobs are in the queue.
async fn sent(stand: &Stand, behaviours: &[&str]) -> Result<World> {
    sent_in(stand.world_with("outage", RECEIVES_MAX).await?, behaviours).await
}

async fn rest(mut crew: Crew<'_>, world: &World, finding: &mut Finding, succeeded: i64) -> Result<()> {
    crew.settle().await?;
    let done = world.count("select count(*) from job where status = 'SUCCEEDED'").await?;
    finding.expect("succeeded", done, succeeded);
    finding.violate_all(invariants::broken_with_subject(&world.db).await?);
    Ok(())
}

/// Every delivery fails until the messages are dead letters; then the database is back.
async fn away_for_long(stand: &Stand) -> Result<Finding> {
    let world = sent(stand, &["succeed", "succeed", "succeed"]).await?;
    let mut finding = Finding::default();
    let proxy = Proxy::start(&world.server).await?;
    proxy.go_away();
    let environment = world.environment(DESTINATION).through(proxy.address());
    let mut crew = Crew::new(&world, Consumers::Subject);
    let mut sandbox = world.start("subject", &environment).await?;
    for _ in 0..=RECEIVES_MAX {
        crew.mapping(DESTINATION).drain(&mut sandbox).await?;
        crew.mapping(DESTINATION).time_passes().await;
    }
    let dead_letters = i64::try_from(world.dead_letters(DESTINATION).depth().await?)?;
    finding.expect("dead_letters", dead_letters, 3);
    finding.expect(
        "attempts_while_away",
        world.count("select sum(attempt_count)::bigint from job").await?,
        0,
    );
    proxy.come_back();
    rest(crew, &world, &mut finding, 3).await?;
    world.end().await?;
    Ok(finding)
}

/// The server takes no more connections: the batch fails as a whole and burns no attempt.
async fn no_connection(stand: &Stand) -> Result<Finding> {
    let world = sent(stand, &["succeed", "succeed"]).await?;
    let mut finding = Finding::default();
    let database: String = sqlx::query_scalar("select current_database()").fetch_one(&world.db).await?;
    // Superusers pass the limit of a database; the functions must not be one here.
    let login = format!("limited_{database}");
    for statement in [
        format!(r#"create role "{login}" login"#),
        format!(r#"grant all on all tables in schema public to "{login}""#),
        format!(r#"grant all on all sequences in schema public to "{login}""#),
        format!(r#"alter database "{database}" connection limit 0"#),
    ] {
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&world.db).await?;
    }
    let environment = world.environment(DESTINATION).as_user(&login);
    let mut crew = Crew::new(&world, Consumers::Subject);
    let mut sandbox = world.start("subject", &environment).await?;
    let refused = crew.mapping(DESTINATION).drain(&mut sandbox).await?;
    if !matches!(refused, Some(Invoked::Failed(_))) {
        finding.violate(format!("the batch did not fail as a whole: {refused:?}"));
    }
    let tried = world.count("select sum(attempt_count)::bigint from job").await?;
    finding.expect("attempts_while_refused", tried, 0);

    let unlimited = format!(r#"alter database "{database}" connection limit -1"#);
    sqlx::raw_sql(sqlx::AssertSqlSafe(unlimited)).execute(&world.db).await?;
    crew.mapping(DESTINATION).time_passes().await;
    let again = crew.mapping(DESTINATION).drain(&mut sandbox).await?;
    if again.is_some() {
        finding.violate(format!("the next invocation did not recover: {again:?}"));
    }
    let attempts = world.count("select sum(attempt_count)::bigint from job").await?;
    finding.expect("attempts", attempts, 2);
    rest(crew, &world, &mut finding, 2).await?;
    drop(sandbox);
    forget(&world, &login).await?;
    world.end().await?;
    Ok(finding)
}

async fn forget(world: &World, login: &str) -> Result<()> {
    let statements = format!(r#"drop owned by "{login}"; drop role "{login}""#);
    sqlx::raw_sql(sqlx::AssertSqlSafe(statements)).execute(&world.db).await?;
    Ok(())
}

/// A message whose job is not due, or held by somebody, waits by its visibility and not by receives.
async fn waiting(stand: &Stand) -> Result<Finding> {
    let world = sent(stand, &["succeed", "succeed"]).await?;
    let mut finding = Finding::default();
    sqlx::query(
        "update job set status = 'RETRY', attempt_count = 1, next_attempt_at = now() + interval '1 hour' \
          where job_id = (select min(job_id) from job)",
    )
    .execute(&world.db)
    .await?;
    sqlx::query(
        "update job set status = 'CLAIMED', attempt_count = 1, claimed_by = gen_random_uuid(), \
                        lease_until = now() + interval '1 hour' \
          where job_id = (select max(job_id) from job)",
    )
    .execute(&world.db)
    .await?;
    let mut crew = Crew::new(&world, Consumers::Subject);
    for _ in 0..DELIVERIES {
        crew.consume().await?;
        // Nothing comes back before its job is due: the visibility is the job's own wait.
    }
    finding.expect("deliveries", i64::try_from(crew.counts().deliveries)?, 2);
    finding.expect("messages", i64::try_from(world.queue(DESTINATION).depth().await?)?, 2);
    finding.expect("dead_letters", i64::try_from(world.dead_letters(DESTINATION).depth().await?)?, 0);
    crew.time_passes(Duration::from_hours(1)).await?;
    rest(crew, &world, &mut finding, 2).await?;
    world.end().await?;
    Ok(finding)
}

/// The dead-letter function has the old copy in its hands while an operator redrives the job.
async fn redrive_meets_dead_letter(stand: &Stand) -> Result<Finding> {
    let world = sent(stand, &["refuse"]).await?;
    let mut finding = Finding::default();
    let mut crew = Crew::new(&world, Consumers::Subject);
    let copy = crew.mapping(DESTINATION).receive().await?.ok_or("no message")?;
    let body = copy.into_messages().remove(0).body.ok_or("no body")?;
    crew.mapping(DESTINATION).time_passes().await;
    crew.consume().await?;
    finding.expect("dead", world.count("select count(*) from job where status = 'DEAD'").await?, 1);
    world.dead_letters(DESTINATION).send(&[body]).await?;

    // Frozen before its first statement, with the message received.
    let environment = world.environment_for("dead-letter", DESTINATION);
    let environment = environment.with_fault("dead_letter::decide.before:stop:1");
    let mut frozen = world.start("dead-letter", &environment).await?;
    let mut mapping = Mapping::new(world.dead_letters(DESTINATION).clone(), FUNCTION_TIMEOUT);
    let batch = mapping.receive().await?.ok_or("no dead letter")?;
    let answer = frozen.begin(mapping.event(&batch), FUNCTION_TIMEOUT);
    frozen.frozen().await?;
    sqlx::query("update job set payload = jsonb_set(payload, '{behave}', '\"succeed\"')")
        .execute(&world.db)
        .await?;
    let id: String = sqlx::query_scalar("select job_id from job").fetch_one(&world.db).await?;
    let request =
        json!({ "action": "redrive", "job_ids": [id], "who": "test", "why": "the handler is mended" });
    crew.invoke("operator", request).await?;
    frozen.thaw();
    let answered = tokio::time::timeout(FUNCTION_TIMEOUT, answer).await??;
    mapping.settle(&batch, &answered.map_or_else(Invoked::Failed, Invoked::Answered)).await?;

    finding.expect("pending", world.count("select count(*) from job where status = 'PENDING'").await?, 1);
    let attempts = world.count("select attempt_count::bigint from job").await?;
    finding.expect("attempts_of_the_redriven_job", attempts, 0);
    finding.expect("old_copies_left", i64::try_from(world.dead_letters(DESTINATION).depth().await?)?, 0);
    rest(crew, &world, &mut finding, 1).await?;
    world.end().await?;
    Ok(finding)
}

/// Retention took the job and its event; the same work is asked for again, and the effect's own rows say
/// that it was done. The subject has no natural keys, so the market's do it.
async fn purged(stand: &Stand) -> Result<Finding> {
    let world = stand.world("outage").await?;
    let mut market = system_tests::market::Market::open(&world)?;
    market.next_day()?;
    let mut finding = Finding::default();
    let mut crew = Crew::new(&world, Consumers::Product);
    crew.invoke("collector", market.request()).await?;
    crew.settle().await?;
    let effects = "select (select count(*) from price_trigger) + (select count(*) from explanation) \
                        + (select count(*) from news_finding) + (select count(*) from collection_window)";
    let before = world.count(effects).await?;
    let mut purge = PgConnection::connect_with(&world.db.connect_options()).await?;
    sqlx::raw_sql("delete from outbox_event; delete from job").execute(&mut purge).await?;

    crew.invoke("collector", market.request()).await?;
    finding.expect("born_again", world.count("select count(*) from job").await?, 0);
    crew.time_passes(STEP).await?;
    crew.settle().await?;
    finding.expect("effects", world.count(effects).await?, before);
    finding.violate_all(invariants::broken(&world.db).await?);
    world.end().await?;
    Ok(finding)
}
