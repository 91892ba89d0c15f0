//! Rehearsal: any extractor, but slow and unreliable, to see that collection does not mind.
//!
//! Which attempts fail is decided by a hash of job and attempt, not by chance, so that a rehearsal can
//! be repeated and a job that failed once succeeds at its next attempt as often as any other.

use std::time::Duration;

use domain::{JobId, identity::sha256_hex};

use super::{Extractor, Finding, Reading, Unavailable};
use crate::config::Extraction;

/// An extractor that takes longer and fails more often than the one inside.
#[derive(Clone, Debug)]
pub struct Rehearsal<E> {
    inner: E,
    delay: Duration,
    failure_ratio: f64,
}

impl<E> Rehearsal<E> {
    /// Makes `inner` worse by `extraction`; its defaults change nothing.
    #[must_use]
    pub fn new(inner: E, extraction: &Extraction) -> Self {
        Self { inner, delay: extraction.rehearsal_delay, failure_ratio: extraction.rehearsal_failure_ratio }
    }
}

impl<E: Extractor> Extractor for Rehearsal<E> {
    async fn extract(&self, reading: Reading<'_>) -> Result<Vec<Finding>, Unavailable> {
        if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
        if draw(reading.job_id, reading.attempt) < self.failure_ratio {
            return Err(Unavailable("a failure of the rehearsal".to_owned()));
        }
        self.inner.extract(reading).await
    }
}

/// A number from 0 up to 1 that belongs to this attempt.
fn draw(job_id: &JobId, attempt: i32) -> f64 {
    let digest = sha256_hex(format!("{job_id}:{attempt}").as_bytes());
    let number = u32::from_str_radix(&digest[..8], 16).unwrap_or(u32::MAX);
    f64::from(number) / (f64::from(u32::MAX) + 1.0)
}

#[cfg(test)]
mod tests {
    use domain::Identity;

    use super::*;

    struct Nothing;

    impl Extractor for Nothing {
        async fn extract(&self, _: Reading<'_>) -> Result<Vec<Finding>, Unavailable> {
            Ok(Vec::new())
        }
    }

    async fn failures(ratio: f64, attempt: i32) -> Vec<usize> {
        let extraction = Extraction { rehearsal_delay: Duration::ZERO, rehearsal_failure_ratio: ratio };
        let rehearsal = Rehearsal::new(Nothing, &extraction);
        let mut failed = Vec::new();
        for number in 0..1_000 {
            let job_id = Identity::new("news").integer("number", number).job_id();
            let reading = Reading { job_id: &job_id, attempt, segments: &[] };
            if rehearsal.extract(reading).await.is_err() {
                failed.push(usize::try_from(number).unwrap());
            }
        }
        failed
    }

    #[tokio::test]
    async fn ratio_is_the_share_that_fails_and_the_same_ones_each_time() {
        let failed = failures(0.1, 1).await;
        assert!((60..140).contains(&failed.len()), "{}", failed.len());
        assert_eq!(failures(0.1, 1).await, failed);
    }

    #[tokio::test]
    async fn next_attempt_is_drawn_anew() {
        assert_ne!(failures(0.1, 2).await, failures(0.1, 1).await);
    }

    #[tokio::test]
    async fn ratio_of_nothing_never_fails_and_of_one_always() {
        assert_eq!(failures(0.0, 1).await.len(), 0);
        assert_eq!(failures(1.0, 1).await.len(), 1_000);
    }
}
