//! What a run changed: rows by table, and objects.
//!
//! `lane` does not count: its rows say who drains a destination now, and change with every run of the
//! relay, whether it sends something or not.

use std::collections::BTreeMap;

use store::audit::Digest;

use crate::report::table;
use crate::stack::Stack;

/// Every table's digest and the number of objects, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    tables: BTreeMap<String, (i64, String)>,
    objects: usize,
}

/// Why there is no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The protocol's tables could not be read.
    #[error("the protocol's tables can not be read")]
    Protocol(#[from] store::Error),
    /// The pipeline's tables could not be read.
    #[error("the pipeline's tables can not be read")]
    Subject(#[from] sqlx::Error),
    /// The bucket could not be listed.
    #[error("the bucket can not be listed")]
    Bucket(#[source] Box<aws_sdk_s3::Error>),
}

impl Snapshot {
    /// Takes it now.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub async fn take(stack: &Stack) -> Result<Self, Error> {
        let digests = store::audit::digests(&stack.db).await?.into_iter();
        let digests = digests.chain(intraday::audit::digests(&stack.db).await?);
        Ok(Self { tables: digests.map(named).collect(), objects: objects(stack).await? })
    }

    /// What is different in `later`.
    #[must_use]
    pub fn until(&self, later: &Self) -> Change {
        let names = self.tables.keys().chain(later.tables.keys());
        let tables = names.filter(|name| self.tables.get(*name) != later.tables.get(*name)).map(|name| {
            let rows = |snapshot: &Self| snapshot.tables.get(name).map_or(0, |(rows, _)| *rows);
            (name.clone(), (rows(self), rows(later)))
        });
        Change { tables: tables.collect(), objects: (self.objects, later.objects) }
    }
}

fn named(digest: Digest) -> (String, (i64, String)) {
    (digest.table, (digest.rows, digest.digest))
}

/// The artifacts in the bucket, a page of 1,000 at a time.
async fn objects(stack: &Stack) -> Result<usize, Error> {
    let list = stack.s3.list_objects_v2().bucket(&stack.deployed.bucket).prefix("artifacts/");
    let mut pages = list.into_paginator().send();
    let mut objects = 0;
    while let Some(page) = pages.next().await {
        objects += page.map_err(|err| Error::Bucket(Box::new(err.into())))?.contents().len();
    }
    Ok(objects)
}

/// The difference between two snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The tables whose rows differ, with their number before and after.
    tables: BTreeMap<String, (i64, i64)>,
    /// The objects before and after.
    objects: (usize, usize),
}

impl Change {
    /// Whether nothing changed.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.tables.is_empty() && self.objects.0 == self.objects.1
    }
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (before, after) = self.objects;
        if self.is_none() {
            return writeln!(f, "This run changed no row and left no new object ({after} objects).");
        }
        let mut changed = table(["changed by this run", "before", "after"]);
        for (name, (before, after)) in &self.tables {
            changed.add_row([name.clone(), before.to_string(), after.to_string()]);
        }
        changed.add_row(["objects in S3".to_owned(), before.to_string(), after.to_string()]);
        writeln!(f, "{changed}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(rows: i64, digest: &str, objects: usize) -> Snapshot {
        Snapshot { tables: BTreeMap::from([("job".to_owned(), (rows, digest.to_owned()))]), objects }
    }

    #[test]
    fn row_that_changed_shows_even_if_their_number_did_not() {
        let change = snapshot(3, "17", 5).until(&snapshot(3, "18", 5));
        assert!(!change.is_none());
        assert_eq!(change.tables["job"], (3, 3));
    }

    #[test]
    fn new_object_shows_even_if_no_row_changed() {
        assert!(!snapshot(3, "17", 5).until(&snapshot(3, "17", 6)).is_none());
        assert!(snapshot(3, "17", 5).until(&snapshot(3, "17", 5)).is_none());
    }

    #[test]
    fn table_that_was_empty_shows() {
        let change = Snapshot::default().until(&snapshot(3, "17", 0));
        assert_eq!(change.tables["job"], (0, 3));
    }
}
