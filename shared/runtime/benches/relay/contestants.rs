//! Who drains the same rows: the relay, the loop people write first, and one UPDATE a commit.

use std::fmt;
use std::time::{Duration, Instant};

use futures::future::join_all;
use runtime::relay::{Relay, Route, Settings};
use sqlx::PgPool;

use crate::publisher::Publisher;
use crate::server::Server;
use crate::{IN_FLIGHT, LANES};

/// Who drains, and what.
pub enum Contestant {
    /// The relay.
    Relay { latency: Duration, events: usize },
    /// Ten rows in a transaction under SKIP LOCKED, sent inside it, marked one by one; one loop a lane.
    Naive { latency: Duration, events: usize },
    /// One row in an UPDATE and a commit, eight connections: what a row by row relay could not exceed.
    RawUpdate { events: usize },
}

/// What one run showed.
pub struct Figures {
    /// Events a second.
    pub rate: f64,
    /// Statements for 1,000 events, BEGIN and COMMIT included.
    pub statements: f64,
    /// Commits that write, for 1,000 events.
    pub commits: f64,
    /// WAL bytes for an event.
    pub wal: f64,
}

impl Contestant {
    /// Fills the lanes, drains them, and checks that everything was drained.
    pub async fn run(&self, server: &Server) -> Figures {
        let (Self::Relay { events, .. } | Self::Naive { events, .. } | Self::RawUpdate { events }) = *self;
        server.fill(&LANES, events).await;
        let before = server.meter().await;
        let began = Instant::now();
        let statements = match *self {
            Self::Relay { latency, .. } => relay(&server.db, latency).await,
            Self::Naive { latency, .. } => {
                join_all(LANES.map(|lane| naive(&server.db, lane, latency))).await.iter().sum()
            }
            Self::RawUpdate { .. } => raw_update(&server.db).await,
        };
        let took = began.elapsed();
        let after = server.meter().await;
        assert_eq!(server.published().await, i64::try_from(events).unwrap());
        let (events, commits) = (events as f64, (after.0 - before.0) as f64);
        // Each of the relay's statements is its own transaction: its reads, and those that write.
        let statements =
            if let Self::Relay { .. } = self { statements as f64 + commits } else { statements as f64 };
        Figures {
            rate: events / took.as_secs_f64(),
            statements: 1_000.0 * statements / events,
            commits: 1_000.0 * commits / events,
            wal: (after.1 - before.1) as f64 / events,
        }
    }
}

impl fmt::Display for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Relay { latency, .. } => write!(f, "relay, {latency:?} a call"),
            Self::Naive { latency, .. } => write!(f, "naive loop, {latency:?} a call"),
            Self::RawUpdate { .. } => write!(f, "raw UPDATE, 8 connections"),
        }
    }
}

/// The relay's settings for the lanes here, once over.
pub fn settings() -> Settings {
    let route =
        |lane: &str| Route { destination: lane.to_owned(), queue_url: format!("https://sqs/1/{lane}") };
    Settings {
        linger: Duration::ZERO,
        in_flight: IN_FLIGHT.div_ceil(LANES.len()),
        ..Settings::new(LANES.iter().map(|lane| route(lane)).collect())
    }
}

/// Drains, and says how many reads it took.
async fn relay(db: &PgPool, latency: Duration) -> u64 {
    let relay = Relay::new(db.clone(), Publisher::new(latency), settings());
    let report = relay.run(Duration::from_mins(10)).await.unwrap();
    report.destinations.values().map(|lane| lane.looks).sum()
}

/// Drains, and says how many statements it took.
async fn naive(db: &PgPool, lane: &str, latency: Duration) -> u64 {
    let publisher = Publisher::new(latency);
    let mut statements = 0;
    loop {
        let mut tx = db.begin().await.unwrap();
        let rows: Vec<(String, String)> = sqlx::query_as(
            "select event_id, body from outbox_event
              where destination = $1 and status = 'NEW' and next_attempt_at <= now()
              order by next_attempt_at, sequence limit 10 for update skip locked",
        )
        .bind(lane)
        .fetch_all(&mut *tx)
        .await
        .unwrap();
        publisher.call().await;
        for (event_id, _) in &rows {
            mark_one(&mut tx, event_id).await;
        }
        tx.commit().await.unwrap();
        statements += 3 + rows.len() as u64;
        if rows.is_empty() {
            return statements;
        }
    }
}

async fn raw_update(db: &PgPool) -> u64 {
    let ids: Vec<String> =
        sqlx::query_scalar("select event_id from outbox_event").fetch_all(db).await.unwrap();
    let share = ids.len().div_ceil(8);
    let writers = ids.chunks(share).map(async |ids| {
        let mut db = db.acquire().await.unwrap();
        for id in ids {
            mark_one(&mut db, id).await;
        }
    });
    join_all(writers).await;
    ids.len() as u64
}

async fn mark_one(db: &mut sqlx::PgConnection, event_id: &str) {
    sqlx::query("update outbox_event set status = 'PUBLISHED', published_at = now() where event_id = $1")
        .bind(event_id)
        .execute(db)
        .await
        .unwrap();
}
