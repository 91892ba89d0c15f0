//! Many durations in little space.

use std::collections::BTreeMap;
use std::time::Duration;

/// The bounds of a decade, in tenths of its power of ten.
const STEPS: [u64; 6] = [10, 15, 20, 30, 50, 70];
/// The longest that is told apart: more than two days.
const LONGEST_MS: u64 = 200_000_000;

/// How many durations lie under each of some fifty bounds, whatever their number.
///
/// A duration counts as the next bound above it: 1, 1.5, 2, 3, 5, 7 × 10ⁿ ms. So a percentile of it is
/// at most half too long, and never too short.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution(BTreeMap<u64, u64>);

impl Distribution {
    /// Counts `duration`.
    pub fn add(&mut self, duration: Duration) {
        let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(LONGEST_MS);
        *self.0.entry(bound(milliseconds)).or_insert(0) += 1;
    }

    /// Adds what another one counted.
    pub fn absorb(&mut self, other: &Self) {
        for (bound, count) in &other.0 {
            *self.0.entry(*bound).or_insert(0) += count;
        }
    }

    /// Whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each bound in milliseconds with its count, from the least.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().map(|(bound, count)| (*bound, *count))
    }
}

fn bound(milliseconds: u64) -> u64 {
    let mut power = 1;
    while power * 10 < milliseconds && power < LONGEST_MS {
        power *= 10;
    }
    let above = STEPS.iter().map(|step| step * power / 10).find(|bound| *bound >= milliseconds);
    above.unwrap_or(power * 10).min(LONGEST_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_counts_as_the_next_bound_above_it() {
        let bounds = [(0, 1), (1, 1), (2, 2), (4, 5), (8, 10), (10, 10), (11, 15), (71, 100), (1_501, 2_000)];
        for (milliseconds, expected) in bounds {
            assert_eq!(bound(milliseconds), expected, "{milliseconds}");
        }
        assert_eq!(bound(u64::MAX), LONGEST_MS);
    }

    #[test]
    fn any_number_of_durations_takes_fewer_values_than_a_metric_may_have() {
        let mut all = Distribution::default();
        for power in 0..63 {
            for step in 1..1_000 {
                all.add(Duration::from_millis(((1_u64 << power) / 1_000).saturating_mul(step)));
            }
        }
        let mut twice = all.clone();
        twice.absorb(&all);

        assert!(all.counts().count() < 100);
        assert_eq!(twice.counts().map(|(_, count)| count).sum::<u64>(), 2 * 63 * 999);
    }
}
