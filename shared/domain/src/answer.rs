//! What the database answers to a message, and what then happens to the message.

/// The answer to one message, tested in the order of the variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// Not a message, no such job, a job of another destination, or a generation from the future.
    Undecidable,
    /// The message's generation is older than the job's.
    Superseded,
    /// The job is terminal.
    Settled,
    /// Somebody holds the job: a live lease, or a lock on its row at this instant.
    Held,
    /// The job waits for its next attempt.
    Early,
    /// Its window has moved on. The job is DEAD now.
    Stale,
    /// It waited longer than its `max_age`. The job is DEAD now.
    Expired,
    /// Its attempts are used up. The job is DEAD now.
    Exhausted,
    /// Claimable, but tried before: it may be what killed the last holder. It is claimed alone, last.
    Suspect,
    /// The job is ours until the lease ends.
    Won,
}

/// What happens to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Disposition {
    /// Deleted: nothing will ever be done for it, or everything was.
    Acknowledge,
    /// Left in the queue until the job can be looked at again.
    KeepUntilDue,
    /// Left in the queue, soon back, on its way to the dead-letter queue.
    Leave,
    /// Decided by how the handler ends.
    Run,
}

impl Answer {
    /// Every answer, in the order they are tested.
    pub const ALL: [Self; 10] = [
        Self::Undecidable,
        Self::Superseded,
        Self::Settled,
        Self::Held,
        Self::Early,
        Self::Stale,
        Self::Expired,
        Self::Exhausted,
        Self::Suspect,
        Self::Won,
    ];

    /// What the answer means for the message.
    ///
    /// Only a job that is terminal, or a message a younger one replaces, is acknowledged.
    #[must_use]
    pub fn disposition(self) -> Disposition {
        match self {
            Self::Undecidable => Disposition::Leave,
            Self::Superseded | Self::Settled | Self::Stale | Self::Expired | Self::Exhausted => {
                Disposition::Acknowledge
            }
            Self::Held | Self::Early => Disposition::KeepUntilDue,
            Self::Suspect | Self::Won => Disposition::Run,
        }
    }

    /// The answer as the claim statement writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Undecidable => "undecidable",
            Self::Superseded => "superseded",
            Self::Settled => "settled",
            Self::Held => "held",
            Self::Early => "early",
            Self::Stale => "stale",
            Self::Expired => "expired",
            Self::Exhausted => "exhausted",
            Self::Suspect => "suspect",
            Self::Won => "won",
        }
    }

    /// Reads what the claim statement wrote.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|answer| answer.as_str() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_is_read_back_as_it_is_written() {
        for answer in Answer::ALL {
            assert_eq!(Answer::parse(answer.as_str()), Some(answer));
        }
    }

    #[test]
    fn message_of_a_job_that_may_still_run_is_never_acknowledged() {
        for answer in [Answer::Undecidable, Answer::Held, Answer::Early, Answer::Suspect, Answer::Won] {
            assert_ne!(answer.disposition(), Disposition::Acknowledge, "{answer:?}");
        }
    }
}
