//! What is deployed, and the clients to talk to it.
//!
//! Only an emulator on this machine will do: the rehearsal kills processes and clears a database.

use std::collections::BTreeMap;
use std::path::PathBuf;

use aws_config::SdkConfig;
use serde::Deserialize;
use sqlx::PgPool;

use crate::aws::{self, Client};

/// What the local stack says it has deployed, as JSON in the file that `TAILCAR_STACK` names.
#[derive(Clone, Debug, Deserialize)]
pub struct Deployed {
    /// Function names by package.
    pub functions: BTreeMap<String, String>,
    /// Queue URLs by destination.
    pub queues: BTreeMap<String, String>,
    /// Dead-letter queue URLs by destination.
    pub dead_letter_queues: BTreeMap<String, String>,
    /// The artifacts' bucket.
    pub bucket: String,
    /// Where the functions read their configuration: a path, or `s3://bucket/key`.
    pub config: String,
    /// The process whose children the sandboxes are.
    pub emulator_pid: u32,
}

/// Why the stack can not be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A variable is not set.
    #[error("{0} is not set; `make demo` sets it, tools/demo/README.md says what it holds")]
    Missing(&'static str),
    /// The description can not be read.
    #[error("{0} can not be read")]
    Unreadable(PathBuf, #[source] std::io::Error),
    /// The description is not what it should be.
    #[error("{0} does not describe a stack")]
    NotADescription(PathBuf, #[source] serde_json::Error),
    /// A function the rehearsal needs is not deployed.
    #[error("function {0} is not deployed")]
    NotDeployed(String),
    /// The endpoint is not on this machine.
    #[error("AWS_ENDPOINT_URL is {0}; a rehearsal needs an emulator on this machine")]
    NotLocal(String),
    /// The database URL can not be used.
    #[error("DATABASE_URL can not be used")]
    Database(#[from] store::Error),
    /// No client can be made.
    #[error("the stack can not be asked")]
    Client(#[from] aws::Error),
}

/// The stack with its clients.
#[derive(Clone, Debug)]
pub struct Stack {
    /// What is deployed.
    pub deployed: Deployed,
    /// The functions' database.
    pub db: PgPool,
    /// Invokes functions and reads their logs.
    pub aws: Client,
    /// Sends messages and looks at queues.
    pub sqs: aws_sdk_sqs::Client,
    /// Counts objects.
    pub s3: aws_sdk_s3::Client,
}

/// Few: the functions need the database more than the audience does.
const CONNECTIONS_MAX: u32 = 4;

impl Stack {
    /// Reads the environment.
    ///
    /// # Errors
    ///
    /// [`Error`], naming the variable or the file.
    pub async fn from_environment() -> Result<Self, Error> {
        let endpoint = local(variable("AWS_ENDPOINT_URL")?)?;
        let database_url = variable("DATABASE_URL")?;
        let deployed = describe(PathBuf::from(variable("TAILCAR_STACK")?))?;
        let config = aws_config::load_from_env().await;
        Ok(Self {
            deployed,
            db: store::pool::connect(&database_url, CONNECTIONS_MAX).await?,
            aws: Client::new(&config, &endpoint)?,
            sqs: aws_sdk_sqs::Client::new(&config),
            s3: s3(&config),
        })
    }

    /// The deployed name of the function of `package`.
    ///
    /// # Errors
    ///
    /// [`Error::NotDeployed`]
    pub fn function(&self, package: &str) -> Result<&str, Error> {
        let name = self.deployed.functions.get(package);
        name.map(String::as_str).ok_or_else(|| Error::NotDeployed(package.to_owned()))
    }
}

fn variable(name: &'static str) -> Result<String, Error> {
    std::env::var(name).ok().filter(|value| !value.is_empty()).ok_or(Error::Missing(name))
}

fn local(endpoint: String) -> Result<String, Error> {
    let host = endpoint.strip_prefix("http://").map(|rest| rest.split([':', '/']).next().unwrap_or_default());
    if matches!(host, Some("127.0.0.1" | "localhost")) {
        Ok(endpoint)
    } else {
        Err(Error::NotLocal(endpoint))
    }
}

fn describe(path: PathBuf) -> Result<Deployed, Error> {
    let text = std::fs::read_to_string(&path).map_err(|err| Error::Unreadable(path.clone(), err))?;
    serde_json::from_str(&text).map_err(|err| Error::NotADescription(path, err))
}

/// Emulators have no name for each bucket, so the bucket goes into the path.
fn s3(config: &SdkConfig) -> aws_sdk_s3::Client {
    aws_sdk_s3::Client::from_conf(aws_sdk_s3::config::Builder::from(config).force_path_style(true).build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoint_on_another_machine_is_refused() {
        for endpoint in [
            "https://lambda.eu-central-1.amazonaws.com",
            "http://10.0.0.1:4566",
            "http://localhost.evil:1",
            "",
        ] {
            assert!(matches!(local(endpoint.to_owned()), Err(Error::NotLocal(_))), "{endpoint}");
        }
        assert!(local("http://127.0.0.1:4566".to_owned()).is_ok());
    }
}
