//! What the functions themselves counted, read from their logs.
//!
//! An invocation that was killed has counted nothing, so these numbers are lower bounds.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::aws::{self, Client, Request};

/// Pages read of one log, each of 10,000 lines at most; more than any rehearsal writes.
const PAGES_MAX: usize = 100;

/// Why a log could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log service could not be asked.
    #[error("the log of {0} could not be asked for")]
    Unasked(String, #[source] aws::Error),
    /// It did not answer with lines.
    #[error("the log of {0} can not be read: {1}")]
    Unreadable(String, String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    events: Vec<Event>,
    next_token: Option<String>,
}

#[derive(Deserialize)]
struct Event {
    message: String,
}

/// The lines that `function` has logged since `since` and that are JSON objects, oldest first.
///
/// # Errors
///
/// [`Error`]
pub async fn lines(client: &Client, function: &str, since: DateTime<Utc>) -> Result<Vec<Value>, Error> {
    let mut lines = Vec::new();
    let mut token = None;
    for _ in 0..PAGES_MAX {
        let page = page(client, function, since, token).await?;
        lines.extend(page.events.iter().filter_map(|event| serde_json::from_str(&event.message).ok()));
        token = page.next_token;
        if token.is_none() {
            break;
        }
    }
    Ok(lines)
}

async fn page(
    client: &Client,
    function: &str,
    since: DateTime<Utc>,
    token: Option<String>,
) -> Result<Page, Error> {
    let unasked = |err| Error::Unasked(function.to_owned(), err);
    let mut query = json!({
        "logGroupName": format!("/aws/lambda/{function}"),
        "startTime": since.timestamp_millis(),
    });
    if let Some(token) = token {
        query["nextToken"] = token.into();
    }
    let request = Request {
        service: "logs",
        path: "/",
        headers: &[
            ("content-type", "application/x-amz-json-1.1"),
            ("x-amz-target", "Logs_20140328.FilterLogEvents"),
        ],
        body: &query.to_string(),
    };
    let response = client.post(request).await.map_err(unasked)?;
    let body = response.text().await.map_err(|err| unasked(err.into()))?;
    serde_json::from_str(&body).map_err(|_| Error::Unreadable(function.to_owned(), body))
}
