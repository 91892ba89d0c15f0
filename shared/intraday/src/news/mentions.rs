//! The mention buckets: how many items mention a symbol, by hour of publication.
//!
//! When the head of an item moves, what the old head counted is taken away and what the new one counts
//! is added, under the lock of the item's row. A bucket that falls to zero stays: deleting it could lose
//! a count that another item is about to add.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use fault::FaultPoint;
use sqlx::PgConnection;

use super::RevisionRef;
use super::rows::{Collected, Head};

/// A symbol and the hour of publication.
type Bucket = (String, DateTime<Utc>);

/// Counts a revision whose findings are written, as far as it is the head.
pub(super) async fn count(
    tx: &mut PgConnection,
    revision: &RevisionRef,
    collected: &Collected,
    head: &Head,
) -> Result<(), sqlx::Error> {
    let item_id = &revision.item_id;
    let removed = match head {
        Head::Newer => return Ok(()),
        Head::First => BTreeSet::new(),
        Head::Replaced { revision, published_at } => {
            buckets(symbols(&mut *tx, item_id, revision).await?, *published_at)
        }
    };
    let added = buckets(symbols(&mut *tx, item_id, &revision.revision).await?, collected.published_at);
    add(tx, &changes(&removed, &added)).await
}

fn buckets(symbols: Vec<String>, published_at: DateTime<Utc>) -> BTreeSet<Bucket> {
    // Only an instant outside of the years that can be counted in nanoseconds has no hour.
    let hour = published_at.duration_trunc(TimeDelta::hours(1)).unwrap_or(published_at);
    symbols.into_iter().map(|symbol| (symbol, hour)).collect()
}

/// What each bucket gains or loses; those that stay as they are do not appear.
fn changes(removed: &BTreeSet<Bucket>, added: &BTreeSet<Bucket>) -> BTreeMap<Bucket, i32> {
    let lost = removed.difference(added).map(|bucket| (bucket.clone(), -1));
    let gained = added.difference(removed).map(|bucket| (bucket.clone(), 1));
    lost.chain(gained).collect()
}

async fn symbols(tx: &mut PgConnection, item_id: &str, revision: &str) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"
        -- news::mentions::symbols
        select distinct symbol
          from news_finding
         where item_id = $1
           and revision = $2
        "#,
        item_id,
        revision,
    )
    .fetch_all(tx)
    .fault_point("news::mentions::symbols")
    .await
}

/// Makes sure that the buckets are there, locks them in the order of their key, and changes them.
async fn add(tx: &mut PgConnection, changes: &BTreeMap<Bucket, i32>) -> Result<(), sqlx::Error> {
    let symbols: Vec<&str> = changes.keys().map(|(symbol, _)| symbol.as_str()).collect();
    let hours: Vec<DateTime<Utc>> = changes.keys().map(|(_, hour)| *hour).collect();
    let counts: Vec<i32> = changes.values().copied().collect();
    sqlx::query!(
        r#"
        -- news::mentions::add (1)
        insert into mention_bucket (symbol, bucket_start, mentions)
        select symbol, hour, 0
          from unnest($1::text[], $2::timestamptz[]) as bucket (symbol, hour)
         order by symbol, hour
            on conflict (symbol, bucket_start) do nothing
        "#,
        &symbols as &[&str],
        &hours,
    )
    .execute(&mut *tx)
    .fault_point("news::mentions::add (1)")
    .await?;
    sqlx::query!(
        r#"
        -- news::mentions::add (2)
        select
          from mention_bucket bucket
          join unnest($1::text[], $2::timestamptz[]) as change (symbol, hour)
            on (bucket.symbol, bucket.bucket_start) = (change.symbol, change.hour)
         order by bucket.symbol, bucket.bucket_start
           for update of bucket
        "#,
        &symbols as &[&str],
        &hours,
    )
    .execute(&mut *tx)
    .fault_point("news::mentions::add (2)")
    .await?;
    sqlx::query!(
        r#"
        -- news::mentions::add (3)
        update mention_bucket bucket
           set mentions = mentions + change.count
          from unnest($1::text[], $2::timestamptz[], $3::integer[]) as change (symbol, hour, count)
         where (bucket.symbol, bucket.bucket_start) = (change.symbol, change.hour)
        "#,
        &symbols as &[&str],
        &hours,
        &counts,
    )
    .execute(tx)
    .fault_point("news::mentions::add (3)")
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(buckets: &[(&str, &str)]) -> BTreeSet<Bucket> {
        let bucket = |(symbol, hour): &(&str, &str)| ((*symbol).to_owned(), hour.parse().unwrap());
        buckets.iter().map(bucket).collect()
    }

    #[test]
    fn bucket_of_both_heads_stays_as_it_is() {
        let old = set(&[("AAPL", "2018-04-04T13:00:00Z"), ("AMD", "2018-04-04T13:00:00Z")]);
        let new = set(&[("AAPL", "2018-04-04T13:00:00Z"), ("TSLA", "2018-04-04T13:00:00Z")]);
        let changed: Vec<_> = changes(&old, &new).into_iter().map(|((symbol, _), by)| (symbol, by)).collect();
        assert_eq!(changed, [("AMD".to_owned(), -1), ("TSLA".to_owned(), 1)]);
    }

    #[test]
    fn item_counts_in_its_hour_of_publication() {
        let published_at = "2018-04-04T13:59:59Z".parse().unwrap();
        let expected = set(&[("AAPL", "2018-04-04T13:00:00Z")]);
        assert_eq!(buckets(vec!["AAPL".to_owned()], published_at), expected);
    }
}
