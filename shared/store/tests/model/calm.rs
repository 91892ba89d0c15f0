//! What runs when nothing goes wrong any more. After some rounds every job must have come to its end.

use crate::operations::{Operation, Step};

/// Rounds of the schedule: enough for the longest silence and for every attempt.
pub const ROUNDS: usize = 8;
/// Messages a round looks at. Claims are looked at as many times.
const DELIVERIES: usize = 12;

/// One round of the schedule, half a day after the last: reconciler, relay, consumers.
pub fn round() -> Vec<Operation> {
    let mut operations = vec![Operation::Pass(13), Operation::BuryStrays, Operation::Reconcile];
    let relay = [Step::Die, Step::Take, Step::Read, Step::Send, Step::Mark, Step::Recover, Step::Release];
    operations.extend(relay.map(|step| Operation::Relay(0, step)));
    operations.extend((0..DELIVERIES).map(Operation::ClaimSuspect));
    operations.extend((0..DELIVERIES).map(Operation::Complete));
    operations
}
