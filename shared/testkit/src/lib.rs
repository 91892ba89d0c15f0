//! What tests are made of: faulty twins of the ports, and rows to begin with.

pub mod outbox;
pub mod queues;

pub use queues::{Fault, Health, Queues};
