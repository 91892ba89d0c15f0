//! The Lambda runtime API for one sandbox: next, response, error, over HTTP/1.1.
//!
//! Hands one event at a time to the function and gives its answer to whoever invoked. It does not know
//! whether the function lives; a caller that waits watches the process as well.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc, oneshot};
use uuid::Uuid;

use crate::Result;
use crate::http::{Request, read, response};

/// What a function made of an event.
pub type Answer = std::result::Result<Value, Value>;

struct Invocation {
    id: String,
    event: Value,
    deadline: SystemTime,
}

/// The server's side of one sandbox.
pub struct RuntimeApi {
    address: SocketAddr,
    events: mpsc::UnboundedSender<Invocation>,
    shared: Arc<Shared>,
    server: tokio::task::JoinHandle<()>,
}

struct Shared {
    next: Mutex<mpsc::UnboundedReceiver<Invocation>>,
    waiting: StdMutex<HashMap<String, oneshot::Sender<Answer>>>,
}

impl RuntimeApi {
    /// Listens on a free port of the loopback.
    ///
    /// # Errors
    ///
    /// No port is free.
    pub async fn bind() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (events, next) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared { next: Mutex::new(next), waiting: StdMutex::default() });
        let server = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { address, events, shared, server })
    }

    /// The value of `AWS_LAMBDA_RUNTIME_API`.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Offers `event` to the function; the receiver gets its answer, if ever.
    #[must_use]
    pub fn offer(&self, event: Value, timeout: Duration) -> oneshot::Receiver<Answer> {
        let (sender, receiver) = oneshot::channel();
        let id = Uuid::new_v4().to_string();
        self.shared.waiting().insert(id.clone(), sender);
        // The receiver lives as long as the server, which lives as long as `self`.
        let _ = self.events.send(Invocation { id, event, deadline: SystemTime::now() + timeout });
        receiver
    }
}

impl Drop for RuntimeApi {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Shared {
    fn waiting(&self) -> std::sync::MutexGuard<'_, HashMap<String, oneshot::Sender<Answer>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, request: &Request) -> Vec<u8> {
        let path: Vec<&str> = request.path.trim_start_matches('/').split('/').collect();
        match path.as_slice() {
            ["2018-06-01", "runtime", "invocation", "next"] => self.next().await,
            ["2018-06-01", "runtime", "invocation", id, "response"] => self.deliver(id, Ok(request.json())),
            ["2018-06-01", "runtime", "invocation", id, "error"] => self.deliver(id, Err(request.json())),
            ["2018-06-01", "runtime", "init", "error"] => response("202 Accepted", "", b""),
            _ => response("404 Not Found", "", b""),
        }
    }

    async fn next(&self) -> Vec<u8> {
        let Some(invocation) = self.next.lock().await.recv().await else {
            return response("503 Service Unavailable", "", b"");
        };
        let deadline = invocation.deadline.duration_since(UNIX_EPOCH).unwrap_or_default();
        let headers = format!(
            "Lambda-Runtime-Aws-Request-Id: {}\r\nLambda-Runtime-Deadline-Ms: {}\r\n\
             Lambda-Runtime-Invoked-Function-Arn: arn:aws:lambda:us-east-1:000000000000:function:f\r\n",
            invocation.id,
            deadline.as_millis()
        );
        response("200 OK", &headers, invocation.event.to_string().as_bytes())
    }

    fn deliver(&self, id: &str, answer: Answer) -> Vec<u8> {
        if let Some(sender) = self.waiting().remove(id) {
            // Nobody waits any more when the invocation timed out.
            let _ = sender.send(answer);
        }
        response("202 Accepted", "", b"")
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, Arc::clone(&shared)));
    }
}

/// Serves one connection until the function goes away.
async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    let mut buffer = Vec::new();
    while let Ok(Some(request)) = read(&mut stream, &mut buffer).await {
        let answer = shared.answer(&request).await;
        if stream.write_all(&answer).await.is_err() {
            return;
        }
    }
}
