//! Keys of artifacts: partitioned by the hour of the database's clock in which they were drawn.
//!
//! `artifacts/2026/12/01/14/window/…`: in the order of bytes, which is S3's, keys are in the order of
//! time. Whatever does not look like that is not the product's and is never touched.

use chrono::{DateTime, Duration, DurationRound, Utc};

/// What every artifact's key begins with.
pub const PREFIX: &str = "artifacts/";
/// `YYYY/MM/DD/HH/` after the prefix, a digit for each 9.
const HOUR_SHAPE: &[u8] = b"9999/99/99/99/";
/// S3's own limit.
const KEY_BYTES_MAX: usize = 1024;

/// What a key under the prefix is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// An artifact's.
    Artifact,
    /// A folder that a console or a tool made, to have something to show.
    Placeholder,
    /// Somebody else's.
    Foreign,
}

/// What every key drawn in the hour of `at` begins with, without the slash at its end.
#[must_use]
pub fn hour(at: DateTime<Utc>) -> String {
    format!("{PREFIX}{}", at.format("%Y/%m/%d/%H"))
}

/// A text after every key drawn in the hour of `at` or before, and before every later one.
#[must_use]
pub fn end_of_hour(at: DateTime<Utc>) -> String {
    let hour_start = at.duration_trunc(Duration::hours(1)).unwrap_or(at);
    hour(hour_start + Duration::hours(1))
}

/// What `key` is.
#[must_use]
pub fn shape(key: &str) -> Shape {
    let Some(rest) = key.strip_prefix(PREFIX) else { return Shape::Foreign };
    if key.ends_with('/') {
        return Shape::Placeholder;
    }
    let (hour, name) = rest.as_bytes().split_at(rest.len().min(HOUR_SHAPE.len()));
    let fits = hour.len() == HOUR_SHAPE.len()
        && hour.iter().zip(HOUR_SHAPE).all(|(byte, shape)| fits(*byte, *shape));
    let sayable = key.len() <= KEY_BYTES_MAX && key.chars().all(is_sayable);
    if fits && !name.is_empty() && sayable { Shape::Artifact } else { Shape::Foreign }
}

fn fits(byte: u8, shape: u8) -> bool {
    if shape == b'9' { byte.is_ascii_digit() } else { byte == shape }
}

/// Whether XML can say it: a deletion of a thousand keys is an XML document.
fn is_sayable(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r')
        || (character >= ' ' && !matches!(character, '\u{fffe}' | '\u{ffff}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[test]
    fn hours_order_as_their_keys_do() {
        let key = format!("{}/window/a", hour(at("2026-12-31T23:59:59Z")));
        let end = end_of_hour(at("2026-12-31T23:00:00Z"));
        assert_eq!(end, "artifacts/2027/01/01/00");
        assert!(key < end);
        assert!(end < format!("{}/", hour(at("2027-01-01T00:00:00Z"))));
    }

    #[test]
    fn artifacts_have_an_hour_and_a_name_of_any_characters() {
        let strange = ["a b", "ü/雪", "+", "%2F", "line\nbreak", "window/us8.json", "\r\t"];
        for name in strange {
            assert_eq!(shape(&format!("artifacts/2026/12/01/14/{name}")), Shape::Artifact, "{name:?}");
        }
        let longest = format!("artifacts/2026/12/01/14/{}", "x".repeat(1000));
        assert_eq!((longest.len(), shape(&longest)), (1024, Shape::Artifact));
    }

    #[test]
    fn nothing_else_is_an_artifact() {
        for key in [
            "artifacts",
            "artifacts/readme.txt",
            "artifacts/2026/12/01/14",
            "artifacts/2026/12/1/14/a",
            "artifacts/2026-12-01/14/a",
            "artifacts/2026/12/01/14/\u{1}",
            "artifacts/2026/12/01/14/a\0",
            "Artifacts/2026/12/01/14/a",
            "other/artifacts/2026/12/01/14/a",
            "artifacts/２026/12/01/14/a",
            "",
        ] {
            assert_eq!(shape(key), Shape::Foreign, "{key:?}");
        }
        for key in ["artifacts/", "artifacts/2026/12/01/14/", "artifacts/2026/12/01/14/window/"] {
            assert_eq!(shape(key), Shape::Placeholder, "{key:?}");
        }
    }
}
