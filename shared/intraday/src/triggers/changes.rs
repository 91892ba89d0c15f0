//! What has to be written so that the rows say what the closes say.
//!
//! Pure: the difference between the triggers that follow and the rows that stand, inside what one
//! window can change. Rows outside that, and rows that are right already, are not touched.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;

use super::{
    Cause, Key, Rule, Values,
    influence::{self, Range},
    rules::{self, Closes},
};
use crate::config::Thresholds;

/// A row of `price_trigger`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// What the row says.
    pub values: Values,
    /// How often it was written.
    pub revision: i32,
    /// Whether it no longer follows from the closes.
    pub withdrawn: bool,
    /// Whether it has its explanation.
    pub explained: bool,
    /// Whose job wrote this revision; the explain job is tied to it.
    pub cause: Cause,
}

/// One row to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// There is no row yet; it gets revision 1.
    Insert(Values),
    /// The row says something else, was withdrawn, or lost its explain job to a correction of the window
    /// that caused it; it gets the revision after this one and loses its explanation.
    Replace {
        /// The revision that stands.
        revision: i32,
        /// What the row has to say.
        values: Values,
    },
    /// The trigger no longer follows from the closes; the row loses its explanation.
    Withdraw {
        /// The revision that stands and stays.
        revision: i32,
    },
}

/// What the job of this window, of trading day `session`, has to write.
///
/// `closes` holds the real-time bars of the session and those within [`influence::REACH`] of the
/// window; `standing` the rows of every session that touches. The order of the result is that of the
/// primary key.
#[must_use]
pub fn of_window(
    window: Cause,
    session: NaiveDate,
    closes: &Closes,
    standing: &BTreeMap<Key, Standing>,
    thresholds: &Thresholds,
) -> BTreeMap<Key, Change> {
    let mut follows = rules::triggers(closes, thresholds);
    let scope = Scope::of(window, session, closes, standing);
    follows.retain(|key, values| scope.contains(key, values.session));

    let withdrawn = standing
        .iter()
        .filter(|(key, row)| !row.withdrawn && !follows.contains_key(key))
        .filter(|(key, row)| scope.contains(key, row.values.session))
        .map(|(key, row)| (key.clone(), Change::Withdraw { revision: row.revision }))
        .collect::<Vec<_>>();
    follows
        .into_iter()
        .filter_map(|(key, values)| Some((key.clone(), written(window, values, standing.get(&key))?)))
        .chain(withdrawn)
        .collect()
}

fn written(window: Cause, values: Values, standing: Option<&Standing>) -> Option<Change> {
    let Some(row) = standing else { return Some(Change::Insert(values)) };
    let right = !row.withdrawn && row.values == values;
    (!right || lost_its_job(window, row)).then_some(Change::Replace { revision: row.revision, values })
}

/// The row's explain job is tied to an older generation of this very window, so it is stale or will be.
fn lost_its_job(window: Cause, row: &Standing) -> bool {
    !row.explained
        && row.cause.window_start == window.window_start
        && row.cause.generation < window.generation
}

/// What one window can change, symbol by symbol and rule by rule, and what it once caused.
struct Scope {
    ranges: BTreeMap<(String, Rule), Range>,
    caused: BTreeSet<Key>,
}

impl Scope {
    fn of(window: Cause, session: NaiveDate, closes: &Closes, standing: &BTreeMap<Key, Standing>) -> Self {
        let symbols: BTreeSet<&String> =
            closes.keys().chain(standing.keys().map(|key| &key.symbol)).collect();
        let range = |symbol: &String, rule| {
            let bars = closes.get(symbol).map_or(&[][..], Vec::as_slice);
            influence::of_window(rule, window.window_start, session, bars)
        };
        let ranges = symbols
            .into_iter()
            .flat_map(|symbol| Rule::ALL.map(|rule| ((symbol.clone(), rule), range(symbol, rule))))
            .collect();
        let caused = standing.iter().filter(|(_, row)| row.cause.window_start == window.window_start);
        Self { ranges, caused: caused.map(|(key, _)| key.clone()).collect() }
    }

    fn contains(&self, key: &Key, session: NaiveDate) -> bool {
        let in_range = self
            .ranges
            .get(&(key.symbol.clone(), key.rule))
            .is_some_and(|range| range.contains(session, key.at));
        in_range || self.caused.contains(key)
    }
}

#[cfg(test)]
mod tests {
    //! Bars arrive, are corrected and vanish in any order, and each such change has its job, run at any
    //! later moment, any number of times; what stands at the end is the full computation.

    use proptest::prelude::*;

    use super::*;
    use crate::triggers::{
        Close,
        fixture::{at, close, thresholds},
    };

    /// A commit: the bar of this minute is this price now, or gone. Its job waits from then on.
    type Commit = (i64, Option<&'static str>);

    #[derive(Default)]
    struct World {
        bars: BTreeMap<i64, Close>,
        generations: BTreeMap<i64, i32>,
        waiting: Vec<i64>,
        standing: BTreeMap<Key, Standing>,
    }

    impl World {
        fn commit(&mut self, minute: i64, price: Option<&str>) {
            match price {
                Some(price) => self.bars.insert(minute, close(minute, price)),
                None => self.bars.remove(&minute),
            };
            *self.generations.entry(minute).or_insert(0) += 1;
            self.waiting.push(minute);
        }

        /// Runs the job of the window's current generation, with the bars the handler would read.
        fn run(&mut self, minute: i64) {
            let session = at(minute).date_naive();
            let near = at(minute) - influence::REACH..=at(minute) + influence::REACH;
            let read = |close: &&Close| close.session == session || near.contains(&close.at);
            let closes: Vec<Close> = self.bars.values().filter(read).cloned().collect();
            let closes = Closes::from([("AAPL".to_owned(), closes)]);
            let cause = Cause { window_start: at(minute), generation: self.generations[&minute] };
            for (key, change) in of_window(cause, session, &closes, &self.standing, &thresholds()) {
                self.write(key, change, cause);
            }
        }

        fn write(&mut self, key: Key, change: Change, cause: Cause) {
            let (revision, values) = match change {
                Change::Withdraw { .. } => {
                    self.standing.get_mut(&key).unwrap().withdrawn = true;
                    return;
                }
                Change::Insert(values) => (1, values),
                Change::Replace { revision, values } => (revision + 1, values),
            };
            let row = Standing { values, revision, withdrawn: false, explained: false, cause };
            self.standing.insert(key, row);
        }

        fn stands(&self) -> BTreeMap<Key, Values> {
            let live = self.standing.iter().filter(|(_, row)| !row.withdrawn);
            live.map(|(key, row)| (key.clone(), row.values.clone())).collect()
        }
    }

    impl World {
        /// Runs every waiting job, each `times` times, in an order drawn by `pick`.
        fn drain(&mut self, pick: prop::sample::Index, times: usize) {
            while !self.waiting.is_empty() {
                let minute = self.waiting.swap_remove(pick.index(self.waiting.len()));
                (0..times).for_each(|_| self.run(minute));
            }
        }

        fn full_computation(&self) -> BTreeMap<Key, Values> {
            let bars = self.bars.values().cloned().collect();
            rules::triggers(&Closes::from([("AAPL".to_owned(), bars)]), &thresholds())
        }
    }

    /// Every fifth minute of two sessions that touch at midnight (minute 630): sparse enough for gaps,
    /// and the edges of 30 and 40 minutes are met often.
    fn minute() -> impl Strategy<Value = i64> {
        (92..132_i64).prop_map(|fives| fives * 5)
    }

    fn commit() -> impl Strategy<Value = Commit> {
        let price = prop::sample::select(vec!["100", "100.5", "101.2", "102.5", "104.5", "106"]);
        (minute(), prop::option::weighted(0.9, price))
    }

    /// A settled past, then a few changes, late windows and corrections, whose jobs alone still run.
    fn history() -> impl Strategy<Value = (Vec<Commit>, Vec<Commit>)> {
        (prop::collection::vec(commit(), 10..60), prop::collection::vec(commit(), 1..5))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_order_of_jobs_ends_in_the_full_computation(
            (past, late) in history(),
            pick in any::<prop::sample::Index>(),
            times in 1..3_usize,
        ) {
            let mut world = World::default();
            for commits in [past, late] {
                for (minute, price) in commits {
                    world.commit(minute, price);
                }
                world.drain(pick, times);
                prop_assert_eq!(world.stands(), world.full_computation());
            }
        }

        #[test]
        fn job_that_runs_again_has_nothing_to_write((past, late) in history()) {
            let mut world = World::default();
            past.into_iter().chain(late).for_each(|(minute, price)| world.commit(minute, price));
            for minute in world.generations.keys().copied().collect::<Vec<_>>() {
                world.run(minute);
                let before = world.standing.clone();
                world.run(minute);
                prop_assert_eq!(&world.standing, &before);
            }
        }
    }

    #[test]
    fn correction_that_keeps_a_trigger_makes_it_explainable_again() {
        let mut world = World::default();
        world.commit(0, Some("100"));
        world.commit(30, Some("102"));
        world.run(30);
        world.commit(30, Some("102"));

        world.run(30);

        let row = world.standing.values().next().unwrap();
        assert_eq!((row.revision, row.cause.generation), (2, 2));
        assert_eq!(world.standing.len(), 1);
    }

    #[test]
    fn explained_trigger_survives_a_correction_that_keeps_it() {
        let mut world = World::default();
        world.commit(0, Some("100"));
        world.commit(30, Some("102"));
        world.run(30);
        world.standing.values_mut().next().unwrap().explained = true;
        world.commit(30, Some("102"));

        world.run(30);

        assert_eq!(world.standing.values().next().unwrap().revision, 1);
    }
}
