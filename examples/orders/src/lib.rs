//! A pipeline of another subject: an order makes a receipt by e-mail, and the receipt a webhook.
//!
//! It stands on `domain`, `store` and `runtime` as any pipeline of your own does, with its own tables,
//! handlers, functions and template, and without one edit in those three.
//!
//! ```text
//! order::place ──▶ purchase + job ──▶ receipts ──▶ e-mail, receipt + job ──▶ webhooks ──▶ POST, announcement
//! ```

pub mod announce;
pub mod order;
pub mod outside;
pub mod receipt;

use domain::JobType;
use sqlx::migrate::Migrator;

/// Sends the receipt of an order.
pub const RECEIPT: JobType = JobType::new("receipt").sent_to("receipts");
/// Tells the shop that the receipt is out.
pub const ANNOUNCEMENT: JobType = JobType::new("announcement").sent_to("webhooks").tried(12);

/// All of them. `template.yaml` has a queue for each of their destinations; a test holds the two together.
pub const JOB_TYPES: [JobType; 2] = [RECEIPT, ANNOUNCEMENT];

/// The tables of `migrations/`.
pub static MIGRATIONS: Migrator = sqlx::migrate!();
