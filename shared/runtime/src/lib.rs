//! What every function of the pipeline stands on: settings checked at start, telemetry, AWS clients,
//! the time that is left, artifacts, and the engine that turns messages into finished jobs.
//!
//! Nothing here knows the subject of a job; a handler does. No decision about a job is made here
//! either: `store` asks the database.

pub mod artifacts;
pub mod aws;
pub mod consumer;
pub mod dead_letter;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod janitor;
pub mod operator;
pub mod reconciler;
pub mod relay;
pub mod serve;
pub mod settings;
pub mod sweeper;
pub mod telemetry;
pub mod time_left;
