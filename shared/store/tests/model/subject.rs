//! The few jobs a case is about. Each stands for one way in which jobs differ.

use std::time::Duration;

use domain::{Identity, JobId};
use serde_json::json;
use store::enqueue::NewJob;
use store::window::WindowRef;
use testkit::windows::first_minute;

/// The lane that relays drain and consumers ask for.
pub const DESTINATION: &str = "news";
/// The unit of time: longer than any case runs, so that the database's own clock never matters.
pub const HOUR: Duration = Duration::from_hours(1);
/// Corrections stop here, to keep a case small.
pub const LAST_GENERATION: i32 = 3;

/// A job by what is special about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slot {
    /// Nothing.
    Plain,
    /// It has one attempt.
    Frail,
    /// It expires.
    Perishable,
    /// Nobody drains its destination.
    Stray,
    /// It is tied to a window in this generation.
    Window(i32),
}

impl Slot {
    /// Those that are enqueued for themselves; the others come with their window.
    pub const FREE: [Self; 4] = [Self::Plain, Self::Frail, Self::Perishable, Self::Stray];

    /// Every job a case can have.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::FREE.into_iter().chain((1..=LAST_GENERATION).map(Self::Window))
    }

    /// Attempts it may use.
    pub fn max_attempts(self) -> i32 {
        match self {
            Self::Frail => 1,
            Self::Window(_) => 2,
            _ => 3,
        }
    }

    /// Hours until it expires.
    pub fn max_age(self) -> Option<i64> {
        (self == Self::Perishable).then_some(4)
    }

    /// Where its messages go.
    pub fn destination(self) -> &'static str {
        if self == Self::Stray { "nowhere" } else { DESTINATION }
    }

    /// The generation of its window, if it has one.
    pub fn window_generation(self) -> Option<i32> {
        if let Self::Window(generation) = self { Some(generation) } else { None }
    }

    /// What makes it the job it is.
    fn identity(self) -> Identity {
        Identity::new(DESTINATION).text("slot", &format!("{self:?}"))
    }

    /// Its primary key.
    pub fn job_id(self) -> JobId {
        self.identity().job_id()
    }

    /// Whose primary key this is.
    pub fn of(job_id: &str) -> Self {
        Self::all().find(|slot| slot.job_id().as_str() == job_id).unwrap()
    }

    /// The job as it is enqueued.
    pub fn new_job(self) -> NewJob {
        let window = |generation| WindowRef { dataset: "us8".to_owned(), start: first_minute(), generation };
        NewJob {
            identity: self.identity(),
            job_type: DESTINATION.to_owned(),
            destination: self.destination().to_owned(),
            payload: json!({}),
            artifact_key: None,
            window: self.window_generation().map(window),
            max_attempts: self.max_attempts(),
            max_age: self.max_age().map(hours),
            ordering_key: None,
            trace_header: None,
        }
    }
}

/// So many hours.
pub fn hours(count: i64) -> Duration {
    HOUR * u32::try_from(count).unwrap()
}
