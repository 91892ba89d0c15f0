//! The sweeper against a bucket in memory and a real PostgreSQL, and the janitor.
#![expect(clippy::unwrap_used, reason = "a test that can not go on stops here")]

mod consuming;
mod damages;
mod deleting;
mod fixtures;
mod guards;
mod interleaving;
mod janitor;
mod laps;
mod writers;
