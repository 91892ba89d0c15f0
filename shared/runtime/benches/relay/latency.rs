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
    // The relay lingers until everything arrived, and is dropped with its connections then.
    let settings = Settings { linger: Duration::from_hours(1), ..contestants::settings() };
    let relay = Relay::new(server.other_pool().await, Publisher::watching(), settings);
    let writes = async {
        let mut waits = Vec::new();
        for event in 0..events {
            sleep(pause(event)).await;
            let body = format!("{label} {event}");
            testkit::outbox::fill(&server.db, "news", &body, 1, &body).await.unwrap();
            let commit = Instant::now();
            while relay.sender().arrival(&body).is_none() {
                sleep(Duration::from_millis(1)).await;
            }
            waits.push(relay.sender().arrival(&body).unwrap().saturating_duration_since(commit));
        }
        waits
    };
    let mut waits = tokio::select! {
        waits = writes => waits,
        report = relay.run(Duration::from_hours(2)) => panic!("the relay ended: {report:?}"),
    };
    waits.sort();
    let at = |share: usize| waits[(waits.len() - 1) * share / 100].as_secs_f64() * 1_000.0;
    println!("| {label} | {:.1} | {:.1} | {events} |", at(50), at(99));
}
