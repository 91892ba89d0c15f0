//! Counts what happened to one batch and says it in one line.

use std::time::Duration;

use domain::Answer;
use tracing::info;

use super::attempt::Outcome;
use super::fate::Ended;
use crate::metrics::{Distribution, Line};

/// Where something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Asking the database for the job.
    Claim,
    /// The handler's outside work.
    Prepare,
    /// The handler's effects, or their transaction.
    Apply,
    /// Completing the job: its statement or the commit.
    Complete,
    /// Telling the queue when a message is to come back.
    Acknowledge,
}

impl Stage {
    const ALL: [Self; 5] = [Self::Claim, Self::Prepare, Self::Apply, Self::Complete, Self::Acknowledge];

    /// As the metrics call it.
    fn as_str(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Prepare => "prepare",
            Self::Apply => "apply",
            Self::Complete => "complete",
            Self::Acknowledge => "acknowledge",
        }
    }
}

/// The numbers of one batch.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    answers: [u32; Answer::ALL.len()],
    failures: [u32; 5],
    done: u32,
    retried: u32,
    dead: u32,
    released: u32,
    lost: u32,
    unknown: u32,
    stale: u32,
    /// Of each job that was done, from its claim to its commit.
    claim_to_done: Distribution,
    /// In the claims and in the transactions that end jobs, one beside the other counted twice.
    database: Duration,
    /// Deadlocks and serialization failures; what met one runs again.
    conflicts: u32,
}

impl Tally {
    /// Counts an answer of the database.
    pub(crate) fn answered(&mut self, answer: Answer) {
        self.answers[answer as usize] += 1;
    }

    /// Counts a failure.
    pub(crate) fn failed(&mut self, stage: Stage) {
        self.failures[stage as usize] += 1;
    }

    fn ended(&mut self, ended: Ended) {
        let count = match ended {
            Ended::Done => &mut self.done,
            Ended::Retried(_) => &mut self.retried,
            Ended::Dead => &mut self.dead,
            Ended::Released => &mut self.released,
            Ended::Lost => &mut self.lost,
            Ended::Unknown => &mut self.unknown,
        };
        *count += 1;
    }

    /// Counts time that the database had.
    pub(crate) fn asked_database(&mut self, took: Duration) {
        self.database += took;
    }

    /// Counts what an attempt says beside its end. `since_claim` is how long ago its job was claimed.
    pub(crate) fn attempted(&mut self, outcome: &Outcome, since_claim: Duration) {
        self.ended(outcome.ended);
        if let Some(stage) = outcome.failed {
            self.failed(stage);
        }
        self.stale += u32::from(outcome.stale);
        self.conflicts += u32::from(outcome.conflict);
        if outcome.ended == Ended::Done {
            self.claim_to_done.add(since_claim);
        }
    }

    /// Jobs whose end the database did not say.
    pub(crate) fn unknown(&self) -> usize {
        self.unknown as usize
    }

    /// Writes the batch's line. A job that was tried before counts as a suspect and, when it is claimed
    /// on its own, once more.
    pub(crate) fn log(&self, destination: &str, records: usize, took: Duration) {
        let answers = |answer: Answer| self.answers[answer as usize];
        let failures = |stage: Stage| self.failures[stage as usize];
        info!(
            destination,
            records,
            duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            answers.won = answers(Answer::Won),
            answers.suspect = answers(Answer::Suspect),
            answers.duplicate = answers(Answer::Settled),
            answers.superseded = answers(Answer::Superseded),
            answers.held = answers(Answer::Held),
            answers.early = answers(Answer::Early),
            answers.stale = answers(Answer::Stale),
            answers.expired = answers(Answer::Expired),
            answers.exhausted = answers(Answer::Exhausted),
            answers.undecidable = answers(Answer::Undecidable),
            jobs.done = self.done,
            jobs.retried = self.retried,
            jobs.dead = self.dead,
            jobs.released = self.released,
            jobs.lost = self.lost,
            jobs.unknown = self.unknown,
            failures.claim = failures(Stage::Claim),
            failures.prepare = failures(Stage::Prepare),
            failures.apply = failures(Stage::Apply),
            failures.complete = failures(Stage::Complete),
            failures.acknowledge = failures(Stage::Acknowledge),
            "batch of {records} done"
        );
    }

    /// Writes the batch's metrics, zeros included except among the stages.
    pub(crate) fn emit(&self, destination: &str) {
        let answers = |answer: Answer| u64::from(self.answers[answer as usize]);
        Line::of(&[("Destination", destination)])
            .count("Succeeded", self.done.into())
            .count("DuplicatesAbsorbed", answers(Answer::Settled))
            .count("Held", answers(Answer::Held))
            .count("Early", answers(Answer::Early))
            .count("Superseded", answers(Answer::Superseded))
            .count("Stale", answers(Answer::Stale) + u64::from(self.stale))
            .count("Undecidable", answers(Answer::Undecidable))
            .count("DatabaseRetries", self.conflicts.into())
            .milliseconds("DatabaseMilliseconds", self.database)
            .distribution("ClaimToDoneMilliseconds", &self.claim_to_done)
            .emit();
        for stage in Stage::ALL {
            let failures = self.failures[stage as usize];
            if failures > 0 {
                Line::of(&[("Destination", destination), ("Stage", stage.as_str())])
                    .count("Failures", failures.into())
                    .emit();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_has_a_count_of_its_own() {
        let mut tally = Tally::default();
        for answer in Answer::ALL {
            tally.answered(answer);
        }
        assert_eq!(tally.answers, [1; Answer::ALL.len()]);
    }
}
