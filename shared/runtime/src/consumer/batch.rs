//! The messages of one invocation and what was decided about each so far.

use std::time::Instant;

use domain::Answer;
use serde_json::Value;
use store::claim::{Answered, Asked, ClaimedJob};
use tracing::{Span, debug, info, info_span, warn};

use super::attempt::Outcome;
use super::fate::Fate;
use super::record::{self, Record};
use super::tally::{Stage, Tally};
use super::visibility::{Change, Refusal};
use crate::telemetry::Chain;

/// A job to run, for the message at `position`.
pub(crate) struct Won {
    pub position: usize,
    pub job: ClaimedJob,
    /// Names the job, the attempt and the message in every line about it.
    pub span: Span,
}

/// One batch on its way to its reply.
pub(crate) struct Batch<'a> {
    records: &'a [Record],
    /// By position. A message without a fate is kept.
    fates: Vec<Option<Fate>>,
    /// Positions decided since the queue was last told.
    untold: Vec<usize>,
    /// Jobs that were tried before, to be claimed one by one.
    pub suspects: Vec<(usize, Asked)>,
    pub tally: Tally,
    /// When the newest claim was answered; before the first one, when the batch came.
    pub claimed_at: Instant,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(records: &'a [Record]) -> Self {
        Self {
            records,
            fates: vec![None; records.len()],
            untold: Vec::new(),
            suspects: Vec::new(),
            tally: Tally::default(),
            claimed_at: Instant::now(),
        }
    }

    /// What the readable messages ask. The others are undecidable.
    pub(crate) fn readable(&mut self) -> Vec<(usize, Asked)> {
        let mut asked = Vec::with_capacity(self.records.len());
        for (position, record) in self.records.iter().enumerate() {
            match &record.message {
                Ok(message) => asked.push((
                    position,
                    Asked { job_id: message.job_id.clone(), redrive_generation: message.redrive_generation },
                )),
                Err(error) => {
                    warn!(message.id = record.message_id, error = %Chain(error), "the message can not be read");
                    self.tally.answered(Answer::Undecidable);
                    self.decide(position, Fate::undecidable());
                }
            }
        }
        asked
    }

    /// Takes down that a claim which began at `started` was answered now.
    pub(crate) fn claimed(&mut self, started: Instant) {
        self.claimed_at = Instant::now();
        self.tally.asked_database(started.elapsed());
    }

    /// Takes down the database's answer to a message; answers the job if it is to be run.
    pub(crate) fn answered(&mut self, position: usize, asked: Asked, answered: Answered) -> Option<Won> {
        let Answered { answer, wait, job } = answered;
        self.tally.answered(answer);
        self.log(position, &asked, answer);
        if let Some(fate) = Fate::of_answer(answer, wait) {
            self.decide(position, fate);
        } else if let Some(job) = job {
            let span = span(&job, &self.records[position]);
            return Some(Won { position, job, span });
        } else {
            self.suspects.push((position, asked));
        }
        None
    }

    /// Takes down how the work on a claimed job ended.
    pub(crate) fn ended(&mut self, position: usize, outcome: Outcome) {
        self.tally.attempted(&outcome, outcome.ended_at.saturating_duration_since(self.claimed_at));
        self.tally.asked_database(outcome.database);
        self.decide(position, outcome.ended.into());
    }

    /// Decides about a message.
    pub(crate) fn decide(&mut self, position: usize, fate: Fate) {
        self.fates[position] = Some(fate);
        self.untold.push(position);
    }

    /// When the messages decided since the last call are to come back.
    pub(crate) fn take_changes(&mut self) -> Vec<Change> {
        let untold = std::mem::take(&mut self.untold);
        untold.into_iter().filter_map(|position| self.change(position)).collect()
    }

    fn change(&self, position: usize) -> Option<Change> {
        let receipt_handle = self.records[position].receipt_handle.clone()?;
        Some(Change { receipt_handle, seconds: self.fates[position]?.visibility()? })
    }

    /// Takes down that the queue did not change a message.
    pub(crate) fn refused(&mut self, refusal: &Refusal) {
        match refusal {
            Refusal::Gone => debug!("a message to keep is not in flight any more"),
            Refusal::Other(code) => {
                warn!(code, "the queue did not change when a message comes back");
                self.tally.failed(Stage::Acknowledge);
            }
        }
    }

    /// Whether the database was away for every single message.
    pub(crate) fn is_unsettled(&self) -> bool {
        !self.records.is_empty() && self.tally.unknown() == self.records.len()
    }

    /// The reply: every message that is not to be deleted, and no other.
    pub(crate) fn reply(&self) -> Value {
        let kept = self.records.iter().zip(&self.fates).filter(|(_, fate)| **fate != Some(Fate::Acknowledge));
        record::reply(kept.map(|(record, _)| record))
    }

    fn log(&self, position: usize, asked: &Asked, answer: Answer) {
        let message_id = &self.records[position].message_id;
        let job_id = &asked.job_id;
        let answered = answer.as_str();
        match answer {
            Answer::Undecidable => {
                warn!(message.id = message_id, job.id = %job_id, "the message is {answered}");
            }
            Answer::Stale | Answer::Expired | Answer::Exhausted => {
                info!(message.id = message_id, job.id = %job_id, "the job is dead: {answered}");
            }
            _ => debug!(message.id = message_id, job.id = %job_id, "the answer is {answered}"),
        }
    }
}

fn span(job: &ClaimedJob, record: &Record) -> Span {
    info_span!(
        "job",
        job.id = %job.claim.job_id(),
        job.type = job.job_type,
        job.attempt = job.claim.attempt_count(),
        job.redrive_generation = job.claim.redrive_generation(),
        job.trace = job.trace_header,
        message.id = record.message_id,
    )
}
