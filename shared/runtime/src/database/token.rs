//! A token of IAM instead of a password: a presigned request that RDS looks at once, when a connection
//! is opened. It is made here, without any call, and holds for fifteen minutes.

use std::time::{Duration, SystemTime};

use aws_config::SdkConfig;
use aws_credential_types::provider::{ProvideCredentials, error::CredentialsError};
use aws_sigv4::http_request::{self, SignableBody, SignableRequest, SignatureLocation, SigningSettings};
use aws_sigv4::sign::v4;
use sqlx::postgres::PgConnectOptions;
use url::Url;

/// As long as RDS believes it; longer than any invocation that begins with it.
const HOLDS: Duration = Duration::from_mins(15);

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The function's own credentials are missing.
    #[error("the function has no credentials")]
    Credentials(#[source] Option<CredentialsError>),
    /// `AWS_REGION` is missing.
    #[error("AWS_REGION is not set")]
    Region,
    /// Host or user can not stand in a request.
    #[error("the request for a token can not be signed")]
    Signing(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A token for the user and the server of `options`.
pub(super) async fn sign(aws: &SdkConfig, options: &PgConnectOptions) -> Result<String, TokenError> {
    let provider = aws.credentials_provider().ok_or(TokenError::Credentials(None))?;
    let credentials =
        provider.provide_credentials().await.map_err(|error| TokenError::Credentials(Some(error)))?;
    let region = aws.region().ok_or(TokenError::Region)?;
    let mut settings = SigningSettings::default();
    settings.expires_in = Some(HOLDS);
    settings.signature_location = SignatureLocation::QueryParams;
    let identity = credentials.into();
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region(region.as_ref())
        .name("rds-db")
        .time(SystemTime::now())
        .settings(settings)
        .build()
        .map_err(|error| TokenError::Signing(error.into()))?;
    let mut url = request(options)?;
    let signable = SignableRequest::new("GET", url.as_str(), std::iter::empty(), SignableBody::Bytes(&[]))
        .map_err(|error| TokenError::Signing(error.into()))?;
    let (signed, _) = http_request::sign(signable, &parameters.into())
        .map_err(|error| TokenError::Signing(error.into()))?
        .into_parts();
    for (name, value) in signed.params() {
        url.query_pairs_mut().append_pair(name, value);
    }
    Ok(url.as_str().trim_start_matches("https://").to_owned())
}

fn request(options: &PgConnectOptions) -> Result<Url, TokenError> {
    let address = format!("https://{}:{}/", options.get_host(), options.get_port());
    let parameters = [("Action", "connect"), ("DBUser", options.get_username())];
    Url::parse_with_params(&address, parameters).map_err(|error| TokenError::Signing(error.into()))
}

#[cfg(test)]
mod tests {
    use aws_config::{BehaviorVersion, Region};
    use aws_credential_types::Credentials;
    use aws_credential_types::provider::SharedCredentialsProvider;

    use super::*;

    #[tokio::test]
    async fn token_names_user_and_server_and_is_no_url() {
        let credentials = Credentials::new("key", "secret", Some("session".into()), None, "test");
        let aws = SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("eu-central-1"))
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .build();
        let options = PgConnectOptions::new_without_pgpass().host("db.example").port(5432).username("relay");

        let token = sign(&aws, &options).await.unwrap();

        assert!(token.starts_with("db.example:5432/?Action=connect&DBUser=relay&"), "{token}");
        for part in ["X-Amz-Expires=900", "%2Feu-central-1%2Frds-db%2Faws4_request", "X-Amz-Signature="] {
            assert!(token.contains(part), "{part} is not in {token}");
        }
        assert!(!token.contains("secret"), "{token}");
    }
}
