//! Sources: folders, S3 prefixes and web addresses, fetched side by side.
//!
//! A source that fails or is late costs only itself. What a fetch may take and bring is bounded by its
//! configuration; here is nothing that knows a format.

mod folder;
mod http;
mod intake;
mod s3;

use std::time::Duration;

use futures::future::join_all;

use crate::config::{Location, Source};
use crate::input_fault::{Fault, Severity};

/// The most documents one source may have: each is held in memory until it is read.
const DOCUMENTS_MAX: usize = 1000;

/// What a source is asked for; decides which file names are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Prices.
    Bars,
    /// Feeds.
    News,
}

/// One file, object or answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Its name within the source.
    pub name: String,
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// What a source brought.
#[derive(Debug, Default)]
pub struct Fetched {
    /// Its documents, by name.
    pub documents: Vec<Document>,
    /// Documents that were left out.
    pub faults: Vec<Fault>,
    /// Whether the source as a whole brought nothing: unreachable, refused or late.
    pub failed: bool,
}

/// Why a source as a whole brought nothing. Every one of them may pass.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("can not be read")]
    Unreadable(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("took longer than {} s", .0.as_secs())]
    Late(Duration),
    #[error("answered with status {0}")]
    Status(u16),
    #[error("is larger than {0} bytes")]
    TooLarge(u64),
}

impl Error {
    fn unreadable(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Unreadable(Box::new(error))
    }
}

/// Fetches sources of every kind of place.
#[derive(Clone, Debug)]
pub struct Fetcher {
    s3: aws_sdk_s3::Client,
    http: reqwest::Client,
}

/// The HTTP client could not be made: this machine has no usable TLS roots. The function can not start.
#[derive(Debug, thiserror::Error)]
#[error("no HTTP client can be made")]
pub struct NoHttpClient(#[from] reqwest::Error);

impl Fetcher {
    /// A fetcher that reads S3 sources with `s3`.
    ///
    /// # Errors
    ///
    /// [`NoHttpClient`].
    pub fn new(s3: aws_sdk_s3::Client) -> Result<Self, NoHttpClient> {
        Ok(Self { s3, http: http::client()? })
    }

    /// Fetches all `sources` at once; answers in their order.
    ///
    /// None takes longer than its own timeout, nor than `most`: what the caller has.
    pub async fn fetch_all(&self, sources: &[Source], kind: Kind, most: Duration) -> Vec<Fetched> {
        join_all(sources.iter().map(|source| self.fetch(source, kind, most.min(source.timeout)))).await
    }

    async fn fetch(&self, source: &Source, kind: Kind, timeout: Duration) -> Fetched {
        let fetch = async {
            match &source.location {
                Location::Folder(path) => folder::fetch(path, source, kind).await,
                Location::S3 { bucket, prefix } => s3::fetch(&self.s3, bucket, prefix, source, kind).await,
                Location::Http(url) => http::fetch(&self.http, url, source).await,
            }
        };
        let outcome = tokio::time::timeout(timeout, fetch).await;
        outcome.unwrap_or(Err(Error::Late(timeout))).unwrap_or_else(|error| failed(source, &error))
    }
}

fn failed(source: &Source, error: &Error) -> Fetched {
    let fault = Fault {
        severity: Severity::SourceFailed,
        source: source.name.clone(),
        file: None,
        line: None,
        field: None,
        message: runtime::telemetry::Chain(error).to_string(),
    };
    Fetched { documents: Vec::new(), faults: vec![fault], failed: true }
}

#[cfg(test)]
mod tests;
