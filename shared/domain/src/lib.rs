//! The words and rules of the protocol: ids, messages, states, answers, back-off.
//!
//! Everything here is pure: no I/O, no async, no clock. `store` holds PostgreSQL to these rules and
//! a test walks each table below against the SQL that implements it.
//!
//! ```text
//! PENDING ──claim──▶ CLAIMED ──complete──▶ SUCCEEDED
//!    ▲                ▲   │
//!    │              claim │ retry / release
//!    │                └─ RETRY
//!    └──redrive── DEAD ◀── bury (from any state that is not terminal)
//! ```

pub mod answer;
pub mod backoff;
pub mod identity;
pub mod job;
pub mod job_type;
pub mod message;

pub use answer::{Answer, Disposition};
pub use backoff::Backoff;
pub use identity::{EventId, Identity, JobId, event_id};
pub use job::{DeadReason, JobStatus, Transition};
pub use job_type::JobType;
pub use message::Message;
