//! The relay in front of an SQS that throttles, fails, forgets and loses answers, by process.

use serde_json::json;
use system_tests::crew::{Consumers, Crew, STEP};
use system_tests::sandbox::Invoked;
use system_tests::sqs_proxy::{SqsProxy, Weather};
use system_tests::subject::{self, DESTINATION};
use system_tests::world::{FUNCTION_TIMEOUT, Stand, World};
use system_tests::{Result, invariants};

use crate::Scenario;
use crate::report::Finding;

/// Jobs of a scenario: two calls, so that one of them can meet no weather.
const JOBS: i64 = 20;

/// All of them.
pub fn all(stand: &Stand) -> Vec<(&'static str, Scenario<'_>)> {
    let lane = "trouble of the lane";
    let event = "trouble of an entry";
    vec![
        ("SQS throttles", Box::pin(storm(stand, Weather::Throttle, lane)) as Scenario),
        ("SQS answers with a server's error", Box::pin(storm(stand, Weather::ServerError, lane))),
        ("SQS loses its answers", Box::pin(storm(stand, Weather::LoseAnswer, lane))),
        ("SQS fails every second entry", Box::pin(storm(stand, Weather::PartialFailure, event))),
        ("SQS forgets every second entry", Box::pin(storm(stand, Weather::Forget, event))),
    ]
}

/// A relay meets the weather, then calm: nothing is lost, and only an entry's own trouble counts for it.
async fn storm(stand: &Stand, weather: Weather, whose: &str) -> Result<Finding> {
    let world = stand.world("weather").await?;
    subject::create_tables(&world.db).await?;
    let jobs: Vec<_> = (0..JOBS).map(|number| subject::job("job", number, "succeed")).collect();
    subject::commit(&world.db, &jobs).await?;
    let mut finding = Finding::default();
    relay_in(&world, weather, &mut finding).await?;

    let burnt = world.count("select count(*) from outbox_event where attempt_count > 0").await?;
    let new = world.count("select count(*) from outbox_event where status = 'NEW'").await?;
    let backs_off = world.count("select count(*) from lane where failure_count > 0").await?;
    if whose == "trouble of the lane" {
        finding.expect("events_that_count_it", burnt, 0);
        finding.expect("not_marked", new, JOBS);
        finding.expect("lanes_backing_off", backs_off, 1);
    } else {
        finding.expect("events_that_count_it", burnt, JOBS / 2);
        finding.expect("not_marked", new, JOBS / 2);
        finding.expect("lanes_backing_off", backs_off, 0);
    }
    rest(&world, &mut finding).await?;
    world.end().await?;
    Ok(finding)
}

/// One drain in the weather; it must answer, whatever it met.
async fn relay_in(world: &World, weather: Weather, finding: &mut Finding) -> Result<()> {
    let proxy = SqsProxy::start(&std::env::var("AWS_ENDPOINT_URL")?).await?;
    proxy.set(weather);
    let environment = world.environment(DESTINATION).with("AWS_ENDPOINT_URL_SQS", proxy.url());
    let mut relay = world.start("relay", &environment).await?;
    let ended = relay.invoke(json!({}), FUNCTION_TIMEOUT).await;
    if !matches!(ended, Invoked::Answered(_)) {
        finding.violate(format!("the relay did not answer: {ended:?}"));
    }
    if proxy.met() == 0 {
        finding.violate("no call met the weather");
    }
    Ok(())
}

/// In calm weather everything arrives.
async fn rest(world: &World, finding: &mut Finding) -> Result<()> {
    let mut crew = Crew::new(world, Consumers::Subject);
    crew.time_passes(STEP).await?;
    crew.settle().await?;
    let succeeded = world.count("select count(*) from job where status = 'SUCCEEDED'").await?;
    finding.expect("succeeded", succeeded, JOBS);
    finding.violate_all(invariants::broken_with_subject(&world.db).await?);
    Ok(())
}
