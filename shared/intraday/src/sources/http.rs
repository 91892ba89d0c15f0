//! One document by HTTP or HTTPS.
//!
//! Redirects are followed a few times and never from HTTPS to something weaker. The body is counted
//! while it arrives: what a server says of its length binds nobody.

use std::time::Duration;

use fault::FaultPoint;
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, Url};

use super::{Document, Error, Fetched};
use crate::config::Source;

/// A server that does not even answer the call.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// More is a loop.
const REDIRECTS_MAX: usize = 5;
/// Publishers block clients without a name.
const USER_AGENT: &str = concat!("tailcar/", env!("CARGO_PKG_VERSION"));

pub(super) fn client() -> Result<Client, reqwest::Error> {
    Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(Policy::custom(follow))
        .user_agent(USER_AGENT)
        .build()
}

fn follow(attempt: Attempt) -> reqwest::redirect::Action {
    if attempt.previous().len() > REDIRECTS_MAX {
        return attempt.error("too many redirects");
    }
    let from = attempt.previous().last().map(Url::scheme);
    if from == Some(attempt.url().scheme()) || attempt.url().scheme() == "https" {
        attempt.follow()
    } else {
        attempt.error("a redirect to another scheme")
    }
}

pub(super) async fn fetch(client: &Client, url: &Url, source: &Source) -> Result<Fetched, Error> {
    let request = client.get(url.clone()).timeout(source.timeout);
    let mut response =
        request.send().fault_point("source::get").await.map_err(|error| unreachable(error, source))?;
    if !response.status().is_success() {
        return Err(Error::Status(response.status().as_u16()));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unreachable(error, source))? {
        if bytes.len() as u64 + chunk.len() as u64 > source.max_bytes {
            return Err(Error::TooLarge(source.max_bytes));
        }
        bytes.extend_from_slice(&chunk);
    }
    let document = Document { name: name(url), bytes };
    Ok(Fetched { documents: vec![document], ..Fetched::default() })
}

/// The address itself goes: it may hold a key.
fn unreachable(error: reqwest::Error, source: &Source) -> Error {
    if error.is_timeout() { Error::Late(source.timeout) } else { Error::unreadable(error.without_url()) }
}

/// The last part of the path, for reports and for files whose name holds their symbol.
fn name(url: &Url) -> String {
    let last = url.path_segments().and_then(|mut segments| segments.next_back());
    last.filter(|last| !last.is_empty()).or(url.host_str()).unwrap_or_default().to_owned()
}
