//! Who is given up and who is not: a job by its attempts and its event alone, a message by nobody.

use serde_json::json;
use system_tests::crew::{Consumers, Crew, STEP};
use system_tests::subject::{self, ATTEMPTS_MAX, DESTINATION};
use system_tests::world::{Stand, World};
use system_tests::{Result, invariants};

use crate::Scenario;
use crate::report::Finding;

/// What the template gives every queue.
const RECEIVES_MAX: u32 = 20;
/// Deliveries that a throttled function never saw: what is left beside the attempts and two more waits.
const THROTTLED: u32 = RECEIVES_MAX - ATTEMPTS_MAX.cast_unsigned() - 2 - 1;
/// Receives until SQS gives a message up that nobody can read.
const RECEIVES_FEW: u32 = 4;

/// All of them.
pub fn all(stand: &Stand) -> Vec<(&'static str, Scenario<'_>)> {
    vec![
        ("event refused for ever", Box::pin(refused(stand)) as Scenario),
        ("throttled, held, early and failing is no dead letter", Box::pin(throttled(stand))),
        ("message that can not be read", Box::pin(unreadable(stand))),
        ("old message after a redrive", Box::pin(old_message(stand))),
    ]
}

async fn world_of(stand: &Stand, receives_max: u32, behaviours: &[&str]) -> Result<World> {
    let world = stand.world_with("verdict", receives_max).await?;
    subject::create_tables(&world.db).await?;
    let jobs: Vec<_> =
        (0..).zip(behaviours).map(|(number, behave)| subject::job("job", number, behave)).collect();
    subject::commit(&world.db, &jobs).await?;
    Ok(world)
}

async fn rest(mut crew: Crew<'_>, world: &World, finding: &mut Finding) -> Result<()> {
    crew.settle().await?;
    finding.violate_all(invariants::broken_with_subject(&world.db).await?);
    Ok(())
}

/// SQS will never take this body. Its job must not wait for a bell that can not ring; its neighbours' do.
async fn refused(stand: &Stand) -> Result<Finding> {
    let world = world_of(stand, RECEIVES_MAX, &["succeed", "succeed", "succeed"]).await?;
    let mut finding = Finding::default();
    sqlx::query(
        "update outbox_event set body = '' where sequence = (select min(sequence) from outbox_event)",
    )
    .execute(&world.db)
    .await?;
    let mut crew = Crew::new(&world, Consumers::Subject);
    crew.relay().await?;
    finding.expect(
        "events_dead",
        world.count("select count(*) from outbox_event where status = 'DEAD'").await?,
        1,
    );
    let dead = "select count(*) from job where status = 'DEAD' and dead_reason = 'UNSENDABLE'";
    finding.expect("jobs_unsendable", world.count(dead).await?, 1);
    crew.consume().await?;
    finding.expect("succeeded", world.count("select count(*) from job where status = 'SUCCEEDED'").await?, 2);
    let waiting = "select count(*) from job where finished_at is null";
    finding.expect("waiting", world.count(waiting).await?, 0);
    rest(crew, &world, &mut finding).await?;
    world.end().await?;
    Ok(finding)
}

/// One message lives through everything that costs receives: throttled deliveries, a held row, a job that
/// is early, and each attempt failing. It must end by its attempts while receives are left.
async fn throttled(stand: &Stand) -> Result<Finding> {
    let world = world_of(stand, RECEIVES_MAX, &["fail"]).await?;
    let mut finding = Finding::default();
    let mut crew = Crew::new(&world, Consumers::Subject);
    crew.relay().await?;
    for _ in 0..THROTTLED {
        // The mapping has the message, and no sandbox to hand it to.
        crew.mapping(DESTINATION).receive().await?;
        crew.mapping(DESTINATION).time_passes().await;
    }
    for claimed in [
        "update job set status = 'CLAIMED', attempt_count = 1, claimed_by = gen_random_uuid(), \
                        lease_until = now() + interval '1 hour'",
        "update job set status = 'RETRY', claimed_by = null, lease_until = null, \
                        next_attempt_at = now() + interval '1 hour'",
    ] {
        sqlx::query(claimed).execute(&world.db).await?;
        crew.consume().await?;
        crew.mapping(DESTINATION).time_passes().await;
    }
    sqlx::query("update job set attempt_count = 0, next_attempt_at = now()").execute(&world.db).await?;
    for _ in 0..ATTEMPTS_MAX {
        crew.consume().await?;
        finding.expect("dead_letters", i64::try_from(world.dead_letters(DESTINATION).depth().await?)?, 0);
        crew.time_passes(STEP).await?;
    }
    let spent = "select count(*) from job where status = 'DEAD' and dead_reason = 'ATTEMPTS_EXHAUSTED'";
    finding.expect("died_of_its_attempts", world.count(spent).await?, 1);
    finding.note("deliveries", i64::try_from(crew.counts().deliveries)?);
    rest(crew, &world, &mut finding).await?;
    world.end().await?;
    Ok(finding)
}

/// It reaches the dead-letter queue by its receives, is kept there, and its evidence is kept once.
async fn unreadable(stand: &Stand) -> Result<Finding> {
    let world = world_of(stand, RECEIVES_FEW, &["succeed"]).await?;
    let mut finding = Finding::default();
    let unknown = subject::job_id("nobody", 0);
    let bodies = [
        "no message".to_owned(),
        json!({ "version": 99 }).to_string(),
        domain::Message::new("subject", unknown, 0).to_body(),
        domain::Message::new("subject", subject::job_id("job", 0), 7).to_body(),
    ];
    let count = i64::try_from(bodies.len())?;
    world.queue(DESTINATION).send(&bodies).await?;
    let mut crew = Crew::new(&world, Consumers::Subject);
    crew.relay().await?;
    for _ in 0..=RECEIVES_FEW {
        crew.consume().await?;
        crew.mapping(DESTINATION).time_passes().await;
    }
    finding.expect("succeeded", world.count("select count(*) from job where status = 'SUCCEEDED'").await?, 1);
    finding.expect("in_the_queue", i64::try_from(world.queue(DESTINATION).depth().await?)?, 0);
    for _ in 0..3 {
        crew.bury().await?;
        crew.time_passes(STEP).await?;
    }
    finding.expect("quarantined", world.count("select count(*) from quarantined_message").await?, count);
    finding.expect("dead_letters", i64::try_from(world.dead_letters(DESTINATION).depth().await?)?, count);
    finding.violate_all(invariants::broken_with_subject(&world.db).await?);
    world.end().await?;
    Ok(finding)
}

/// A copy of the first message comes back after a redrive: it is acknowledged, and only the new one runs
/// the handler.
async fn old_message(stand: &Stand) -> Result<Finding> {
    let world = world_of(stand, RECEIVES_MAX, &["refuse"]).await?;
    let mut finding = Finding::default();
    let mut crew = Crew::new(&world, Consumers::Subject);
    crew.relay().await?;
    crew.consume().await?;
    let old: String = sqlx::query_scalar("select body from outbox_event").fetch_one(&world.db).await?;
    sqlx::query("update job set payload = jsonb_set(payload, '{behave}', '\"succeed\"')")
        .execute(&world.db)
        .await?;
    let request = json!({
        "action": "redrive", "job_ids": [subject::job_id("job", 0).as_str()],
        "who": "test", "why": "the handler is mended",
    });
    crew.invoke("operator", request).await?;
    world.queue(DESTINATION).send(&[old]).await?;
    crew.consume().await?;
    finding.expect("runs_for_the_old_one", world.count("select count(*) from subject_run").await? - 1, 0);
    finding.expect("old_messages_left", i64::try_from(world.queue(DESTINATION).depth().await?)?, 0);
    finding.expect("pending", world.count("select count(*) from job where status = 'PENDING'").await?, 1);
    rest(crew, &world, &mut finding).await?;
    finding.expect("succeeded", world.count("select count(*) from job where status = 'SUCCEEDED'").await?, 1);
    world.end().await?;
    Ok(finding)
}
