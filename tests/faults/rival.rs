//! Two who believe the same at the same time, and one who dies just before it does what was promised.

use serde_json::json;
use system_tests::crew::{Consumers, Crew};
use system_tests::mapping::Batch;
use system_tests::runtime_api::Answer;
use system_tests::sandbox::{Invoked, Sandbox};
use system_tests::subject::{self, DESTINATION};
use system_tests::world::{FUNCTION_TIMEOUT, Stand, World};
use system_tests::{Result, invariants};
use tokio::sync::oneshot::Receiver;

use crate::Scenario;
use crate::report::Finding;

/// All of them.
pub fn all(stand: &Stand) -> Vec<(&'static str, Scenario<'_>)> {
    vec![
        ("two sandboxes believe to hold one claim", Box::pin(two_holders(stand)) as Scenario),
        ("relay dies before it sends", Box::pin(dies_before_send(stand))),
    ]
}

/// A consumer that froze right before it completes.
struct Frozen {
    sandbox: Sandbox,
    batch: Batch,
    answer: Receiver<Answer>,
}

impl Frozen {
    async fn new(world: &World, crew: &mut Crew<'_>) -> Result<Self> {
        let environment = world.environment(DESTINATION).with_fault("job::complete.before:stop:1");
        let mut sandbox = world.start("subject", &environment).await?;
        let mapping = crew.mapping(DESTINATION);
        let batch = mapping.receive().await?.ok_or("no message")?;
        let answer = sandbox.begin(mapping.event(&batch), FUNCTION_TIMEOUT);
        sandbox.frozen().await?;
        Ok(Self { sandbox, batch, answer })
    }

    /// It goes on, and what it answers is done.
    async fn thaw(self, crew: &mut Crew<'_>) -> Result<()> {
        self.sandbox.thaw();
        let answered = tokio::time::timeout(FUNCTION_TIMEOUT, self.answer).await??;
        let invoked = answered.map_or_else(Invoked::Failed, Invoked::Answered);
        crew.mapping(DESTINATION).settle(&self.batch, &invoked).await
    }
}

/// The first one's lease ends while it is frozen, a second one claims and freezes as well. The first
/// must change nothing, acknowledge nothing and leave no effect; the second finishes.
async fn two_holders(stand: &Stand) -> Result<Finding> {
    let world = stand.world("rival").await?;
    subject::create_tables(&world.db).await?;
    subject::commit(&world.db, &[subject::job("job", 0, "succeed")]).await?;
    let mut finding = Finding::default();
    let mut crew = Crew::new(&world, Consumers::Subject);
    crew.relay().await?;
    let first = Frozen::new(&world, &mut crew).await?;
    // Only the lease ends: a session that ended would say less about the guards.
    sqlx::query("update job set lease_until = now() - interval '1 second'").execute(&world.db).await?;
    crew.mapping(DESTINATION).time_passes().await;
    let second = Frozen::new(&world, &mut crew).await?;

    first.thaw(&mut crew).await?;
    let claimed = "select count(*) from job where status = 'CLAIMED' and attempt_count = 2";
    finding.expect("claimed_by_the_second", world.count(claimed).await?, 1);
    finding.expect("effects_of_the_first", world.count("select count(*) from subject_effect").await?, 0);
    finding.expect("messages", i64::try_from(world.queue(DESTINATION).depth().await?)?, 1);

    second.thaw(&mut crew).await?;
    finding.expect("succeeded", world.count("select count(*) from job where status = 'SUCCEEDED'").await?, 1);
    finding.expect("effects", world.count("select count(*) from subject_effect").await?, 1);
    crew.settle().await?;
    finding.violate_all(invariants::broken_with_subject(&world.db).await?);
    world.end().await?;
    Ok(finding)
}

/// Nothing was sent, so nothing may be marked: the next relay sends, and no reconciler is needed.
async fn dies_before_send(stand: &Stand) -> Result<Finding> {
    let world = stand.world("rival").await?;
    subject::create_tables(&world.db).await?;
    let jobs: Vec<_> = (0..10).map(|number| subject::job("job", number, "succeed")).collect();
    subject::commit(&world.db, &jobs).await?;
    let mut finding = Finding::default();
    let environment = world.environment(DESTINATION).with_fault("sqs::send_message_batch.before:kill:1");
    let mut relay = world.start("relay", &environment).await?;
    let ended = relay.invoke(json!({}), FUNCTION_TIMEOUT).await;
    if !ended.was_killed() {
        finding.violate(format!("it did not die: {ended:?}"));
    }
    let published = world.count("select count(*) from outbox_event where status = 'PUBLISHED'").await?;
    finding.expect("published", published, 0);
    world.time_passes(system_tests::crew::STEP).await?;
    let mut crew = Crew::new(&world, Consumers::Subject);
    crew.relay().await?;
    finding.expect("sent", i64::try_from(world.queue(DESTINATION).depth().await?)?, 10);
    crew.settle().await?;
    finding.violate_all(invariants::broken_with_subject(&world.db).await?);
    world.end().await?;
    Ok(finding)
}
