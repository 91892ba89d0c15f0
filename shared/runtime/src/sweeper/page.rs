//! One page in four steps: look, claim, delete, move on. Tests interleave them with writers'.
//!
//! Dying between any two of them harms nobody: a page that was not moved past is looked at again, and
//! what was claimed and not deleted is found RECLAIMED.

use futures::{StreamExt, TryStreamExt, stream};
use sqlx::PgPool;
use store::sweep::{Damage, Doomed, Kind, Position, damage, objects};

use super::Error;
use super::bucket::{Bucket, DELETE_KEYS_MAX, Undeleted};
use super::compare::{Comparison, compare};
use super::policy::{Policy, before};
use chrono::{DateTime, Utc};

/// Rows compared with one page, at most: twice its objects, so that even a bucket that was emptied is
/// looked at in pieces.
const ROWS_MAX: usize = 2_000;
/// Objects read at once when checksums are compared.
const READS_AT_ONCE: usize = 16;
/// Endangered jobs that are looked up for one page.
const ENDANGERED_MAX: i64 = 100;

/// A stretch of keys and what was found in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The keys after this one …
    pub after: String,
    /// … up to this one.
    pub through: String,
    /// It reaches the end of the lap.
    pub last: bool,
    /// Both sides.
    pub found: Comparison,
}

/// Lists the objects after the position's cursor and compares them with their rows.
///
/// `now` is the database's clock at some moment before this call: what was written and committed before
/// it is in both answers.
///
/// # Errors
///
/// [`Error`]; nothing was changed.
pub async fn look<B: Bucket>(
    db: &PgPool,
    bucket: &B,
    policy: &Policy,
    position: &Position,
    now: DateTime<Utc>,
) -> Result<Page, Error> {
    let until = position.until_key.as_deref().unwrap_or_default();
    let after = position.cursor_key.as_str();
    let mut listing = bucket.list(after).await?;
    let reached = listing.objects.iter().position(|object| object.key.as_str() >= until);
    listing.objects.truncate(reached.unwrap_or(listing.objects.len()));
    let mut last = reached.is_some() || !listing.more || listing.objects.is_empty();
    let mut through = match listing.objects.last() {
        Some(object) if !last => object.key.clone(),
        _ => until.to_owned(),
    };
    let limit = i64::try_from(ROWS_MAX).unwrap_or(i64::MAX);
    let rows = objects::rows_between(db, after, &through, now, limit).await?;
    if let (Some(row), true) = (rows.last(), rows.len() >= ROWS_MAX) {
        through.clone_from(&row.key);
        last = false;
        listing.objects.retain(|object| object.key <= through);
    }
    let mut found = compare(&listing.objects, &rows, before(now, policy.grace));
    if position.checksums {
        let damages = other_checksums(bucket, &found).await?;
        found.damages.extend(damages);
    }
    Ok(Page { after: after.to_owned(), through, last, found })
}

/// Reads what both sides have, unless it is known to be damaged already.
async fn other_checksums<B: Bucket>(bucket: &B, found: &Comparison) -> Result<Vec<Damage>, Error> {
    let whole = found.both.iter().filter(|(key, _)| found.damages.iter().all(|damage| damage.key != *key));
    let reads: Vec<_> = whole.map(|(key, written)| other_checksum(bucket, key, written.as_deref())).collect();
    let damages: Vec<Option<Damage>> = stream::iter(reads).buffered(READS_AT_ONCE).try_collect().await?;
    Ok(damages.into_iter().flatten().collect())
}

async fn other_checksum<B: Bucket>(
    bucket: &B,
    key: &str,
    written: Option<&str>,
) -> Result<Option<Damage>, Error> {
    let damage = |kind, detail| Some(Damage { key: key.to_owned(), kind, detail });
    Ok(match (bucket.digest(key).await?, written) {
        (None, _) => damage(Kind::Missing, "there is no such object".to_owned()),
        (Some(there), Some(written)) if there != written => {
            damage(Kind::Checksum, format!("{written} was written, {there} is there"))
        }
        _ => None,
    })
}

/// Takes the keys of `objects` for ever; answers with the objects that may be deleted now.
///
/// # Errors
///
/// [`Error`]; some may have been taken, and the next look finds them RECLAIMED.
pub async fn claim(db: &PgPool, objects: &[Doomed]) -> Result<Vec<Doomed>, Error> {
    if objects.is_empty() { Ok(Vec::new()) } else { Ok(objects::reclaim(db, objects).await?) }
}

/// Deletes what was claimed, and notes what S3 says of each; answers with those that are still there.
///
/// # Errors
///
/// [`Error`]; some may be gone. The next run tries all that are not confirmed.
pub async fn delete<B: Bucket>(db: &PgPool, bucket: &B, claimed: &[Doomed]) -> Result<Vec<Undeleted>, Error> {
    let mut undeleted = Vec::new();
    for objects in claimed.chunks(DELETE_KEYS_MAX) {
        let refused = bucket.delete(objects).await?;
        let failed = |key: &str| refused.iter().any(|undeleted| undeleted.key == key);
        let gone: Vec<&str> =
            objects.iter().map(|object| object.key.as_str()).filter(|key| !failed(key)).collect();
        objects::confirm_deleted(db, &gone).await?;
        if !refused.is_empty() {
            let failures: Vec<_> =
                refused.iter().map(|failure| (failure.key.as_str(), failure.reason.as_str())).collect();
            objects::note_failures(db, &failures).await?;
        }
        undeleted.extend(refused);
    }
    Ok(undeleted)
}

/// Notes the damages of `page`, takes back those that are mended, and names the jobs they endanger.
///
/// # Errors
///
/// [`Error`]; the page is looked at again.
pub async fn note_damages(
    db: &PgPool,
    page: &Page,
    checksums: bool,
) -> Result<Vec<damage::Endangered>, Error> {
    let found = &page.found;
    if found.damages.is_empty() && !found.damaged_before {
        return Ok(Vec::new());
    }
    let both = found.both.iter().map(|(key, _)| key.as_str());
    let damaged: Vec<&str> = found.damages.iter().map(|damage| damage.key.as_str()).collect();
    let looked_at: Vec<&str> = both.chain(damaged.iter().copied()).collect();
    damage::note(db, &looked_at, &found.damages, checksums).await?;
    Ok(damage::endangered(db, &damaged, ENDANGERED_MAX).await?)
}
