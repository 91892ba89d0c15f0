//! One member of the crowd: a component that is started again whenever it died.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use serde_json::{Value, json};
use system_tests::Result;
use system_tests::crew::Consumers;
use system_tests::mapping::{Batch, Mapping};
use system_tests::sandbox::{Handle, Sandbox};
use system_tests::subject::DESTINATION;
use system_tests::world::{DESTINATIONS, FUNCTION_TIMEOUT, timeout_of};
use tokio::time::Instant;

use crate::site::Site;

/// What a schedule waits between two invocations, in milliseconds; and a mapping that found nothing.
const PAUSE: std::ops::Range<u64> = 20..200;
/// Batches that a mapping holds back at the same time.
const HELD_MAX: usize = 3;
/// Largest number of jobs in one transaction of the producer.
const JOBS_MAX: i64 = 25;
/// How the jobs of the crowd behave; some behave well more often.
const BEHAVIOURS: [&str; 12] = [
    "succeed",
    "succeed",
    "slow",
    "slow",
    "slow",
    "follow-up",
    "follow-up",
    "fail-once",
    "fail",
    "refuse",
    "kill",
    "panic",
];

/// What it does.
#[derive(Clone, Copy)]
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
}

/// One member.
pub struct Worker {
    duty: Duty,
    seed: u64,
    handle: Mutex<Option<Handle>>,
}

impl Worker {
    /// The process it is now, if it is one.
    pub fn handle(&self) -> Option<Handle> {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Everybody at a site. Each has dice of its own, thrown by `seed`.
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
        ],
        Consumers::Product => {
            let schedules = ["relay", "relay", "reconciler"].map(Duty::Scheduled);
            let queues =
                DESTINATIONS.map(Duty::Mapped).into_iter().chain(DESTINATIONS.map(Duty::DeadLetters));
            [Duty::Collect].into_iter().chain(schedules).chain(queues).collect()
        }
    };
    let worker = |(number, duty)| Worker { duty, seed: seed.wrapping_add(number), handle: Mutex::default() };
    (1..).zip(duties).map(worker).collect()
}

/// Works until `end`. What it was handed and did not finish comes back at once afterwards.
///
/// # Errors
///
/// The stand itself fails; a component that does is no error.
pub async fn work(site: &Site, worker: &Worker, end: Instant) -> Result<()> {
    let mut dice = Rng::with_seed(worker.seed);
    match worker.duty {
        Duty::Produce => produce(site, &mut dice, end).await,
        Duty::Collect => collect(Process::new(site, worker, "collector", DESTINATION), &mut dice, end).await,
        Duty::Scheduled(component) => {
            let mut process = Process::new(site, worker, component, DESTINATION);
            while Instant::now() < end {
                process.invoke(json!({})).await?;
                pause(&mut dice).await;
            }
            Ok(())
        }
        Duty::Mapped(destination) => {
            let process = Process::new(site, worker, &site.consumer(destination), destination);
            serve(process, site.world.mapping(destination), &mut dice, end).await
        }
        Duty::DeadLetters(destination) => {
            let mapping = Mapping::new(site.world.dead_letters(destination).clone(), FUNCTION_TIMEOUT);
            serve(Process::new(site, worker, "dead-letter", destination), mapping, &mut dice, end).await
        }
    }
}

/// Enqueues batches, each again when it died over it, and now and then although it did not.
async fn produce(site: &Site, dice: &mut Rng, end: Instant) -> Result<()> {
    let mut batch = 0;
    while Instant::now() < end {
        let (name, behave) = (format!("batch-{batch}"), BEHAVIOURS[dice.usize(0..BEHAVIOURS.len())]);
        let count = dice.i64(1..=JOBS_MAX).to_string();
        let environment = match dice.u32(0..8) {
            0 => site.environment("subject", DESTINATION).with_fault("subject::commit.before:kill:1"),
            1 => site.environment("subject", DESTINATION).with_fault("subject::commit.after:kill:1"),
            _ => site.environment("subject", DESTINATION),
        };
        let ended = site.world.run_subject(&["enqueue", &name, behave, &count], &environment).await?;
        batch += i32::from(ended.success() && dice.u32(0..8) != 0);
        pause(dice).await;
    }
    Ok(())
}

/// Collects one day after the other; some are corrected, and some asked for again.
async fn collect(mut process: Process<'_>, dice: &mut Rng, end: Instant) -> Result<()> {
    while Instant::now() < end {
        let request = process.site.market(|market| {
            match dice.u32(0..6) {
                0 => market.correct("100")?,
                1 => market.correct("120")?,
                2 => {}
                _ => market.next_day()?,
            }
            Ok(market.request())
        })?;
        process.invoke(request).await?;
        pause(dice).await;
    }
    Ok(())
}

/// Hands out batches: in another order, twice, or too early now and then.
async fn serve(mut process: Process<'_>, mut mapping: Mapping, dice: &mut Rng, end: Instant) -> Result<()> {
    let mut held = Vec::new();
    process.site.watch(mapping.in_flight());
    while Instant::now() < end {
        let Some(batch) = mapping.receive().await?.or_else(|| held.pop()) else {
            pause(dice).await;
            continue;
        };
        if held.len() < HELD_MAX && dice.u32(0..6) == 0 {
            held.push(batch);
            continue;
        }
        for _ in 0..=u32::from(dice.u32(0..4) == 0) {
            process.deliver(&batch, &mut mapping).await?;
        }
        if dice.u32(0..8) == 0 {
            mapping.time_passes().await;
        }
    }
    mapping.time_passes().await;
    process.site.count(mapping.counts);
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

async fn pause(dice: &mut Rng) {
    tokio::time::sleep(Duration::from_millis(dice.u64(PAUSE))).await;
}
