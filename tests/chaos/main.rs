//! `make chaos`: a crowd of real components at work while a seed decides what dies; then calm, then a count.
//!
//! `MINUTES` says how long, `SEED` what happens: the same seed decides the same, and a failing run names
//! its seed and leaves what was decided in a file. Without either it is the short run of `make test`. The
//! table goes to standard error, the JSON to standard output; the exit code is 1 when any property was
//! violated.
//!
//! Two sites share the servers: one whose jobs behave as told, one that collects a market. Nothing here
//! says when a process meets its fate: that is left to the machine, and differs from run to run.

mod conductor;
mod journal;
mod site;
mod verdict;
mod worker;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use system_tests::Result;
use system_tests::crew::Consumers;
use system_tests::plan::plan;
use system_tests::world::Stand;

use journal::Journal;
use site::Site;

/// What the short run lasts, and its seed.
const SMALL: (Duration, u64) = (Duration::from_secs(20), 1);

#[tokio::main]
async fn main() -> Result<()> {
    let (duration, seed) = asked()?;
    let stand = Stand::new().await?;
    let plan = plan(seed, duration);
    let file = stand.components.folder.join(format!("chaos-{seed}.txt"));
    let journal = Arc::new(Journal::open(file, seed, &plan)?);
    let sites = [
        Site::open(&stand, "crowd", Consumers::Subject, &journal).await?,
        Site::open(&stand, "market", Consumers::Product, &journal).await?,
    ];
    eprintln!("seed {seed}: {} things happen in {} s", plan.len(), duration.as_secs());

    let started = Instant::now();
    let mut violations = conductor::run(&sites, &plan, seed, duration).await;
    let mut found = Vec::new();
    for site in sites {
        let (figures, broken) = verdict::close(site).await;
        found.push(figures);
        violations.extend(broken);
    }

    for figures in &found {
        eprintln!("{figures}");
    }
    for violation in &violations {
        eprintln!("violated: {violation}");
    }
    if !violations.is_empty() {
        eprintln!(
            "the same decisions again: make chaos SEED={seed} MINUTES={}; they are in {}",
            duration.as_secs_f64() / 60.0,
            journal.path.display()
        );
    }
    let seconds = started.elapsed().as_secs_f64();
    println!("{}", json!({ "seed": seed, "seconds": seconds, "sites": found, "violations": violations }));
    std::process::exit(i32::from(!violations.is_empty()));
}

/// How long and which seed: asked for in the environment, else the short run. A seed that nobody named is
/// drawn.
fn asked() -> Result<(Duration, u64)> {
    let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
    let (minutes, seed) = (variable("MINUTES"), variable("SEED"));
    if minutes.is_none() && seed.is_none() {
        return Ok(SMALL);
    }
    let bad = |name: &str, text: &str| format!("{name}={text} is no number");
    let minutes = minutes.map_or(Ok(5.0), |text| text.parse().map_err(|_| bad("MINUTES", &text)))?;
    let seed =
        seed.map_or(Ok(fastrand::u64(0..1_000_000)), |text| text.parse().map_err(|_| bad("SEED", &text)))?;
    let duration =
        Duration::try_from_secs_f64(minutes * 60.0).map_err(|_| bad("MINUTES", &minutes.to_string()))?;
    Ok((duration, seed))
}
