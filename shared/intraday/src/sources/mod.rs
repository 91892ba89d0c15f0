//! Sources: folders, S3 prefixes and web addresses, fetched side by side.
//!
//! A source that fails or is late costs only itself. What a fetch may take and bring is bounded by its
//! configuration; here is nothing that knows a format.

mod folder;
mod http;
mod s3;

use std::time::Duration;

use futures::future::join_all;

use crate::config::{Location, Source};
use crate::fault::{Fault, Origin, Severity};

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

/// What to do with a file of a folder or prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listed {
    /// It may be what is asked for.
    Wanted,
    /// It is of the other kind, or hidden.
    Passed,
    /// Nothing reads such files.
    Unknown,
}

impl Kind {
    fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Bars => &["csv"],
            Self::News => &["xml", "rss", "atom", "rdf", "json"],
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Bars => Self::News,
            Self::News => Self::Bars,
        }
    }

    /// Bars and news may lie in one folder: a file's extension tells them apart.
    fn look_at(self, name: &str) -> Listed {
        let extension =
            name.rsplit_once('.').map(|(_, extension)| extension.to_lowercase()).unwrap_or_default();
        if self.extensions().contains(&extension.as_str()) && !name.starts_with('.') {
            Listed::Wanted
        } else if self.other().extensions().contains(&extension.as_str()) || name.starts_with('.') {
            Listed::Passed
        } else {
            Listed::Unknown
        }
    }
}

/// The documents of one source, held to its limits.
struct Intake<'s> {
    source: &'s Source,
    kind: Kind,
    bytes_left: u64,
    fetched: Fetched,
}

impl<'s> Intake<'s> {
    fn new(source: &'s Source, kind: Kind) -> Self {
        Self { source, kind, bytes_left: source.max_bytes, fetched: Fetched::default() }
    }

    /// Whether a document of `size` bytes is to be read; the room it takes is taken.
    fn admits(&mut self, name: &str, size: u64) -> bool {
        match self.kind.look_at(name) {
            Listed::Passed => return false,
            Listed::Unknown => {
                let message = format!("is not read; files end in .{}", self.kind.extensions().join(", ."));
                self.fetched.faults.push(self.origin(name).noted(None, None, message));
                return false;
            }
            Listed::Wanted => {}
        }
        if size > self.bytes_left {
            let most = self.source.max_bytes;
            self.leave_out(name, format!("has {size} bytes, more than is left of the source's {most}"));
            return false;
        }
        self.bytes_left -= size;
        true
    }

    fn leave_out(&mut self, name: &str, message: String) {
        self.fetched.faults.push(self.origin(name).left_out(None, None, message));
    }

    fn origin(&self, name: &str) -> Origin {
        Origin { source: self.source.name.clone(), file: name.to_owned() }
    }
}

#[cfg(test)]
mod tests;
