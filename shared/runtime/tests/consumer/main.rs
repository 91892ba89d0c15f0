//! The consumer's engine on a real PostgreSQL, with a scripted handler and a queue in memory.

mod batches;
mod dispositions;
mod failures;
mod lost_claims;
mod script;
