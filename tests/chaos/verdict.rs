//! Calm: everybody finishes, and then it is counted what was lost, half done or done twice.
//!
//! A job that used up its attempts because of what happened gets them once more in calm weather; after
//! that one is only dead because it is meant to be.

use std::time::Duration;

use serde_json::{Map, Value, json};
use system_tests::crew::{Consumers, Crew};
use system_tests::{Result, invariants};
use tokio::time::Instant;

use crate::site::{Site, lock};

/// The dataset of the market.
const DATASET: &str = "us8";
/// Longest wait for a server that recovers from a crash.
const RECOVERY_MAX: Duration = Duration::from_mins(1);
/// Jobs in one request to redrive.
const REDRIVEN_MAX: usize = 1_000;
/// Dead jobs that had no reason of their own to die.
const VICTIMS: &str = "select job_id from job where status = 'DEAD' and dead_reason <> 'STALE' \
                       and coalesce(payload ->> 'behave', 'succeed') not in ('fail', 'refuse', 'kill', 'panic') \
                       order by job_id";

/// Lets everything at `site` come to rest, and gives the figures and what is violated.
pub async fn close(site: Site) -> (Value, Vec<String>) {
    let (figures, mut violations) = match rest(&site).await {
        Ok(found) => found,
        Err(error) => (Value::Null, vec![error.to_string()]),
    };
    let name = site.name;
    if violations.is_empty() {
        violations.extend(site.world.end().await.err().map(|error| error.to_string()));
    }
    (figures, violations.into_iter().map(|violation| format!("{name}: {violation}")).collect())
}

async fn rest(site: &Site) -> Result<(Value, Vec<String>)> {
    recovered(site).await?;
    // Also for what nobody works on any more.
    site.time_passes(Duration::ZERO).await?;
    let mut crew = Crew::new(&site.world, site.consumers);
    crew.settle().await?;
    let redriven = redrive_victims(site, &mut crew).await?;
    let mut broken = match site.consumers {
        Consumers::Subject => invariants::broken_with_subject(&site.world.db).await?,
        Consumers::Product => invariants::broken_with_market(&site.world).await?,
    };
    if lock(&site.counts).bad_answers > 0 {
        broken.push("a function named a message that it was not given".to_owned());
    }
    let mut figures = figures(site).await?;
    figures.insert("redriven_in_calm".to_owned(), json!(redriven));
    for (name, count) in verdict(site).await? {
        if count != 0 {
            broken.push(format!("{name}: {count}"));
        }
        figures.insert(name.to_owned(), json!(count));
    }
    Ok((Value::Object(figures), broken))
}

/// The server may be recovering from its last crash.
async fn recovered(site: &Site) -> Result<()> {
    let started = Instant::now();
    while let Err(error) = sqlx::query("select").execute(&site.world.db).await {
        if started.elapsed() > RECOVERY_MAX {
            return Err(error.into());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// An operator lets those run again that died of what happened. Gives how many.
async fn redrive_victims(site: &Site, crew: &mut Crew<'_>) -> Result<usize> {
    let victims: Vec<String> = sqlx::query_scalar(VICTIMS).fetch_all(&site.world.db).await?;
    for ids in victims.chunks(REDRIVEN_MAX) {
        let request = json!({ "action": "redrive", "job_ids": ids, "who": "chaos", "why": "it is calm" });
        crew.invoke("operator", request).await?;
    }
    if !victims.is_empty() {
        crew.settle().await?;
    }
    Ok(victims.len())
}

/// What must be zero.
async fn verdict(site: &Site) -> Result<[(&'static str, i64); 5]> {
    let (applied_twice, contradictions) = effects(site).await?;
    let victims: Vec<String> = sqlx::query_scalar(VICTIMS).fetch_all(&site.world.db).await?;
    Ok([
        ("lost", lost(site).await?),
        ("partial", partial(site).await?),
        ("applied_twice", applied_twice),
        ("contradictions", contradictions),
        ("dead_without_a_reason", i64::try_from(victims.len())?),
    ])
}

/// Jobs that were promised and are not there, and those that are not finished.
async fn lost(site: &Site) -> Result<i64> {
    let db = &site.world.db;
    let promised: Vec<_> = match site.consumers {
        Consumers::Subject => lock(&site.promised).iter().cloned().collect(),
        Consumers::Product => intraday::audit::implied_jobs(db, DATASET).await?,
    };
    let absent = store::audit::absent(db, &promised).await?.len();
    let unfinished = site.world.count("select count(*) from job where finished_at is null").await?;
    Ok(i64::try_from(absent)? + unfinished)
}

/// Halves without their other half: jobs, events, and artifacts in the bucket.
async fn partial(site: &Site) -> Result<i64> {
    let halves = "select (select count(*) from job where not exists (select from outbox_event event \
                            where event.job_id = job.job_id and event.redrive_generation = job.redrive_generation)) \
                       + (select count(*) from outbox_event event where not exists (select from job \
                            where job.job_id = event.job_id))";
    let absent_objects = site.world.absent_objects().await?.len();
    Ok(site.world.count(halves).await? + i64::try_from(absent_objects)?)
}

/// Effects that are there more than once, and those that do not follow from what was committed.
async fn effects(site: &Site) -> Result<(i64, i64)> {
    match site.consumers {
        Consumers::Subject => {
            let twice = "select count(*) - count(distinct job_id) from subject_effect";
            Ok((site.world.count(twice).await?, 0))
        }
        Consumers::Product => {
            let found = intraday::audit::miscounted(&site.world.db).await?;
            let contradictions = found.unexplained + found.outdated_explanations + found.outdated_items;
            Ok((found.mention_buckets, contradictions))
        }
    }
}

async fn figures(site: &Site) -> Result<Map<String, Value>> {
    let count = async |query| site.world.count(query).await;
    let counts = *lock(&site.counts);
    let figures = json!({
        "site": site.name,
        "jobs": count("select count(*) from job").await?,
        "succeeded": count("select count(*) from job where status = 'SUCCEEDED'").await?,
        "dead": count("select count(*) from job where status = 'DEAD'").await?,
        "events": count("select count(*) from outbox_event").await?,
        "rings": count("select coalesce(sum(ring), 0)::bigint from outbox_event").await?,
        "redrives": count("select coalesce(sum(redrive_generation), 0)::bigint from job").await?,
        "artifacts": count("select count(*) from artifact where state = 'REFERENCED'").await?,
        "artifacts_reclaimed": count("select count(*) from artifact where state = 'RECLAIMED'").await?,
        "attempts": count("select coalesce(sum(attempt_count), 0)::bigint from job").await?,
        "deliveries": counts.deliveries,
        "failed_batches": counts.failed_batches,
        "commits_lost": site.database.swallowed(),
        "calls_in_bad_weather": site.queues.met(),
        "happened": lock(&site.happened).clone(),
    });
    match figures {
        Value::Object(figures) => Ok(figures),
        other => Err(format!("no figures: {other}").into()),
    }
}
