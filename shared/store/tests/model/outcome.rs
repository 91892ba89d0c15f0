//! What the caller of an operation hears, without what only the database can know: ids and waits.

use domain::Answer;
use store::dead_letter::Doubt;
use store::enqueue::Enqueued;
use store::lane::Kept;
use store::outbox::Burial;
use store::window::{Corrected, Opened};

use crate::reference::Key;
use crate::subject::Slot;

/// What an operation answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// There was nothing to do it to, or nothing to say.
    Nothing,
    Enqueued(Enqueued),
    Opened(Opened),
    Corrected(Corrected),
    Answers(Vec<Answer>),
    Ended(Ended),
    Took(Took),
    Kept(Kept),
    /// What a relay read, in the order of keys.
    Read(Vec<Key>),
    /// How many events moved.
    Rows(u64),
    Burial(Burial),
    Verdicts(Vec<Verdict>),
    /// What came of an operator's order, by job.
    Moved(Vec<(Slot, Moved)>),
    /// The jobs rung for.
    Rung(Vec<Slot>),
}

/// How a claim ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Done,
    Waiting,
    Dead,
    Lost,
}

/// What a relay that wanted the lane was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Took {
    Ours { failures: u32 },
    Held,
    BackingOff,
}

/// A verdict on a message in the dead-letter queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Undecidable(Doubt),
    Superseded,
    Settled,
    Held,
    Returned,
    Buried,
}

/// What came of one job of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moved {
    Done,
    Already,
    Stale,
    NotDead,
    Missing,
}
