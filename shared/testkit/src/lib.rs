//! What tests are made of: faulty twins of the ports, and rows to begin with.
//!
//! Rows are brought into their states by the product's own statements wherever it has them; only time
//! is moved by hand, by writing the column that holds it. A fixture that fails panics: it is a bug of
//! the test.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a fixture that fails is a failed test")]

pub mod bucket;
pub mod damage;
pub mod handler;
pub mod inbox;
pub mod jobs;
pub mod outbox;
pub mod pools;
pub mod queues;
pub mod template;
pub mod windows;

pub use bucket::TwinBucket;
pub use handler::HandlerKit;
pub use inbox::Inbox;
pub use queues::{Fault, Health, Queues};
