//! What a scenario found: figures, what was expected of them, and what was violated.

use std::error::Error;
use std::time::Duration;

use comfy_table::Table;
use serde_json::{Map, Value, json};

/// What came of one scenario.
#[derive(Debug, Default)]
pub struct Finding {
    name: String,
    took: Duration,
    figures: Map<String, Value>,
    violations: Vec<String>,
}

impl Finding {
    /// A scenario that could not be carried out.
    pub fn failed(error: &(dyn Error + Send + Sync + 'static)) -> Self {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        Self { violations: vec![text], ..Self::default() }
    }

    /// Names it and says how long it took.
    pub fn named(mut self, name: &str, took: Duration) -> Self {
        name.clone_into(&mut self.name);
        self.took = took;
        self
    }

    /// Takes down a figure of which nothing is expected.
    pub fn note(&mut self, key: &str, value: impl Into<i64>) {
        self.figures.insert(key.to_owned(), json!(value.into()));
    }

    /// Takes down a figure, and a violation when it is another than expected.
    pub fn expect(&mut self, key: &str, value: impl Into<i64>, expected: impl Into<i64>) {
        let (value, expected) = (value.into(), expected.into());
        self.note(key, value);
        if value != expected {
            self.violate(format!("{key} is {value}, not {expected}"));
        }
    }

    /// Takes down what was violated.
    pub fn violate(&mut self, violation: impl Into<String>) {
        self.violations.push(violation.into());
    }

    /// Takes down several.
    pub fn violate_all(&mut self, violations: impl IntoIterator<Item = String>) {
        self.violations.extend(violations);
    }

    /// Whether anything was.
    pub fn is_violated(&self) -> bool {
        !self.violations.is_empty()
    }

    /// One line for a person who waits.
    pub fn summary(&self) -> String {
        format!("{}: {}", self.name, self.violations.join("; "))
    }

    fn figures_line(&self) -> String {
        let figures: Vec<String> = self.figures.iter().map(|(key, value)| format!("{key} {value}")).collect();
        figures.join(", ")
    }
}

/// All findings for people.
pub fn table(findings: &[Finding]) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["scenario", "found", "violated", "seconds"]);
    for finding in findings {
        table.add_row([
            finding.name.clone(),
            finding.figures_line(),
            if finding.is_violated() { finding.violations.join("\n") } else { "nothing".to_owned() },
            format!("{:.1}", finding.took.as_secs_f64()),
        ]);
    }
    table
}

/// All findings for programs.
pub fn json(findings: &[Finding]) -> Value {
    let scenarios: Vec<Value> = findings
        .iter()
        .map(|finding| {
            let mut fields = Map::new();
            fields.insert("scenario".to_owned(), json!(finding.name));
            fields.extend(finding.figures.clone());
            fields.insert("violations".to_owned(), json!(finding.violations));
            fields.insert("seconds".to_owned(), json!(finding.took.as_secs_f64()));
            Value::Object(fields)
        })
        .collect();
    let violations: usize = findings.iter().map(|finding| finding.violations.len()).sum();
    json!({ "scenarios": scenarios, "violations": violations })
}
