//! Objects beside rows: who has no counterpart, and who differs. Pure.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use store::sweep::{Damage, Doomed, Kind, Row};

use super::bucket::Object;
use super::keys::{Shape, shape};

/// What a stretch of keys holds, on both sides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Objects that were looked at: artifacts by their key.
    pub listed: u32,
    /// Objects without a row, old enough.
    pub orphans: Vec<Doomed>,
    /// Objects whose row says RECLAIMED: their deletion is still to come.
    pub leftovers: Vec<Doomed>,
    /// Objects without a row that are too young to tell.
    pub young: u32,
    /// Folder placeholders and what is not the product's.
    pub left_alone: u32,
    /// Rows without an object, and objects of another size.
    pub damages: Vec<Damage>,
    /// Keys that both sides have, with the checksum of the row: whole, unless among the damages.
    pub both: Vec<(String, Option<String>)>,
    /// A damage was noted for one of the rows earlier.
    pub damaged_before: bool,
}

/// Compares `objects` and `rows` of the same stretch of keys. An object is old enough when it was written
/// at `old_enough` or before, by S3's clock.
#[must_use]
pub fn compare(objects: &[Object], rows: &[Row], old_enough: DateTime<Utc>) -> Comparison {
    let mut unmet: HashMap<&str, &Row> = rows.iter().map(|row| (row.key.as_str(), row)).collect();
    let mut found =
        Comparison { damaged_before: rows.iter().any(|row| row.damaged), ..Comparison::default() };
    for object in objects {
        let row = unmet.remove(object.key.as_str());
        if shape(&object.key) == Shape::Artifact {
            found.meet(object, row, old_enough);
        } else {
            found.left_alone += 1;
        }
    }
    let lost = rows
        .iter()
        .filter(|row| unmet.contains_key(row.key.as_str()) && !row.reclaimed && row.before_listing);
    found.damages.extend(lost.map(missing));
    found
}

impl Comparison {
    fn meet(&mut self, object: &Object, row: Option<&Row>, old_enough: DateTime<Utc>) {
        self.listed += 1;
        let doomed = || Doomed { key: object.key.clone(), etag: object.etag.clone() };
        match row {
            Some(row) if row.reclaimed => self.leftovers.push(doomed()),
            Some(row) => {
                self.damages.extend(other_size(object, row));
                self.both.push((row.key.clone(), row.sha256.clone()));
            }
            None if object.written_at.is_some_and(|written_at| written_at <= old_enough) => {
                self.orphans.push(doomed());
            }
            None => self.young += 1,
        }
    }
}

fn other_size(object: &Object, row: &Row) -> Option<Damage> {
    let written = row.size_bytes?;
    (written != object.size_bytes).then(|| Damage {
        key: row.key.clone(),
        kind: Kind::Size,
        detail: format!("{written} bytes were written, {} are there", object.size_bytes),
    })
}

fn missing(row: &Row) -> Damage {
    Damage { key: row.key.clone(), kind: Kind::Missing, detail: "there is no such object".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: &str = "artifacts/2026/12/01/14";

    fn instant(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn object(name: &str, written_at: &str) -> Object {
        Object {
            key: format!("{HOUR}/{name}"),
            etag: format!("\"{name}\""),
            size_bytes: 7,
            written_at: Some(instant(written_at)),
        }
    }

    fn row(name: &str) -> Row {
        Row {
            key: format!("{HOUR}/{name}"),
            reclaimed: false,
            sha256: Some("a".repeat(64)),
            size_bytes: Some(7),
            before_listing: true,
            damaged: false,
        }
    }

    fn reclaimed(name: &str) -> Row {
        Row { reclaimed: true, sha256: None, size_bytes: None, ..row(name) }
    }

    fn names(doomed: &[Doomed]) -> Vec<&str> {
        doomed.iter().map(|doomed| &doomed.key[HOUR.len() + 1..]).collect()
    }

    fn kinds(damages: &[Damage]) -> Vec<(&str, Kind)> {
        damages.iter().map(|damage| (&damage.key[HOUR.len() + 1..], damage.kind)).collect()
    }

    fn at_three(objects: &[Object], rows: &[Row]) -> Comparison {
        compare(objects, rows, instant("2026-12-01T15:00:00Z"))
    }

    #[test]
    fn object_without_a_row_is_an_orphan_when_it_is_old_enough() {
        let at_noon = object("old", "2026-12-01T15:00:00Z");
        let later = object("young", "2026-12-01T15:00:01Z");
        let unknown = Object { written_at: None, ..object("unknown", "2026-12-01T14:00:00Z") };

        let found = at_three(&[at_noon, unknown, later], &[]);

        assert_eq!(names(&found.orphans), ["old"]);
        assert_eq!((found.young, found.listed), (2, 3));
    }

    #[test]
    fn object_with_a_row_is_left_and_one_that_was_reclaimed_is_a_leftover() {
        let objects = ["kept", "taken"].map(|name| object(name, "2026-12-01T14:00:00Z"));
        let found = at_three(&objects, &[row("kept"), reclaimed("taken")]);
        assert_eq!(names(&found.orphans), Vec::<&str>::new());
        assert_eq!(names(&found.leftovers), ["taken"]);
        assert_eq!(found.damages, []);
    }

    #[test]
    fn row_without_an_object_is_missing_unless_it_came_after_the_listing_or_was_reclaimed() {
        let fresh = Row { before_listing: false, ..row("fresh") };
        let found = at_three(&[], &[row("lost"), fresh, reclaimed("taken")]);
        assert_eq!(kinds(&found.damages), [("lost", Kind::Missing)]);
    }

    #[test]
    fn object_of_another_size_is_reported() {
        let longer = Object { size_bytes: 8, ..object("longer", "2026-12-01T14:00:00Z") };
        let found = at_three(&[longer], &[row("longer")]);
        assert_eq!(kinds(&found.damages), [("longer", Kind::Size)]);
        assert_eq!(found.damages[0].detail, "7 bytes were written, 8 are there");
    }

    #[test]
    fn placeholder_and_foreign_object_are_left_alone() {
        let keys = ["artifacts/", "artifacts/2026/12/01/14/", "artifacts/notes.txt"];
        let objects = keys.map(|key| Object { key: key.to_owned(), ..object("", "2026-12-01T14:00:00Z") });
        let found = at_three(&objects, &[]);
        assert_eq!(found.orphans, []);
        assert_eq!((found.left_alone, found.listed), (3, 0));
    }
}
