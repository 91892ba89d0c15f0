//! What the schedules and mappings of a deployed stack would start, for one world.
//!
//! Sandboxes stay warm, as Lambda keeps them; one that died is replaced. [`Crew::settle`] lets time pass
//! and everybody work until nothing is left to do, or gives up and says what is.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::Result;
use crate::mapping::{Counts, Mapping};
use crate::sandbox::{Invoked, Sandbox};
use crate::world::{DESTINATIONS, FUNCTION_TIMEOUT, World, timeout_of};

/// Longer than every back-off, lease, visibility timeout and safe delay.
pub const STEP: Duration = Duration::from_mins(15);
/// Steps until a world that is well has come to rest: every attempt of every job, and some more.
const STEPS_MAX: u32 = 30;

/// Who consumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consumers {
    /// The subject's handler on the one queue.
    Subject,
    /// The product's own functions.
    Product,
}

/// The functions of one world.
pub struct Crew<'a> {
    world: &'a World,
    consumers: Consumers,
    sandboxes: BTreeMap<String, Sandbox>,
    /// The mapping of each destination.
    pub mappings: BTreeMap<&'static str, Mapping>,
    dead_letters: BTreeMap<&'static str, Mapping>,
}

impl<'a> Crew<'a> {
    /// Nobody works yet.
    #[must_use]
    pub fn new(world: &'a World, consumers: Consumers) -> Self {
        let mappings = DESTINATIONS.map(|name| (name, world.mapping(name))).into();
        let dead_letter = |name| Mapping::new(world.dead_letters(name).clone(), FUNCTION_TIMEOUT);
        let dead_letters = DESTINATIONS.map(|name| (name, dead_letter(name))).into();
        Self { world, consumers, sandboxes: BTreeMap::new(), mappings, dead_letters }
    }

    /// Counts of all consumers together.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.mappings.values().fold(Counts::default(), |sum, mapping| sum + mapping.counts)
    }

    /// Invokes a scheduled function; it must answer.
    ///
    /// # Errors
    ///
    /// It failed, died or ran out of time.
    pub async fn invoke(&mut self, component: &str, event: Value) -> Result<Value> {
        match self.sandbox(component, "news").await?.invoke(event, timeout_of(component)).await {
            Invoked::Answered(answer) => Ok(answer),
            other => Err(format!("{component}: {other:?}").into()),
        }
    }

    /// The relay drains once.
    ///
    /// # Errors
    ///
    /// It failed.
    pub async fn relay(&mut self) -> Result<Value> {
        self.invoke("relay", json!({})).await
    }

    /// The consumers work until nothing is visible. A consumer that died is started again.
    ///
    /// # Errors
    ///
    /// A sandbox can not be started, or a queue does not answer.
    pub async fn consume(&mut self) -> Result<()> {
        for destination in self.destinations() {
            while let Some(batch) = self.mapping(destination).receive().await? {
                let component = self.consumer(destination);
                let mut sandbox = self.take(&component, destination).await?;
                self.mapping(destination).deliver(&batch, &mut sandbox).await?;
                self.sandboxes.insert(component, sandbox);
            }
        }
        Ok(())
    }

    /// The consumers are started and find nothing.
    ///
    /// # Errors
    ///
    /// One can not be started, or fails.
    pub async fn consume_nothing(&mut self) -> Result<()> {
        for destination in self.destinations() {
            let component = self.consumer(destination);
            let nothing = json!({ "Records": [] });
            self.sandbox(&component, destination).await?.invoke(nothing, FUNCTION_TIMEOUT).await;
        }
        Ok(())
    }

    /// Who looks at dead letters does.
    ///
    /// # Errors
    ///
    /// A sandbox can not be started, or a queue does not answer.
    pub async fn bury(&mut self) -> Result<()> {
        for destination in self.destinations() {
            let mut sandbox = self.take("dead-letter", destination).await?;
            if let Some(mapping) = self.dead_letters.get_mut(destination) {
                mapping.drain(&mut sandbox).await?;
            }
            self.sandboxes.insert("dead-letter".to_owned(), sandbox);
        }
        Ok(())
    }

    /// All visibility timeouts end, and everything noted in the database happened `by` earlier.
    ///
    /// # Errors
    ///
    /// The database refuses.
    pub async fn time_passes(&mut self, by: Duration) -> Result<()> {
        self.world.time_passes(by).await?;
        for mapping in self.mappings.values_mut().chain(self.dead_letters.values_mut()) {
            mapping.time_passes().await;
        }
        Ok(())
    }

    /// Lets time pass and everybody work until every job is terminal and every event sent.
    ///
    /// # Errors
    ///
    /// A function failed that had no reason to, or it never comes to rest.
    pub async fn settle(&mut self) -> Result<()> {
        let mut left = [0, 0, 0];
        for step in 0..STEPS_MAX {
            self.relay().await?;
            self.consume().await?;
            left = self.left().await?;
            if left == [0, 0, 0] {
                return Ok(());
            }
            self.bury().await?;
            self.time_passes(STEP).await?;
            if step > 0 {
                self.invoke("reconciler", json!({})).await?;
            }
        }
        let [jobs, events, messages] = left;
        Err(format!("it never came to rest: {jobs} jobs, {events} events and {messages} messages are left")
            .into())
    }

    /// Jobs that are not finished, events that are not sent, messages in the queues.
    async fn left(&self) -> Result<[i64; 3]> {
        let jobs = self.world.count("select count(*) from job where finished_at is null").await?;
        let events = self.world.count("select count(*) from outbox_event where status = 'NEW'").await?;
        let mut messages = 0;
        for destination in self.destinations() {
            messages += i64::try_from(self.world.queue(destination).depth().await?)?;
        }
        Ok([jobs, events, messages])
    }

    /// The destinations somebody consumes.
    fn destinations(&self) -> Vec<&'static str> {
        match self.consumers {
            Consumers::Subject => vec![crate::subject::DESTINATION],
            Consumers::Product => DESTINATIONS.to_vec(),
        }
    }

    /// The function that consumes `destination`.
    #[must_use]
    pub fn consumer(&self, destination: &str) -> String {
        match self.consumers {
            Consumers::Subject => "subject".to_owned(),
            Consumers::Product => format!("{destination}-consumer"),
        }
    }

    /// The mapping of `destination`.
    ///
    /// # Panics
    ///
    /// `destination` is not one of the world's.
    pub fn mapping(&mut self, destination: &'static str) -> &mut Mapping {
        let timeout = FUNCTION_TIMEOUT;
        let queue = self.world.queue(destination).clone();
        self.mappings.entry(destination).or_insert_with(|| Mapping::new(queue, timeout))
    }

    /// The mapping of the dead-letter queue of `destination`.
    pub fn dead_letter_mapping(&mut self, destination: &'static str) -> &mut Mapping {
        let queue = self.world.dead_letters(destination).clone();
        self.dead_letters.entry(destination).or_insert_with(|| Mapping::new(queue, FUNCTION_TIMEOUT))
    }

    async fn sandbox(&mut self, component: &str, destination: &str) -> Result<&mut Sandbox> {
        let sandbox = self.take(component, destination).await?;
        Ok(self.sandboxes.entry(component.to_owned()).or_insert(sandbox))
    }

    /// A living sandbox of `component`, the warm one if there is one.
    async fn take(&mut self, component: &str, destination: &str) -> Result<Sandbox> {
        match self.sandboxes.remove(component) {
            Some(warm) if warm.lives() => Ok(warm),
            _ => self.world.start(component, &self.world.environment_for(component, destination)).await,
        }
    }
}
