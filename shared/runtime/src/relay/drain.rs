//! One pass over a lane: read ▸ send ▸ settle, with several batches on their way.
//!
//! Reads go on behind the pass's cursor while calls are in flight; a batch is settled when the last of
//! its calls is answered. A pass that must stop (trouble, time, a lost lane) reads and sends no more,
//! waits for what is in flight and settles it: nothing that was sent stays unmarked, and no statement is
//! ever cut off.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::join_all;
use futures::{StreamExt, stream};
use store::lane::{self, Kept, Lease};
use store::outbox::{self, Bounds, Cursor, Event};
use tokio::sync::Semaphore;

use super::batch::{self, CALL_BYTES_MAX, Outgoing};
use super::call::{self, Outcome};
use super::lane::Lane;
use super::sender::Sender;

/// Bytes of bodies in one read: what a small function can hold a few times over.
const READ_BYTES: usize = 8 * 1024 * 1024;
/// Events in a probe: one call.
const PROBE_EVENTS: usize = 10;
/// Batches on their way at the same time: the next is read while calls of the last are answered.
const BATCHES: usize = 3;
/// The longest pass, and so the longest time without a look from the start.
pub(super) const PASS_MAX: Duration = Duration::from_secs(3);

/// How a pass ended.
pub(super) enum End {
    /// It moved something, and there may be more.
    Flowed {
        /// Whether the queue was called: it may also all have been events that can never be sent.
        called: bool,
    },
    /// Nothing was due.
    Idle,
    /// It had to stop.
    Stopped(Stop),
}

/// Why a pass had to stop.
pub(super) enum Stop {
    /// The time is up.
    OutOfTime,
    /// The lane is in trouble.
    Trouble(String),
    /// Somebody else has the lane.
    Lost,
    /// The database did not do its part.
    Database(store::Error),
}

/// A drain's place in its lane, from pass to pass.
pub(super) struct Place {
    cursor: Cursor,
    renewed_at: Instant,
    /// How long the last pass's first read took.
    pub first_read: Duration,
}

impl Place {
    /// At the start of a lane that was taken at this moment.
    pub(super) fn new() -> Self {
        Self { cursor: Cursor::START, renewed_at: Instant::now(), first_read: Duration::ZERO }
    }

    /// Goes back to the start of the lane.
    pub(super) fn rewind(&mut self) {
        self.cursor = Cursor::START;
    }
}

/// Moves what is due behind `place`. A lane that was in trouble gets one probe: a single call.
pub(super) async fn pass<S: Sender>(lane: &Lane<'_, S>, lease: &Lease, place: &mut Place) -> End {
    let probes = lease.failures() > 0;
    let state = Mutex::new(State { place, found: false, called: false, stop: None });
    let in_flight = Semaphore::new(lane.settings.in_flight);
    let pass = Pass { lane, lease, probes, started: Instant::now(), in_flight, state };
    let pass_ref = &pass;

    // One level of buffering and no more: a second one could leave a read unpolled, with its connection,
    // while a settlement waits for that connection.
    stream::unfold(true, |more| pass_ref.read(more))
        .map(|events| pass_ref.carry(events))
        .buffer_unordered(BATCHES)
        .for_each(|()| std::future::ready(()))
        .await;

    let state = pass.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    if probes {
        state.place.rewind();
    }
    match (state.stop, state.found) {
        (Some(stop), _) => End::Stopped(stop),
        (None, true) => End::Flowed { called: state.called },
        (None, false) => End::Idle,
    }
}

struct Pass<'a, S> {
    lane: &'a Lane<'a, S>,
    lease: &'a Lease,
    probes: bool,
    started: Instant,
    /// Calls that may be made at this moment, over all batches of the pass.
    in_flight: Semaphore,
    state: Mutex<State<'a>>,
}

/// What reads and batches share. Never held across an await.
struct State<'a> {
    place: &'a mut Place,
    found: bool,
    called: bool,
    stop: Option<Stop>,
}

impl<'a, S: Sender> Pass<'a, S> {
    fn state(&self) -> MutexGuard<'_, State<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first reason to stop is the one that counts.
    fn stop(&self, stop: Stop) {
        self.state().stop.get_or_insert(stop);
    }

    fn is_stopped(&self) -> bool {
        if self.lane.time_left().is_zero() {
            self.stop(Stop::OutOfTime);
        }
        self.state().stop.is_some()
    }

    /// The next read, and whether another one should follow; `None` ends the pass.
    async fn read(&self, more: bool) -> Option<(Vec<Event>, bool)> {
        if !more || self.is_stopped() {
            return None;
        }
        match self.try_read().await {
            Ok(read) => Some(read),
            Err(stop) => {
                self.stop(stop);
                None
            }
        }
    }

    async fn try_read(&self) -> Result<(Vec<Event>, bool), Stop> {
        self.keep_lane().await?;
        let (cursor, began) = (self.state().place.cursor, Instant::now());
        let events = if self.probes { PROBE_EVENTS } else { self.lane.settings.read_events };
        let bounds = Bounds { events, bytes: READ_BYTES, body_bytes: CALL_BYTES_MAX };
        let destination = &self.lane.route.destination;
        let batch =
            outbox::read_due(self.lane.db, destination, cursor, bounds).await.map_err(Stop::Database)?;
        self.note_read(cursor, batch.cursor, began, batch.events.is_empty());
        let goes_on = batch.more && !self.probes && self.started.elapsed() < PASS_MAX;
        Ok((batch.events, goes_on))
    }

    /// Renews the lease when a third of it is over: before each read and each call, so that calls which
    /// are slow to answer do not outlast it.
    async fn keep_lane(&self) -> Result<(), Stop> {
        let lease = self.lane.settings.lease;
        {
            // Whoever comes next finds it done. Should it fail, the pass stops anyway.
            let place = &mut *self.state().place;
            if place.renewed_at.elapsed() < lease / 3 {
                return Ok(());
            }
            place.renewed_at = Instant::now();
        }
        match lane::renew(self.lane.db, self.lease, lease).await {
            Ok(Kept::Kept) => Ok(()),
            Ok(Kept::Lost) => Err(Stop::Lost),
            Err(error) => Err(Stop::Database(error)),
        }
    }

    fn note_read(&self, from: Cursor, to: Cursor, began: Instant, is_empty: bool) {
        let mut state = self.state();
        if !state.found {
            state.place.first_read = began.elapsed();
        }
        state.place.cursor = if is_empty { from } else { to };
        state.found |= !is_empty;
        drop(state);
        self.lane.note(|report| {
            report.looks += 1;
            report.idle_looks += u64::from(is_empty);
        });
    }

    /// Sends a batch and settles it.
    async fn carry(&self, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        let bytes_max = match self.lane.message_bytes_max().await {
            Ok(bytes_max) => bytes_max,
            Err(trouble) => return self.stop(Stop::Trouble(trouble)),
        };
        let (mut outcome, mut calls) = plan(events, bytes_max);
        if self.probes {
            calls.truncate(1);
        }
        for sent in join_all(calls.into_iter().map(|call| self.send(call))).await {
            outcome.absorb(sent);
        }
        if let Err(error) = call::settle(self.lane, &outcome).await {
            self.stop(Stop::Database(error));
        }
    }

    async fn send(&self, call: Vec<Outgoing>) -> Outcome {
        let Ok(_permit) = self.in_flight.acquire().await else {
            return Outcome::default();
        };
        if let Err(stop) = self.keep_lane().await {
            self.stop(stop);
            return Outcome::default();
        }
        self.state().called = true;
        let mut outcome = call::send(self.lane, call, || self.is_stopped()).await;
        if let Some(trouble) = outcome.trouble.take() {
            self.stop(Stop::Trouble(trouble));
        }
        outcome
    }
}

/// What can never be sent, and the calls that send the rest.
fn plan(events: Vec<Event>, bytes_max: usize) -> (Outcome, Vec<Vec<Outgoing>>) {
    let mut flawed = Outcome::default();
    let mut outgoing = Vec::with_capacity(events.len());
    for event in events {
        match batch::prepare(event, bytes_max) {
            Ok(event) => outgoing.push(event),
            Err((key, flaw)) => flawed.give_up(key, flaw.reason, flaw.error),
        }
    }
    (flawed, batch::pack(outgoing))
}
