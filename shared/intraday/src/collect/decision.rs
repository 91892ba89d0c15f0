//! What to do with a window, by what was known before the fetch and what was fetched.

use store::window::Seen;

use super::plan::Purpose;
use super::window::Content;
use crate::bars::{self, Minute};

/// What became of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Closed for the first time.
    Opened,
    /// Its content was replaced.
    Corrected {
        /// The generation it has now.
        generation: i32,
    },
    /// Collected before with this content.
    Unchanged,
    /// A source of bars failed, and what is missing may be its bars.
    Postponed,
    /// A backfill met other content, which it does not change.
    Different,
    /// Closed with bars before; a catch-up does not look at it again.
    Passed,
    /// Somebody else changed it since it was read: fetch again.
    Moved,
}

/// What to do with a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Close it for the first time.
    Open,
    /// Replace its content, if it still is in that generation.
    Correct { from_generation: i32 },
    /// Nothing.
    Leave(Outcome),
}

/// Decides by what the database knew (`seen`) before `content` was fetched; `incomplete` if a source of
/// bars failed.
pub(super) fn decide(
    purpose: Purpose,
    is_current: bool,
    seen: Option<&Seen>,
    content: &Content,
    incomplete: bool,
) -> Decision {
    let was_empty = |seen: &Seen| seen.content_digest == bars::digest(&Minute::new());
    match seen {
        None if content.minute.is_empty() && incomplete => Decision::Leave(Outcome::Postponed),
        None => Decision::Open,
        Some(seen) if purpose == Purpose::Schedule && !is_current && !was_empty(seen) => {
            Decision::Leave(Outcome::Passed)
        }
        Some(seen) if seen.content_digest == content.digest => Decision::Leave(Outcome::Unchanged),
        Some(_) if purpose == Purpose::Backfill => Decision::Leave(Outcome::Different),
        Some(_) if incomplete => Decision::Leave(Outcome::Postponed),
        Some(seen) => Decision::Correct { from_generation: seen.generation },
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};
    use rust_decimal::Decimal;

    use super::*;
    use crate::bars::Bar;

    fn content(close: &str) -> Content {
        let start: DateTime<Utc> = "2018-04-04T13:30:00Z".parse().unwrap();
        let close: Option<Decimal> = close.parse().ok();
        let bar = |close| Bar {
            symbol: "AAPL".to_owned(),
            open: close,
            high: close,
            low: close,
            close,
            volume: Decimal::ZERO,
        };
        let minute = close.map(|close| ("AAPL".to_owned(), bar(close))).into_iter().collect();
        Content::new(start, start.date_naive(), minute)
    }

    fn seen(content: &Content) -> Seen {
        Seen { generation: 3, content_digest: content.digest.clone(), backfilled: false }
    }

    /// Every decision about a window that is there (`before`, by its close; "" for no bars) or not.
    #[test]
    fn decision_follows_from_purpose_past_and_present() {
        use Outcome::{Different, Passed, Postponed, Unchanged};
        use Purpose::{Backfill, Replay, Schedule};
        let correct = Decision::Correct { from_generation: 3 };
        let leave = Decision::Leave;
        for (purpose, current, before, now, incomplete, expected) in [
            (Schedule, false, None, "1", false, Decision::Open),
            (Schedule, false, None, "1", true, Decision::Open),
            (Schedule, false, None, "", false, Decision::Open),
            (Schedule, false, None, "", true, leave(Postponed)),
            (Schedule, true, Some("1"), "1", false, leave(Unchanged)),
            (Schedule, true, Some("1"), "2", false, correct),
            (Schedule, true, Some("1"), "2", true, leave(Postponed)),
            (Schedule, false, Some("1"), "2", false, leave(Passed)),
            (Schedule, false, Some(""), "2", false, correct),
            (Schedule, false, Some(""), "", false, leave(Unchanged)),
            (Replay, false, Some("1"), "1", false, leave(Unchanged)),
            (Replay, false, Some("1"), "2", false, correct),
            (Replay, false, Some("1"), "", true, leave(Postponed)),
            (Replay, false, Some("1"), "", false, correct),
            (Backfill, false, None, "1", false, Decision::Open),
            (Backfill, false, Some("1"), "1", false, leave(Unchanged)),
            (Backfill, false, Some("1"), "2", false, leave(Different)),
        ] {
            let before = before.map(|close| seen(&content(close)));
            let decision = decide(purpose, current, before.as_ref(), &content(now), incomplete);
            assert_eq!(decision, expected, "{purpose:?} {current} {before:?} {now:?} {incomplete}");
        }
    }
}
