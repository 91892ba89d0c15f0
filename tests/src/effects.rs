//! What a market must have come to: computed again from its committed bars and texts, by the pure rules
//! alone, and compared with the rows that the components wrote while things died.
//!
//! So a trigger, a finding, a mention or an explanation that is missing, doubled, or left from an older
//! generation shows. It asks when everything has come to rest and no job but a stale one is dead.

use std::collections::{BTreeMap, BTreeSet};

use domain::Identity;
use intraday::audit::{self, Miscounted};
use intraday::config::Config;
use intraday::extraction::rules::RulesExtractor;
use intraday::extraction::{Extractor, Finding, Reading, segments};
use intraday::triggers::rules::{self, Closes};
use intraday::triggers::{Close, Direction, Key, Rule};
use rust_decimal::Decimal;
use sqlx::PgPool;

use crate::Result;

/// The dataset of a [`crate::market::Market`].
pub const DATASET: &str = "us8";

/// A finding without its place among those of its segment.
type Found = (String, String, i32, String, String, Decimal, String);

/// Where the effects in `db` are not what follows from the committed rows, in words. `configuration` is
/// the text that the functions were given.
///
/// # Errors
///
/// The database refuses, or the configuration is not one.
pub async fn wrong(db: &PgPool, configuration: &str) -> Result<Vec<String>> {
    let config = Config::load(configuration).map_err(|faults| faults.to_string())?;
    let mut wrong = contradictions(db).await?;
    let (computed, written) = (computed_triggers(db, &config).await?, written_triggers(db).await?);
    if computed != written {
        wrong.push(format!("triggers: {written:?} were written, {computed:?} follow from the bars"));
    }
    let (computed, written) = (computed_findings(db, &config).await?, written_findings(db).await?);
    if computed != written {
        wrong.push(format!("findings: {written:?} were written, {computed:?} follow from the texts"));
    }
    Ok(wrong)
}

/// Where jobs are missing, counts are wrong, or a trigger has not exactly one explanation of its revision.
///
/// # Errors
///
/// The database refuses.
pub async fn contradictions(db: &PgPool) -> Result<Vec<String>> {
    let implied = audit::implied_jobs(db, DATASET).await?;
    let absent = store::audit::absent(db, &implied).await?;
    let miscounted = audit::miscounted(db).await?;
    let mut found = Vec::new();
    if !absent.is_empty() {
        found.push(format!("{} jobs that the committed rows imply are not there", absent.len()));
    }
    if miscounted != Miscounted::default() {
        found.push(format!("effects contradict each other: {miscounted:?}"));
    }
    Ok(found)
}

/// What a trigger says: against which close, and which close crossed.
type Triggers = BTreeMap<Key, (Decimal, Decimal)>;

async fn computed_triggers(db: &PgPool, config: &Config) -> Result<Triggers> {
    let rows: Vec<(String, _, _, Decimal)> = sqlx::query_as(
        "select symbol, window_start, session_date, close from price_bar \
           join collection_window using (dataset, window_start) \
          where dataset = $1 and not backfilled order by symbol, window_start",
    )
    .bind(DATASET)
    .fetch_all(db)
    .await?;
    let mut closes = Closes::new();
    for (symbol, at, session, price) in rows {
        closes.entry(symbol).or_default().push(Close { at, session, price });
    }
    let thresholds = &config.dataset(DATASET).ok_or("the configuration has another dataset")?.thresholds;
    let follow = rules::triggers(&closes, thresholds);
    Ok(follow.into_iter().map(|(key, values)| (key, (values.reference_close, values.close))).collect())
}

async fn written_triggers(db: &PgPool) -> Result<Triggers> {
    let rows: Vec<(String, String, String, _, Decimal, Decimal)> = sqlx::query_as(
        "select symbol, rule, direction, window_start, reference_close, close from price_trigger \
          where dataset = $1 and withdrawn_at is null",
    )
    .bind(DATASET)
    .fetch_all(db)
    .await?;
    let read = |(symbol, rule, direction, at, reference, close): (_, String, String, _, _, _)| {
        let (rule, direction) = (Rule::parse(&rule)?, Direction::parse(&direction)?);
        Some((Key { symbol, rule, direction, at }, (reference, close)))
    };
    Ok(rows.into_iter().filter_map(read).collect())
}

/// A market's items are headlines without a text.
async fn computed_findings(db: &PgPool, config: &Config) -> Result<BTreeSet<Found>> {
    let texts: Vec<(String, String, String)> =
        sqlx::query_as("select item_id, revision, title from news_revision").fetch_all(db).await?;
    let extractor = RulesExtractor::new(config);
    // The rules read the text alone, whoever asks.
    let nobody = Identity::new("nobody").job_id();
    let mut computed = BTreeSet::new();
    for (item, revision, title) in texts {
        let segments = segments::split(&title, "");
        let reading = Reading { job_id: &nobody, attempt: 1, segments: &segments };
        for finding in extractor.extract(reading).await? {
            computed.insert(found(&item, &revision, finding)?);
        }
    }
    Ok(computed)
}

fn found(item: &str, revision: &str, finding: Finding) -> Result<Found> {
    let segment = i32::try_from(finding.segment)?;
    let kind = finding.kind.as_str().to_owned();
    Ok((
        item.to_owned(),
        revision.to_owned(),
        segment,
        finding.symbol,
        kind,
        finding.confidence.normalize(),
        finding.matched,
    ))
}

async fn written_findings(db: &PgPool) -> Result<BTreeSet<Found>> {
    let rows: Vec<Found> = sqlx::query_as(
        "select item_id, revision, segment_index, symbol, event_kind, confidence, matched from news_finding",
    )
    .fetch_all(db)
    .await?;
    let count = rows.len();
    let distinct: BTreeSet<Found> = rows
        .into_iter()
        .map(|(a, b, c, d, e, confidence, g)| (a, b, c, d, e, confidence.normalize(), g))
        .collect();
    if distinct.len() == count { Ok(distinct) } else { Err("a finding was written twice".into()) }
}
