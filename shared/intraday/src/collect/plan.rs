//! Which windows a request is about. Whether each of them needs anything is decided later.

use chrono::{DateTime, TimeDelta, Utc};

use super::request::Request;
use crate::calendar::{floor, window_length};
use crate::config::Dataset;

/// How far back a run looks for windows that are not there. Older ones are backfilled.
pub const LOOK_BACK: TimeDelta = TimeDelta::minutes(60);

/// What windows are collected for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Catch up on what is not there, close the current window.
    Schedule,
    /// Collect a range as if each of its minutes had just ended; what exists is compared too.
    Replay,
    /// Store what is not there, without jobs.
    Backfill,
}

/// The windows of one run.
pub(super) struct Plan {
    /// What for.
    pub purpose: Purpose,
    /// Oldest first.
    pub windows: Vec<DateTime<Utc>>,
    /// The window that just ended, if it is one of a session.
    pub current: Option<DateTime<Utc>>,
    /// Up to when news count as published; `None`: each window has its own end.
    pub news_until: Option<DateTime<Utc>>,
    /// How many windows were asked for that are left to the schedule.
    pub too_recent: usize,
}

impl Plan {
    pub(super) fn of(request: &Request, dataset: &Dataset, clock: DateTime<Utc>) -> Self {
        match request {
            Request::Schedule { at, .. } => Self::schedule(dataset, at.unwrap_or(clock)),
            Request::Range { from, to, backfill: false, .. } => Self::replay(dataset, *from, *to),
            Request::Range { from, to, backfill: true, .. } => Self::backfill(dataset, *from, *to, clock),
        }
    }

    fn schedule(dataset: &Dataset, now: DateTime<Utc>) -> Self {
        let end = floor(now);
        Self {
            purpose: Purpose::Schedule,
            windows: dataset.windows_between(end - LOOK_BACK, end - window_length()).collect(),
            current: dataset.window_ended_at(now),
            news_until: Some(end),
            too_recent: 0,
        }
    }

    fn replay(dataset: &Dataset, from: DateTime<Utc>, to: DateTime<Utc>) -> Self {
        let windows = dataset.windows_between(from, to).collect();
        Self { purpose: Purpose::Replay, windows, current: None, news_until: None, too_recent: 0 }
    }

    /// Windows inside the look-back are the schedule's: a backfilled one would never get its job.
    pub(super) fn backfill(
        dataset: &Dataset,
        from: DateTime<Utc>,
        to: DateTime<Utc>,
        clock: DateTime<Utc>,
    ) -> Self {
        let asked: Vec<_> = dataset.windows_between(from, to).collect();
        let old = asked.partition_point(|start| *start < floor(clock) - LOOK_BACK);
        let too_recent = asked.len() - old;
        let windows = asked.into_iter().take(old).collect();
        Self { purpose: Purpose::Backfill, windows, current: None, news_until: None, too_recent }
    }
}
