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
#[expect(clippy::struct_field_names, reason = "the names are CloudFormation's")]
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use runtime::database::Postgres;
    use runtime::settings::{Access, Database, Pooler, Tls};
    use sqlx::PgPool;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    async fn migration(url: String) -> Migration {
        let (access, tls, pooler) = (Access::Url(url), Tls::AsUrl, Pooler::None);
        let settings = Database { access, connections_max: 1, tls, pooler };
        let database = Postgres::new(&settings, &runtime::aws::load().await).unwrap();
        Migration { database: Arc::new(database), logins: false }
    }

    fn request(request_type: &str, response_url: &str) -> Request {
        let event = json!({
            "RequestType": request_type, "ResponseURL": response_url, "StackId": "stack", "RequestId": "one",
            "LogicalResourceId": "Schema", "ResourceProperties": {"SchemaHash": "x"},
        });
        Request::parse(&event).unwrap().unwrap()
    }

    /// What CloudFormation is told about `request_type` while the work is `migration`.
    async fn told(request_type: &str, migration: &Migration, time_left: TimeLeft) -> Value {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/answer?signed", listener.local_addr().unwrap());
        let received = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut text = String::new();
            while !text.ends_with('}') {
                let mut some = [0; 4096];
                let count = stream.read(&mut some).await.unwrap();
                text.push_str(std::str::from_utf8(&some[..count]).unwrap());
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.unwrap();
            text
        });
        answer(&request(request_type, &url), migration, time_left).await.unwrap();
        let text = received.await.unwrap();
        assert!(text.starts_with("PUT /answer?signed "), "{text}");
        assert!(!text.to_lowercase().contains("content-type"), "the URL is signed without one: {text}");
        serde_json::from_str(text.split("\r\n\r\n").nth(1).unwrap()).unwrap()
    }

    fn a_minute() -> TimeLeft {
        TimeLeft::lasting(Duration::from_mins(1))
    }

    #[sqlx::test(migrations = false)]
    async fn create_and_update_migrate_and_name_the_same_resource(db: PgPool) {
        let migration =
            migration(sqlx::ConnectOptions::to_url_lossy(&*db.connect_options()).to_string()).await;

        let created = told("Create", &migration, a_minute()).await;
        let updated = told("Update", &migration, a_minute()).await;

        assert_eq!((&created["Status"], &updated["Status"]), (&json!("SUCCESS"), &json!("SUCCESS")));
        assert!(created["Data"]["Applied"].as_str().unwrap().starts_with("0001 protocol, "), "{created}");
        assert_eq!(updated["Data"]["Applied"], "");
        assert_eq!(created["Data"]["SchemaHash"], store::migrate::schema_hash());
        assert_eq!(created["PhysicalResourceId"], updated["PhysicalResourceId"]);
        assert_eq!((&created["StackId"], &created["RequestId"]), (&json!("stack"), &json!("one")));
    }

    #[tokio::test]
    async fn failure_and_lack_of_time_are_answers_too() {
        let away = migration("postgres://127.0.0.1:1/none".to_owned()).await;
        for time in [a_minute(), TimeLeft::lasting(Duration::ZERO)] {
            let answer = told("Create", &away, time).await;
            assert_eq!(answer["Status"], "FAILED", "{answer}");
            assert_ne!(answer["Reason"], "", "{answer}");
        }
    }

    #[tokio::test]
    async fn delete_asks_nobody_and_succeeds() {
        let away = migration("postgres://127.0.0.1:1/none".to_owned()).await;
        assert_eq!(told("Delete", &away, a_minute()).await["Status"], "SUCCESS");
    }
}
