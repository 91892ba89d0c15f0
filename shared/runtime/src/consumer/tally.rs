//! Counts what happened to one batch and says it in one line.

use std::time::Duration;

use domain::Answer;
use tracing::info;

use super::fate::Ended;

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

    /// Counts how a claimed job ended.
    pub(crate) fn ended(&mut self, ended: Ended) {
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
