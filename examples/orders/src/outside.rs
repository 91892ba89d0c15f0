//! The world outside: whoever delivers an e-mail or answers a webhook.
//!
//! Asked in `prepare`, so at least once; the key makes several calls one effect.

use std::error::Error;
use std::future::Future;

use domain::JobId;
use sqlx::PgPool;

/// Somebody outside who takes a text.
pub trait Outside: Send + Sync {
    /// Hands `body` over to `recipient`. With a `key` it has seen it does nothing.
    ///
    /// # Errors
    ///
    /// It did not answer; it may have taken the text even so.
    fn hand_over(
        &self,
        key: &JobId,
        recipient: &str,
        body: &str,
    ) -> impl Future<Output = Result<(), Box<dyn Error + Send + Sync>>> + Send;
}

/// A stand-in that writes down what it was handed, and how often.
#[derive(Clone, Debug)]
pub struct Recorder {
    channel: &'static str,
    db: PgPool,
}

impl Recorder {
    /// One for `channel` with connections of its own.
    #[must_use]
    pub fn new(channel: &'static str, db: PgPool) -> Self {
        Self { channel, db }
    }
}

impl Outside for Recorder {
    async fn hand_over(
        &self,
        key: &JobId,
        recipient: &str,
        body: &str,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        sqlx::query(
            "insert into outside_effect as effect (idempotency_key, channel, recipient, body)
             values ($1, $2, $3, $4)
                 on conflict (idempotency_key) do update set calls = effect.calls + 1",
        )
        .bind(key.as_str())
        .bind(self.channel)
        .bind(recipient)
        .bind(body)
        .execute(&self.db)
        .await?;
        Ok(())
    }
}
