//! What can happen, and how often it is drawn.
//!
//! Messages, oldest first, and claims, newest first, are numbered round what there is, so that a
//! sequence still means something when parts of it are left out.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use store::dead_letter::Policy;

use crate::subject::Slot;

/// One step of a relay that has its own view of the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Takes the lane.
    Take,
    /// Reads what is due.
    Read,
    /// Sends everything it has read; marks nothing yet.
    Send,
    /// Marks what it has sent.
    Mark,
    /// Is told by the queue that its first event can never be sent.
    Refuse,
    /// Is told by the queue to try its first event later.
    Postpone,
    /// Keeps the lane.
    Renew,
    /// Finds the lane in trouble.
    BackOff,
    /// Finds the lane healthy.
    Recover,
    /// Gives the lane back.
    Release,
    /// Is killed: forgets everything, and the lane stays taken.
    Die,
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Operation {
    Enqueue(Slot),
    /// Two relays, 0 and 1.
    Relay(usize, Step),
    ClaimBatch(Vec<usize>),
    ClaimSuspect(usize),
    Complete(usize),
    Retry(usize),
    Release(usize),
    Bury(usize),
    /// A message reaches the dead-letter queue and is decided.
    DeadLetter(Vec<usize>, Policy),
    Duplicate(usize),
    Drop(usize),
    /// A message nobody sent, of this many generations after the job's own.
    Forge(Slot, i32),
    Redrive {
        slot: Slot,
        dry_run: bool,
    },
    /// Every DEAD job that was not dismissed.
    RedriveAll,
    Dismiss(Slot),
    /// The window is collected for the first time.
    Collect,
    /// It is collected again with other content, by somebody who saw the generation before if `late`.
    Correct {
        late: bool,
    },
    /// An older minute, by its number.
    Backfill(i64),
    Reconcile,
    /// Events whose destination nobody drains are given up.
    BuryStrays,
    /// So many hours go by.
    Pass(i64),
}

/// One operation, or a few that seldom come together by chance.
fn some_operations() -> impl Strategy<Value = Vec<Operation>> {
    use Step::{BackOff, Mark, Read, Refuse, Release, Send, Take};
    let relay = |steps: Vec<Step>| {
        (0..2_usize).prop_map(move |relay| steps.iter().map(|step| Operation::Relay(relay, *step)).collect())
    };
    let twice = select(Slot::FREE.to_vec()).prop_map(|slot| vec![Operation::Dismiss(slot); 2]);
    prop_oneof![
        24 => operation().prop_map(|operation| vec![operation]),
        4 => relay(vec![Take, Read, Send, Mark, Release]),
        2 => relay(vec![Take, Read, Send, Release]),
        2 => relay(vec![Take, Read, Refuse, Release]),
        1 => relay(vec![Take, BackOff, Take]),
        2 => twice,
        2 => run_twice(),
        2 => frozen_relays(),
    ]
}

/// A job that dies and is redriven, its first message kept.
fn run_twice() -> impl Strategy<Value = Vec<Operation>> {
    (0..4_usize, select(Slot::FREE.to_vec())).prop_map(|(number, slot)| {
        let redrive = Operation::Redrive { slot, dry_run: false };
        vec![Operation::Forge(slot, 0), Operation::ClaimSuspect(number), Operation::Bury(number), redrive]
    })
}

/// Two relays that read the same ring, and write when there is a later one.
fn frozen_relays() -> impl Strategy<Value = Vec<Operation>> {
    use Step::{Mark, Postpone, Read, Refuse, Release, Send, Take};
    (0..2_usize, vec(0..4_usize, 1..3), select(vec![Refuse, Postpone])).prop_map(|(relay, messages, end)| {
        let one = |step| Operation::Relay(relay, step);
        let other = |step| Operation::Relay(1 - relay, step);
        let mut operations = vec![one(Take), one(Read), one(Release)];
        operations.extend([other(Take), other(Read), other(Send), other(Release)]);
        operations.push(Operation::DeadLetter(messages, Policy::Return));
        operations.extend([one(end), other(Mark)]);
        operations
    })
}

/// Everything a case does.
pub fn case(steps: usize) -> impl Strategy<Value = Vec<Operation>> {
    vec(some_operations(), steps / 2..=steps).prop_map(|groups| groups.into_iter().flatten().collect())
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation as Op;
    let free = || select(Slot::FREE.to_vec());
    let often = [Slot::Plain, Slot::Plain, Slot::Frail, Slot::Frail];
    let any_slot = move || select(Slot::all().chain(often).collect::<Vec<_>>());
    let number = || 0..4_usize;
    let policy = select(vec![Policy::Return, Policy::Return, Policy::Dead]);
    prop_oneof![
        5 => free().prop_map(Op::Enqueue),
        10 => (0..2_usize, step()).prop_map(|(relay, step)| Op::Relay(relay, step)),
        5 => vec(number(), 1..4).prop_map(Op::ClaimBatch),
        5 => number().prop_map(Op::ClaimSuspect),
        4 => consumer_end(),
        5 => (vec(number(), 1..3), policy).prop_map(|(messages, policy)| Op::DeadLetter(messages, policy)),
        1 => number().prop_map(Op::Duplicate),
        1 => number().prop_map(Op::Drop),
        2 => (any_slot(), -1..=1).prop_map(|(slot, ahead)| Op::Forge(slot, ahead)),
        4 => (any_slot(), prop::bool::weighted(0.2)).prop_map(|(slot, dry_run)| Op::Redrive { slot, dry_run }),
        1 => Just(Op::RedriveAll),
        2 => any_slot().prop_map(Op::Dismiss),
        2 => Just(Op::Collect),
        2 => any::<bool>().prop_map(|late| Op::Correct { late }),
        1 => (1..3_i64).prop_map(Op::Backfill),
        2 => Just(Op::Reconcile),
        1 => Just(Op::BuryStrays),
        4 => (1..5_i64).prop_map(Op::Pass),
    ]
}

/// How a handler's run ends.
fn consumer_end() -> impl Strategy<Value = Operation> {
    let ends: Vec<fn(usize) -> Operation> =
        vec![Operation::Complete, Operation::Retry, Operation::Retry, Operation::Release, Operation::Bury];
    (select(ends), 0..4_usize).prop_map(|(end, claim)| end(claim))
}

fn step() -> impl Strategy<Value = Step> {
    use Step::{BackOff, Die, Mark, Postpone, Read, Recover, Refuse, Release, Renew, Send, Take};
    let mut steps = vec![BackOff, BackOff, Die, Postpone, Recover, Refuse, Refuse, Release, Renew];
    steps.extend([Take, Read, Send, Mark].repeat(3));
    select(steps)
}
