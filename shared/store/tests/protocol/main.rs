//! The protocol's statements against a real PostgreSQL, a database for each test.

mod artifacts;
mod claim_answers;
mod enqueuing;
mod migrations;
mod rivals;
mod schema;
mod transitions;
mod windows;
