//! A world with proxies in front of its servers: what happens there, and what is left in the end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use system_tests::crew::{Consumers, Crew};
use system_tests::mapping::{Counts, InFlight};
use system_tests::market::Market;
use system_tests::plan::Happening;
use system_tests::proxy::Proxy;
use system_tests::queue::Queue;
use system_tests::sqs_proxy::{SqsProxy, Weather};
use system_tests::world::{Environment, Stand, World};
use system_tests::{Result, invariants, subject};
use tokio::time::Instant;

/// Receives until a queue gives a message up: few, so that the dead letters have work.
const RECEIVES_MAX: u32 = 6;
/// The dataset of the market.
const DATASET: &str = "us8";
/// Longest wait for a server that recovers from a crash.
const RECOVERY_MAX: Duration = Duration::from_mins(1);

/// One site.
pub struct Site {
    name: &'static str,
    /// Who consumes.
    pub consumers: Consumers,
    /// Database, queues, bucket.
    pub world: World,
    /// What the components take for PostgreSQL.
    pub database: Arc<Proxy>,
    /// What they take for SQS.
    pub queues: SqsProxy,
    market: Mutex<Market>,
    happened: Mutex<BTreeMap<&'static str, u64>>,
    counts: Mutex<Counts>,
    in_flight: Mutex<Vec<(Queue, InFlight)>>,
}

impl Site {
    /// A site at which nothing has happened.
    ///
    /// # Errors
    ///
    /// A server refuses.
    pub async fn open(stand: &Stand, name: &'static str, consumers: Consumers) -> Result<Self> {
        let world = stand.world_with(name, RECEIVES_MAX).await?;
        if consumers == Consumers::Subject {
            subject::create_tables(&world.db).await?;
        }
        let endpoint = std::env::var("AWS_ENDPOINT_URL")?;
        Ok(Self {
            name,
            consumers,
            database: Arc::new(Proxy::start(&world.server).await?),
            queues: SqsProxy::start(&endpoint).await?,
            market: Mutex::new(Market::open(&world)?),
            happened: Mutex::default(),
            counts: Mutex::default(),
            in_flight: Mutex::default(),
            world,
        })
    }

    /// What `component` is started with: both servers are behind their proxies.
    pub fn environment(&self, component: &str, destination: &str) -> Environment {
        self.world
            .environment_for(component, destination)
            .through(self.database.address())
            .with("AWS_ENDPOINT_URL_SQS", self.queues.url())
            .with("RELAY_LINGER_SECONDS", "1")
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

    /// Counts what happens.
    pub fn note(&self, what: Happening) {
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

    /// Lets everything come to rest, and gives the figures and what is violated.
    pub async fn close(self) -> (Value, Vec<String>) {
        let ended = self.rest().await;
        let figures = self.figures().await.unwrap_or_default();
        let mut violations = ended.unwrap_or_else(|error| vec![error.to_string()]);
        if violations.is_empty() {
            violations.extend(self.world.end().await.err().map(|error| error.to_string()));
        }
        (figures, violations.into_iter().map(|violation| format!("{}: {violation}", self.name)).collect())
    }

    async fn rest(&self) -> Result<Vec<String>> {
        self.recovered().await?;
        Crew::new(&self.world, self.consumers).settle().await?;
        let db = &self.world.db;
        let mut broken = match self.consumers {
            Consumers::Subject => invariants::broken_with_subject(db).await?,
            Consumers::Product => [invariants::broken(db).await?, self.contradictions().await?].concat(),
        };
        if lock(&self.counts).bad_answers > 0 {
            broken.push("a function named a message that it was not given".to_owned());
        }
        Ok(broken)
    }

    /// The server may be recovering from its last crash.
    async fn recovered(&self) -> Result<()> {
        let started = Instant::now();
        while let Err(error) = sqlx::query("select").execute(&self.world.db).await {
            if started.elapsed() > RECOVERY_MAX {
                return Err(error.into());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    /// Where the market's effects are not what its committed bars and texts imply.
    async fn contradictions(&self) -> Result<Vec<String>> {
        let db = &self.world.db;
        let implied = intraday::audit::implied_jobs(db, DATASET).await?;
        let absent = store::audit::absent(db, &implied).await?;
        let miscounted = intraday::audit::miscounted(db).await?;
        let mut found = Vec::new();
        if !absent.is_empty() {
            found.push(format!("{} jobs that the committed rows imply are not there", absent.len()));
        }
        if miscounted != intraday::audit::Miscounted::default() {
            found.push(format!("effects contradict each other: {miscounted:?}"));
        }
        Ok(found)
    }

    async fn figures(&self) -> Result<Value> {
        let count = async |query| self.world.count(query).await;
        let counts = *lock(&self.counts);
        let happened = lock(&self.happened).clone();
        Ok(json!({
            "site": self.name,
            "jobs": count("select count(*) from job").await?,
            "succeeded": count("select count(*) from job where status = 'SUCCEEDED'").await?,
            "dead": count("select count(*) from job where status = 'DEAD'").await?,
            "events": count("select count(*) from outbox_event").await?,
            "rings": count("select coalesce(sum(ring), 0)::bigint from outbox_event").await?,
            "attempts": count("select coalesce(sum(attempt_count), 0)::bigint from job").await?,
            "deliveries": counts.deliveries,
            "failed_batches": counts.failed_batches,
            "commits_lost": self.database.swallowed(),
            "calls_in_bad_weather": self.queues.met(),
            "happened": happened,
        }))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
