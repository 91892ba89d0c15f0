//! The relay against the naive loop and the raw UPDATE, in one alternating run; then its latency, and what
//! it reads in bad weather at full size.
//!
//! ```text
//! BENCH_DATABASE_URL=postgres://…/ cargo bench -p runtime --bench relay [-- drain latency weather emulator]
//! ```
//!
//! The server should be nobody else's and have fsync on, which the local stack's has not (then name
//! another one): without it a commit costs nothing, and those who commit often look better. A database `bench_relay` is made and dropped.
//! Counts are asserted, rates only reported. `BENCH_EVENTS`, `BENCH_ROUNDS`, `BENCH_HISTORY` and
//! `BENCH_BACKOFF` change the sizes; `emulator` needs `AWS_ENDPOINT_URL` and credentials.

#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark that can not go on has failed"
)]

mod contestants;
mod emulator;
mod latency;
mod publisher;
mod server;
mod weather;

use std::time::Duration;

use self::contestants::{Contestant, Figures};
use self::server::Server;

/// Calls in flight over all lanes, and how long each takes, where calls take time.
pub const IN_FLIGHT: usize = 64;
/// What a call takes where it takes time.
pub const SEND: Duration = Duration::from_millis(10);
/// The lanes that are drained side by side.
pub const LANES: [&str; 3] = ["explain", "news", "price"];

#[tokio::main]
async fn main() {
    let chosen: Vec<_> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_chosen = |name: &str| chosen.is_empty() || chosen.iter().any(|one| one == name);
    let server = Server::start().await;
    server.describe().await;
    if is_chosen("drain") {
        drain(&server).await;
    }
    if is_chosen("latency") {
        latency::measure(&server).await;
    }
    if is_chosen("weather") {
        weather::measure(&server).await;
    }
    if is_chosen("emulator") && std::env::var_os("AWS_ENDPOINT_URL").is_some() {
        emulator::measure(&server).await;
    }
    server.stop().await;
}

/// Everybody in turn, round by round; the first round warms up and does not count.
async fn drain(server: &Server) {
    let events = server::size("BENCH_EVENTS", 60_000);
    let contestants = [
        Contestant::Relay { latency: Duration::ZERO, events },
        Contestant::Naive { latency: Duration::ZERO, events: events / 4 },
        Contestant::RawUpdate { events: events / 4 },
        Contestant::Relay { latency: SEND, events },
        Contestant::Naive { latency: SEND, events: events / 20 },
    ];
    let mut rounds: Vec<Vec<Figures>> = Vec::new();
    for round in 0..=server::size("BENCH_ROUNDS", 5) {
        let mut figures = Vec::new();
        for contestant in &contestants {
            figures.push(contestant.run(server).await);
        }
        if round > 0 {
            rounds.push(figures);
        }
    }
    println!(
        "\n| | events/s | statements per 1,000 | commits that write per 1,000 | WAL bytes/event |\n|---|---|---|---|---|"
    );
    for (place, contestant) in contestants.iter().enumerate() {
        let column = |value: fn(&Figures) -> f64| spread(rounds.iter().map(|round| value(&round[place])));
        let (rate, statements) = (column(|figures| figures.rate), column(|figures| figures.statements));
        let (commits, wal) = (column(|figures| figures.commits), column(|figures| figures.wal));
        println!("| {contestant} | {rate} | {statements} | {commits} | {wal} |");
    }
    let ratio =
        |one: usize, other: usize| spread(rounds.iter().map(|round| round[one].rate / round[other].rate));
    println!("\nrelay / naive loop, instant: {} (goal: median 7)", ratio(0, 1));
    println!("relay / raw UPDATE, instant: {} (goal: median 10)", ratio(0, 2));
    let ceiling = IN_FLIGHT as f64 * 10.0 / SEND.as_secs_f64();
    let share = spread(rounds.iter().map(|round| 100.0 * round[3].rate / ceiling));
    println!("relay, share of what {IN_FLIGHT} x 10 per {SEND:?} allows, in %: {share} (goal: 85)");
}

/// Minimum / median / maximum, small numbers with a decimal.
pub fn spread(values: impl Iterator<Item = f64>) -> String {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    let text = |value: f64| if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") };
    let (first, last) = (values.first().copied(), values.last().copied());
    let (first, last) = (first.unwrap_or_default(), last.unwrap_or_default());
    format!("{} / {} / {}", text(first), text(values[values.len() / 2]), text(last))
}
