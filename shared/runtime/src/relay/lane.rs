//! One lane through one invocation: take it, drain it, keep looking, give it back.
//!
//! A lane that is held or in trouble is left alone until it may be tried again; a relay whose time is up
//! gives its lane back, so that the next one goes on at once. Trouble ends in this lane's report.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use sqlx::PgPool;
use store::lane::{self, Kept, Lease, Taken};
use tracing::{info, warn};

use super::batch::CALL_BYTES_MAX;
use super::drain::{self, End, Place, Stop};
use super::report::{Ending, LaneReport};
use super::rhythm::Rhythm;
use super::sender::Sender;
use super::settings::{Route, Settings};
use crate::telemetry::Chain;

/// How often a lane that somebody else holds is asked for: a hand-over takes no longer than this.
const HAND_OVER: Duration = Duration::from_millis(150);
/// The pause after a failure of the database that may pass.
const DATABASE_PAUSE: Duration = Duration::from_secs(1);

/// What to do after a turn with the lane.
enum Next {
    /// Take it again after a pause.
    After(Duration),
    /// Nothing more in this invocation.
    Over,
}

/// One lane through one invocation.
pub(super) struct Lane<'a, S> {
    pub db: &'a PgPool,
    pub sender: &'a S,
    pub settings: &'a Settings,
    pub route: &'a Route,
    /// From then on nothing is read or sent any more.
    stop_at: Instant,
    /// What the queue takes in one message; asked once, when there is something to send.
    message_bytes_max: OnceLock<usize>,
    report: Mutex<LaneReport>,
}

impl<'a, S: Sender> Lane<'a, S> {
    pub(super) fn new(
        db: &'a PgPool,
        sender: &'a S,
        settings: &'a Settings,
        route: &'a Route,
        stop_at: Instant,
    ) -> Self {
        let report = Mutex::new(LaneReport::default());
        Self { db, sender, settings, route, stop_at, message_bytes_max: OnceLock::new(), report }
    }

    /// Works until the time is up or, without a linger, until there is nothing to do.
    pub(super) async fn run(self) -> LaneReport {
        loop {
            let next = match self.turn().await {
                Ok(next) => next,
                Err(error) => self.leave(&error),
            };
            let Next::After(pause) = next else { break };
            if self.is_one_shot() || pause >= self.time_left() {
                break;
            }
            tokio::time::sleep(pause).await;
        }
        let report = self.report.into_inner().unwrap_or_else(PoisonError::into_inner);
        log(&self.route.destination, &report);
        report
    }

    async fn turn(&self) -> Result<Next, store::Error> {
        match lane::take(self.db, &self.route.destination, self.settings.lease).await? {
            Taken::Ours(lease) => self.drain(lease).await,
            Taken::Held => {
                self.note(|report| report.ending = Ending::Held);
                Ok(Next::After(HAND_OVER))
            }
            Taken::BackingOff { wait, last_error } => {
                self.note(|report| {
                    report.ending = Ending::BackingOff;
                    report.last_error = Some(last_error);
                });
                Ok(Next::After(wait))
            }
        }
    }

    /// Passes over the lane until it is empty, or until time, lease or luck runs out.
    async fn drain(&self, mut lease: Lease) -> Result<Next, store::Error> {
        let (mut place, mut rhythm) = (Place::new(), Rhythm::new());
        loop {
            let (began, rescans) = (Instant::now(), self.is_one_shot() || rhythm.is_rescan_due());
            if rescans {
                place.rewind();
            }
            let end = drain::pass(self, &lease, &mut place).await;
            if rescans {
                rhythm.rescanned(began, place.first_read);
            }
            match end {
                End::Flowed { called } => {
                    rhythm.found();
                    // Events given up without a call say nothing about the queue: the probe is still owed.
                    if called && lease.failures() > 0 {
                        lane::recover(self.db, &mut lease).await?;
                        info!(
                            destination = self.route.destination,
                            "lane {} is well again", self.route.destination
                        );
                    }
                }
                End::Idle if self.is_one_shot() || rhythm.pause >= self.time_left() => {
                    return self.give_back(lease, Ending::Drained).await;
                }
                End::Idle => tokio::time::sleep(rhythm.next_pause()).await,
                End::Stopped(stop) => return self.stop(lease, stop).await,
            }
        }
    }

    async fn stop(&self, lease: Lease, stop: Stop) -> Result<Next, store::Error> {
        match stop {
            Stop::OutOfTime => self.give_back(lease, Ending::OutOfTime).await,
            Stop::Trouble(error) => self.back_off(lease, error).await,
            Stop::Lost => {
                self.note(|report| report.ending = Ending::Held);
                Ok(Next::After(HAND_OVER))
            }
            Stop::Database(error) => {
                // The first error counts; should this fail too, the lease ends by itself.
                let _ = lane::release(self.db, lease).await;
                Err(error)
            }
        }
    }

    async fn give_back(&self, lease: Lease, ending: Ending) -> Result<Next, store::Error> {
        self.note(|report| report.ending = ending);
        lane::release(self.db, lease).await?;
        Ok(Next::Over)
    }

    async fn back_off(&self, lease: Lease, error: String) -> Result<Next, store::Error> {
        let failures = lease.failures().saturating_add(1);
        let delay = self.delay(failures);
        warn!(
            destination = self.route.destination,
            failures,
            delay_s = delay.as_secs_f64(),
            "lane {} is in trouble: {error}",
            self.route.destination,
        );
        let kept = lane::back_off(self.db, lease, delay, &error).await?;
        self.note(|report| {
            report.back_offs += u64::from(kept == Kept::Kept);
            report.ending = Ending::BackingOff;
            report.last_error = Some(error);
        });
        Ok(Next::After(delay))
    }

    fn leave(&self, error: &store::Error) -> Next {
        warn!(
            destination = self.route.destination,
            error = %Chain(error),
            "lane {} was left: the database did not do its part",
            self.route.destination,
        );
        self.note(|report| {
            report.ending = Ending::Failed;
            report.last_error = Some(Chain(error).to_string());
        });
        if error.is_transient() { Next::After(DATABASE_PAUSE) } else { Next::Over }
    }

    /// What the queue takes in one message. A queue that answers but does not say takes what SQS allows;
    /// one that does not answer is the lane's trouble.
    pub(super) async fn message_bytes_max(&self) -> Result<usize, String> {
        if let Some(&known) = self.message_bytes_max.get() {
            return Ok(known);
        }
        let asked = self.sender.message_bytes_max(&self.route.queue_url);
        let max = match tokio::time::timeout(self.settings.send_timeout, asked).await {
            Ok(Ok(max)) => max,
            Ok(Err(error)) if error.code.is_some() => CALL_BYTES_MAX,
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => return Err(format!("no answer: nothing within {:?}", self.settings.send_timeout)),
        };
        Ok(*self.message_bytes_max.get_or_init(|| max))
    }

    /// The pause after `failures` in a row, spread by chance.
    pub(super) fn delay(&self, failures: u32) -> Duration {
        self.settings.backoff.delay(failures, 1.0 - self.settings.jitter * fastrand::f64())
    }

    pub(super) fn time_left(&self) -> Duration {
        self.stop_at.saturating_duration_since(Instant::now())
    }

    pub(super) fn note(&self, change: impl FnOnce(&mut LaneReport)) {
        change(&mut self.report.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn is_one_shot(&self) -> bool {
        self.settings.linger.is_zero()
    }
}

fn log(destination: &str, report: &LaneReport) {
    info!(
        destination,
        ending = ?report.ending,
        published = report.published,
        transient = report.transient,
        dead = report.dead,
        batches = report.batches,
        looks = report.looks,
        last_error = report.last_error,
        "lane {destination}: {} published, {} dead, {:?}",
        report.published,
        report.dead,
        report.ending,
    );
}
