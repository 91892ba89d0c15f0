//! Queues in memory that misbehave on demand: the faulty twin of SQS, for the relay's tests.
//!
//! They keep SQS's own rules (10 entries, 1 MiB, distinct and safe ids, the body's characters), so that a
//! relay which breaks one is found out here. Faults are those that were seen in the wild: an answer that
//! is lost after the messages were taken, an entry in neither list, a queue that never answers.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use runtime::relay::sender::{Answer, CallError, Entry, Refused, Sender};

/// What is wrong with one call.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The call fails as a whole with this code; nothing is taken.
    Call(&'static str),
    /// No answer; nothing is taken.
    NoAnswer,
    /// The messages are taken and the answer is lost.
    LostAnswer,
    /// The entry at this place is refused with this code and this blame.
    Refuse(usize, &'static str, bool),
    /// The entry at this place is in neither list, and not taken.
    Forget(usize),
}

/// How a queue is, for all its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It takes what it is sent.
    Well,
    /// There is no such queue.
    Missing,
    /// It throttles every call.
    Throttled,
    /// It never answers.
    BlackHole,
}

/// One queue.
#[derive(Debug)]
struct Queue {
    health: Health,
    faults: VecDeque<Fault>,
    message_bytes_max: usize,
    calls: usize,
    taken: Vec<Entry>,
}

/// Queues in memory, by URL. One that nobody spoke of is well and empty.
#[derive(Debug, Default)]
pub struct Queues {
    latency: Duration,
    queues: Mutex<HashMap<String, Queue>>,
}

impl Queues {
    /// Queues that answer each call after `latency`.
    #[must_use]
    pub fn with_latency(latency: Duration) -> Self {
        Self { latency, ..Self::default() }
    }

    /// Changes how a queue is.
    pub fn set_health(&self, queue_url: &str, health: Health) {
        self.with(queue_url, |queue| queue.health = health);
    }

    /// Changes the longest message a queue takes.
    pub fn set_message_bytes_max(&self, queue_url: &str, bytes: usize) {
        self.with(queue_url, |queue| queue.message_bytes_max = bytes);
    }

    /// Makes the next calls to a queue go wrong, one fault each.
    pub fn fail_next(&self, queue_url: &str, faults: impl IntoIterator<Item = Fault>) {
        self.with(queue_url, |queue| queue.faults.extend(faults));
    }

    /// What a queue has taken, in the order it took it.
    #[must_use]
    pub fn taken(&self, queue_url: &str) -> Vec<Entry> {
        self.with(queue_url, |queue| queue.taken.clone())
    }

    /// How many messages a queue has taken.
    #[must_use]
    pub fn count(&self, queue_url: &str) -> usize {
        self.with(queue_url, |queue| queue.taken.len())
    }

    /// How many calls were made to a queue.
    #[must_use]
    pub fn calls(&self, queue_url: &str) -> usize {
        self.with(queue_url, |queue| queue.calls)
    }

    fn with<T>(&self, queue_url: &str, act: impl FnOnce(&mut Queue) -> T) -> T {
        act(self.lock().entry(queue_url.to_owned()).or_insert_with(Queue::new))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Queue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn wait(&self, queue_url: &str) -> Result<(), CallError> {
        match self.with(queue_url, |queue| queue.health) {
            Health::Well if self.latency.is_zero() => Ok(()),
            Health::Well => {
                tokio::time::sleep(self.latency).await;
                Ok(())
            }
            Health::Missing => Err(refused("QueueDoesNotExist")),
            Health::Throttled => Err(refused("RequestThrottled")),
            Health::BlackHole => std::future::pending().await,
        }
    }
}

impl Sender for Queues {
    async fn send(&self, queue_url: &str, entries: &[Entry]) -> Result<Answer, CallError> {
        self.with(queue_url, |queue| queue.calls += 1);
        self.wait(queue_url).await?;
        self.with(queue_url, |queue| queue.answer(entries))
    }

    async fn message_bytes_max(&self, queue_url: &str) -> Result<usize, CallError> {
        self.wait(queue_url).await?;
        Ok(self.with(queue_url, |queue| queue.message_bytes_max))
    }
}

impl Queue {
    fn new() -> Self {
        Self {
            health: Health::Well,
            faults: VecDeque::new(),
            message_bytes_max: CALL_BYTES_MAX,
            calls: 0,
            taken: Vec::new(),
        }
    }

    fn answer(&mut self, entries: &[Entry]) -> Result<Answer, CallError> {
        check_call(entries)?;
        let fault = self.faults.pop_front();
        match &fault {
            Some(Fault::Call(code)) => return Err(refused(code)),
            Some(Fault::NoAnswer) => return Err(CallError::unanswered("connection reset")),
            _ => {}
        }
        let mut answer = Answer::default();
        for (place, entry) in entries.iter().enumerate() {
            match &fault {
                Some(Fault::Forget(forgotten)) if *forgotten == place => continue,
                Some(Fault::Refuse(refused, code, blame)) if *refused == place => {
                    answer.refused.push(refusal(entry, code, *blame));
                    continue;
                }
                _ => {}
            }
            if let Some(code) = self.flaw(entry) {
                answer.refused.push(refusal(entry, code, true));
            } else {
                answer.sent.push(entry.id.clone());
                self.taken.push(entry.clone());
            }
        }
        // As SQS may: in no order of its own.
        answer.sent.reverse();
        match fault {
            Some(Fault::LostAnswer) => Err(CallError::unanswered("connection reset after the request")),
            _ => Ok(answer),
        }
    }

    fn flaw(&self, entry: &Entry) -> Option<&'static str> {
        let allowed = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{FFFD}' | '\u{10000}'..);
        if entry.body.is_empty() || !entry.body.chars().all(allowed) {
            return Some("InvalidMessageContents");
        }
        (entry.size() > self.message_bytes_max).then_some("InvalidParameterValue")
    }
}

/// SQS `SendMessageBatch`, all entries together.
const CALL_BYTES_MAX: usize = 1_048_576;

fn check_call(entries: &[Entry]) -> Result<(), CallError> {
    let ids: HashSet<_> = entries.iter().map(|entry| &entry.id).collect();
    let is_safe = |id: &String| {
        (1..=80).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    if entries.is_empty() {
        Err(refused("EmptyBatchRequest"))
    } else if entries.len() > 10 {
        Err(refused("TooManyEntriesInBatchRequest"))
    } else if !entries.iter().all(|entry| is_safe(&entry.id)) {
        Err(refused("InvalidBatchEntryId"))
    } else if ids.len() < entries.len() {
        Err(refused("BatchEntryIdsNotDistinct"))
    } else if entries.iter().map(Entry::size).sum::<usize>() > CALL_BYTES_MAX {
        Err(refused("BatchRequestTooLong"))
    } else {
        Ok(())
    }
}

fn refused(code: &str) -> CallError {
    CallError { code: Some(code.to_owned()), message: "as the test wants it".to_owned() }
}

fn refusal(entry: &Entry, code: &str, sender_fault: bool) -> Refused {
    Refused {
        id: entry.id.clone(),
        code: code.to_owned(),
        message: "as the test wants it".to_owned(),
        sender_fault,
    }
}
