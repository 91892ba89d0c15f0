//! The audit: whether a committed job was lost, or applied twice.
//!
//! What must be there is derived from the rows that cause it (a window with bars has a price job, a text
//! has a news job, a trigger has an explain job) and from the input files, never from the jobs alone.

use std::collections::BTreeSet;
use std::fmt::{self, Display};

use intraday::audit::Miscounted;
use intraday::triggers::Key;
use store::audit::Balance;

use crate::report::table;

/// What the audit looks at.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The jobs.
    pub balance: Balance,
    /// Jobs that must follow from committed rows and have no row of their own.
    pub absent: usize,
    /// Messages left in the queues after the waiting.
    pub messages: i64,
    /// Messages in the dead-letter queues.
    pub dead_letters: i64,
    /// Effects that a recount contradicts.
    pub miscounted: Miscounted,
    /// Windows that should be closed, and are.
    pub windows: (i64, i64),
    /// Bars in the files, in the windows' own count, and stored.
    pub bars: (i64, i64, i64),
    /// Triggers that follow from the files, and those that are stored.
    pub triggers: (BTreeSet<Key>, BTreeSet<Key>),
    /// Whether each window was closed within its minute.
    pub in_time: bool,
}

/// One promise and whether it was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Check {
    promise: &'static str,
    found: String,
    kept: bool,
}

/// The audit's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict(Vec<Check>);

impl Evidence {
    /// Jobs that are lost: never made, impossible to wake, or still not done.
    #[must_use]
    pub fn lost(&self) -> i64 {
        self.balance.unfinished + i64::try_from(self.absent).unwrap_or(i64::MAX)
    }

    /// Effects that exist more than once, or that differ from what one application leaves.
    #[must_use]
    pub fn applied_twice(&self) -> i64 {
        let (_, counted, stored) = self.bars;
        self.miscounted.mention_buckets + self.miscounted.outdated_explanations + (stored - counted).abs()
    }

    /// Judges.
    #[must_use]
    pub fn judge(&self) -> Verdict {
        let Balance { committed, succeeded, dead, unfinished, .. } = self.balance;
        let (windows_due, windows_closed) = self.windows;
        let (bars_due, _, bars_stored) = self.bars;
        let (triggers_due, triggers_found) = &self.triggers;
        Verdict(vec![
            Check {
                promise: "committed jobs = succeeded + dead",
                found: format!("{committed} = {succeeded} + {dead}, {unfinished} unfinished"),
                kept: self.balance.holds() && committed == succeeded + dead,
            },
            Check { promise: "lost", found: self.lost().to_string(), kept: self.lost() == 0 },
            Check {
                promise: "applied twice",
                found: self.applied_twice().to_string(),
                kept: self.applied_twice() == 0,
            },
            Check {
                promise: "triggers without an explanation",
                found: self.miscounted.unexplained.to_string(),
                kept: self.miscounted.unexplained == 0,
            },
            Check {
                promise: "windows closed",
                found: format!("{windows_closed} of {windows_due}"),
                kept: windows_closed == windows_due,
            },
            Check {
                promise: "bars stored",
                found: format!("{bars_stored} of {bars_due}"),
                kept: bars_stored == bars_due,
            },
            Check {
                promise: "triggers that follow from the files",
                found: format!(
                    "{} of {}, {} others",
                    triggers_due.intersection(triggers_found).count(),
                    triggers_due.len(),
                    triggers_found.difference(triggers_due).count()
                ),
                kept: triggers_due == triggers_found,
            },
            Check {
                promise: "each window closed in its minute",
                found: if self.in_time { "yes" } else { "no" }.to_owned(),
                kept: self.in_time,
            },
            Check {
                promise: "messages left, dead letters",
                found: format!("{}, {}", self.messages, self.dead_letters),
                kept: self.messages == 0 && self.dead_letters == 0,
            },
        ])
    }
}

impl Verdict {
    /// Whether every promise was kept.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.0.iter().all(|check| check.kept)
    }
}

impl Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut checks = table(["audit", "found", ""]);
        for check in &self.0 {
            checks.add_row([check.promise, &check.found, if check.kept { "holds" } else { "BROKEN" }]);
        }
        writeln!(f, "{checks}")
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use intraday::triggers::{Direction, Rule};

    use super::*;

    fn trigger() -> Key {
        Key {
            symbol: "ABC".to_owned(),
            rule: Rule::ThirtyMinutes,
            direction: Direction::Up,
            at: DateTime::UNIX_EPOCH,
        }
    }

    fn clean() -> Evidence {
        Evidence {
            balance: Balance { committed: 9, succeeded: 8, dead: 1, ..Balance::default() },
            windows: (4, 4),
            bars: (32, 32, 32),
            triggers: (BTreeSet::from([trigger()]), BTreeSet::from([trigger()])),
            in_time: true,
            ..Evidence::default()
        }
    }

    #[test]
    fn clean_run_holds() {
        assert!(clean().judge().holds());
    }

    #[test]
    fn each_kind_of_loss_and_of_repetition_breaks_the_verdict() {
        type Break = fn(&mut Evidence);
        let broken: [(&str, Break); 11] = [
            ("job under way", |evidence| (evidence.balance.unfinished, evidence.balance.succeeded) = (1, 7)),
            ("job nobody can wake", |evidence| evidence.balance.unwakeable += 1),
            ("job never made", |evidence| evidence.absent += 1),
            ("mention counted twice", |evidence| evidence.miscounted.mention_buckets += 1),
            ("explanation of a past trigger", |evidence| evidence.miscounted.outdated_explanations += 1),
            ("trigger nobody explained", |evidence| evidence.miscounted.unexplained += 1),
            ("bar stored twice", |evidence| evidence.bars.2 += 1),
            ("trigger missing", |evidence| evidence.triggers.1.clear()),
            ("window missing", |evidence| evidence.windows.1 -= 1),
            ("window late", |evidence| evidence.in_time = false),
            ("message nobody took", |evidence| evidence.messages += 1),
        ];
        for (name, break_it) in broken {
            let mut evidence = clean();
            break_it(&mut evidence);
            assert!(!evidence.judge().holds(), "{name}");
        }
    }
}
