//! The schema as a resource of CloudFormation, which waits an hour for an answer: so it always gets one.
//!
//! Created and updated alike; deleting it is nothing, for data outlives a stack. The resource is asked
//! for again when one of its properties changes: the template gives it the hash of the migrations. When
//! an update is rolled back, the older release runs on the newer schema, which is a success.

use std::time::Duration;

use runtime::telemetry::Chain;
use runtime::time_left::TimeLeft;
use serde::Deserialize;
use serde_json::{Value, json};
use tracing::{info, warn};

use crate::migration::Migration;

/// The resource's name, whatever its properties: another name would make CloudFormation delete the old.
const PHYSICAL_ID: &str = "tailcar-schema";
/// An answer may have 4,096 bytes.
const REASON_MAX: usize = 1_000;
/// How often the answer is sent, if it does not arrive.
const TRIES: u32 = 3;
/// How long one try may take.
const TRY_TIMEOUT: Duration = Duration::from_secs(1);

/// Why CloudFormation does not know how it went.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It has a `RequestType` and not what an answer needs. Nobody can be answered.
    #[error("the event is no request of CloudFormation")]
    Event(#[source] serde_json::Error),
    /// A private subnet needs the S3 gateway endpoint for it.
    #[error("the answer did not reach CloudFormation")]
    Answer(#[source] reqwest::Error),
}

/// A request of CloudFormation.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    request_type: String,
    #[serde(rename = "ResponseURL")]
    response_url: String,
    stack_id: String,
    request_id: String,
    logical_resource_id: String,
    physical_resource_id: Option<String>,
}

impl Request {
    /// Reads an event; `None` when it is not from CloudFormation.
    ///
    /// # Errors
    ///
    /// [`Error::Event`].
    pub fn parse(event: &Value) -> Result<Option<Self>, Error> {
        if event.get("RequestType").is_none() {
            return Ok(None);
        }
        Self::deserialize(event).map(Some).map_err(Error::Event)
    }

    fn answer(&self, outcome: &Result<Value, String>) -> Value {
        let status = if outcome.is_ok() { "SUCCESS" } else { "FAILED" };
        let reason = outcome.as_ref().err().map_or("", String::as_str);
        json!({
            "Status": status,
            "Reason": reason.chars().take(REASON_MAX).collect::<String>(),
            "PhysicalResourceId": self.physical_resource_id.as_deref().unwrap_or(PHYSICAL_ID),
            "StackId": self.stack_id,
            "RequestId": self.request_id,
            "LogicalResourceId": self.logical_resource_id,
            "Data": outcome.as_ref().unwrap_or(&Value::Null),
        })
    }
}

/// Does what CloudFormation asks for and tells it how that went; gives the answer.
///
/// # Errors
///
/// [`Error::Answer`]: the invocation fails, and Lambda calls again.
pub async fn answer(request: &Request, migration: &Migration, time_left: TimeLeft) -> Result<Value, Error> {
    let outcome = carry_out(request, migration, time_left).await;
    let answer = request.answer(&outcome);
    send(request, &answer).await?;
    info!(request = request.request_type, status = %answer["Status"], "CloudFormation was answered");
    Ok(answer)
}

async fn carry_out(request: &Request, migration: &Migration, time_left: TimeLeft) -> Result<Value, String> {
    if request.request_type == "Delete" {
        return Ok(json!({}));
    }
    match migration.run(time_left).await {
        Ok(migrated) => Ok(json!({
            "SchemaVersion": migrated.version.to_string(),
            "SchemaHash": store::migrate::schema_hash(),
            "Applied": migrated.applied.join(", "),
        })),
        Err(error) => {
            warn!(error = %Chain(&error), "the schema is not up to date");
            Err(Chain(&error).to_string())
        }
    }
}

/// The URL is signed for a request without a content type.
async fn send(request: &Request, answer: &Value) -> Result<(), Error> {
    let client = reqwest::Client::builder().timeout(TRY_TIMEOUT).build().map_err(Error::Answer)?;
    let mut tries = 0;
    loop {
        tries += 1;
        let sent = client.put(&request.response_url).body(answer.to_string()).send().await;
        // The URL lets anybody answer: it stands in no error and no log.
        match sent.and_then(reqwest::Response::error_for_status).map_err(reqwest::Error::without_url) {
            Ok(_) => return Ok(()),
            Err(error) if tries == TRIES => return Err(Error::Answer(error)),
            Err(error) => warn!(error = %Chain(&error), tries, "the answer did not arrive"),
        }
    }
}
