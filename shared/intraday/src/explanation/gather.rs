//! Gathers what was known around a trigger, and writes what was made of it.
//!
//! Everything is read in the transaction that writes the explanation, under the lock of the trigger's
//! row, so that a trigger which is replaced meanwhile keeps no explanation of what it was.

use chrono::{DateTime, TimeDelta, Utc};
use fault::FaultPoint;
use rust_decimal::Decimal;
use serde_json::json;
use sqlx::PgConnection;

use super::compose::Verdict;
use super::evidence::{Evidence, Market, News, Price, Prices};
use super::{Subject, market};

/// How far back news may explain a move: a session's worth, so that what came before the open counts.
pub const NEWS_HOURS: i64 = 6;
/// The most items that are cited, the latest of them.
const NEWS_MAX: i64 = 8;
/// How far around the crossing the symbol's own closes are shown.
const AROUND: TimeDelta = TimeDelta::minutes(10);
/// A text is at most as old as this while it is worth waiting for.
const FRESH_SECONDS: f64 = 300.0;

/// The row of a trigger, locked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locked {
    reference: Price,
    crossing: Price,
    change: Decimal,
}

/// Locks the row of a trigger; `None` when it is withdrawn, or in another revision by now.
///
/// # Errors
///
/// [`sqlx::Error`]; transient when the lock was not to be had in time.
pub async fn lock(tx: &mut PgConnection, subject: &Subject) -> Result<Option<Locked>, sqlx::Error> {
    let row = sqlx::query!(
        r#"
        -- explanation::gather::lock
        select reference_window, reference_close, close, move, revision,
               withdrawn_at is not null as "withdrawn!"
          from price_trigger
         where dataset = $1
           and symbol = $2
           and rule = $3
           and direction = $4
           and window_start = $5
           for update
        "#,
        subject.dataset,
        subject.symbol,
        subject.rule.as_str(),
        subject.direction.as_str(),
        subject.window_start,
    )
    .fetch_optional(tx)
    .fault_point("explanation::gather::lock")
    .await?;
    Ok(row.filter(|row| row.revision == subject.revision && !row.withdrawn).map(|row| Locked {
        reference: Price { at: row.reference_window, close: row.reference_close },
        crossing: Price { at: subject.window_start, close: row.close },
        change: row.r#move,
    }))
}

/// How many fresh texts that could explain the trigger are collected and not read yet.
///
/// # Errors
///
/// [`sqlx::Error`].
pub async fn unread_news(tx: &mut PgConnection, subject: &Subject) -> Result<i64, sqlx::Error> {
    let (from, to) = news_span(subject);
    sqlx::query_scalar!(
        r#"
        -- explanation::gather::unread_news
        select count(*) as "count!"
          from news_revision revision
         where published_at >= $1
           and published_at < $2
           and collected_at > clock_timestamp() - make_interval(secs => $3)
           and not exists (select
                             from news_item head
                            where head.item_id = revision.item_id
                              and head.sequence >= revision.sequence)
        "#,
        from,
        to,
        FRESH_SECONDS,
    )
    .fetch_one(tx)
    .fault_point("explanation::gather::unread_news")
    .await
}

/// Reads the evidence. `threshold` is that of the trigger's rule.
///
/// # Errors
///
/// [`sqlx::Error`].
pub async fn evidence(
    tx: &mut PgConnection,
    subject: &Subject,
    trigger: Locked,
    threshold: Decimal,
) -> Result<Evidence, sqlx::Error> {
    let market = market(&mut *tx, subject, &trigger, threshold).await?;
    let news = news(&mut *tx, subject).await?;
    let prices = prices(tx, subject, trigger).await?;
    Ok(Evidence { subject: subject.clone(), prices, news, market })
}

async fn prices(tx: &mut PgConnection, subject: &Subject, trigger: Locked) -> Result<Prices, sqlx::Error> {
    let around = sqlx::query_as!(
        Price,
        r#"
        -- explanation::gather::prices
        select window_start as at, close
          from price_bar
         where dataset = $1
           and symbol = $2
           and window_start between $3 and $4
           and window_start <> $5
         order by window_start
        "#,
        subject.dataset,
        subject.symbol,
        subject.window_start - AROUND,
        subject.window_start + AROUND,
        subject.window_start,
    )
    .fetch_all(tx)
    .fault_point("explanation::gather::prices")
    .await?;
    let (before, after) = around.into_iter().partition(|price| price.at < subject.window_start);
    let Locked { reference, crossing, change } = trigger;
    Ok(Prices { reference, crossing, change, before, after })
}

/// One line an item, by its strongest finding, from its newest text that was read.
async fn news(tx: &mut PgConnection, subject: &Subject) -> Result<Vec<News>, sqlx::Error> {
    let (from, to) = news_span(subject);
    sqlx::query_as!(
        News,
        r#"
        -- explanation::gather::news
        select revision.item_id, revision.revision, revision.feed, revision.title, revision.link,
               revision.published_at, finding.event_kind, finding.confidence, finding.matched
          from news_revision revision
          join news_item head using (item_id, revision)
         cross join lateral (select event_kind, confidence, matched
                               from news_finding
                              where item_id = head.item_id
                                and news_finding.revision = head.revision
                                and symbol = $1
                              order by confidence desc, segment_index, finding_index
                              limit 1) finding
         where revision.published_at >= $2
           and revision.published_at < $3
         order by revision.published_at desc, revision.item_id
         limit $4
        "#,
        subject.symbol,
        from,
        to,
        NEWS_MAX,
    )
    .fetch_all(tx)
    .fault_point("explanation::gather::news")
    .await
}

/// The hours before the crossing, and the minute of the crossing itself.
fn news_span(subject: &Subject) -> (DateTime<Utc>, DateTime<Utc>) {
    let end = subject.window_start + TimeDelta::minutes(1);
    (end - TimeDelta::hours(NEWS_HOURS), end)
}

async fn market(
    tx: &mut PgConnection,
    subject: &Subject,
    trigger: &Locked,
    threshold: Decimal,
) -> Result<Market, sqlx::Error> {
    let span = market::Span { from: trigger.reference.at, to: subject.window_start };
    let closes = sqlx::query_as!(
        market::OtherClose,
        r#"
        -- explanation::gather::market
        select symbol, window_start as at, close
          from price_bar
         where dataset = $1
           and symbol <> $2
           and (window_start between $3 and $4 or window_start between $5 and $6)
         order by symbol, window_start
        "#,
        subject.dataset,
        subject.symbol,
        span.from - market::SLACK,
        span.from,
        span.to - market::SLACK,
        span.to,
    )
    .fetch_all(tx)
    .fault_point("explanation::gather::market")
    .await?;
    Ok(market::of(&closes, span, subject.direction, threshold))
}

/// Writes the explanation, unless the trigger has one; answers whether it was written.
///
/// # Errors
///
/// [`sqlx::Error`].
pub async fn write(
    tx: &mut PgConnection,
    evidence: &Evidence,
    verdict: Verdict,
    body: &str,
) -> Result<bool, sqlx::Error> {
    let subject = &evidence.subject;
    let written = sqlx::query!(
        r#"
        -- explanation::gather::write
        insert into explanation
               (dataset, symbol, rule, direction, window_start, trigger_revision, verdict, body, evidence)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
            on conflict (dataset, symbol, rule, direction, window_start) do nothing
        "#,
        subject.dataset,
        subject.symbol,
        subject.rule.as_str(),
        subject.direction.as_str(),
        subject.window_start,
        subject.revision,
        verdict.as_str(),
        body,
        json!(evidence.cited()),
    )
    .execute(tx)
    .fault_point("explanation::gather::write")
    .await?;
    Ok(written.rows_affected() == 1)
}
