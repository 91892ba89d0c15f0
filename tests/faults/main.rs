//! `make faults`: kills real components at every line that matters, and counts.
//!
//! `N` is how often each reference scenario runs (100 by `make faults`), `POINTS_N` how often each fault
//! point is struck. Without either it is the small run of `make test`. Words on the command line choose
//! the scenarios whose names contain one. The table goes to standard error, the JSON to standard output;
//! the exit code is 1 when any property was violated.

mod hold;
mod odd;
mod outage;
mod points;
mod reference;
mod report;
mod rival;
mod sweep;
mod verdict;
mod weather;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use indicatif::{ProgressBar, ProgressStyle};
use system_tests::Result;
use system_tests::world::Stand;

use report::Finding;

/// Scenarios that run side by side: most of their time they wait.
const SIDE_BY_SIDE: usize = 4;
/// How often in the small run.
const SMALL: u32 = 20;

/// How often.
#[derive(Clone, Copy)]
pub struct Extent {
    /// Repetitions of a reference scenario.
    pub n: u32,
    /// Blows of each kind before and after each fault point. Zero: one blow at each, in turns.
    pub points: u32,
}

type Scenario<'a> = std::pin::Pin<Box<dyn Future<Output = Result<Finding>> + 'a>>;

#[tokio::main]
async fn main() -> Result<()> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let small = number("N").is_none() && number("POINTS_N").is_none();
    let extent = Extent {
        n: number("N").unwrap_or(SMALL),
        points: number("POINTS_N").unwrap_or(if small { 0 } else { 3 }),
    };
    let chosen: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();

    let stand = Stand::new().await?;
    let passed = points::Passed::default();
    let scenarios: Vec<(&str, Scenario)> = reference::all(&stand, extent)
        .into_iter()
        .chain(hold::all(&stand))
        .chain(outage::all(&stand))
        .chain(weather::all(&stand))
        .chain(verdict::all(&stand))
        .chain(rival::all(&stand))
        .chain(odd::all(&stand))
        .chain(points::all(&stand, extent, &passed))
        .chain(sweep::all(&stand, extent, &passed))
        .filter(|(name, _)| chosen.is_empty() || chosen.iter().any(|word| name.contains(word.as_str())))
        .collect();
    let mut findings = run(scenarios).await;
    if chosen.is_empty() {
        findings.push(points::left_out(&passed)?.named("points: every one was passed", Duration::ZERO));
    }

    eprintln!("{}", report::table(&findings));
    println!("{}", report::json(&findings));
    std::process::exit(i32::from(findings.iter().any(Finding::is_violated)));
}

/// Runs them side by side, in order of their names' list; one that can not be carried out is a violation.
async fn run(scenarios: Vec<(&str, Scenario<'_>)>) -> Vec<Finding> {
    let bar = progress(scenarios.len());
    let runs = scenarios.into_iter().map(|(name, scenario)| {
        let bar = bar.clone();
        async move {
            let started = Instant::now();
            let finding = scenario
                .await
                .unwrap_or_else(|error| Finding::failed(&*error))
                .named(name, started.elapsed());
            bar.inc(1);
            bar.set_message(name.to_owned());
            if finding.is_violated() {
                bar.suspend(|| eprintln!("violated: {}", finding.summary()));
            }
            finding
        }
    });
    let findings = stream::iter(runs).buffered(SIDE_BY_SIDE).collect().await;
    bar.finish_and_clear();
    findings
}

fn progress(length: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {elapsed} {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
