//! One line: metrics that share their dimensions.

use std::borrow::Cow;
use std::error::Error;
use std::time::Duration;

use metrique_writer_core::config::EntryDimensions;
use metrique_writer_core::format::Format;
use metrique_writer_core::unit::NegativeScale;
use metrique_writer_core::{Entry, EntryWriter, MetricFlags, Observation, Unit, Value, ValueWriter};
use metrique_writer_format_emf::Emf;

use super::{Distribution, NAMESPACE, STACK, write};

/// Metrics that share their dimensions, of which `Stack` is the first.
#[derive(Clone, Debug)]
#[must_use = "a line is written by `emit`"]
pub struct Line {
    dimensions: Vec<(&'static str, String)>,
    metrics: Vec<(&'static str, Metric)>,
}

#[derive(Clone, Debug)]
struct Metric {
    observations: Vec<Observation>,
    unit: Unit,
}

impl Line {
    /// A line of the whole stack.
    pub fn stack() -> Self {
        Self::of(&[])
    }

    /// A line with further dimensions. No value of one may be an id: each set of values costs money.
    pub fn of(dimensions: &[(&'static str, &str)]) -> Self {
        let dimensions = dimensions.iter().map(|(name, value)| (*name, (*value).to_owned()));
        Self { dimensions: dimensions.collect(), metrics: Vec::new() }
    }

    /// Adds a number of things.
    pub fn count(self, name: &'static str, count: u64) -> Self {
        self.with(name, vec![Observation::Unsigned(count)], Unit::Count)
    }

    /// Adds a duration in whole seconds.
    pub fn seconds(self, name: &'static str, duration: Duration) -> Self {
        let seconds = Observation::Unsigned(duration.as_secs());
        self.with(name, vec![seconds], Unit::Second(NegativeScale::One))
    }

    /// Adds a duration in whole milliseconds.
    pub fn milliseconds(self, name: &'static str, duration: Duration) -> Self {
        let milliseconds = Observation::Unsigned(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
        self.with(name, vec![milliseconds], Unit::Second(NegativeScale::Milli))
    }

    /// Adds many durations in milliseconds. Nothing when there are none.
    pub fn distribution(self, name: &'static str, durations: &Distribution) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "two significant digits matter")]
        let repeated =
            |(bound, occurrences)| Observation::Repeated { total: (bound * occurrences) as f64, occurrences };
        if durations.is_empty() {
            return self;
        }
        self.with(name, durations.counts().map(repeated).collect(), Unit::Second(NegativeScale::Milli))
    }

    fn with(mut self, name: &'static str, observations: Vec<Observation>, unit: Unit) -> Self {
        self.metrics.push((name, Metric { observations, unit }));
        self
    }

    /// Writes the line, if it holds a metric.
    pub fn emit(self) {
        if !self.metrics.is_empty() {
            write(&self);
        }
    }

    /// The text of the line, its end included.
    ///
    /// # Errors
    ///
    /// A name or a value that the format does not take.
    pub fn render(&self, stack: &str) -> Result<String, Box<dyn Error + Send + Sync>> {
        let mut emf = Emf::builder(NAMESPACE.to_owned(), vec![vec![]]).build();
        let names = std::iter::once(STACK).chain(self.dimensions.iter().map(|(name, _)| *name));
        let names: Vec<_> = names.map(Cow::Borrowed).collect();
        let config = EntryDimensions::new(Cow::Owned(vec![Cow::Owned(names)]));
        let mut text = Vec::new();
        emf.format(&Document { line: self, stack, config }, &mut text).map_err(|error| error.to_string())?;
        Ok(String::from_utf8(text)?)
    }
}

/// A line as the format takes it.
struct Document<'l> {
    line: &'l Line,
    stack: &'l str,
    config: EntryDimensions,
}

impl Entry for Document<'_> {
    fn write<'a>(&'a self, writer: &mut impl EntryWriter<'a>) {
        writer.config(&self.config);
        writer.value(STACK, self.stack);
        for (name, value) in &self.line.dimensions {
            writer.value(*name, value.as_str());
        }
        for (name, metric) in &self.line.metrics {
            writer.value(*name, metric);
        }
    }
}

impl Value for Metric {
    fn write(&self, writer: impl ValueWriter) {
        writer.metric(self.observations.iter().copied(), self.unit, [], MetricFlags::empty());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rendered(line: &Line) -> Value {
        let text = line.render("test").unwrap();
        assert_eq!(text.find('\n'), Some(text.len() - 1), "{text:?} is one line");
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn line_is_one_object_with_one_dimension_set() {
        let line = Line::of(&[("Destination", "news")])
            .count("Published", 3)
            .seconds("Age", Duration::from_secs(90));

        let document = rendered(&line);

        assert_eq!(
            document["_aws"]["CloudWatchMetrics"],
            json!([{
                "Namespace": "Tailcar",
                "Dimensions": [["Stack", "Destination"]],
                "Metrics": [{"Name": "Published", "Unit": "Count"}, {"Name": "Age", "Unit": "Seconds"}],
            }])
        );
        assert!(document["_aws"]["Timestamp"].is_u64());
        assert_eq!(document["Stack"], "test");
        assert_eq!(document["Destination"], "news");
        assert_eq!((&document["Published"], &document["Age"]), (&json!(3), &json!(90)));
    }

    #[test]
    fn durations_are_values_with_their_counts() {
        let mut waits = Distribution::default();
        for wait in [4, 5, 40] {
            waits.add(Duration::from_millis(wait));
        }

        let document = rendered(&Line::stack().distribution("Wait", &waits));

        assert_eq!(document["Wait"], json!({"Values": [5, 50], "Counts": [2, 1]}));
        assert_eq!(document["_aws"]["CloudWatchMetrics"][0]["Metrics"][0]["Unit"], "Milliseconds");
    }

    #[test]
    fn zero_is_written_and_an_empty_distribution_is_not() {
        let line = Line::stack().count("Jobs", 0).distribution("Wait", &Distribution::default());
        let document = rendered(&line);
        assert_eq!(document["Jobs"], 0);
        assert!(document.get("Wait").is_none());
    }
}
