//! One pass over a lane: read ▸ send ▸ settle, as one stream.
//!
//! Reads go on behind the pass's cursor while calls are in flight, and outcomes are settled together as
//! they come in. A pass that must stop (trouble, time, a lost lane) reads and sends no more, waits for
//! what is in flight and settles it: nothing that was sent stays unmarked, and no statement is ever cut
//! off.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use store::lane::{self, Kept, Lease};
use store::outbox::{self, Bounds, Cursor};

use super::batch::{self, CALL_BYTES_MAX, Outgoing};
use super::call::{self, Outcome};
use super::lane::Lane;
use super::sender::Sender;

/// Bytes of bodies in one read: what a small function can hold a few times over.
const READ_BYTES: usize = 8 * 1024 * 1024;
/// Events in a probe: one call.
const PROBE_EVENTS: usize = 10;
/// Calls whose outcomes are settled together, at most.
const SETTLE_CALLS: usize = 50;
/// Settlements at the same time.
const SETTLERS: usize = 2;
/// The longest pass, and so the longest time without a look from the start.
pub(super) const PASS_MAX: Duration = Duration::from_secs(3);

/// How a pass ended.
pub(super) enum End {
    /// It moved something, and there may be more.
    Flowed,
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
    let state = State { place, found: false, stop: None };
    let pass = Pass { lane, lease, probes, started: Instant::now(), state: Mutex::new(state) };
    let pass_ref = &pass;

    stream::unfold(true, |more| pass_ref.read(more))
        .flat_map(stream::iter)
        .map(|work| pass_ref.perform(work))
        .buffer_unordered(if probes { 1 } else { lane.settings.in_flight })
        .ready_chunks(SETTLE_CALLS)
        .map(|outcomes| pass_ref.settle(outcomes))
        .buffer_unordered(SETTLERS)
        .for_each(|()| std::future::ready(()))
        .await;

    let state = pass.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    if probes {
        state.place.rewind();
    }
    match (state.stop, state.found) {
        (Some(stop), _) => End::Stopped(stop),
        (None, true) => End::Flowed,
        (None, false) => End::Idle,
    }
}

struct Pass<'a, S> {
    lane: &'a Lane<'a, S>,
    lease: &'a Lease,
    probes: bool,
    started: Instant,
    state: Mutex<State<'a>>,
}

/// What the stages share. Never held across an await.
struct State<'a> {
    place: &'a mut Place,
    found: bool,
    stop: Option<Stop>,
}

/// What a read leaves to do.
enum Work {
    Send(Vec<Outgoing>),
    /// Nothing can be sent of it.
    Settle(Outcome),
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
    async fn read(&self, more: bool) -> Option<(Vec<Work>, bool)> {
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

    async fn try_read(&self) -> Result<(Vec<Work>, bool), Stop> {
        self.keep_lane().await?;
        let (cursor, began) = (self.state().place.cursor, Instant::now());
        let events = if self.probes { PROBE_EVENTS } else { self.lane.settings.read_events };
        let bounds = Bounds { events, bytes: READ_BYTES, body_bytes: CALL_BYTES_MAX };
        let destination = &self.lane.route.destination;
        let batch =
            outbox::read_due(self.lane.db, destination, cursor, bounds).await.map_err(Stop::Database)?;
        self.note_read(cursor, batch.cursor, began, batch.events.is_empty());
        if batch.events.is_empty() {
            return Ok((Vec::new(), false));
        }
        let bytes_max = self.lane.message_bytes_max().await.map_err(Stop::Trouble)?;
        let work = self.plan(batch.events, bytes_max);
        Ok((work, batch.more && !self.probes && self.started.elapsed() < PASS_MAX))
    }

    /// Renews the lease when a third of it is over.
    async fn keep_lane(&self) -> Result<(), Stop> {
        let lease = self.lane.settings.lease;
        if self.state().place.renewed_at.elapsed() < lease / 3 {
            return Ok(());
        }
        let renewing_at = Instant::now();
        match lane::renew(self.lane.db, self.lease, lease).await {
            Ok(Kept::Kept) => self.state().place.renewed_at = renewing_at,
            Ok(Kept::Lost) => return Err(Stop::Lost),
            Err(error) => return Err(Stop::Database(error)),
        }
        Ok(())
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

    fn plan(&self, events: Vec<outbox::Event>, bytes_max: usize) -> Vec<Work> {
        let mut flawed = Outcome::default();
        let mut outgoing = Vec::with_capacity(events.len());
        for event in events {
            match batch::prepare(event, bytes_max) {
                Ok(event) => outgoing.push(event),
                Err((key, flaw)) => flawed.give_up(key, flaw.reason, flaw.error),
            }
        }
        let mut calls = batch::pack(outgoing);
        if self.probes {
            calls.truncate(1);
        }
        let flawed = std::iter::once(Work::Settle(flawed));
        flawed.chain(calls.into_iter().map(Work::Send)).collect()
    }

    async fn perform(&self, work: Work) -> Outcome {
        match work {
            Work::Settle(outcome) => outcome,
            Work::Send(call) => call::send(self.lane, call, || self.is_stopped()).await,
        }
    }

    async fn settle(&self, outcomes: Vec<Outcome>) {
        let mut all = Outcome::default();
        outcomes.into_iter().for_each(|outcome| all.absorb(outcome));
        if let Some(trouble) = all.trouble.take() {
            self.stop(Stop::Trouble(trouble));
        }
        if let Err(error) = call::settle(self.lane, &all).await {
            self.stop(Stop::Database(error));
        }
    }
}
