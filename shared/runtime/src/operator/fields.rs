//! Reads the fields of a JSON object and keeps every fault, so that one answer names them all.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

/// A JSON object being read, field by field.
///
/// A field that is absent or `null` reads as `None`; one that is wrong reads as `None` as well and
/// leaves a fault.
pub struct Fields<'a> {
    object: &'a Map<String, Value>,
    prefix: &'static str,
    read: Vec<&'static str>,
    /// What is wrong, in the order it was found.
    pub faults: Vec<String>,
}

impl<'a> Fields<'a> {
    /// Starts to read `object`, whose fields the faults name with `prefix` in front.
    pub fn new(object: &'a Map<String, Value>, prefix: &'static str) -> Self {
        Self { object, prefix, read: Vec::new(), faults: Vec::new() }
    }

    /// The field itself.
    pub fn value(&mut self, name: &'static str) -> Option<&'a Value> {
        self.read.push(name);
        self.object.get(name).filter(|value| !value.is_null())
    }

    /// A text that is not empty and holds no control characters, trimmed.
    pub fn text(&mut self, name: &'static str) -> Option<String> {
        let value = self.value(name)?;
        let text = value.as_str().map(str::trim);
        match text.filter(|text| !text.is_empty() && !text.contains(char::is_control)) {
            Some(text) => Some(text.to_owned()),
            None => self.wrong(name, "must be a text that is not empty, on one line"),
        }
    }

    /// A text that must be there; empty if it is not, with a fault.
    pub fn required_text(&mut self, name: &'static str) -> String {
        if self.value(name).is_none() {
            self.fault(name, "is missing");
        }
        self.text(name).unwrap_or_default()
    }

    /// A whole number in `range`.
    pub fn whole(&mut self, name: &'static str, range: RangeInclusive<i64>) -> Option<i64> {
        let value = self.value(name)?;
        match value.as_i64().filter(|number| range.contains(number)) {
            Some(number) => Some(number),
            None => {
                self.wrong(name, &format!("must be a whole number from {} to {}", range.start(), range.end()))
            }
        }
    }

    /// A number in `range`.
    pub fn number(&mut self, name: &'static str, range: RangeInclusive<f64>) -> Option<f64> {
        let value = self.value(name)?;
        match value.as_f64().filter(|number| range.contains(number)) {
            Some(number) => Some(number),
            None => self.wrong(name, &format!("must be a number from {} to {}", range.start(), range.end())),
        }
    }

    /// `true` or `false`; `false` if absent.
    pub fn flag(&mut self, name: &'static str) -> bool {
        match self.value(name) {
            None => false,
            Some(Value::Bool(flag)) => *flag,
            Some(_) => self.wrong(name, "must be true or false").unwrap_or_default(),
        }
    }

    /// Notes that field `name` is wrong.
    pub fn fault(&mut self, name: &str, what: &str) {
        self.faults.push(format!("{}{name} {what}", self.prefix));
    }

    fn wrong<T>(&mut self, name: &str, what: &str) -> Option<T> {
        self.fault(name, what);
        None
    }

    /// The faults, with one more for each field nobody has asked for.
    pub fn finish(mut self) -> Vec<String> {
        let unknown: Vec<_> = self.object.keys().filter(|key| !self.read.contains(&key.as_str())).collect();
        for key in unknown {
            self.faults.push(format!("{}{key} is no field here", self.prefix));
        }
        self.faults
    }
}
