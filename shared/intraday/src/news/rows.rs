//! The rows of a revision that was read, and the head of its item.

use chrono::{DateTime, Utc};
use fault::FaultPoint;
use rust_decimal::Decimal;
use sqlx::PgConnection;

use super::RevisionRef;
use crate::extraction::Finding;

/// What the collector wrote about a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Collected {
    /// Its place among the revisions of all items; only order matters.
    pub sequence: i64,
    pub title: String,
    pub link: Option<String>,
    pub published_at: DateTime<Utc>,
}

/// What came of inserting segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inserted {
    /// They are there now.
    Inserted,
    /// The revision has its segments already, and so everything else.
    Known,
}

/// What came of making a revision the head of its item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// It is the first revision that was read.
    First,
    /// It replaced an older one.
    Replaced {
        /// The older one.
        revision: String,
        /// When that says it was published.
        published_at: DateTime<Utc>,
    },
    /// A newer one was read before and stays.
    Newer,
}

pub(super) async fn collected(
    tx: &mut PgConnection,
    revision: &RevisionRef,
) -> Result<Option<Collected>, sqlx::Error> {
    sqlx::query_as!(
        Collected,
        r#"
        -- news::rows::collected
        select sequence, title, link, published_at
          from news_revision
         where item_id = $1
           and revision = $2
        "#,
        revision.item_id,
        revision.revision,
    )
    .fetch_optional(tx)
    .fault_point("news::rows::collected")
    .await
}

/// Inserts all segments, or finds all of them there. A revision always has one: its title.
pub(super) async fn insert_segments(
    tx: &mut PgConnection,
    revision: &RevisionRef,
    segments: &[String],
) -> Result<Inserted, sqlx::Error> {
    let inserted = sqlx::query!(
        r#"
        -- news::rows::insert_segments
        insert into news_segment (item_id, revision, segment_index, body)
        select $1, $2, (place - 1)::integer, body
          from unnest($3::text[]) with ordinality as segment (body, place)
         order by place
            on conflict (item_id, revision, segment_index) do nothing
        "#,
        revision.item_id,
        revision.revision,
        segments,
    )
    .execute(tx)
    .fault_point("news::rows::insert_segments")
    .await?;
    Ok(if inserted.rows_affected() == 0 { Inserted::Known } else { Inserted::Inserted })
}

/// Inserts the findings, numbered within their segments in the order they have.
pub(super) async fn insert_findings(
    tx: &mut PgConnection,
    revision: &RevisionRef,
    findings: &[Finding],
) -> Result<(), sqlx::Error> {
    let segments: Vec<i32> =
        findings.iter().map(|finding| i32::try_from(finding.segment).unwrap_or(i32::MAX)).collect();
    let symbols: Vec<&str> = findings.iter().map(|finding| finding.symbol.as_str()).collect();
    let kinds: Vec<&str> = findings.iter().map(|finding| finding.kind.as_str()).collect();
    let confidences: Vec<Decimal> = findings.iter().map(|finding| finding.confidence).collect();
    let matched: Vec<&str> = findings.iter().map(|finding| finding.matched.as_str()).collect();
    sqlx::query!(
        r#"
        -- news::rows::insert_findings
        insert into news_finding
               (item_id, revision, segment_index, finding_index, symbol, event_kind, confidence, matched)
        select $1, $2, segment,
               (row_number() over (partition by segment order by place) - 1)::integer,
               symbol, kind, confidence, matched
          from unnest($3::integer[], $4::text[], $5::text[], $6::numeric[], $7::text[])
               with ordinality as finding (segment, symbol, kind, confidence, matched, place)
         order by place
        "#,
        revision.item_id,
        revision.revision,
        &segments,
        &symbols as &[&str],
        &kinds as &[&str],
        &confidences,
        &matched as &[&str],
    )
    .execute(tx)
    .fault_point("news::rows::insert_findings")
    .await?;
    Ok(())
}

/// Makes the revision the head of its item, unless a newer one is; the item's row is locked afterwards.
pub(super) async fn move_head(
    tx: &mut PgConnection,
    revision: &RevisionRef,
    collected: &Collected,
) -> Result<Head, sqlx::Error> {
    if insert_head(&mut *tx, revision, collected).await? {
        return Ok(Head::First);
    }
    let head = sqlx::query!(
        r#"
        -- news::rows::move_head
        select revision, sequence, published_at
          from news_item
         where item_id = $1
           for update
        "#,
        revision.item_id,
    )
    .fetch_one(&mut *tx)
    .fault_point("news::rows::move_head")
    .await?;
    if head.sequence >= collected.sequence {
        return Ok(Head::Newer);
    }
    replace_head(tx, revision, collected).await?;
    Ok(Head::Replaced { revision: head.revision, published_at: head.published_at })
}

/// Waits for a job that is inserting the item's first head right now.
async fn insert_head(
    tx: &mut PgConnection,
    revision: &RevisionRef,
    collected: &Collected,
) -> Result<bool, sqlx::Error> {
    let inserted = sqlx::query!(
        r#"
        -- news::rows::insert_head
        insert into news_item (item_id, revision, sequence, title, link, published_at)
        values ($1, $2, $3, $4, $5, $6)
            on conflict (item_id) do nothing
        "#,
        revision.item_id,
        revision.revision,
        collected.sequence,
        collected.title,
        collected.link,
        collected.published_at,
    )
    .execute(tx)
    .fault_point("news::rows::insert_head")
    .await?;
    Ok(inserted.rows_affected() == 1)
}

/// Under the lock of [`move_head`].
async fn replace_head(
    tx: &mut PgConnection,
    revision: &RevisionRef,
    collected: &Collected,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"
        -- news::rows::replace_head
        update news_item
           set revision     = $2,
               sequence     = $3,
               title        = $4,
               link         = $5,
               published_at = $6,
               extracted_at = clock_timestamp()
         where item_id = $1
           and sequence < $3
        "#,
        revision.item_id,
        revision.revision,
        collected.sequence,
        collected.title,
        collected.link,
        collected.published_at,
    )
    .execute(tx)
    .fault_point("news::rows::replace_head")
    .await?;
    Ok(())
}
