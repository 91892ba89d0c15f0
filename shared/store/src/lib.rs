//! PostgreSQL: every statement on the protocol's tables, one module per table.
//!
//! A row decides what may happen next. Every change of state is one guarded statement, and the number
//! of rows it touched becomes a named outcome; only the database's clock counts. Nothing here talks to
//! SQS or S3, and no statement on these tables lives anywhere else.
//!
//! Functions that are one statement take any executor; those that are several take a connection, so
//! that the caller's transaction holds them together. A caller whose transaction failed rolls it back
//! explicitly: a sandbox may freeze before a dropped one does.

mod error;
mod values;

pub mod artifact;
pub mod audit;
pub mod claim;
pub mod dead_letter;
pub mod dismiss;
pub mod enqueue;
pub mod gauges;
pub mod inspect;
pub mod janitor;
pub mod job;
pub mod lane;
pub mod migrate;
pub mod operator_action;
pub mod outbox;
pub mod pool;
pub mod quarantine;
pub mod reconcile;
pub mod redrive;
pub mod roles;
pub mod sweep;
pub mod window;

pub use error::{Error, is_conflict};
