//! A queue in this process that takes everything, after a set time, and knows when.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use runtime::relay::sender::{Answer, CallError, Entry, Sender};

/// Takes everything after `latency`.
#[derive(Default)]
pub struct Publisher {
    latency: Duration,
    /// When each body arrived, where that is wanted.
    arrivals: Option<Mutex<HashMap<String, Instant>>>,
}

impl Publisher {
    /// One that takes `latency` for a call.
    pub fn new(latency: Duration) -> Self {
        Self { latency, arrivals: None }
    }

    /// One that notes when each body arrives.
    pub fn watching() -> Self {
        Self { arrivals: Some(Mutex::default()), ..Self::default() }
    }

    /// When `body` arrived.
    pub fn arrival(&self, body: &str) -> Option<Instant> {
        self.arrivals.as_ref()?.lock().unwrap().get(body).copied()
    }

    /// One call.
    pub async fn call(&self) {
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
    }
}

impl Sender for Publisher {
    async fn send(&self, _: &str, entries: &[Entry]) -> Result<Answer, CallError> {
        if let Some(arrivals) = &self.arrivals {
            let now = Instant::now();
            arrivals.lock().unwrap().extend(entries.iter().map(|entry| (entry.body.clone(), now)));
        }
        self.call().await;
        Ok(Answer { sent: entries.iter().map(|entry| entry.id.clone()).collect(), refused: Vec::new() })
    }

    async fn message_bytes_max(&self, _: &str) -> Result<usize, CallError> {
        Ok(1_048_576)
    }
}
