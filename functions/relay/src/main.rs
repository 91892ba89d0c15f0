//! Relay: sends the outbox's events to their queues, each destination on its own.
//!
//! Invoked every minute and lingering beyond the next, so that a commit is on its queue in milliseconds.
//! Answers with what it did, lane by lane; the input does not matter.

use intraday::job_types;
use runtime::serve::{self, Failed};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    serve::relay(&job_types::ALL).await
}
