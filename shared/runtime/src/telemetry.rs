//! Logs: JSON lines in AWS, text elsewhere, each inside the span of its invocation.
//!
//! The runtime opens that span itself, with the request's id and its trace. A line names the job and
//! the message; it never holds a payload or a secret.

use std::error::Error;
use std::fmt;
use std::sync::Once;

/// Starts logging. The first line of every `main`; calling it again does nothing.
///
/// Honours `AWS_LAMBDA_LOG_FORMAT` and `AWS_LAMBDA_LOG_LEVEL`, and `RUST_LOG` where they are not set.
pub fn init() {
    static STARTED: Once = Once::new();
    STARTED.call_once(lambda_runtime::tracing::init_default_subscriber);
}

/// Logs why an invocation fails and makes it the invocation's answer, with its whole chain in both.
///
/// For `map_err` at the outermost line of a function: an error is logged once, here.
#[must_use]
pub fn failed(error: impl Error + 'static) -> lambda_runtime::Error {
    let chain = Chain(&error).to_string();
    tracing::error!(error = chain, "the invocation failed");
    chain.into()
}

/// Displays an error and each of its sources, joined by `: `.
///
/// An error's own text leaves its source out and a JSON log line prints only that, so every error that
/// is logged or stored goes through here.
pub struct Chain<'a>(pub &'a (dyn Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(cause) = source {
            write!(f, ": {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the batch was not claimed")]
    struct Outer(#[source] std::fmt::Error);

    #[test]
    fn chain_names_every_cause() {
        let error = Outer(std::fmt::Error);
        let cause = std::fmt::Error.to_string();
        assert_eq!(Chain(&error).to_string(), format!("the batch was not claimed: {cause}"));
    }
}
