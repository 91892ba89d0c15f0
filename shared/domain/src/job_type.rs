//! A kind of work: what its jobs are called, whose queue wakes them, and how often and how long they
//! are tried.
//!
//! Declared once, as a constant of the crate that owns the handler; enqueuing takes it from there and
//! the consumer's engine compares it. A deployment may change the numbers, never the names.

use std::time::Duration;

use crate::{Backoff, Identity};

/// Attempts of a job unless its type says otherwise.
const MAX_ATTEMPTS: i32 = 8;

/// A kind of work.
///
/// ```
/// use std::time::Duration;
/// use domain::JobType;
///
/// const RECEIPT: JobType = JobType::new("receipt").sent_to("receipts").tried(5);
///
/// assert_eq!(RECEIPT.destination, "receipts");
/// assert_eq!(RECEIPT.max_age, None);
/// assert_eq!(RECEIPT.within(Duration::from_hours(1)).max_age, Some(Duration::from_hours(1)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobType {
    /// What its jobs are called: the first field of their identity, and the type of their events.
    pub name: &'static str,
    /// The destination whose queue wakes the consumer; that of this type alone.
    pub destination: &'static str,
    /// Attempts in one redrive generation; at least 1, and less than the queue's `maxReceiveCount` by
    /// more than 2.
    pub max_attempts: i32,
    /// Older than this since it was enqueued or redriven, a job is EXPIRED. `None`: never.
    pub max_age: Option<Duration>,
    /// The wait after a transient failure.
    pub backoff: Backoff,
}

impl JobType {
    /// Jobs called `name`, sent to the destination of that name: 8 attempts, the default back-off, no
    /// greatest age.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { name, destination: name, max_attempts: MAX_ATTEMPTS, max_age: None, backoff: Backoff::DEFAULT }
    }

    /// The same, sent to another destination.
    #[must_use]
    pub const fn sent_to(self, destination: &'static str) -> Self {
        Self { destination, ..self }
    }

    /// The same, given up after `max_attempts`.
    ///
    /// # Panics
    ///
    /// When it would never be tried; in a constant, that is an error of the compiler.
    #[must_use]
    pub const fn tried(self, max_attempts: i32) -> Self {
        assert!(max_attempts >= 1, "a job is tried at least once");
        Self { max_attempts, ..self }
    }

    /// The same, not worth doing any more after `max_age`.
    #[must_use]
    pub const fn within(self, max_age: Duration) -> Self {
        Self { max_age: Some(max_age), ..self }
    }

    /// The same with another wait between attempts.
    #[must_use]
    pub const fn backing_off(self, backoff: Backoff) -> Self {
        Self { backoff, ..self }
    }

    /// Starts the identity of a job of this type.
    ///
    /// ```
    /// use domain::JobType;
    ///
    /// const RECEIPT: JobType = JobType::new("receipt");
    ///
    /// let identity = RECEIPT.identity().text("order_id", "A-17").integer("revision", 2);
    /// assert_eq!(identity.canonical_json(), r#"{"job_type":"receipt","order_id":"A-17","revision":2}"#);
    /// ```
    #[must_use]
    pub fn identity(&self) -> Identity {
        Identity::new(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_without_a_word_more_has_the_defaults_of_the_protocol() {
        let plain = JobType::new("mail");
        assert_eq!((plain.destination, plain.max_attempts, plain.max_age), ("mail", 8, None));
        assert_eq!(plain.backoff, Backoff::default());
    }

    #[test]
    fn identity_begins_with_the_name_and_not_with_the_destination() {
        let identity = JobType::new("receipt").sent_to("mail").identity();
        assert_eq!(identity, Identity::new("receipt"));
    }
}
