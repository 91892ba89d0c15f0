//! A secret of Secrets Manager in the shape that RDS writes.

use aws_config::SdkConfig;
use fault::FaultPoint;
use serde::Deserialize;
use sqlx::postgres::PgConnectOptions;

use crate::settings::Access;

/// Why there is no secret. What it says is never part of this.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// Secrets Manager did not give it.
    #[error("Secrets Manager did not give {0}")]
    Refused(String, #[source] Box<dyn std::error::Error + Send + Sync>),
    /// It is not JSON with `username` and `password`.
    #[error("{0} is not JSON with the texts username and password")]
    Shape(String),
    /// Neither the secret nor the environment says where the database is.
    #[error("neither {0} nor DATABASE_HOST says where the database is")]
    NoHost(String),
}

/// What RDS writes; a secret of one's own needs the first two.
#[derive(Deserialize)]
struct Secret {
    username: String,
    password: String,
    host: Option<String>,
    port: Option<u16>,
    dbname: Option<String>,
}

/// `options` with what the secret of `access` says; a value that is set in the environment wins.
pub(super) async fn read(
    aws: &SdkConfig,
    access: &Access,
    options: PgConnectOptions,
) -> Result<PgConnectOptions, SecretError> {
    let Access::Secret { arn, host, port, name } = access else { return Ok(options) };
    let client = aws_sdk_secretsmanager::Client::new(aws);
    let answer = client
        .get_secret_value()
        .secret_id(arn)
        .send()
        .fault_point("secretsmanager::get_secret_value")
        .await
        .map_err(|error| SecretError::Refused(arn.clone(), error.into()))?;
    let text = answer.secret_string().unwrap_or_default();
    // Not as a source: serde's words can repeat what they found.
    let secret: Secret = serde_json::from_str(text).map_err(|_| SecretError::Shape(arn.clone()))?;
    let host = host.clone().or(secret.host).ok_or_else(|| SecretError::NoHost(arn.clone()))?;
    let options = options.username(&secret.username).password(&secret.password).host(&host);
    let options = match port.or(secret.port) {
        Some(port) => options.port(port),
        None => options,
    };
    Ok(match name.as_ref().or(secret.dbname.as_ref()) {
        Some(name) => options.database(name),
        None => options,
    })
}
