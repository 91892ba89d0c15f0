//! What is wrong with input, named so that a person finds it: source, file, line, field, expected.
//!
//! A fault is a report, never an error: what it names is left out, its neighbours are kept.

use std::fmt;

use serde::Serialize;

/// How much a fault cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The source brought nothing at all.
    SourceFailed,
    /// The row, item or file was left out.
    LeftOut,
    /// It was used, and something about it is worth knowing.
    Noted,
}

/// One thing wrong with input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// How much it cost.
    pub severity: Severity,
    /// The configured name of the source.
    pub source: String,
    /// The file, object or address within the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line of the file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The field, column or item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// What is wrong and what was expected.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        if let Some(file) = &self.file {
            write!(f, "/{file}")?;
        }
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        if let Some(field) = &self.field {
            write!(f, ", {field}")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Where in the input a reader stands; it makes the faults found there.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The configured name of the source.
    pub source: String,
    /// The file, object or address within the source.
    pub file: String,
}

impl Origin {
    /// Something left out because of `field`.
    #[must_use]
    pub fn left_out(&self, line: Option<u64>, field: Option<&str>, message: impl Into<String>) -> Fault {
        self.fault(Severity::LeftOut, line, field, message.into())
    }

    /// Something used all the same.
    #[must_use]
    pub fn noted(&self, line: Option<u64>, field: Option<&str>, message: impl Into<String>) -> Fault {
        self.fault(Severity::Noted, line, field, message.into())
    }

    fn fault(&self, severity: Severity, line: Option<u64>, field: Option<&str>, message: String) -> Fault {
        Fault {
            severity,
            source: self.source.clone(),
            file: Some(self.file.clone()),
            line,
            field: field.map(str::to_owned),
            message,
        }
    }
}
