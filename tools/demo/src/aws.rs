//! Signed requests to those services of the emulator for which two calls do not justify an SDK crate.

use std::time::{Duration, SystemTime};

use aws_config::SdkConfig;
use aws_credential_types::provider::{ProvideCredentials, error::CredentialsError};
use aws_sigv4::http_request::{self, SignableBody, SignableRequest, SigningError, SigningSettings};
use aws_sigv4::sign::v4;

/// Longer than any function of the stack may run.
const ANSWER_WITHIN: Duration = Duration::from_mins(15);

/// Why a request got no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The environment holds no credentials.
    #[error("credentials for the stack are missing")]
    Credentials(#[source] Option<CredentialsError>),
    /// The request could not be signed.
    #[error("the request can not be signed")]
    Signing(#[from] SigningError),
    /// The emulator did not answer. The request may have been carried out.
    #[error("the stack did not answer")]
    Http(#[from] reqwest::Error),
}

/// What is sent: a POST to one service.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The service's name in signatures.
    pub service: &'a str,
    /// The path, from its first `/`.
    pub path: &'a str,
    /// Headers, the content type among them.
    pub headers: &'a [(&'static str, &'static str)],
    /// The body.
    pub body: &'a str,
}

/// A client that signs what it sends.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    endpoint: String,
    config: SdkConfig,
}

impl Client {
    /// The client for `endpoint`, with the credentials and the region of `config`.
    ///
    /// # Errors
    ///
    /// [`Error::Http`] if no HTTP client can be made here.
    pub fn new(config: &SdkConfig, endpoint: &str) -> Result<Self, Error> {
        let http = reqwest::Client::builder().timeout(ANSWER_WITHIN).build()?;
        Ok(Self { http, endpoint: endpoint.trim_end_matches('/').to_owned(), config: config.clone() })
    }

    /// Sends `request` and waits for the answer, whatever its status.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub async fn post(&self, request: Request<'_>) -> Result<reqwest::Response, Error> {
        let url = format!("{}{}", self.endpoint, request.path);
        let mut post = self.http.post(&url).body(request.body.to_owned());
        for (name, value) in request.headers {
            post = post.header(*name, *value);
        }
        for (name, value) in self.signature(&url, request).await? {
            post = post.header(name, value);
        }
        Ok(post.send().await?)
    }

    /// The headers that prove who asks.
    async fn signature(&self, url: &str, request: Request<'_>) -> Result<Vec<(String, String)>, Error> {
        let provider = self.config.credentials_provider().ok_or(Error::Credentials(None))?;
        let credentials =
            provider.provide_credentials().await.map_err(|err| Error::Credentials(Some(err)))?;
        let identity = credentials.into();
        let region = self.config.region().map_or("us-east-1", |region| region.as_ref());
        let parameters = v4::SigningParams::builder()
            .identity(&identity)
            .region(region)
            .name(request.service)
            .time(SystemTime::now())
            .settings(SigningSettings::default())
            .build()
            .map_err(|_| Error::Credentials(None))?;
        let body = SignableBody::Bytes(request.body.as_bytes());
        let signable = SignableRequest::new("POST", url, request.headers.iter().copied(), body)?;
        let (instructions, _signature) = http_request::sign(signable, &parameters.into())?.into_parts();
        Ok(instructions.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}
