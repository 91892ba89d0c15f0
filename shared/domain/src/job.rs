//! What a job can be, and which moves it may make. Only its row says which state it is in.

use std::fmt;

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobStatus {
    /// Committed and never tried in this redrive generation. A claim takes it.
    Pending,
    /// Held by one claim until its lease ends. The holder completes, retries, releases or buries it;
    /// after the lease anybody may claim it again.
    Claimed,
    /// Tried and to be tried again, not before `next_attempt_at`.
    Retry,
    /// Done, effects committed. Terminal: the janitor removes it when it is old.
    Succeeded,
    /// Given up, with a reason. Terminal for the system; only an operator's redrive brings it back.
    Dead,
}

/// What can happen to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transition {
    /// A consumer takes it, or takes it over after the lease.
    Claim,
    /// Its holder commits its effects.
    Complete,
    /// Its holder failed in a way that may pass.
    Retry,
    /// Its holder never started the work.
    Release,
    /// Its message reached the dead-letter queue; it waits for a new one.
    Return,
    /// It is given up for a [`DeadReason`].
    Bury,
    /// It was silent for too long: its message is sent once more. Nothing else changes.
    Ring,
    /// An operator wants it to run again.
    Redrive,
    /// An operator accepts that it is dead.
    Dismiss,
}

impl Transition {
    /// Every transition, in the order of a job's life.
    pub const ALL: [Self; 9] = [
        Self::Claim,
        Self::Complete,
        Self::Retry,
        Self::Release,
        Self::Return,
        Self::Bury,
        Self::Ring,
        Self::Redrive,
        Self::Dismiss,
    ];
}

/// A move the table of [`JobStatus::after`] does not list.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a job that is {from} can not {transition:?}")]
pub struct IllegalMove {
    /// Where the job was.
    pub from: JobStatus,
    /// What was tried.
    pub transition: Transition,
}

impl JobStatus {
    /// Every state, in the order of a job's life.
    pub const ALL: [Self; 5] = [Self::Pending, Self::Claimed, Self::Retry, Self::Succeeded, Self::Dead];

    /// The state that follows `self` after `transition`. This table is the specification.
    ///
    /// That a claimed job is only claimed, returned or rung for after its lease, and a retried one claimed
    /// when it is due, is for the SQL to see; so is who may bury a job that is held.
    ///
    /// # Errors
    ///
    /// [`IllegalMove`] for every pair that is not listed.
    pub fn after(self, transition: Transition) -> Result<Self, IllegalMove> {
        use Transition::{Bury, Claim, Complete, Dismiss, Redrive, Release, Retry, Return, Ring};
        match (self, transition) {
            (Self::Pending | Self::Claimed | Self::Retry, Claim) => Ok(Self::Claimed),
            (Self::Claimed, Complete) => Ok(Self::Succeeded),
            (Self::Claimed, Retry | Release) | (Self::Pending | Self::Claimed | Self::Retry, Return) => {
                Ok(Self::Retry)
            }
            (Self::Pending | Self::Claimed | Self::Retry, Bury) | (Self::Dead, Dismiss) => Ok(Self::Dead),
            (Self::Pending | Self::Claimed | Self::Retry, Ring) => Ok(self),
            (Self::Dead, Redrive) => Ok(Self::Pending),
            (from, transition) => Err(IllegalMove { from, transition }),
        }
    }

    /// Whether the system itself will never touch the job again.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Dead)
    }

    /// The state as the `status` column has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Claimed => "CLAIMED",
            Self::Retry => "RETRY",
            Self::Succeeded => "SUCCEEDED",
            Self::Dead => "DEAD",
        }
    }

    /// Reads the `status` column; `None` for text the schema does not allow.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

impl fmt::Display for JobStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a job was given up. A word in capitals, stored in `dead_reason` and shown to operators.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DeadReason {
    /// Its window was collected again with other content, or what it was about has changed.
    Stale,
    /// It waited longer than its type's `max_age`.
    Expired,
    /// Every allowed attempt failed or died.
    AttemptsExhausted,
    /// Its outbox event can never be sent.
    Unsendable,
    /// Its artifact is gone for good.
    ArtifactMissing,
    /// Its message reached the dead-letter queue and no attempt is left.
    Dlq,
    /// A handler said so, in a word of its own (`[A-Z][A-Z0-9_]*`).
    Handler(&'static str),
}

impl DeadReason {
    /// The reason as the `dead_reason` column has it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Stale => "STALE",
            Self::Expired => "EXPIRED",
            Self::AttemptsExhausted => "ATTEMPTS_EXHAUSTED",
            Self::Unsendable => "UNSENDABLE",
            Self::ArtifactMissing => "ARTIFACT_MISSING",
            Self::Dlq => "DLQ",
            Self::Handler(word) => word,
        }
    }
}

impl fmt::Display for DeadReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_read_back_as_it_is_written() {
        for status in JobStatus::ALL {
            assert_eq!(JobStatus::parse(status.as_str()), Some(status));
        }
        assert_eq!(JobStatus::parse("DONE"), None);
    }

    #[test]
    fn only_an_operator_moves_a_terminal_job_and_only_a_dead_one() {
        for from in JobStatus::ALL.into_iter().filter(|status| status.is_terminal()) {
            for transition in Transition::ALL {
                let by_operator = matches!(transition, Transition::Redrive | Transition::Dismiss);
                let legal = from == JobStatus::Dead && by_operator;
                assert_eq!(from.after(transition).is_ok(), legal, "{from} {transition:?}");
            }
        }
    }

    #[test]
    fn only_a_claimed_job_is_completed_retried_or_released() {
        for from in JobStatus::ALL.into_iter().filter(|status| *status != JobStatus::Claimed) {
            for transition in [Transition::Complete, Transition::Retry, Transition::Release] {
                assert!(from.after(transition).is_err(), "{from} {transition:?}");
            }
        }
    }
}
