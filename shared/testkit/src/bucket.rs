//! A bucket in memory that misbehaves on demand: the faulty twin of S3, for the sweeper's tests.
//!
//! It keeps S3's own rules (a thousand keys a call, the order of bytes, conditions on `ETag`s, a missing
//! key counts as deleted), so that a sweeper which breaks one is found out here.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::identity::sha256_hex;
use runtime::sweeper::bucket::{
    Bucket, BucketError, DELETE_KEYS_MAX, LIST_KEYS_MAX, Listing, MARKER_KEY, MarkerAnswer, Object, Undeleted,
};
use runtime::sweeper::keys::PREFIX;
use store::sweep::Doomed;

/// The bucket's name.
pub const NAME: &str = "twin";

#[derive(Debug)]
struct Stored {
    body: Vec<u8>,
    written_at: DateTime<Utc>,
}

#[derive(Debug, Default)]
struct Inside {
    objects: BTreeMap<String, Stored>,
    deleted: Vec<String>,
    listings: usize,
    deletions: usize,
    refusals: HashMap<String, String>,
    lost_answers: usize,
    failing: BTreeSet<&'static str>,
    clock_ahead: chrono::Duration,
}

/// A bucket in memory.
#[derive(Debug, Default)]
pub struct TwinBucket(Mutex<Inside>);

/// A call did not succeed.
#[derive(Debug, thiserror::Error)]
#[error("out of order, on purpose")]
struct OnPurpose;

impl TwinBucket {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes an object that is `age` old by S3's clock.
    pub fn put(&self, key: &str, body: &[u8], age: Duration) {
        let stored = Stored { body: body.to_vec(), written_at: Utc::now() - age };
        self.inside().objects.insert(key.to_owned(), stored);
    }

    /// Takes an object away behind everybody's back.
    pub fn lose(&self, key: &str) {
        self.inside().objects.remove(key);
    }

    /// Whether the object is there.
    #[must_use]
    pub fn holds(&self, key: &str) -> bool {
        self.inside().objects.contains_key(key)
    }

    /// Every key, in S3's order.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        self.inside().objects.keys().cloned().collect()
    }

    /// The text of an object.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<String> {
        self.inside().objects.get(key).map(|stored| String::from_utf8_lossy(&stored.body).into_owned())
    }

    /// Keys of objects that were deleted, in order.
    #[must_use]
    pub fn deleted(&self) -> Vec<String> {
        self.inside().deleted.clone()
    }

    /// Listings and deletions asked for so far.
    #[must_use]
    pub fn calls(&self) -> (usize, usize) {
        let inside = self.inside();
        (inside.listings, inside.deletions)
    }

    /// From now on the deletion of `key` is refused with `reason`; none: no longer.
    pub fn refuse(&self, key: &str, reason: Option<&str>) {
        match reason {
            Some(reason) => self.inside().refusals.insert(key.to_owned(), reason.to_owned()),
            None => self.inside().refusals.remove(key),
        };
    }

    /// The next deletion is carried out and its answer lost.
    pub fn lose_an_answer(&self) {
        self.inside().lost_answers += 1;
    }

    /// From now on `call` (`list`, `marker`, `write_marker`, `delete`, `digest`) fails, or does no longer.
    pub fn fail(&self, call: &'static str, fails: bool) {
        if fails {
            self.inside().failing.insert(call)
        } else {
            self.inside().failing.remove(call)
        };
    }

    /// S3's clock is `seconds` ahead of everybody's.
    pub fn set_clock_ahead(&self, seconds: i64) {
        self.inside().clock_ahead = chrono::Duration::seconds(seconds);
    }
}

impl Inside {
    fn answer(&self, call: &'static str) -> Result<(), BucketError> {
        let fails = self.failing.contains(call);
        if fails { Err(BucketError { asked: call, source: Box::new(OnPurpose) }) } else { Ok(()) }
    }

    fn delete(&mut self, object: &Doomed) -> Option<Undeleted> {
        let refused = |reason: &str| Some(Undeleted { key: object.key.clone(), reason: reason.to_owned() });
        if let Some(reason) = self.refusals.get(&object.key) {
            return refused(reason);
        }
        match self.objects.get(&object.key) {
            None => None,
            Some(stored) if etag(&stored.body) != object.etag => refused("PreconditionFailed"),
            Some(_) => {
                self.objects.remove(&object.key);
                self.deleted.push(object.key.clone());
                None
            }
        }
    }
}

impl Bucket for TwinBucket {
    fn name(&self) -> &str {
        NAME
    }

    async fn list(&self, after: &str) -> Result<Listing, BucketError> {
        let mut inside = self.inside();
        inside.listings += 1;
        inside.answer("list")?;
        let after = after.max(PREFIX).to_owned();
        // A folder's placeholder has the prefix itself for a key.
        let bound = if after == PREFIX { Bound::Included(after) } else { Bound::Excluded(after) };
        let range = inside.objects.range((bound, Bound::Unbounded));
        let mut rest = range.take_while(|(key, _)| key.starts_with(PREFIX));
        let objects: Vec<Object> = rest.by_ref().take(LIST_KEYS_MAX).map(object).collect();
        Ok(Listing { objects, more: rest.next().is_some() })
    }

    async fn marker(&self) -> Result<MarkerAnswer, BucketError> {
        self.inside().answer("marker")?;
        let answered_at = Some(Utc::now() + self.inside().clock_ahead);
        Ok(MarkerAnswer { body: self.text(MARKER_KEY), answered_at })
    }

    async fn write_marker(&self, body: String, overwrite: bool) -> Result<bool, BucketError> {
        self.inside().answer("write_marker")?;
        let writes = overwrite || !self.holds(MARKER_KEY);
        if writes {
            self.put(MARKER_KEY, body.as_bytes(), Duration::ZERO);
        }
        Ok(writes)
    }

    async fn delete(&self, objects: &[Doomed]) -> Result<Vec<Undeleted>, BucketError> {
        let mut inside = self.inside();
        inside.deletions += 1;
        assert!(objects.len() <= DELETE_KEYS_MAX, "{} keys in one call: MalformedXML", objects.len());
        inside.answer("delete")?;
        let undeleted = objects.iter().filter_map(|object| inside.delete(object)).collect();
        if inside.lost_answers > 0 {
            inside.lost_answers -= 1;
            return Err(BucketError { asked: "delete", source: Box::new(OnPurpose) });
        }
        Ok(undeleted)
    }

    async fn digest(&self, key: &str) -> Result<Option<String>, BucketError> {
        let inside = self.inside();
        inside.answer("digest")?;
        Ok(inside.objects.get(key).map(|stored| sha256_hex(&stored.body)))
    }
}

fn object((key, stored): (&String, &Stored)) -> Object {
    Object {
        key: key.clone(),
        etag: etag(&stored.body),
        size_bytes: i64::try_from(stored.body.len()).unwrap(),
        written_at: Some(stored.written_at),
    }
}

/// S3's is another digest; all that matters is that other bytes have another one.
fn etag(body: &[u8]) -> String {
    format!("\"{}\"", &sha256_hex(body)[..32])
}
