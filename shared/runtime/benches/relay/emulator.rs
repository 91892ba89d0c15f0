//! The relay through the SDK against an emulator: slower, and true to the protocol.

use std::time::{Duration, Instant};

use runtime::relay::sqs::Sqs;
use runtime::relay::{Relay, Route, Settings};

use crate::LANES;
use crate::contestants;
use crate::server::Server;

/// Kept small: an emulator's receive is slow behind a deep queue.
const EVENTS: usize = 1_500;

/// Drains once into real queues, and counts what arrived.
pub async fn measure(server: &Server) {
    let aws = runtime::aws::load().await;
    let client = runtime::aws::sqs(&aws);
    let mut routes = Vec::new();
    for lane in LANES {
        let queue = client.create_queue().queue_name(format!("bench-{lane}")).send().await.unwrap();
        routes.push(Route { destination: lane.to_owned(), queue_url: queue.queue_url.unwrap() });
    }
    server.fill(&LANES, EVENTS).await;
    let settings = Settings { routes: routes.clone(), ..contestants::settings() };
    let relay = Relay::new(server.db.clone(), Sqs::new(&aws, settings.send_timeout), settings);
    let began = Instant::now();
    let report = relay.run(Duration::from_mins(5)).await.unwrap();
    let took = began.elapsed();
    for lane in report.destinations.values() {
        assert_eq!(lane.published, (EVENTS / LANES.len()) as u64, "{lane:?}");
    }
    println!("\nemulator: {EVENTS} events in {took:.1?}, {:.0} events/s", EVENTS as f64 / took.as_secs_f64());
    for route in routes {
        client.delete_queue().queue_url(route.queue_url).send().await.unwrap();
    }
}
