//! Invoking a deployed function and waiting for its answer.

use reqwest::StatusCode;
use serde_json::Value;

use crate::aws::{self, Client, Request};

/// Why an invocation gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The Lambda API could not be asked; the function may have run.
    #[error("function {0} could not be invoked")]
    Unasked(String, #[source] aws::Error),
    /// There is no such function, or it was refused.
    #[error("function {0} was not invoked: {1} {2}")]
    Refused(String, StatusCode, String),
    /// The function failed, was killed or ran out of time. What it committed before stays.
    #[error("function {0} failed: {1}")]
    Failed(String, Value),
}

/// Invokes `function` with `event`.
///
/// # Errors
///
/// [`Error`]
pub async fn invoke(client: &Client, function: &str, event: &Value) -> Result<Value, Error> {
    let unasked = |err| Error::Unasked(function.to_owned(), err);
    let request = Request {
        service: "lambda",
        path: &format!("/2015-03-31/functions/{function}/invocations"),
        headers: &[("content-type", "application/json")],
        body: &event.to_string(),
    };
    let response = client.post(request).await.map_err(unasked)?;
    let (status, failed) = (response.status(), response.headers().contains_key("x-amz-function-error"));
    let body = response.text().await.map_err(|err| unasked(err.into()))?;
    if !status.is_success() {
        return Err(Error::Refused(function.to_owned(), status, body));
    }
    let answer = serde_json::from_str(&body).unwrap_or(Value::String(body));
    if failed { Err(Error::Failed(function.to_owned(), answer)) } else { Ok(answer) }
}
