//! The rows as they are compared after each step: a line of words for each, by name.
//!
//! Instants are whole hours from now. Ids are the slots and claims they belong to.

use std::collections::BTreeMap;
use std::fmt::Write;

use domain::JobStatus;

/// Every row, by its name.
pub type Rows = BTreeMap<String, String>;

/// A row of `job`.
#[derive(Debug)]
#[expect(dead_code, reason = "read by Debug, which is what is compared")]
pub struct JobRow {
    pub status: JobStatus,
    pub attempts: i32,
    pub generation: i32,
    pub reason: Option<String>,
    pub due: i64,
    pub lease: Option<i64>,
    pub holder: Option<usize>,
    pub requeues: i32,
    pub dismissed: bool,
    pub effects: i64,
}

/// A row of `outbox_event`.
#[derive(Debug)]
#[expect(dead_code, reason = "read by Debug, which is what is compared")]
pub struct EventRow {
    pub status: &'static str,
    pub ring: i32,
    pub attempts: i32,
    pub due: i64,
    pub published: Option<i64>,
    pub reason: Option<String>,
}

/// The row of `lane`.
#[derive(Debug)]
#[expect(dead_code, reason = "read by Debug, which is what is compared")]
pub struct LaneRow {
    pub lease: Option<i64>,
    pub failures: u32,
    pub retry: Option<i64>,
}

/// Where two sets of rows differ, in words; empty where they do not.
pub fn differences(expected: &Rows, found: &Rows) -> String {
    let mut text = String::new();
    let mut names: Vec<_> = expected.keys().chain(found.keys()).collect();
    names.sort();
    names.dedup();
    for name in names.into_iter().filter(|name| expected.get(*name) != found.get(*name)) {
        let side = |rows: &Rows| rows.get(name).cloned().unwrap_or_else(|| "no such row".to_owned());
        writeln!(text, "  {name}\n    expected {}\n    found    {}", side(expected), side(found)).unwrap();
    }
    text
}
