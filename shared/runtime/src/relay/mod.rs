//! The relay: the only component that sends. It moves outbox events NEW to PUBLISHED or DEAD.
//!
//! Each destination is drained on its own, side by side with the others: take the lane, read what is
//! due, send with several calls in flight, then mark. *Send first, mark after*: a relay that dies in
//! between repeats a message and never loses one. No transaction is open while it sends, and nothing
//! remembers how far the outbox was read.
//!
//! ```text
//! settings   what it is told, checked        lane       take, keep and give back one lane
//! sender     the port to a queue             drain      one pass over a lane: read ▸ send ▸ settle
//! sqs        its implementation              call       one call and what comes of it
//! report     what it did                     batch      what fits into a call
//! rhythm     when to look again              classify   whose trouble a refusal is
//! ```

pub mod batch;
mod call;
pub mod classify;
mod drain;
mod lane;
pub mod report;
mod rhythm;
pub mod sender;
pub mod settings;
pub mod sqs;

use std::time::{Duration, Instant};

use futures::future::{join, join_all};
use sqlx::PgPool;
use store::outbox::{self, Unsendable};

use self::classify::UNKNOWN_DESTINATION;
use self::lane::Lane;
pub use self::report::{Ending, LaneReport, Report};
pub use self::sender::Sender;
pub use self::settings::{Route, Settings};
use crate::telemetry::Chain;

/// Events of unknown destinations that one invocation looks at.
const UNROUTABLE_MAX: u32 = 1_000;

/// Drains outbox lanes into their queues.
#[derive(Debug)]
pub struct Relay<S> {
    db: PgPool,
    sender: S,
    settings: Settings,
}

impl<S: Sender> Relay<S> {
    /// A relay over `db` that sends through `sender`.
    #[must_use]
    pub fn new(db: PgPool, sender: S, settings: Settings) -> Self {
        Self { db, sender, settings }
    }

    /// The port it sends through.
    #[must_use]
    pub fn sender(&self) -> &S {
        &self.sender
    }

    /// Drains every lane, for the linger that is set and never into the last moments of `time_left`.
    ///
    /// Whatever happens to one lane is in its report and touches no other.
    ///
    /// # Errors
    ///
    /// [`store::Error`], when not even the lanes could be declared.
    pub async fn run(&self, time_left: Duration) -> Result<Report, store::Error> {
        let started = Instant::now();
        let usable = time_left.saturating_sub(self.settings.margin());
        let lingers = !self.settings.linger.is_zero();
        let stop_at = started + if lingers { usable.min(self.settings.linger) } else { usable };

        let destinations: Vec<_> =
            self.settings.routes.iter().map(|route| route.destination.clone()).collect();
        store::lane::declare(&self.db, &destinations).await?;
        let lanes = self
            .settings
            .routes
            .iter()
            .map(|route| Lane::new(&self.db, &self.sender, &self.settings, route, stop_at).run());
        let (reports, unknown) = join(join_all(lanes), self.bury_unroutable(&destinations)).await;

        let destinations = destinations.into_iter().zip(reports).collect();
        Ok(Report { destinations, unknown_destination: unknown })
    }

    /// Gives up what no relay will ever send. Its failure is only logged: the next invocation tries again.
    async fn bury_unroutable(&self, configured: &[String]) -> u64 {
        match self.try_bury_unroutable(configured).await {
            Ok(dead) => dead,
            Err(error) => {
                tracing::warn!(
                    error = %Chain(&error),
                    "events of unknown destinations were not looked at"
                );
                0
            }
        }
    }

    async fn try_bury_unroutable(&self, configured: &[String]) -> Result<u64, store::Error> {
        let grace = self.settings.unknown_grace;
        let unroutable = outbox::find_unroutable(&self.db, configured, grace, UNROUTABLE_MAX).await?;
        if unroutable.is_empty() {
            return Ok(0);
        }
        let unsendable: Vec<_> = unroutable
            .into_iter()
            .map(|event| Unsendable {
                key: event.key,
                reason: UNKNOWN_DESTINATION,
                error: format!("no relay drains destination {}", event.destination),
            })
            .collect();
        let burial = outbox::bury(&self.db, &unsendable).await?;
        if burial.dead > 0 {
            tracing::error!(dead = burial.dead, "{} events of unknown destinations are DEAD", burial.dead);
        }
        Ok(burial.dead)
    }
}
