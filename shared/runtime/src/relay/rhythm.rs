//! When to look at a lane again, and from where: quick while it is active, cheap while it is idle.

use std::time::{Duration, Instant};

use super::drain::PASS_MAX;

/// How long a lane that had something stays at its quickest.
const ACTIVE: Duration = Duration::from_secs(1);
/// The pause between looks at an active lane, and the longest on an idle one.
const POLL: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(180));
/// Looks from the start take at most this share of the time: one in twenty.
const RESCAN_SPACING: u32 = 20;

/// When to look again, and from where.
pub(super) struct Rhythm {
    /// The next pause, unless something is found.
    pub pause: Duration,
    active_until: Instant,
    /// When the next look goes over the whole lane again, and not only behind the cursor.
    rescan_at: Instant,
}

impl Rhythm {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self { pause: POLL.0, active_until: now, rescan_at: now }
    }

    pub(super) fn found(&mut self) {
        self.pause = POLL.0;
        self.active_until = Instant::now() + ACTIVE;
    }

    /// The pause before the next look; longer and longer on a lane that stays idle.
    pub(super) fn next_pause(&mut self) -> Duration {
        let pause = self.pause;
        if self.active_until <= Instant::now() {
            self.pause = (self.pause * 2).min(POLL.1);
        }
        pause
    }

    pub(super) fn is_rescan_due(&self) -> bool {
        self.rescan_at <= Instant::now()
    }

    /// A look from the start is cheap, unless an old snapshot keeps what was published since in the
    /// index. So it is spaced by what it took, and still never put off for long.
    pub(super) fn rescanned(&mut self, began: Instant, took: Duration) {
        self.rescan_at = began + (took * RESCAN_SPACING).min(PASS_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_lane_is_looked_at_less_and_less_often_until_something_is_found() {
        let mut rhythm = Rhythm::new();
        let pauses: Vec<_> = (0..7).map(|_| rhythm.next_pause().as_millis()).collect();
        assert_eq!(pauses, [10, 20, 40, 80, 160, 180, 180]);

        rhythm.found();

        assert_eq!([rhythm.next_pause(), rhythm.next_pause()], [POLL.0; 2]);
    }

    #[test]
    fn look_from_the_start_is_spaced_by_its_cost_and_never_put_off_for_long() {
        let (mut rhythm, began) = (Rhythm::new(), Instant::now());
        assert!(rhythm.is_rescan_due());

        rhythm.rescanned(began, Duration::from_millis(50));
        assert_eq!(rhythm.rescan_at, began + Duration::from_secs(1));
        rhythm.rescanned(began, Duration::from_secs(2));
        assert_eq!(rhythm.rescan_at, began + PASS_MAX);
    }
}
