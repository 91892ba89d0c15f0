//! Prices in whole cents: a random walk too quiet to trigger anything, and planned shocks that do.
//!
//! Integers throughout, so that no rounding differs between machines.

use std::fmt::Write;

use chrono::NaiveTime;
use rust_decimal::Decimal;

use super::{COMPANIES, MINUTES, Scenario};

/// What a headline is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Story {
    /// Quarterly results.
    Earnings,
    /// An outlook raised or cut.
    Guidance,
    /// A merger agreed or called off.
    Merger,
    /// An analyst's opinion.
    Rating,
    /// A court or a regulator.
    Legal,
    /// A product launched or recalled.
    Product,
}

impl Story {
    /// Every story, each told once a session.
    pub const ALL: [Self; 6] =
        [Self::Earnings, Self::Guidance, Self::Merger, Self::Rating, Self::Legal, Self::Product];
}

/// A sudden move of one company's price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shock {
    /// Index into [`COMPANIES`].
    pub company: usize,
    /// The minute it begins in; it is over two minutes later.
    pub minute: u32,
    /// Its size, in hundredths of a percent.
    pub basis_points: i64,
    /// The story that came out shortly before; `None` when nothing explains it.
    pub story: Option<Story>,
}

/// Plans the session: one minute in which five companies fall together, then one shock for each story,
/// and three that nothing explains.
///
/// Two shocks of one company are at least an hour apart, so that each is a trigger of its own. The fall
/// comes before any story, and those that nothing explains hit companies without one.
pub fn plan(random: &mut fastrand::Rng) -> Vec<Shock> {
    let mut companies: Vec<usize> = (0..COMPANIES.len()).collect();
    random.shuffle(&mut companies);
    let mut stories = Story::ALL;
    random.shuffle(&mut stories);

    let fall = 36 + random.u32(0..8);
    let mut shocks: Vec<Shock> = companies[1..6]
        .iter()
        .map(|&company| Shock { company, minute: fall, basis_points: -random.i64(160..240), story: None })
        .collect();
    for (story, (slot, &company)) in stories.into_iter().zip((0..).zip(&companies)) {
        let minute = 110 + slot * 36 + random.u32(0..12);
        shocks.push(Shock {
            company,
            minute,
            basis_points: either_way(random, 190..480),
            story: Some(story),
        });
    }
    for (minute, company) in [(80, companies[6]), (205, companies[7]), (270, companies[6])] {
        let minute = minute + random.u32(0..8);
        shocks.push(Shock { company, minute, basis_points: either_way(random, 150..280), story: None });
    }
    shocks
}

fn either_way(random: &mut fastrand::Rng, size: std::ops::Range<i64>) -> i64 {
    let size = random.i64(size);
    if random.bool() { size } else { -size }
}

/// The session's bars as CSV with a header, minute by minute.
pub fn bars(random: &mut fastrand::Rng, shocks: &[Shock]) -> String {
    let mut csv = String::from("timestamp,symbol,open,high,low,close,volume\n");
    let mut prices = COMPANIES.map(|company| company.opening_cents);
    for minute in 0..MINUTES {
        for (index, company) in COMPANIES.iter().enumerate() {
            let shock =
                shocks.iter().filter(|shock| shock.company == index).map(|shock| part(shock, minute)).sum();
            let bar = Bar::next(random, prices[index], shock);
            prices[index] = bar.close;
            let _ = writeln!(csv, "{},{},{bar}", timestamp(minute), company.symbol);
        }
    }
    csv
}

/// How much of `shock` falls into `minute`, in basis points: most of it at once, the rest in the two
/// minutes after.
fn part(shock: &Shock, minute: u32) -> i64 {
    let percent = match minute.checked_sub(shock.minute) {
        Some(0) => 65,
        Some(1) => 25,
        Some(2) => 10,
        _ => 0,
    };
    shock.basis_points * percent / 100
}

fn timestamp(minute: u32) -> String {
    let time = NaiveTime::MIN + chrono::Duration::minutes(9 * 60 + 30 + i64::from(minute));
    format!("{} {time}", Scenario::date())
}

/// One minute of one company; prices in cents.
struct Bar {
    open: i64,
    high: i64,
    low: i64,
    close: i64,
    volume: u32,
}

impl Bar {
    /// The bar after `previous`, moved by `shock` basis points and a little noise.
    fn next(random: &mut fastrand::Rng, previous: i64, shock: i64) -> Self {
        let open = previous + random.i64(-1..=1);
        // Three uniform numbers make a bell; its deviation is about 2.5 basis points, so that thirty
        // quiet minutes stay far below the one percent that is worth a trigger.
        let noise_millionths: i64 = (0..3).map(|_| random.i64(-250..=250)).sum();
        let close = previous + previous * (shock * 100 + noise_millionths) / 1_000_000;
        let volume = random.u32(2_000..30_000) * if shock == 0 { 1 } else { 9 };
        Self {
            open,
            high: open.max(close) + random.i64(0..=3),
            low: open.min(close) - random.i64(0..=3),
            close,
            volume,
        }
    }
}

impl std::fmt::Display for Bar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [open, high, low, close] =
            [self.open, self.high, self.low, self.close].map(|cents| Decimal::new(cents, 2));
        write!(f, "{open},{high},{low},{close},{}", self.volume)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_tells_every_story_once_and_leaves_some_shocks_unexplained() {
        for seed in 0..50 {
            let shocks = plan(&mut fastrand::Rng::with_seed(seed));
            let mut stories: Vec<Story> = shocks.iter().filter_map(|shock| shock.story).collect();
            stories.sort();
            assert_eq!(stories, Story::ALL);
            assert_eq!(shocks.iter().filter(|shock| shock.story.is_none()).count(), 8);
        }
    }

    #[test]
    fn two_shocks_of_one_company_are_an_hour_apart() {
        for seed in 0..50 {
            let shocks = plan(&mut fastrand::Rng::with_seed(seed));
            for (index, one) in shocks.iter().enumerate() {
                for other in shocks[index + 1..].iter().filter(|other| other.company == one.company) {
                    assert!(one.minute.abs_diff(other.minute) >= 60, "seed {seed}: {one:?} and {other:?}");
                }
            }
        }
    }

    #[test]
    fn prices_are_never_below_zero_and_low_is_never_above_high() {
        let mut random = fastrand::Rng::with_seed(5);
        let shocks = plan(&mut random);
        for line in bars(&mut random, &shocks).lines().skip(1) {
            let prices: Vec<Decimal> =
                line.split(',').skip(2).take(4).map(|text| text.parse().unwrap()).collect();
            let (open, high, low, close) = (prices[0], prices[1], prices[2], prices[3]);
            assert!(low > Decimal::ZERO && low <= open.min(close) && high >= open.max(close), "{line}");
        }
    }
}
