//! Where artifacts go: the little of S3 that collecting needs, so that tests need none of it.

use std::error::Error;
use std::future::Future;

use chrono::{DateTime, Utc};
use runtime::artifacts::{Artifacts, Written};

/// Writes artifacts, each under a key that was never used.
pub trait ArtifactWriter: Sync {
    /// Writes `body` for `owner`, under a new key made of `name` and the database's clock.
    ///
    /// # Errors
    ///
    /// The object may have been written even so; without a row it is an orphan, for the sweeper.
    fn put(
        &self,
        owner: &str,
        name: &str,
        written_at: DateTime<Utc>,
        body: Vec<u8>,
    ) -> impl Future<Output = Result<Written, Box<dyn Error + Send + Sync>>> + Send;
}

impl ArtifactWriter for Artifacts {
    async fn put(
        &self,
        owner: &str,
        name: &str,
        written_at: DateTime<Utc>,
        body: Vec<u8>,
    ) -> Result<Written, Box<dyn Error + Send + Sync>> {
        Ok(Artifacts::put(self, owner, name, written_at, body).await?)
    }
}
