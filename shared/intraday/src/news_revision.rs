//! News as collected: one row per text of each item, written in the transaction that makes its job.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use fault::FaultPoint;
use sqlx::{PgConnection, PgExecutor};

use crate::feeds::document::ItemDocument;

/// A revision's primary key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Who the item is.
    pub item_id: String,
    /// Which text of it.
    pub revision: String,
}

/// Those of `keys` that have a row.
///
/// # Errors
///
/// What the database said.
pub async fn known(db: impl PgExecutor<'_>, keys: &[Key]) -> Result<HashSet<Key>, sqlx::Error> {
    let items: Vec<&str> = keys.iter().map(|key| key.item_id.as_str()).collect();
    let revisions: Vec<&str> = keys.iter().map(|key| key.revision.as_str()).collect();
    let known = sqlx::query_as!(
        Key,
        r#"
        -- news_revision::known
        select item_id, revision
          from news_revision
          join unnest($1::text[], $2::text[]) as asked (item_id, revision) using (item_id, revision)
        "#,
        &items as &[&str],
        &revisions as &[&str],
    )
    .fetch_all(db)
    .fault_point("news_revision::known")
    .await?;
    Ok(known.into_iter().collect())
}

/// Inserts the revisions of `documents`, each with the key of its artifact, and says how many were new.
///
/// Waits for a collector that is inserting one of them right now. Fewer than asked for means that
/// somebody else was faster.
///
/// # Errors
///
/// What the database said; roll back.
pub async fn insert(
    tx: &mut PgConnection,
    documents: &[(&ItemDocument, &str)],
) -> Result<usize, sqlx::Error> {
    let column =
        |value: fn(&ItemDocument) -> &str| documents.iter().map(|(document, _)| value(document)).collect();
    let items: Vec<&str> = column(|document| &document.item_id);
    let revisions: Vec<&str> = column(|document| &document.revision);
    let datasets: Vec<&str> = column(|document| &document.dataset);
    let feeds: Vec<&str> = column(|document| &document.feed);
    let titles: Vec<&str> = column(|document| &document.title);
    let links: Vec<Option<&str>> = documents.iter().map(|(document, _)| document.link.as_deref()).collect();
    let published: Vec<DateTime<Utc>> = documents.iter().map(|(document, _)| document.published_at).collect();
    let artifacts: Vec<&str> = documents.iter().map(|(_, key)| *key).collect();
    let inserted = sqlx::query!(
        r#"
        -- news_revision::insert
        insert into news_revision (item_id, revision, dataset, feed, title, link, published_at, artifact_key)
        select *
          from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[],
                      $7::timestamptz[], $8::text[])
               as seen (item_id, revision, dataset, feed, title, link, published_at, artifact_key)
         order by item_id, revision
            on conflict (item_id, revision) do nothing
        "#,
        &items as &[&str],
        &revisions as &[&str],
        &datasets as &[&str],
        &feeds as &[&str],
        &titles as &[&str],
        &links as &[Option<&str>],
        &published,
        &artifacts as &[&str],
    )
    .execute(tx)
    .fault_point("news_revision::insert")
    .await?;
    Ok(usize::try_from(inserted.rows_affected()).unwrap_or(usize::MAX))
}
