//! From commit to send, by polling: on a lane that is active and on one that was idle.

use std::time::{Duration, Instant};

use runtime::relay::{Relay, Settings};
use tokio::time::sleep;

use crate::contestants;
use crate::publisher::Publisher;
use crate::server::Server;

/// Commits one event after another and prints how long each took to be sent.
pub async fn measure(server: &Server) {
    println!("\n| lane | commit → sent, p50 ms | p99 ms | events |\n|---|---|---|---|");
    // Spread over the poll's period, so that no phase is favoured.
    one(server, "active", 400, |i| Duration::from_millis(5 + i * 7 % 30)).await;
    one(server, "idle before", 60, |i| Duration::from_millis(1_900 + i * 37 % 211)).await;
}

async fn one(server: &Server, label: &str, events: u64, pause: impl Fn(u64) -> Duration) {
    server.fill(&crate::LANES, 0).await;
    let linger = (0..events).map(&pause).sum::<Duration>() + Duration::from_secs(3);
    let settings = Settings { linger, ..contestants::settings() };
    let relay = Relay::new(server.db.clone(), Publisher::watching(), settings);
    let writes = async {
        let mut commits = Vec::new();
        for event in 0..events {
            sleep(pause(event)).await;
            let body = format!("{label} {event}");
            testkit::outbox::fill(&server.db, "news", &body, 1, &body).await.unwrap();
            commits.push((body, Instant::now()));
        }
        commits
    };
    let (_, commits) = tokio::join!(relay.run(linger * 2), writes);
    let waits = commits.iter().map(|(body, commit)| {
        let arrival = relay.sender().arrival(body).expect("every committed event is sent");
        arrival.saturating_duration_since(*commit)
    });
    let mut waits: Vec<_> = waits.collect();
    waits.sort();
    let at = |share: usize| waits[(waits.len() - 1) * share / 100].as_secs_f64() * 1_000.0;
    println!("| {label} | {:.1} | {:.1} | {events} |", at(50), at(99));
}
