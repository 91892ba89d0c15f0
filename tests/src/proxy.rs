//! A proxy in front of PostgreSQL that loses answers, or is not there for a while.
//!
//! It follows the frontend protocol just far enough to know which statement a client runs: the text of a
//! simple query, or of the prepared statement that is bound. When the chosen one was executed (COMMIT
//! included) and the server has answered, both connections are cut and the client never hears of it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::Result;

/// The number that stands for a version in a request for TLS.
const SSL_REQUEST: u32 = 80_877_103;

/// Ready for the next query: the last one was executed, and the session is idle, in a transaction, or in
/// one that failed.
const READY: [&[u8]; 3] = [b"Z\0\0\0\x05I", b"Z\0\0\0\x05T", b"Z\0\0\0\x05E"];

/// A running proxy.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    cut: watch::Sender<u64>,
    server: tokio::task::JoinHandle<()>,
}

struct Shared {
    upstream: String,
    rule: Mutex<Option<Rule>>,
    swallowed: AtomicU64,
    away: AtomicBool,
}

/// Which answer to lose.
struct Rule {
    text: String,
    passages_left: u32,
}

impl Proxy {
    /// A proxy to `upstream`, `host:port`, on a free port of the loopback.
    ///
    /// # Errors
    ///
    /// No port is free.
    pub async fn start(upstream: &str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            upstream: upstream.to_owned(),
            rule: Mutex::default(),
            swallowed: AtomicU64::new(0),
            away: AtomicBool::new(false),
        });
        let (cut, cuts) = watch::channel(0);
        let server = tokio::spawn(accept(listener, Arc::clone(&shared), cuts));
        Ok(Self { address, shared, cut, server })
    }

    /// Where clients connect to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Loses the answer to the `passage`-th statement (from 1) whose text contains `text`.
    pub fn swallow(&self, text: &str, passage: u32) {
        *self.shared.rule() = Some(Rule { text: text.to_owned(), passages_left: passage });
    }

    /// How many answers were lost.
    #[must_use]
    pub fn swallowed(&self) -> u64 {
        self.shared.swallowed.load(Ordering::SeqCst)
    }

    /// The database is away: what is connected is cut, and nobody gets through.
    pub fn go_away(&self) {
        self.shared.away.store(true, Ordering::SeqCst);
        self.cut.send_modify(|cuts| *cuts += 1);
    }

    /// The database is back.
    pub fn come_back(&self) {
        self.shared.away.store(false, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Shared {
    fn rule(&self) -> std::sync::MutexGuard<'_, Option<Rule>> {
        self.rule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the answer to this statement is to be lost.
    fn is_chosen(&self, statement: &str) -> bool {
        let mut rule = self.rule();
        let Some(chosen) = rule.as_mut().filter(|rule| statement.contains(&rule.text)) else { return false };
        chosen.passages_left -= 1;
        let now = chosen.passages_left == 0;
        if now {
            *rule = None;
        }
        now
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, cuts: watch::Receiver<u64>) {
    while let Ok((client, _)) = listener.accept().await {
        if shared.away.load(Ordering::SeqCst) {
            continue;
        }
        let (shared, mut cuts) = (Arc::clone(&shared), cuts.clone());
        cuts.mark_unchanged();
        tokio::spawn(async move {
            tokio::select! {
                // However it ends, both connections are closed.
                _ = serve(client, &shared) => {}
                _ = cuts.changed() => {}
            }
        });
    }
}

async fn serve(client: TcpStream, shared: &Shared) -> Result<()> {
    let server = TcpStream::connect(&shared.upstream).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (client_reads, client_writes) = client.into_split();
    let (server_reads, server_writes) = server.into_split();
    let (chosen, doomed) = watch::channel(false);
    tokio::select! {
        ended = forward(client_reads, server_writes, shared, chosen) => ended,
        ended = backward(server_reads, client_writes, shared, doomed) => ended,
    }
}

/// Client to server, message by message.
async fn forward(
    mut client: OwnedReadHalf,
    mut server: OwnedWriteHalf,
    shared: &Shared,
    chosen: watch::Sender<bool>,
) -> Result<()> {
    while start_up(&mut client, &mut server).await? == SSL_REQUEST {}
    let mut prepared = HashMap::new();
    loop {
        let kind = client.read_u8().await?;
        let length = client.read_u32().await?;
        let mut body = vec![0; usize::try_from(length)?.saturating_sub(4)];
        client.read_exact(&mut body).await?;
        if executed(kind, &body, &mut prepared).is_some_and(|text| shared.is_chosen(&text)) {
            chosen.send_replace(true);
        }
        server.write_all(&[&[kind], &length.to_be_bytes()[..], &body].concat()).await?;
    }
}

/// Passes a message without a kind on and gives the number it begins with.
async fn start_up(client: &mut OwnedReadHalf, server: &mut OwnedWriteHalf) -> Result<u32> {
    let length = client.read_u32().await?;
    let mut body = vec![0; usize::try_from(length)?.saturating_sub(4)];
    client.read_exact(&mut body).await?;
    server.write_all(&[&length.to_be_bytes()[..], &body].concat()).await?;
    Ok(body.first_chunk().map_or(0, |number| u32::from_be_bytes(*number)))
}

/// The text of the statement that this message makes the server execute.
fn executed(kind: u8, body: &[u8], prepared: &mut HashMap<String, String>) -> Option<String> {
    let mut texts = body.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned());
    match kind {
        b'Q' => texts.next(),
        b'P' => {
            prepared.insert(texts.next()?, texts.next()?);
            None
        }
        b'B' => {
            let _portal = texts.next()?;
            prepared.get(&texts.next()?).cloned()
        }
        _ => None,
    }
}

/// Server to client, until an answer is to be lost: then it waits for the answer and keeps it.
async fn backward(
    mut server: OwnedReadHalf,
    mut client: OwnedWriteHalf,
    shared: &Shared,
    doomed: watch::Receiver<bool>,
) -> Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = server.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        if !*doomed.borrow() {
            client.write_all(&buffer[..count]).await?;
        } else if READY.iter().any(|ready| buffer[..count].ends_with(ready)) {
            shared.swallowed.fetch_add(1, Ordering::SeqCst);
            return Ok(());
        }
    }
}
