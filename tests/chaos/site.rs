//! A world with proxies in front of its servers, and what is remembered of what happens there.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::JobId;
use serde_json::{Value, json};
use system_tests::crew::Consumers;
use system_tests::mapping::{Counts, InFlight};
use system_tests::market::Market;
use system_tests::plan::Happening;
use system_tests::proxy::Proxy;
use system_tests::queue::Queue;
use system_tests::sandbox::Invoked;
use system_tests::sqs_proxy::{SqsProxy, Weather};
use system_tests::subject::DESTINATION;
use system_tests::world::{Environment, FUNCTION_TIMEOUT, Stand, World};
use system_tests::{Result, subject};

use crate::journal::Journal;
use crate::worker::Worker;

/// Receives until a queue gives a message up: few, so that the dead letters have work.
const RECEIVES_MAX: u32 = 6;

/// A sweeper that deletes, and is far too hasty: its protocol does not depend on its patience, and
/// collectors are frozen for longer than this grace.
const SWEEPER: [(&str, &str); 4] = [
    ("SWEEP_DELETE", "true"),
    ("SWEEP_GRACE_SECONDS", "1"),
    ("SWEEP_LONGEST_WRITE_SECONDS", "0"),
    ("SWEEP_MAX_ORPHAN_RATIO", "1"),
];

/// One site.
pub struct Site {
    /// For people.
    pub name: &'static str,
    /// Who consumes.
    pub consumers: Consumers,
    /// Database, queues, bucket.
    pub world: World,
    /// What the components take for PostgreSQL.
    pub database: Arc<Proxy>,
    /// What they take for SQS.
    pub queues: SqsProxy,
    /// How often what happened.
    pub happened: Mutex<BTreeMap<&'static str, u64>>,
    /// Of all mappings together.
    pub counts: Mutex<Counts>,
    /// The jobs of which a producer said that they are committed.
    pub promised: Mutex<BTreeSet<JobId>>,
    journal: Arc<Journal>,
    market: Mutex<Market>,
    in_flight: Mutex<Vec<(Queue, InFlight)>>,
}

impl Site {
    /// A site at which nothing has happened.
    ///
    /// # Errors
    ///
    /// A server refuses.
    pub async fn open(
        stand: &Stand,
        name: &'static str,
        consumers: Consumers,
        journal: &Arc<Journal>,
    ) -> Result<Self> {
        let world = stand.world_with(name, RECEIVES_MAX).await?;
        world.keep_commits().await?;
        if consumers == Consumers::Subject {
            subject::create_tables(&world.db).await?;
        }
        let endpoint = std::env::var("AWS_ENDPOINT_URL")?;
        let site = Self {
            name,
            consumers,
            database: Arc::new(Proxy::start(&world.server).await?),
            queues: SqsProxy::start(&endpoint).await?,
            happened: Mutex::default(),
            counts: Mutex::default(),
            promised: Mutex::default(),
            journal: Arc::clone(journal),
            market: Mutex::new(Market::open(&world)?),
            in_flight: Mutex::default(),
            world,
        };
        site.adopt().await?;
        Ok(site)
    }

    /// The sweeper adopts the bucket while it is empty.
    async fn adopt(&self) -> Result<()> {
        let environment = self.environment("sweeper", DESTINATION);
        let mut sweeper = self.world.start("sweeper", &environment).await?;
        match sweeper.invoke(json!({}), FUNCTION_TIMEOUT).await {
            Invoked::Answered(report) if report["adopted"] == true => Ok(()),
            other => Err(format!("the bucket was not adopted: {other:?}").into()),
        }
    }

    /// What `component` is started with: both servers are behind their proxies.
    pub fn environment(&self, component: &str, destination: &str) -> Environment {
        let environment = self
            .world
            .environment_for(component, destination)
            .through(self.database.address())
            .with("AWS_ENDPOINT_URL_SQS", self.queues.url())
            .with("RELAY_LINGER_SECONDS", "1");
        SWEEPER.into_iter().fold(environment, |environment, (name, value)| environment.with(name, value))
    }

    /// The function that consumes `destination`.
    pub fn consumer(&self, destination: &str) -> String {
        match self.consumers {
            Consumers::Subject => "subject".to_owned(),
            Consumers::Product => format!("{destination}-consumer"),
        }
    }

    /// Does something to the market's files.
    pub fn market(&self, change: impl FnOnce(&mut Market) -> Result<Value>) -> Result<Value> {
        change(&mut lock(&self.market))
    }

    /// Takes down what somebody here does.
    pub fn say(&self, who: impl Display, what: impl Display) {
        self.journal.note(format_args!("{:6} {who}", self.name), what);
    }

    /// A producer was told that these jobs of the subject are committed.
    pub fn promise(&self, name: &str, count: i64) {
        lock(&self.promised).extend((0..count).map(|number| subject::job_id(name, number)));
    }

    /// Counts what happens, and takes down to whom.
    pub fn note(&self, what: Happening, whom: Option<&Worker>) {
        self.say(whom.map_or_else(|| "-".to_owned(), Worker::to_string), format_args!("{what:?}"));
        let kind = match what {
            Happening::Kill(_) => "kills",
            Happening::Freeze(..) => "freezes",
            Happening::EndSession(_) => "sessions_ended",
            Happening::LoseCommit => "commits_to_lose",
            Happening::DatabaseAway(_) => "database_away",
            Happening::Crash => "database_crashes",
            Happening::TimePasses(_) => "leaps_of_time",
            Happening::Weather(_) => "changes_of_weather",
        };
        *lock(&self.happened).entry(kind).or_default() += 1;
    }

    /// Adds what a mapping counted.
    pub fn count(&self, counts: Counts) {
        let mut sum = lock(&self.counts);
        *sum = *sum + counts;
    }

    /// Remembers what a mapping has on its way.
    pub fn watch(&self, in_flight: (Queue, InFlight)) {
        lock(&self.in_flight).push(in_flight);
    }

    /// Leases, back-offs and visibility timeouts come nearer, also those of whoever is frozen.
    ///
    /// # Errors
    ///
    /// The database is away.
    pub async fn time_passes(&self, by: Duration) -> Result<()> {
        self.world.time_passes(by).await?;
        let in_flight = lock(&self.in_flight).clone();
        for (queue, in_flight) in in_flight {
            in_flight.time_passes(&queue).await;
        }
        Ok(())
    }

    /// Nothing happens any more.
    pub fn calm(&self) {
        self.database.come_back();
        self.queues.set(Weather::Calm);
    }
}

/// What `mutex` guards, also when somebody panicked over it.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
