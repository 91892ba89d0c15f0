//! The protocol against a model of it: random interleavings of everything that can happen, on the real
//! statements and on a small reference in memory, compared row by row after every step.
//!
//! A case is a list of operations. When one fails it is made as short as it can be and printed. By
//! default always the same cases are drawn; `MODEL_CASES`, `MODEL_STEPS` and `MODEL_SEED` draw others.
//! Time is moved by hand in both, and nothing happens at the same moment here: that is for `rivals.rs`.

#![allow(clippy::unwrap_used, reason = "a test that can not go on has failed")]

mod calm;
mod operations;
mod outcome;
mod real;
mod reference;
mod rows;
mod seen;
mod shrink;
mod subject;

use std::cell::RefCell;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use sqlx::PgPool;
use tokio::runtime::Handle;

use crate::operations::Operation;
use crate::real::Real;
use crate::reference::Reference;
use crate::seen::Seen;

/// Cases of a run, and operations of a case, that `make test` can afford.
const CASES: u32 = 64;
const STEPS: usize = 40;
/// Draws cases that come to every interesting place; which ones those are is for [`Seen`] to say.
const SEED: u64 = 1;

#[sqlx::test(migrations = "../../migrations")]
async fn store_moves_every_row_as_the_reference_says_whatever_the_interleaving(db: PgPool) {
    Real::prepare(&db).await;
    let handle = Handle::current();
    let cases = move || draw_cases(&|case| handle.block_on(run(&db, case)));

    let outcome = tokio::task::spawn_blocking(cases).await.unwrap();

    match outcome {
        Ok(seen)
            if ["MODEL_CASES", "MODEL_STEPS", "MODEL_SEED"].map(std::env::var_os) == [None, None, None] =>
        {
            assert_eq!(seen.missing(), Vec::<String>::new(), "the cases never came there");
        }
        Ok(seen) => println!("not met: {:?}", seen.missing()),
        Err(report) => panic!("{report}"),
    }
}

/// Draws and runs cases; answers what they have seen, or a report on the shortest that fails.
fn draw_cases(run: &impl Fn(&[Operation]) -> Result<Seen, String>) -> Result<Seen, String> {
    let seed: u64 = setting("MODEL_SEED", SEED);
    let config = Config {
        cases: setting("MODEL_CASES", CASES),
        failure_persistence: None,
        max_shrink_iters: 0,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let steps = operations::case(setting("MODEL_STEPS", STEPS));
    let met = RefCell::new(Seen::default());
    let failed = TestRunner::new_with_rng(config, rng).run(&steps, |case| {
        let in_case = run(&case).map_err(TestCaseError::fail)?;
        met.borrow_mut().add(in_case);
        Ok(())
    });
    match failed {
        Ok(()) => Ok(met.into_inner()),
        Err(TestError::Fail(_, case)) => Err(shrink::report(seed, case, run)),
        Err(other) => Err(other.to_string()),
    }
}

/// Runs one case on empty tables, then lets everything come to rest.
async fn run(db: &PgPool, case: &[Operation]) -> Result<Seen, String> {
    let mut reference = Reference::default();
    let mut real = Real::start(db).await;
    let mut seen = Seen::default();
    for operation in case {
        step(&mut reference, &mut real, operation, &mut seen).await?;
    }
    for _ in 0..calm::ROUNDS {
        if reference.unfinished().is_empty() {
            return Ok(seen);
        }
        for operation in calm::round() {
            step(&mut reference, &mut real, &operation, &mut seen).await?;
        }
    }
    Err(format!("after {} calm rounds {:?} are not finished", calm::ROUNDS, reference.unfinished()))
}

/// One operation on both, and everything compared.
async fn step(
    reference: &mut Reference,
    real: &mut Real,
    operation: &Operation,
    seen: &mut Seen,
) -> Result<(), String> {
    let found = real.run(operation, reference).await;
    let expected = reference.run(operation);
    if found != expected {
        return Err(format!("{operation:?} answered\n    {found:?}\n  expected\n    {expected:?}"));
    }
    seen.note(&expected);
    let differences = rows::differences(&reference.rows(), &real.rows().await);
    if !differences.is_empty() {
        return Err(format!("after {operation:?} rows differ:\n{differences}"));
    }
    reference.check().map_err(|broken| format!("after {operation:?}: {broken}"))
}

/// A number from the environment.
fn setting<T: std::str::FromStr>(name: &str, default: T) -> T {
    std::env::var(name).ok().map_or(default, |text| text.parse().ok().expect("a number"))
}
