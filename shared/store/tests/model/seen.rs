//! What the cases have met, so that a test which never comes to the interesting places fails.

use std::collections::BTreeSet;

use domain::Answer;

use crate::outcome::Outcome;

/// What every run with the usual settings must have met, as outcomes are written.
const WANTED: [&str; 22] = [
    "Lost",
    "Dead",
    "Waiting",
    "Rows(0)",
    "Superseded",
    "Settled",
    "Held",
    "Returned",
    "Buried",
    "UnknownJob",
    "WrongDestination",
    "FutureGeneration",
    "BackingOff",
    "failures: 1",
    "deferred: 1",
    "jobs: 1",
    "Moved",
    "Already",
    "Stale",
    "NotDead",
    "Missing",
    "Rung([P",
];

/// The outcomes met so far.
#[derive(Default)]
pub struct Seen(BTreeSet<String>);

impl Seen {
    /// Notes an outcome.
    pub fn note(&mut self, outcome: &Outcome) {
        if let Outcome::Answers(answers) = outcome {
            self.0.extend(answers.iter().map(|answer| format!("answer {answer:?}")));
        }
        self.0.insert(format!("{outcome:?}"));
    }

    /// Takes over what another case has met.
    pub fn add(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// What is wanted and was not met.
    pub fn missing(&self) -> Vec<String> {
        let answers = Answer::ALL.map(|answer| format!("answer {answer:?}"));
        let wanted = WANTED.into_iter().map(str::to_owned).chain(answers);
        wanted.filter(|words| !self.0.iter().any(|outcome| outcome.contains(words.as_str()))).collect()
    }
}
