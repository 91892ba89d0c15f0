//! One call and what comes of it: sent, to be tried again, given up, or a trouble of the whole lane.
//!
//! Entries are matched by their ids. One that the answer does not name was not sent. A call that is too
//! long although each of its entries fits is cut in two and made again.

use std::collections::HashMap;

use store::outbox::{self, Key, Postponed, Unsendable};
use tracing::error;

use super::batch::Outgoing;
use super::classify::{self, Trouble};
use super::lane::Lane;
use super::sender::{Answer, CallError, Entry, Refused, Sender};
use crate::metrics::Distribution;

/// What became of some events. What is in no list stays as it was.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    sent: Vec<Key>,
    waits: Distribution,
    postponed: Vec<Postponed>,
    unsendable: Vec<Unsendable>,
    /// The lane's trouble, if it met one.
    pub trouble: Option<String>,
    batches: u64,
    splits: u64,
}

impl Outcome {
    /// Notes an event that can never be sent.
    pub(super) fn give_up(&mut self, key: Key, reason: &'static str, error: String) {
        self.unsendable.push(Unsendable { key, reason, error });
    }

    /// Adds what another call did.
    pub(super) fn absorb(&mut self, other: Self) {
        self.sent.extend(other.sent);
        self.waits.absorb(&other.waits);
        self.postponed.extend(other.postponed);
        self.unsendable.extend(other.unsendable);
        self.trouble = self.trouble.take().or(other.trouble);
        self.batches += other.batches;
        self.splits += other.splits;
    }
}

/// Sends `call`, cut into smaller ones where it must be. Nothing more is sent once `is_stopped`.
pub(super) async fn send<S: Sender>(
    lane: &Lane<'_, S>,
    call: Vec<Outgoing>,
    is_stopped: impl Fn() -> bool,
) -> Outcome {
    let mut outcome = Outcome::default();
    let mut calls = vec![call];
    while let Some(mut call) = calls.pop() {
        if outcome.trouble.is_some() || is_stopped() {
            break;
        }
        outcome.batches += 1;
        match attempt(lane, &call).await {
            Ok(answer) => sort_answer(lane, call, answer, &mut outcome),
            Err(error) => match classify::call(error.code.as_deref()) {
                Trouble::Event(_) if call.len() > 1 => {
                    outcome.splits += 1;
                    calls.push(call.split_off(call.len() / 2));
                    calls.push(call);
                }
                Trouble::Event(reason) => {
                    for event in call {
                        outcome.give_up(event.key, reason, error.to_string());
                    }
                }
                trouble => blame_lane(lane, trouble, error.to_string(), &mut outcome),
            },
        }
    }
    outcome
}

/// One call. One that outlasts its time has no answer: it may have been carried out.
async fn attempt<S: Sender>(lane: &Lane<'_, S>, call: &[Outgoing]) -> Result<Answer, CallError> {
    let entries: Vec<Entry> = call.iter().map(|event| event.entry.clone()).collect();
    let timeout = lane.settings.send_timeout;
    match tokio::time::timeout(timeout, lane.sender.send(&lane.route.queue_url, &entries)).await {
        Ok(answer) => answer,
        Err(_) => Err(CallError::unanswered(format!("nothing within {timeout:?}"))),
    }
}

fn sort_answer<S: Sender>(lane: &Lane<'_, S>, call: Vec<Outgoing>, answer: Answer, outcome: &mut Outcome) {
    let mut refused: HashMap<String, Refused> =
        answer.refused.into_iter().map(|refused| (refused.id.clone(), refused)).collect();
    for event in call {
        if let Some(refused) = refused.remove(&event.entry.id) {
            let error = format!("{}: {}", refused.code, refused.message);
            match classify::entry(&refused.code, refused.sender_fault) {
                Trouble::Event(reason) => outcome.give_up(event.key, reason, error),
                Trouble::Moment => outcome.postponed.push(postpone(lane, event, error)),
                trouble => blame_lane(lane, trouble, error, outcome),
            }
        } else if answer.sent.contains(&event.entry.id) {
            // Of a later ring the row's age says nothing.
            if event.key.ring == 0 {
                outcome.waits.add(event.age());
            }
            outcome.sent.push(event.key);
        } else {
            let error = "the answer does not name the entry".to_owned();
            outcome.postponed.push(postpone(lane, event, error));
        }
    }
}

fn postpone<S: Sender>(lane: &Lane<'_, S>, event: Outgoing, error: String) -> Postponed {
    Postponed { delay: lane.delay(event.attempt_count.saturating_add(1)), key: event.key, error }
}

fn blame_lane<S: Sender>(lane: &Lane<'_, S>, trouble: Trouble, error: String, outcome: &mut Outcome) {
    if trouble == Trouble::Bug {
        error!(destination = lane.route.destination, "the queue refuses how the relay calls it: {error}");
    }
    outcome.trouble.get_or_insert(error);
}

/// Writes down what became of the events, and counts it.
pub(super) async fn settle<S: Sender>(lane: &Lane<'_, S>, outcome: &Outcome) -> Result<(), store::Error> {
    lane.note(|report| {
        report.batches += outcome.batches;
        report.splits += outcome.splits;
    });
    if !outcome.sent.is_empty() {
        let marked = outbox::mark_published(lane.db, &outcome.sent).await?;
        let sent = u64::try_from(outcome.sent.len()).unwrap_or(u64::MAX);
        lane.note(|report| {
            report.writes += 1;
            report.published += marked;
            report.waits.absorb(&outcome.waits);
            report.repeated += sent.saturating_sub(marked);
        });
    }
    if !outcome.postponed.is_empty() {
        let postponed = outbox::postpone(lane.db, &outcome.postponed).await?;
        lane.note(|report| {
            report.writes += 1;
            report.transient += postponed;
        });
    }
    if !outcome.unsendable.is_empty() {
        bury(lane, &outcome.unsendable).await?;
    }
    Ok(())
}

async fn bury<S: Sender>(lane: &Lane<'_, S>, unsendable: &[Unsendable]) -> Result<(), store::Error> {
    let burial = outbox::bury(lane.db, unsendable).await?;
    for event in unsendable {
        error!(
            destination = lane.route.destination,
            event.id = event.key.event_id,
            reason = event.reason,
            "an event can never be sent: {}",
            event.error,
        );
    }
    lane.note(|report| {
        report.writes += 1;
        report.dead += burial.dead;
        report.dead_jobs += burial.jobs;
        report.deferred += burial.deferred;
    });
    Ok(())
}
