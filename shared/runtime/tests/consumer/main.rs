//! The consumer's engine on a real PostgreSQL, with a scripted handler and a queue in memory.

#![allow(clippy::unwrap_used, reason = "a test that can not go on has failed")]

mod batches;
mod dispositions;
mod failures;
mod lost_claims;
mod script;
