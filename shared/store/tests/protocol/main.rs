//! The protocol's statements against a real PostgreSQL, a database for each test.

#![allow(clippy::unwrap_used, reason = "a test that can not go on has failed")]

mod artifacts;
mod claim_answers;
mod enqueuing;
mod enqueuing_by_sql;
mod migrations;
mod other_transitions;
mod rivals;
mod schema;
mod transitions;
mod windows;
