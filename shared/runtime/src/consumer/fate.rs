//! What becomes of a message: deleted, or kept until an instant.

use std::time::{Duration, Instant};

use domain::{Answer, Disposition};

use super::visibility;

/// How soon a message nobody can decide comes back: with the queue's `maxReceiveCount` it reaches the
/// dead-letter queue in minutes.
const UNDECIDABLE_WAIT: Duration = Duration::from_secs(10);
/// How soon to look again when the row alone knows what happened, or a job was given back unstarted.
const SOON: Duration = Duration::from_secs(1);

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Deleted: its job is terminal, or a younger message replaces it.
    Acknowledge,
    /// Kept until then.
    KeepUntil(Instant),
    /// Kept for as long as the queue itself keeps it invisible.
    Keep,
}

/// How the work on a claimed job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Its effects are committed.
    Done,
    /// It failed and is due again after this wait.
    Retried(Duration),
    /// It was given up.
    Dead,
    /// It was never started and is due now.
    Released,
    /// Somebody else holds it; everything was rolled back.
    Lost,
    /// The database did not say. The row knows; the lease ends by itself.
    Unknown,
}

impl Fate {
    /// What the answer alone decides; `None` when the handler does.
    pub(crate) fn of_answer(answer: Answer, wait: Option<Duration>) -> Option<Self> {
        match answer.disposition() {
            Disposition::Acknowledge => Some(Self::Acknowledge),
            Disposition::KeepUntilDue => Some(Self::after(wait.unwrap_or(SOON))),
            Disposition::Leave => Some(Self::undecidable()),
            Disposition::Run => None,
        }
    }

    /// On its way to the dead-letter queue.
    pub(crate) fn undecidable() -> Self {
        Self::after(UNDECIDABLE_WAIT)
    }

    /// To be looked at again at once.
    pub(crate) fn soon() -> Self {
        Self::after(SOON)
    }

    fn after(wait: Duration) -> Self {
        Instant::now().checked_add(wait).map_or(Self::Keep, Self::KeepUntil)
    }

    /// The visibility timeout that fits, in seconds from now.
    pub(crate) fn visibility(self) -> Option<i32> {
        match self {
            Self::KeepUntil(due) => Some(visibility::seconds(due.saturating_duration_since(Instant::now()))),
            Self::Acknowledge | Self::Keep => None,
        }
    }
}

impl From<Ended> for Fate {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Done | Ended::Dead => Self::Acknowledge,
            Ended::Retried(wait) => Self::after(wait),
            Ended::Released | Ended::Lost => Self::soon(),
            Ended::Unknown => Self::Keep,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_end_that_the_row_remembers_deletes_the_message() {
        let kept = [Ended::Retried(Duration::ZERO), Ended::Released, Ended::Lost, Ended::Unknown];
        assert!(kept.map(Fate::from).iter().all(|fate| *fate != Fate::Acknowledge));
        assert_eq!([Ended::Done, Ended::Dead].map(Fate::from), [Fate::Acknowledge; 2]);
    }

    #[test]
    fn message_of_a_retried_job_does_not_come_back_before_it_is_due() {
        let fate = Fate::from(Ended::Retried(Duration::from_millis(4_200)));
        assert_eq!(fate.visibility(), Some(5));
    }

    #[test]
    fn every_answer_but_those_that_run_decides_by_itself() {
        for answer in Answer::ALL {
            let runs = matches!(answer, Answer::Suspect | Answer::Won);
            assert_eq!(Fate::of_answer(answer, None).is_none(), runs, "{answer:?}");
        }
    }
}
