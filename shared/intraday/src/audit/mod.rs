//! The pipeline's own tables in numbers: what came out, and whether anything was applied twice.
//!
//! Every function is one read-only statement. The effects have natural keys, so "applied twice" can
//! only show where something was *counted*: [`miscounted`] counts it again from the rows below.

mod implied;

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use sqlx::PgExecutor;

use crate::triggers::{Direction, Key, Rule};

pub use implied::implied_jobs;

/// Bars and triggers of one symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The symbol.
    pub symbol: String,
    /// Its bars.
    pub bars: i64,
    /// Its triggers against thirty minutes before, withdrawn ones left out.
    pub thirty_minutes: i64,
    /// Its triggers against the session's first bar, withdrawn ones left out.
    pub session_open: i64,
}

/// Bars and triggers of `dataset` by symbol.
///
/// # Errors
///
/// If the database can not be asked.
pub async fn symbols(db: impl PgExecutor<'_>, dataset: &str) -> Result<Vec<Symbol>, sqlx::Error> {
    sqlx::query_as!(
        Symbol,
        r#"
        -- audit::symbols
        with bars as (
            select symbol, count(*) as bars
              from price_bar
             where dataset = $1
             group by symbol
        ),
        triggers as (
            select symbol,
                   count(*) filter (where rule = 'THIRTY_MINUTES') as thirty_minutes,
                   count(*) filter (where rule = 'SESSION_OPEN') as session_open
              from price_trigger
             where dataset = $1
               and withdrawn_at is null
             group by symbol
        )
        select symbol as "symbol!",
               coalesce(bars, 0) as "bars!",
               coalesce(thirty_minutes, 0) as "thirty_minutes!",
               coalesce(session_open, 0) as "session_open!"
          from bars
          full join triggers using (symbol)
         order by symbol
        "#,
        dataset,
    )
    .fetch_all(db)
    .await
}

/// The triggers of `dataset` that are not withdrawn, to be compared with those that follow from its bars.
///
/// # Errors
///
/// If the database can not be asked.
pub async fn triggers(db: impl PgExecutor<'_>, dataset: &str) -> Result<BTreeSet<Key>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"
        -- audit::triggers
        select symbol, rule, direction, window_start
          from price_trigger
         where dataset = $1
           and withdrawn_at is null
         order by symbol, rule, direction, window_start
        "#,
        dataset,
    )
    .fetch_all(db)
    .await?;
    let key = |row| -> Option<Key> {
        let (symbol, rule, direction, at): (String, String, String, DateTime<Utc>) = row;
        Some(Key { symbol, rule: Rule::parse(&rule)?, direction: Direction::parse(&direction)?, at })
    };
    let rows = rows.into_iter().map(|row| (row.symbol, row.rule, row.direction, row.window_start));
    Ok(rows.filter_map(key).collect())
}

/// What was read out of the news.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Texts collected: items and their edits.
    pub revisions: i64,
    /// Items whose newest text was read.
    pub items: i64,
    /// Passages they were split into.
    pub segments: i64,
    /// Findings in them.
    pub findings: i64,
}

/// What was read out of the news.
///
/// # Errors
///
/// If the database can not be asked.
pub async fn news(db: impl PgExecutor<'_>) -> Result<News, sqlx::Error> {
    sqlx::query_as!(
        News,
        r#"
        -- audit::news
        select (select count(*) from news_revision) as "revisions!",
               (select count(*) from news_item) as "items!",
               (select count(*) from news_segment) as "segments!",
               (select count(*) from news_finding) as "findings!"
        "#
    )
    .fetch_one(db)
    .await
}

/// Findings of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Findings {
    /// What they say happened.
    pub event_kind: String,
    /// How many there are.
    pub findings: i64,
    /// How many symbols they are about.
    pub symbols: i64,
}

/// Findings by kind, of the newest text of each item.
///
/// # Errors
///
/// If the database can not be asked.
pub async fn findings(db: impl PgExecutor<'_>) -> Result<Vec<Findings>, sqlx::Error> {
    sqlx::query_as!(
        Findings,
        r#"
        -- audit::findings
        select event_kind, count(*) as "findings!", count(distinct symbol) as "symbols!"
          from news_finding
          join news_item using (item_id, revision)
         group by event_kind
         order by event_kind
        "#
    )
    .fetch_all(db)
    .await
}

/// A trigger and what was written about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// Whose price moved.
    pub symbol: String,
    /// Against what it was measured.
    pub rule: String,
    /// When.
    pub window_start: DateTime<Utc>,
    /// How far: 0.01 is one percent up.
    pub movement: Decimal,
    /// What was found.
    pub verdict: String,
    /// The text.
    pub body: String,
}

/// Every explanation of `dataset`, in the order of the triggers.
///
/// # Errors
///
/// If the database can not be asked.
pub async fn explanations(db: impl PgExecutor<'_>, dataset: &str) -> Result<Vec<Explained>, sqlx::Error> {
    sqlx::query_as!(
        Explained,
        r#"
        -- audit::explanations
        select symbol, rule, window_start, price_trigger.move as movement, verdict, body
          from explanation
          join price_trigger using (dataset, symbol, rule, direction, window_start)
         where dataset = $1
         order by window_start, symbol, rule, direction
        "#,
        dataset,
    )
    .fetch_all(db)
    .await
}

/// Where the effects contradict each other; every number should be 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Miscounted {
    /// Mention buckets that differ from a recount of the findings.
    pub mention_buckets: i64,
    /// Live triggers without an explanation of their revision.
    pub unexplained: i64,
    /// Explanations whose trigger is withdrawn or has another revision.
    pub outdated_explanations: i64,
    /// Items whose extracted text is not the newest that was collected.
    pub outdated_items: i64,
}

/// Counts the effects again from the rows they were made from.
///
/// # Errors
///
/// If the database can not be asked.
pub async fn miscounted(db: impl PgExecutor<'_>) -> Result<Miscounted, sqlx::Error> {
    sqlx::query_as!(
        Miscounted,
        r#"
        -- audit::miscounted
        with recount as (
            select symbol, date_trunc('hour', published_at, 'UTC') as bucket_start, count(distinct item_id) as recounted
              from news_item
              join news_finding using (item_id, revision)
             group by 1, 2
        ),
        paired as (
            select price_trigger.withdrawn_at is null as live,
                   revision,
                   explanation.trigger_revision as explained
              from price_trigger
              left join explanation using (dataset, symbol, rule, direction, window_start)
        )
        select (select count(*)
                  from recount
                  full join mention_bucket using (symbol, bucket_start)
                 where coalesce(recounted, 0) <> coalesce(mentions, 0)) as "mention_buckets!",
               (select count(*) from paired where live and explained is distinct from revision) as "unexplained!",
               (select count(*)
                  from paired
                 where explained is not null
                   and (not live or explained <> revision)) as "outdated_explanations!",
               (select count(*)
                  from news_item item
                 where exists (select
                                 from news_revision newer
                                where newer.item_id = item.item_id
                                  and newer.sequence > item.sequence)) as "outdated_items!"
        "#
    )
    .fetch_one(db)
    .await
}

/// Digests of the pipeline's own tables, in one snapshot; equal digests mean that no row changed.
///
/// # Errors
///
/// If the database can not be asked.
pub async fn digests(db: impl PgExecutor<'_>) -> Result<Vec<store::audit::Digest>, sqlx::Error> {
    sqlx::query_as!(
        store::audit::Digest,
        r#"
        -- audit::digests
        with hashed as (
            select 'price_bar' as name, hashtextextended(price_bar::text, 0) as hash from price_bar
            union all
            select 'news_revision', hashtextextended(news_revision::text, 0) from news_revision
            union all
            select 'news_item', hashtextextended(news_item::text, 0) from news_item
            union all
            select 'news_segment', hashtextextended(news_segment::text, 0) from news_segment
            union all
            select 'news_finding', hashtextextended(news_finding::text, 0) from news_finding
            union all
            select 'mention_bucket', hashtextextended(mention_bucket::text, 0) from mention_bucket
            union all
            select 'trading_session', hashtextextended(trading_session::text, 0) from trading_session
            union all
            select 'price_trigger', hashtextextended(price_trigger::text, 0) from price_trigger
            union all
            select 'explanation', hashtextextended(explanation::text, 0) from explanation
        )
        select name as "table!", count(*) as "rows!", sum(hash)::text as "digest!"
          from hashed
         group by name
         order by name
        "#
    )
    .fetch_all(db)
    .await
}

#[cfg(test)]
mod tests;
