//! The protocol's tables in numbers, for a report or for somebody who doubts the promise.
//!
//! Every function is one read-only statement, so each answer is one consistent snapshot. Nothing here
//! repairs or decides anything.

mod balance;
mod counts;
mod digest;
mod sent;

pub use balance::{Balance, absent, balance};
pub use counts::{Events, Jobs, Windows, events, jobs, windows, windows_with_work};
pub use digest::{Digest, digests};
pub use sent::{Latency, Published, latencies, published};

#[cfg(test)]
mod tests;
