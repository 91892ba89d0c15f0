//! Fault points: named places at which a test can end or freeze this very process.
//!
//! Without the feature `fault-points` nothing of them is compiled: a point is its own future, unchanged.
//! With it, the environment chooses one passage of one point; every other passage does nothing. A build
//! without debug assertions refuses the feature, so no release can hold it.
//!
//! A point wraps the future of one statement or one AWS call and is passed twice: `….before`, when the
//! future is first polled, and `….after`, when it is done and before anybody sees what came of it.
//!
//! ```text
//! TAILCAR_FAULT=job::complete.after:kill:3     end as kill -9 does (exit status 137) at the third passage
//! TAILCAR_FAULT=sqs::send.after:stop:1         freeze (SIGSTOP) until somebody sends SIGCONT
//! TAILCAR_FAULT_LOG=/path                      append the name of each passage to this file
//! ```

#[cfg(all(feature = "fault-points", not(debug_assertions)))]
compile_error!("fault points are for tests: a release must not be able to end itself");

#[cfg(feature = "fault-points")]
mod armed;
#[cfg(feature = "fault-points")]
pub use armed::{Guarded, point};

/// The future of a [`FaultPoint`]: without fault points the very same.
#[cfg(not(feature = "fault-points"))]
pub type Guarded<F> = F;

/// Marks a place that is not a call. Nothing without the feature.
#[cfg(not(feature = "fault-points"))]
#[inline]
pub const fn point(_name: &'static str) {}

/// Puts a fault point around a future.
pub trait FaultPoint: Future + Sized {
    /// Passes `name.before` and `name.after` around this future.
    ///
    /// A statement's point has the name of the statement, an AWS call's that of its service and call.
    #[must_use = "a future does nothing unless it is awaited"]
    fn fault_point(self, name: &'static str) -> Guarded<Self>;
}

impl<F: Future> FaultPoint for F {
    #[cfg(not(feature = "fault-points"))]
    #[inline]
    fn fault_point(self, _name: &'static str) -> Self {
        self
    }

    #[cfg(feature = "fault-points")]
    fn fault_point(self, name: &'static str) -> Guarded<Self> {
        Guarded::new(name, self)
    }
}
