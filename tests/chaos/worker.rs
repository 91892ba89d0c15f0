//! One member of the crowd: a component that is started again whenever it died.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use system_tests::Result;
use system_tests::crew::Consumers;
use system_tests::mapping::{Batch, Mapping};
use system_tests::sandbox::{Handle, Sandbox};
use system_tests::subject::DESTINATION;
use system_tests::turns::{self, Produced};
use system_tests::world::{DESTINATIONS, FUNCTION_TIMEOUT, timeout_of};
use tokio::time::Instant;

use crate::site::Site;

/// What a schedule waits between two invocations, in milliseconds; and a mapping that found nothing.
const PAUSE: std::ops::Range<u64> = 20..200;
/// Batches that a mapping holds back at the same time.
const HELD_MAX: usize = 3;
/// Unfinished jobs above which the producer waits.
const UNFINISHED_MAX: i64 = 200;
/// What an operator waits between two redrives, in milliseconds.
const OPERATOR_PAUSE: std::ops::Range<u64> = 1_000..4_000;
/// Jobs that one redrive takes.
const REDRIVEN_MAX: u32 = 3;

/// What it does.
#[derive(Clone, Copy, Debug)]
enum Duty {
    /// Enqueues jobs of the subject.
    Produce,
    /// Collects a market.
    Collect,
    /// Is invoked by a schedule.
    Scheduled(&'static str),
    /// Is handed the messages of a queue.
    Mapped(&'static str),
    /// Is handed the dead letters of a queue.
    DeadLetters(&'static str),
    /// Redrives what used up its attempts.
    Operate,
}

/// One member.
pub struct Worker {
    duty: Duty,
    number: u64,
    seed: u64,
    handle: Mutex<Option<Handle>>,
}

impl Worker {
    /// The process it is now, if it is one.
    pub fn handle(&self) -> Option<Handle> {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Display for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:2} {:?}", self.number, self.duty)
    }
}

/// Everybody at a site; `seed` decides each one's turns.
pub fn crowd(consumers: Consumers, seed: u64) -> Vec<Worker> {
    let duties = match consumers {
        Consumers::Subject => vec![
            Duty::Produce,
            Duty::Scheduled("relay"),
            Duty::Scheduled("relay"),
            Duty::Mapped(DESTINATION),
            Duty::Mapped(DESTINATION),
            Duty::Mapped(DESTINATION),
            Duty::DeadLetters(DESTINATION),
            Duty::Scheduled("reconciler"),
            Duty::Operate,
        ],
        Consumers::Product => {
            let schedules = ["relay", "relay", "reconciler", "sweeper"].map(Duty::Scheduled);
            let queues =
                DESTINATIONS.map(Duty::Mapped).into_iter().chain(DESTINATIONS.map(Duty::DeadLetters));
            [Duty::Collect, Duty::Operate].into_iter().chain(schedules).chain(queues).collect()
        }
    };
    let worker = |(number, duty)| Worker { duty, number, seed, handle: Mutex::default() };
    (1..).zip(duties).map(worker).collect()
}

/// Works until `end`. What it was handed and did not finish comes back at once afterwards.
///
/// # Errors
///
/// The stand itself fails; a component that does is no error.
pub async fn work(site: &Site, worker: &Worker, end: Instant) -> Result<()> {
    match worker.duty {
        Duty::Produce => produce(site, worker, end).await,
        Duty::Collect => collect(Process::new(site, worker, "collector", DESTINATION), end).await,
        Duty::Operate => operate(Process::new(site, worker, "operator", DESTINATION), end).await,
        Duty::Scheduled(component) => {
            let mut process = Process::new(site, worker, component, DESTINATION);
            while Instant::now() < end {
                process.invoke(json!({})).await?;
                pause(PAUSE).await;
            }
            Ok(())
        }
        Duty::Mapped(destination) => {
            let process = Process::new(site, worker, &site.consumer(destination), destination);
            serve(process, site.world.mapping(destination), end).await
        }
        Duty::DeadLetters(destination) => {
            let mapping = Mapping::new(site.world.dead_letters(destination).clone(), FUNCTION_TIMEOUT);
            serve(Process::new(site, worker, "dead-letter", destination), mapping, end).await
        }
    }
}

/// Enqueues batches, each until it was committed, and now and then once more.
async fn produce(site: &Site, worker: &Worker, end: Instant) -> Result<()> {
    for turn in 0.. {
        let produced = turns::produced(worker.seed, worker.number, turn);
        site.say(worker, format_args!("{turn}: {produced:?}"));
        let (mut fault, mut commits) = (produced.fault, 1 + u32::from(produced.again));
        while commits > 0 {
            if Instant::now() >= end {
                return Ok(());
            }
            if !is_behind(site).await && enqueue(site, turn, produced, fault.take()).await? {
                commits -= 1;
            }
            pause(PAUSE).await;
        }
    }
    Ok(())
}

/// Whether there is more to do than the crowd can do: a long run must not end in a long queue.
async fn is_behind(site: &Site) -> bool {
    let unfinished = site.world.count("select count(*) from job where finished_at is null").await;
    // While the database is away the producer finds that out by itself.
    unfinished.is_ok_and(|unfinished| unfinished > UNFINISHED_MAX)
}

/// One process of the producer; whether it said that all was committed.
async fn enqueue(site: &Site, turn: u64, produced: Produced, fault: Option<&str>) -> Result<bool> {
    let name = format!("batch-{turn}");
    let environment = site.environment("subject", DESTINATION);
    let environment = fault.map_or(environment.clone(), |fault| environment.with_fault(fault));
    let count = produced.count.to_string();
    let arguments = ["enqueue", &name, produced.behave, &count];
    let committed = site.world.run_subject(&arguments, &environment).await?.success();
    if committed {
        site.promise(&name, produced.count);
    }
    Ok(committed)
}

/// Collects one day after the other; some are corrected, and some asked for again.
async fn collect(mut process: Process<'_>, end: Instant) -> Result<()> {
    let (site, worker) = (process.site, process.worker);
    let mut turn = 0;
    while Instant::now() < end {
        let news = turns::news(worker.seed, worker.number, turn);
        site.say(worker, format_args!("{turn}: {news:?}"));
        let request = site.market(|market| market.bring(news).map(|()| market.request()))?;
        process.invoke(request).await?;
        turn += 1;
        pause(PAUSE).await;
    }
    Ok(())
}

/// Redrives some of the jobs that used up their attempts, every few seconds.
async fn operate(mut process: Process<'_>, end: Instant) -> Result<()> {
    let filter = json!({ "reason": "ATTEMPTS_EXHAUSTED" });
    let request = json!({ "action": "redrive", "filter": filter, "limit": REDRIVEN_MAX, "who": "chaos", "why": "calmer now" });
    while Instant::now() < end {
        pause(OPERATOR_PAUSE).await;
        process.invoke(request.clone()).await?;
    }
    Ok(())
}

/// Hands out batches: in another order, late, twice, or too early, as each turn decides.
async fn serve(mut process: Process<'_>, mut mapping: Mapping, end: Instant) -> Result<()> {
    let (site, worker) = (process.site, process.worker);
    let (mut held, mut turn) = (Vec::new(), 0);
    site.watch(mapping.in_flight());
    while Instant::now() < end {
        let Some(batch) = mapping.receive().await?.or_else(|| held.pop()) else {
            pause(PAUSE).await;
            continue;
        };
        let delivery = turns::delivery(worker.seed, worker.number, turn);
        site.say(worker, format_args!("{turn}: {delivery:?}"));
        turn += 1;
        if delivery.held_back && held.len() < HELD_MAX {
            held.push(batch);
            continue;
        }
        let batch = batch.shuffled(delivery.order);
        for _ in 0..=u32::from(delivery.twice) {
            process.deliver(&batch, &mut mapping).await?;
        }
        if delivery.too_early {
            mapping.time_passes().await;
        }
    }
    mapping.time_passes().await;
    site.count(mapping.counts);
    Ok(())
}

/// A component, and the process that it is at the moment.
struct Process<'a> {
    site: &'a Site,
    worker: &'a Worker,
    component: String,
    destination: &'static str,
    warm: Option<Sandbox>,
}

impl<'a> Process<'a> {
    /// Not started yet.
    fn new(site: &'a Site, worker: &'a Worker, component: &str, destination: &'static str) -> Self {
        Self { site, worker, component: component.to_owned(), destination, warm: None }
    }

    /// Invokes it once; how that ends is its own affair.
    async fn invoke(&mut self, event: Value) -> Result<()> {
        let timeout = timeout_of(&self.component);
        let mut sandbox = self.living().await?;
        sandbox.invoke(event, timeout).await;
        self.warm = Some(sandbox);
        Ok(())
    }

    async fn deliver(&mut self, batch: &Batch, mapping: &mut Mapping) -> Result<()> {
        let mut sandbox = self.living().await?;
        mapping.deliver(batch, &mut sandbox).await?;
        self.warm = Some(sandbox);
        Ok(())
    }

    /// The warm process, or a new one where it died.
    async fn living(&mut self) -> Result<Sandbox> {
        if let Some(warm) = self.warm.take().filter(Sandbox::lives) {
            return Ok(warm);
        }
        let environment = self.site.environment(&self.component, self.destination);
        let sandbox = self.site.world.start(&self.component, &environment).await?;
        *self.worker.handle.lock().unwrap_or_else(PoisonError::into_inner) = Some(sandbox.handle());
        Ok(sandbox)
    }
}

/// Not decided by the seed: how long anything takes is the machine's affair.
async fn pause(milliseconds: std::ops::Range<u64>) {
    tokio::time::sleep(Duration::from_millis(fastrand::u64(milliseconds))).await;
}
