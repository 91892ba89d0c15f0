//! Makes a failing case as short as it can be: operations are left out while it still fails.

use std::fmt::Write;

use crate::operations::Operation;

/// What to read when a case failed: the seed, the shortest sequence, and what went wrong at its end.
pub fn report<T>(
    seed: u64,
    case: Vec<Operation>,
    run: &impl Fn(&[Operation]) -> Result<T, String>,
) -> String {
    let case = shortest(case, run);
    let Err(problem) = run(&case) else { return format!("seed {seed}: a case failed once and not again") };
    let mut text = format!("seed {seed}: the store and the reference disagree after\n");
    for operation in &case {
        writeln!(text, "  {operation:?}").unwrap();
    }
    text + "because " + &problem
}

/// Leaves out runs of operations, long ones first, until nothing can be spared.
fn shortest<T>(mut case: Vec<Operation>, run: &impl Fn(&[Operation]) -> Result<T, String>) -> Vec<Operation> {
    let mut length = case.len().div_ceil(2);
    loop {
        let before = case.len();
        let mut start = 0;
        while start < case.len() {
            let mut shorter = case.clone();
            shorter.drain(start..(start + length).min(case.len()));
            if run(&shorter).is_err() {
                case = shorter;
            } else {
                start += length;
            }
        }
        if length == 1 && case.len() == before {
            return case;
        }
        length = (length / 2).max(1);
    }
}
