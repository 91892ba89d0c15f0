//! A table of the file that remembers where it stands and what was asked of it.
//!
//! Reading never stops at a fault: each is written down with its path and the reader goes on, so that
//! one start names them all. Serde would stop at the first.

use std::cell::RefCell;
use std::fmt::Display;
use std::ops::RangeInclusive;

use toml::{Table, Value};

use super::Fault;

/// Where faults are written down while a file is read.
#[derive(Default)]
pub(super) struct Findings(RefCell<Vec<Fault>>);

impl Findings {
    pub(super) fn add(&self, path: &str, message: impl Display) {
        self.0.borrow_mut().push(Fault { path: path.to_owned(), message: message.to_string() });
    }

    pub(super) fn into_faults(self) -> Vec<Fault> {
        self.0.into_inner()
    }
}

/// One table. Entries leave it as they are read; what is left at [`Section::finish`] nobody knows.
pub(super) struct Section<'f> {
    path: String,
    table: Table,
    findings: &'f Findings,
}

impl<'f> Section<'f> {
    pub(super) fn root(table: Table, findings: &'f Findings) -> Self {
        Self { path: String::new(), table, findings }
    }

    /// The path of an entry of this table.
    pub(super) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Writes down that the entry `key` is wrong.
    pub(super) fn fault(&self, key: &str, message: impl Display) {
        self.findings.add(&self.path_of(key), message);
    }

    /// Writes down that the table itself is wrong.
    pub(super) fn fault_here(&self, message: impl Display) {
        self.findings.add(&self.path, message);
    }

    /// Whether nothing is left to read.
    pub(super) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Reports every entry that was not read.
    pub(super) fn finish(self) {
        for key in self.table.keys() {
            self.fault(key, "is not an entry of this table");
        }
    }

    /// A text that must be there and not be empty.
    pub(super) fn text(&mut self, key: &str) -> Option<String> {
        self.required(key, "a text").and_then(|value| self.as_text(key, value))
    }

    /// A text that may be missing.
    pub(super) fn optional_text(&mut self, key: &str) -> Option<String> {
        self.table.remove(key).and_then(|value| self.as_text(key, value))
    }

    /// A text that `parse` understands; `expected` says what that is.
    pub(super) fn parsed<T>(
        &mut self,
        key: &str,
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(key)?;
        let parsed = parse(&text);
        if parsed.is_none() {
            self.fault(key, format_args!("\"{text}\" is not {expected}"));
        }
        parsed
    }

    /// As [`Section::parsed`]; `default` where it is missing.
    pub(super) fn parsed_or<T>(
        &mut self,
        key: &str,
        expected: &str,
        default: T,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        if self.table.contains_key(key) { self.parsed(key, expected, parse) } else { Some(default) }
    }

    /// A list of texts (or TOML dates), each understood by `parse`; missing is empty.
    pub(super) fn parsed_list<T>(
        &mut self,
        key: &str,
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Vec<T> {
        let mut list = Vec::new();
        for (index, value) in self.list(key).into_iter().enumerate() {
            let at = format!("{key}[{index}]");
            let Some(text) = self.as_text(&at, value) else { continue };
            match parse(&text) {
                Some(parsed) => list.push(parsed),
                None => self.fault(&at, format_args!("\"{text}\" is not {expected}")),
            }
        }
        list
    }

    /// A whole number in `range`; `default` where it is missing.
    pub(super) fn integer(&mut self, key: &str, range: RangeInclusive<i64>, default: i64) -> Option<i64> {
        if self.table.contains_key(key) { self.optional_integer(key, range) } else { Some(default) }
    }

    /// A whole number in `range` that may be missing.
    pub(super) fn optional_integer(&mut self, key: &str, range: RangeInclusive<i64>) -> Option<i64> {
        let value = self.table.remove(key)?;
        let number = value.as_integer().filter(|number| range.contains(number));
        if number.is_none() {
            let (least, most) = (range.start(), range.end());
            self.fault(key, format_args!("is not a whole number from {least} to {most}"));
        }
        number
    }

    /// A number from 0 to 1; 0 where it is missing.
    pub(super) fn ratio(&mut self, key: &str) -> Option<f64> {
        let Some(value) = self.table.remove(key) else { return Some(0.0) };
        #[expect(clippy::cast_precision_loss, reason = "only 0 and 1 pass the range")]
        let number = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
        let ratio = number.filter(|number| (0.0..=1.0).contains(number));
        if ratio.is_none() {
            self.fault(key, format_args!("is not a number from 0 to 1"));
        }
        ratio
    }

    /// A table that must be there.
    pub(super) fn section(&mut self, key: &str) -> Option<Section<'f>> {
        let value = self.required(key, "a table")?;
        self.as_section(self.path_of(key), value)
    }

    /// A table that counts as empty where it is missing.
    pub(super) fn optional_section(&mut self, key: &str) -> Option<Section<'f>> {
        let value = self.table.remove(key).unwrap_or_else(|| Value::Table(Table::new()));
        self.as_section(self.path_of(key), value)
    }

    /// Every remaining entry as a table, by its name.
    pub(super) fn named_sections(mut self) -> Vec<(String, Section<'f>)> {
        std::mem::take(&mut self.table)
            .into_iter()
            .filter_map(|(name, value)| {
                let section = self.as_section(self.path_of(&name), value)?;
                Some((name, section))
            })
            .collect()
    }

    /// A list of tables; missing is empty.
    pub(super) fn sections(&mut self, key: &str) -> Vec<Section<'f>> {
        let path = self.path_of(key);
        let values = self.list(key);
        let numbered = |(index, value)| self.as_section(format!("{path}[{index}]"), value);
        values.into_iter().enumerate().filter_map(numbered).collect()
    }

    fn required(&mut self, key: &str, expected: &str) -> Option<Value> {
        let value = self.table.remove(key);
        if value.is_none() {
            self.fault(key, format_args!("is missing; {expected} is expected"));
        }
        value
    }

    fn list(&mut self, key: &str) -> Vec<Value> {
        match self.table.remove(key) {
            None => Vec::new(),
            Some(Value::Array(values)) => values,
            Some(value) => {
                self.fault(key, format_args!("is a {}; a list is expected", value.type_str()));
                Vec::new()
            }
        }
    }

    fn as_text(&self, key: &str, value: Value) -> Option<String> {
        match value {
            Value::String(text) if text.trim().is_empty() => {
                self.fault(key, "is empty");
                None
            }
            Value::String(text) => Some(text),
            Value::Datetime(date) => Some(date.to_string()),
            other => {
                self.fault(key, format_args!("is a {}; a text is expected", other.type_str()));
                None
            }
        }
    }

    fn as_section(&self, path: String, value: Value) -> Option<Section<'f>> {
        match value {
            Value::Table(table) => Some(Section { path, table, findings: self.findings }),
            other => {
                self.findings.add(&path, format_args!("is a {}; a table is expected", other.type_str()));
                None
            }
        }
    }
}
