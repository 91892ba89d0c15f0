//! What a seed decides for each turn of each member of the crowd.
//!
//! A turn's decision depends on the seed, the member and the turn's number, and on nothing that came
//! before it: how fast the machine is changes how many turns there are, and none of them.

use fastrand::Rng;

/// How the jobs of the crowd behave; some behave well more often.
const BEHAVIOURS: [&str; 12] = [
    "succeed",
    "succeed",
    "slow",
    "slow",
    "slow",
    "follow-up",
    "follow-up",
    "fail-once",
    "fail",
    "refuse",
    "kill",
    "panic",
];
/// Largest number of jobs in one transaction of the producer.
const JOBS_MAX: i64 = 25;
/// The same for jobs each of whose attempts ends a process or uses itself up: a crowd that only starts
/// again does no work.
const COSTLY_JOBS_MAX: i64 = 3;
/// Those jobs.
const COSTLY: [&str; 3] = ["fail", "kill", "panic"];

/// A transaction of the producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Produced {
    /// How all its jobs behave.
    pub behave: &'static str,
    /// How many there are.
    pub count: i64,
    /// Where the first process that tries it dies, if it does.
    pub fault: Option<&'static str>,
    /// Whether it is enqueued again although it was committed.
    pub again: bool,
}

/// What is new at the market when the collector is invoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// Nothing: it collects again what it has.
    Nothing,
    /// The last day is corrected to this close.
    Correction(&'static str),
    /// Another day.
    Day,
}

/// What becomes of a batch on its way to a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Later ones overtake it.
    pub held_back: bool,
    /// It is delivered again after it was answered.
    pub twice: bool,
    /// Its messages change places by this seed.
    pub order: u64,
    /// Everything that is in flight becomes visible too early afterwards.
    pub too_early: bool,
}

/// The dice of one turn of one member.
fn dice(seed: u64, member: u64, turn: u64) -> Rng {
    // Odd factors without a small relation, so that neighbours get dice that have nothing in common.
    let member = member.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let turn = turn.wrapping_mul(0xD1B5_4A32_D192_ED03);
    Rng::with_seed(seed ^ member.rotate_left(17) ^ turn)
}

/// The producer's turn.
#[must_use]
pub fn produced(seed: u64, member: u64, turn: u64) -> Produced {
    let mut dice = dice(seed, member, turn);
    let behave = BEHAVIOURS[dice.usize(0..BEHAVIOURS.len())];
    Produced {
        behave,
        count: dice.i64(1..=if COSTLY.contains(&behave) { COSTLY_JOBS_MAX } else { JOBS_MAX }),
        fault: match dice.u32(0..8) {
            0 => Some("subject::commit.before:kill:1"),
            1 => Some("subject::commit.after:kill:1"),
            _ => None,
        },
        again: dice.u32(0..8) == 0,
    }
}

/// The collector's turn.
#[must_use]
pub fn news(seed: u64, member: u64, turn: u64) -> News {
    match dice(seed, member, turn).u32(0..6) {
        0 => News::Correction("100"),
        1 => News::Correction("120"),
        2 => News::Nothing,
        _ => News::Day,
    }
}

/// A mapping's turn.
#[must_use]
pub fn delivery(seed: u64, member: u64, turn: u64) -> Delivery {
    let mut dice = dice(seed, member, turn);
    Delivery {
        held_back: dice.u32(0..6) == 0,
        twice: dice.u32(0..4) == 0,
        order: dice.u64(..),
        too_early: dice.u32(0..8) == 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decisions(seed: u64, member: u64) -> Vec<(Produced, News, Delivery)> {
        let turn =
            |turn| (produced(seed, member, turn), news(seed, member, turn), delivery(seed, member, turn));
        (0..200).map(turn).collect()
    }

    #[test]
    fn seed_decides_the_same_turns_each_time_and_another_seed_or_member_other_ones() {
        assert_eq!(decisions(7, 1), decisions(7, 1));
        assert_ne!(decisions(7, 1), decisions(8, 1));
        assert_ne!(decisions(7, 1), decisions(7, 2));
    }

    #[test]
    fn every_behaviour_and_every_kind_of_delivery_comes_up() {
        let decisions = decisions(1, 1);

        for behave in BEHAVIOURS {
            assert!(decisions.iter().any(|(produced, ..)| produced.behave == behave), "{behave}");
        }
        assert!(decisions.iter().any(|(produced, ..)| produced.fault.is_some() && produced.again));
        assert!(decisions.iter().any(|(_, news, _)| *news == News::Nothing));
        for is_so in [|it: &Delivery| it.held_back, |it: &Delivery| it.twice, |it: &Delivery| it.too_early] {
            assert!(decisions.iter().any(|(.., delivery)| is_so(delivery)));
        }
    }
}
