//! A proxy in front of the SQS-protocol server that makes bad weather for the functions.
//!
//! Everything passes as it is but their two calls, `SendMessageBatch` and `ChangeMessageVisibilityBatch`,
//! which meet the [`Weather`] of the moment. It knows the JSON protocol of today's SDKs and no other.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use crate::Result;
use crate::http::{Request, read, response};

/// The calls that meet it: the relay's, and the consumers' and dead-letter's.
const CALLS: [&str; 2] = [".SendMessageBatch", ".ChangeMessageVisibilityBatch"];

/// What a call meets. What is said of sending holds for a change of visibility as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weather {
    /// Nothing.
    #[default]
    Calm,
    /// `RequestThrottled`; nothing is sent.
    Throttle,
    /// A server's error; nothing is sent.
    ServerError,
    /// Every second entry fails for the moment, the others are sent: in turns those at even places and
    /// those at odd ones, so that a call of one entry meets it too.
    PartialFailure,
    /// The same halves, and the answer names only what was sent.
    Forget,
    /// Everything is sent twice.
    Twice,
    /// Everything is sent and the caller hears nothing.
    LoseAnswer,
    /// Everything is sent, later.
    Delay(Duration),
}

/// A running proxy.
pub struct SqsProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: tokio::task::JoinHandle<()>,
}

struct Shared {
    upstream: String,
    client: reqwest::Client,
    now: Mutex<(Weather, u64)>,
}

impl SqsProxy {
    /// A proxy to `upstream`, a URL without a path, on a free port of the loopback.
    ///
    /// # Errors
    ///
    /// No port is free.
    pub async fn start(upstream: &str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let client = reqwest::Client::builder().no_proxy().build()?;
        let upstream = upstream.trim_end_matches('/').to_owned();
        let shared = Arc::new(Shared { upstream, client, now: Mutex::default() });
        let server = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, server })
    }

    /// What `AWS_ENDPOINT_URL_SQS` is to say.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on it is `weather`.
    pub fn set(&self, weather: Weather) {
        self.shared.now().0 = weather;
    }

    /// How many calls met bad weather.
    #[must_use]
    pub fn met(&self) -> u64 {
        self.shared.now().1
    }
}

impl Drop for SqsProxy {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Shared {
    fn now(&self) -> std::sync::MutexGuard<'_, (Weather, u64)> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The weather that `request` meets, and how many calls met bad weather before it.
    fn weather_for(&self, request: &Request) -> (Weather, u64) {
        let target = request.header("x-amz-target").unwrap_or_default();
        let mut now = self.now();
        let weather = if CALLS.iter().any(|call| target.ends_with(call)) { now.0 } else { Weather::Calm };
        let before = now.1;
        now.1 += u64::from(weather != Weather::Calm);
        (weather, before)
    }

    /// The answer; `None` cuts the connection.
    async fn answer(&self, request: Request) -> Result<Option<Vec<u8>>> {
        let (weather, before) = self.weather_for(&request);
        match weather {
            Weather::Calm => self.pass(&request, None).await.map(Some),
            Weather::Throttle => Ok(Some(error("400 Bad Request", "com.amazonaws.sqs#RequestThrottled"))),
            Weather::ServerError => {
                Ok(Some(error("503 Service Unavailable", "com.amazonaws.sqs#ServiceUnavailable")))
            }
            Weather::PartialFailure => self.half(&request, before, true).await.map(Some),
            Weather::Forget => self.half(&request, before, false).await.map(Some),
            Weather::Twice => {
                self.pass(&request, None).await?;
                self.pass(&request, None).await.map(Some)
            }
            Weather::LoseAnswer => self.pass(&request, None).await.map(|_| None),
            Weather::Delay(delay) => {
                tokio::time::sleep(delay).await;
                self.pass(&request, None).await.map(Some)
            }
        }
    }

    /// Passes a request on, with another body where there is one, and gives the server's answer.
    async fn pass(&self, request: &Request, body: Option<Vec<u8>>) -> Result<Vec<u8>> {
        let method = reqwest::Method::from_bytes(request.method.as_bytes())?;
        let mut passed = self.client.request(method, format!("{}{}", self.upstream, request.path));
        for (name, value) in &request.headers {
            if !["host", "content-length", "connection"].contains(&name.to_ascii_lowercase().as_str()) {
                passed = passed.header(name, value);
            }
        }
        let answer = passed.body(body.unwrap_or_else(|| request.body.clone())).send().await?;
        let status = answer.status().to_string();
        Ok(response(&status, "", &answer.bytes().await?))
    }

    /// Sends every second entry; the others fail for the moment, or are not named.
    async fn half(&self, request: &Request, before: u64, name_the_rest: bool) -> Result<Vec<u8>> {
        let mut body = request.json();
        let Some(entries) = body["Entries"].as_array_mut() else { return self.pass(request, None).await };
        let first = usize::from(before % 2 == 1);
        let (kept, left): (Vec<_>, Vec<_>) =
            entries.drain(..).enumerate().partition(|(position, _)| position % 2 == first);
        *entries = kept.into_iter().map(|(_, entry)| entry).collect();
        let mut answer = json!({ "Successful": [] });
        // An empty call would be refused as a whole.
        if !entries.is_empty() {
            let body = serde_json::to_vec(&body)?;
            answer = body_of(&self.pass(request, Some(body)).await?)?;
        }
        if name_the_rest {
            let refused = answer["Failed"].as_array().cloned().unwrap_or_default();
            let failed = left.iter().map(|(_, entry)| failed(&entry["Id"]));
            answer["Failed"] = refused.into_iter().chain(failed).collect();
        }
        Ok(response("200 OK", "", &serde_json::to_vec(&answer)?))
    }
}

fn failed(id: &Value) -> Value {
    json!({ "Id": id, "Code": "InternalError", "SenderFault": false, "Message": "on purpose" })
}

fn body_of(response: &[u8]) -> Result<Value> {
    let end = response.windows(4).position(|bytes| bytes == b"\r\n\r\n").ok_or("no head")?;
    Ok(serde_json::from_slice(&response[end + 4..])?)
}

fn error(status: &str, code: &str) -> Vec<u8> {
    response(status, "", json!({ "__type": code, "message": "on purpose" }).to_string().as_bytes())
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            // However it ends, the connection is closed.
            let _ = serve(stream, &shared).await;
        });
    }
}

async fn serve(mut stream: TcpStream, shared: &Shared) -> Result<()> {
    let mut buffer = Vec::new();
    while let Some(request) = read(&mut stream, &mut buffer).await? {
        match shared.answer(request).await? {
            Some(answer) => stream.write_all(&answer).await?,
            None => break,
        }
    }
    Ok(())
}
