//! Metrics: what a function counted, as embedded-metric lines on standard output.
//!
//! One [`Line`] is one JSON object at the root of one line: `CloudWatch` makes metrics of it,
//! whatever the function's log format is, with no call and no endpoint. Nothing is written before
//! [`init`], so a library under test stays silent, and a metric that can not be written fails nobody.
//!
//! Each metric has exactly one dimension set, `Stack` first: an alarm on another set would see nothing.

mod distribution;
mod line;

use std::io::Write;
use std::sync::OnceLock;

pub use distribution::Distribution;
pub use line::Line;

use crate::settings::environment;

/// The namespace of every metric.
pub const NAMESPACE: &str = "Tailcar";
/// The dimension that every metric has.
pub const STACK: &str = "Stack";
/// The value of [`STACK`] where `STACK_NAME` is not set.
const LOCAL: &str = "local";

static STACK_NAME: OnceLock<String> = OnceLock::new();

/// From now on lines are written, for the stack that `STACK_NAME` names.
pub fn init() {
    let name = environment("STACK_NAME").filter(|name| !name.is_empty());
    STACK_NAME.get_or_init(|| name.unwrap_or_else(|| LOCAL.to_owned()));
}

/// Says that a scheduled function has come to the end of a good run. Where it is missing, an alarm rings.
pub fn heartbeat(function: &'static str) {
    Line::of(&[("Function", function)]).count("Heartbeat", 1).emit();
}

/// Writes a line at once and whole, however many threads write.
fn write(line: &Line) {
    let Some(stack) = STACK_NAME.get() else { return };
    let written =
        line.render(stack).and_then(|text| Ok(std::io::stdout().lock().write_all(text.as_bytes())?));
    if let Err(error) = written {
        tracing::warn!(error = %crate::telemetry::Chain(&*error), "a metric was not written");
    }
}
