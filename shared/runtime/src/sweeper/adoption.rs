//! How a bucket becomes an installation's: by a marker object, and never in silence.
//!
//! By itself the sweeper adopts only when there is no marker, this database has never adopted any bucket,
//! and the bucket holds nothing but what rows of this database refer to. A person may adopt any.

use sqlx::PgPool;
use store::sweep::{Standing, installation, objects};
use tracing::warn;

use super::Error;
use super::bucket::{Bucket, LIST_KEYS_MAX, MarkerAnswer, Object};
use super::guard::Marker;
use super::request::Order;

/// Who adopts where nobody had to decide.
const ITSELF: &str = "sweeper";

/// Adopts the bucket if somebody decided so or nobody has to; whether it did.
pub(super) async fn adopt<B: Bucket>(
    db: &PgPool,
    bucket: &B,
    standing: &Standing,
    answer: &MarkerAnswer,
    order: &Order,
) -> Result<bool, Error> {
    if let Order::Adopt { person } = order {
        return take(db, bucket, standing, true, &person.who, &person.why).await;
    }
    if standing.bucket.is_some() {
        return Ok(false);
    }
    if answer.body.as_deref() == Some(marker(standing, bucket.name()).as_str()) {
        // Somebody wrote it for this database and died before it was noted.
        installation::adopt(db, bucket.name(), ITSELF, "its marker was this installation's").await?;
        return Ok(true);
    }
    if answer.body.is_none() && holds_only_ours(db, bucket, standing).await? {
        return take(db, bucket, standing, false, ITSELF, "it held nothing but this installation's").await;
    }
    Ok(false)
}

/// The marker first: a note without it would refuse for ever, a marker without the note is found again.
async fn take<B: Bucket>(
    db: &PgPool,
    bucket: &B,
    standing: &Standing,
    overwrite: bool,
    who: &str,
    why: &str,
) -> Result<bool, Error> {
    if !bucket.write_marker(marker(standing, bucket.name()), overwrite).await? {
        return Ok(false);
    }
    installation::adopt(db, bucket.name(), who, why).await?;
    warn!(bucket = bucket.name(), who, why, "the bucket was adopted");
    Ok(true)
}

/// Whether the bucket's artifacts fit on one page and each of them has a row here.
async fn holds_only_ours<B: Bucket>(db: &PgPool, bucket: &B, standing: &Standing) -> Result<bool, Error> {
    let listing = bucket.list("").await?;
    let Some(last) = listing.objects.last() else { return Ok(true) };
    let limit = i64::try_from(LIST_KEYS_MAX).unwrap_or(i64::MAX);
    let rows = objects::rows_between(db, "", &last.key, standing.now, limit).await?;
    let is_ours = |object: &Object| rows.iter().any(|row| row.key == object.key && !row.reclaimed);
    Ok(!listing.more && listing.objects.iter().all(is_ours))
}

fn marker(standing: &Standing, bucket: &str) -> String {
    serde_json::to_string(&Marker::of(standing, bucket)).expect("two texts serialize")
}
