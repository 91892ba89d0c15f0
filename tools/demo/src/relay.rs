//! Fires the relay as its schedule would: at the start, and again whenever it has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::{JoinError, JoinHandle};

use crate::aws::Client;
use crate::lambda;

/// After a run that failed: long enough not to spin, short enough not to be the reason for a delay.
const AFTER_FAILURE: Duration = Duration::from_millis(200);

/// What the relay's runs came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    /// Runs that were killed or failed.
    pub failed: u32,
    /// The answers of those that ended well.
    pub answers: Vec<Value>,
}

/// The relay, kept running.
#[derive(Debug)]
pub struct Schedule {
    task: JoinHandle<Runs>,
    over: Arc<AtomicBool>,
}

impl Schedule {
    /// Starts firing `function`.
    #[must_use]
    pub fn start(client: Client, function: String) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn(fire(client, function, Arc::clone(&over)));
        Self { task, over }
    }

    /// Fires it no more, and waits for the run that is under way.
    ///
    /// # Errors
    ///
    /// If the firing itself panicked.
    pub async fn end(self) -> Result<Runs, JoinError> {
        self.over.store(true, Ordering::Relaxed);
        self.task.await
    }
}

async fn fire(client: Client, function: String, over: Arc<AtomicBool>) -> Runs {
    let mut runs = Runs::default();
    while !over.load(Ordering::Relaxed) {
        if let Ok(answer) = lambda::invoke(&client, &function, &json!({})).await {
            runs.answers.push(answer);
        } else {
            runs.failed += 1;
            tokio::time::sleep(AFTER_FAILURE).await;
        }
    }
    runs
}
