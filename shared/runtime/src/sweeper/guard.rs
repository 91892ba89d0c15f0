//! The guards: each refuses for one reason, before anything is deleted.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use store::sweep::Standing;

use super::bucket::MarkerAnswer;
use super::policy::Policy;

/// How far S3's clock and the database's may be apart.
const CLOCKS_APART_MAX: chrono::Duration = chrono::Duration::seconds(60);

/// Why the sweeper refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Refusal {
    /// The grace period is not longer than the longest write or the backup window.
    GraceTooShort,
    /// The database follows another one.
    DatabaseIsReplica,
    /// The database takes no writes.
    DatabaseIsReadOnly,
    /// The bucket holds artifacts and the database refers to none.
    DatabaseHoldsNoArtifacts,
    /// The bucket has no marker.
    MarkerMissing,
    /// The marker names another installation, or nothing that can be read.
    MarkerNamesAnother,
    /// This database adopted another bucket.
    BucketIsNotTheAdopted,
    /// S3's clock and the database's are more than a minute apart, or S3 did not say.
    ClocksApart,
    /// Too large a share of a page would go.
    TooManyOrphans,
    /// The run has deleted as many as it may. The next one goes on.
    TooManyDeletes,
}

/// What the marker says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    /// Whose bucket it is.
    pub installation_id: String,
    /// Its name: a copy of the bucket is another bucket.
    pub bucket: String,
}

impl Marker {
    /// The one that `bucket` has to carry.
    #[must_use]
    pub fn of(standing: &Standing, bucket: &str) -> Self {
        Self { installation_id: standing.installation_id.to_string(), bucket: bucket.to_owned() }
    }
}

/// What settings and database say; the first that refuses.
///
/// # Errors
///
/// The [`Refusal`].
pub fn database(policy: &Policy, standing: &Standing) -> Result<(), Refusal> {
    refuse_if(policy.fault().is_some(), Refusal::GraceTooShort)?;
    refuse_if(standing.replica, Refusal::DatabaseIsReplica)?;
    refuse_if(standing.read_only, Refusal::DatabaseIsReadOnly)
}

/// What the marker of `bucket` says.
///
/// # Errors
///
/// The [`Refusal`].
pub fn marker(standing: &Standing, bucket: &str, answer: &MarkerAnswer) -> Result<(), Refusal> {
    let body = answer.body.as_deref().ok_or(Refusal::MarkerMissing)?;
    let marker: Option<Marker> = serde_json::from_str(body).ok();
    refuse_if(marker != Some(Marker::of(standing, bucket)), Refusal::MarkerNamesAnother)?;
    refuse_if(standing.bucket.as_deref() != Some(bucket), Refusal::BucketIsNotTheAdopted)
}

/// What the clocks say.
///
/// # Errors
///
/// The [`Refusal`].
pub fn clocks(database: DateTime<Utc>, s3: Option<DateTime<Utc>>) -> Result<(), Refusal> {
    let apart = s3.map(|s3| (database - s3).abs());
    refuse_if(apart.is_none_or(|apart| apart > CLOCKS_APART_MAX), Refusal::ClocksApart)
}

fn refuse_if(refused: bool, refusal: Refusal) -> Result<(), Refusal> {
    if refused { Err(refusal) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn standing() -> Standing {
        Standing {
            installation_id: Uuid::from_u128(1),
            bucket: Some("bucket".to_owned()),
            now: "2026-12-01T14:00:00Z".parse().unwrap(),
            replica: false,
            read_only: false,
            holds_artifacts: true,
        }
    }

    fn says(id: u128, bucket: &str) -> MarkerAnswer {
        let marker = Marker::of(&Standing { installation_id: Uuid::from_u128(id), ..standing() }, bucket);
        MarkerAnswer { body: Some(serde_json::to_string(&marker).unwrap()), answered_at: None }
    }

    #[test]
    fn replica_and_read_only_database_refuse() {
        assert_eq!(database(&Policy::default(), &standing()), Ok(()));
        let replica = Standing { replica: true, read_only: true, ..standing() };
        assert_eq!(database(&Policy::default(), &replica), Err(Refusal::DatabaseIsReplica));
        let read_only = Standing { read_only: true, ..standing() };
        assert_eq!(database(&Policy::default(), &read_only), Err(Refusal::DatabaseIsReadOnly));
    }

    #[test]
    fn grace_that_is_too_short_refuses() {
        let hasty = Policy { grace: std::time::Duration::ZERO, ..Policy::default() };
        assert_eq!(database(&hasty, &standing()), Err(Refusal::GraceTooShort));
    }

    #[test]
    fn only_the_own_marker_in_the_adopted_bucket_is_accepted() {
        let nothing = MarkerAnswer { body: None, answered_at: None };
        let garbage = MarkerAnswer { body: Some("<html>".to_owned()), answered_at: None };
        let elsewhere = Standing { bucket: Some("other".to_owned()), ..standing() };
        let never = Standing { bucket: None, ..standing() };

        assert_eq!(marker(&standing(), "bucket", &says(1, "bucket")), Ok(()));
        assert_eq!(marker(&standing(), "bucket", &nothing), Err(Refusal::MarkerMissing));
        for other in [&says(2, "bucket"), &says(1, "other"), &garbage] {
            assert_eq!(marker(&standing(), "bucket", other), Err(Refusal::MarkerNamesAnother));
        }
        for standing in [&elsewhere, &never] {
            assert_eq!(marker(standing, "bucket", &says(1, "bucket")), Err(Refusal::BucketIsNotTheAdopted));
        }
    }

    #[test]
    fn clocks_may_be_a_minute_apart_and_must_be_known() {
        let now = standing().now;
        for seconds in [-60, 0, 60] {
            assert_eq!(clocks(now, Some(now + chrono::Duration::seconds(seconds))), Ok(()));
        }
        for s3 in [Some(now + chrono::Duration::seconds(61)), Some(now - chrono::Duration::seconds(61)), None]
        {
            assert_eq!(clocks(now, s3), Err(Refusal::ClocksApart));
        }
    }
}
