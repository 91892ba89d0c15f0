//! Price jobs: the rows follow from the bars alone.

use std::collections::{BTreeMap, BTreeSet};

use intraday::triggers::rules::{self, Closes};
use intraday::triggers::{Close, Key};
use serde_json::json;
use sqlx::PgPool;

use crate::pipeline::{DATASET, Pipeline};

const TRIGGERS: &str = "select jsonb_build_object('symbol', symbol, 'rule', rule, 'direction', direction,
                               'minute', extract(epoch from window_start - '2018-04-04T13:30:00Z')::int / 60,
                               'revision', revision, 'withdrawn', withdrawn_at is not null)
                          from price_trigger order by symbol, rule, direction, window_start";
const EXPLAINED: &str =
    "select to_jsonb(trigger_revision) from explanation order by symbol, rule, direction, window_start";

/// Symbols that jump about, so that both rules and both directions trigger.
fn jumpy_closes(seed: u64, minutes: i64) -> Vec<(i64, Vec<(&'static str, String)>)> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut prices = [("AAPL", 10_000_i64), ("AMD", 10_000), ("TSLA", 10_000)];
    let minute = |minute| {
        let mut closes = Vec::new();
        for (symbol, price) in &mut prices {
            *price += random.i64(-60..=60);
            if random.u8(..) > 40 {
                closes.push((*symbol, format!("{}.{:02}", *price / 100, *price % 100)));
            }
        }
        (minute, closes)
    };
    (0..minutes).map(minute).collect()
}

fn as_texts<'a>(closes: &'a [(&'static str, String)]) -> Vec<(&'a str, &'a str)> {
    closes.iter().map(|(symbol, close)| (*symbol, close.as_str())).collect()
}

/// AAPL rises by 2 % until minute 30, whose job writes the trigger.
async fn trigger_at_30(pipeline: &Pipeline) {
    pipeline.collect(0, &[("AAPL", "100")]).await;
    pipeline.deliver_all("price").await;
    pipeline.collect(30, &[("AAPL", "102")]).await;
    pipeline.deliver_all("price").await;
}

async fn standing(pipeline: &Pipeline) -> BTreeSet<String> {
    let live = "select jsonb_build_array(symbol, rule, direction, window_start, reference_close, close)
                  from price_trigger where withdrawn_at is null";
    pipeline.rows(live).await.iter().map(ToString::to_string).collect()
}

/// What follows from all bars at once.
async fn full_computation(pipeline: &Pipeline) -> BTreeSet<Key> {
    let rows = sqlx::query_as::<_, (String, chrono::DateTime<chrono::Utc>, rust_decimal::Decimal)>(
        "select symbol, window_start, close from price_bar order by symbol, window_start",
    );
    let mut closes = Closes::new();
    for (symbol, at, price) in rows.fetch_all(&pipeline.db).await.unwrap() {
        closes.entry(symbol).or_default().push(Close { at, session: at.date_naive(), price });
    }
    let thresholds = pipeline.config.dataset(DATASET).unwrap().thresholds;
    rules::triggers(&closes, &thresholds).into_keys().collect()
}

/// Collects every minute in a shuffled order, some of them twice with other prices first, while jobs run
/// in an order of their own and are delivered twice.
async fn in_disorder(db: PgPool, seed: u64) -> Pipeline {
    let pipeline = Pipeline::new(db);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut minutes = jumpy_closes(7, 200);
    random.shuffle(&mut minutes);
    for (minute, closes) in &minutes {
        if random.u8(..) > 220 {
            pipeline.collect(*minute, &[("AAPL", "104.00"), ("TSLA", "96.00")]).await;
        }
        pipeline.collect(*minute, &as_texts(closes)).await;
        if random.u8(..) > 230 {
            let mut messages = pipeline.messages("price").await;
            random.shuffle(&mut messages);
            pipeline.deliver("price", &messages[..messages.len() / 2]).await;
        }
    }
    for _ in 0..2 {
        let mut messages = pipeline.messages("price").await;
        random.shuffle(&mut messages);
        pipeline.deliver("price", &messages).await;
        pipeline.deliver_all("explain").await;
    }
    pipeline
}

#[sqlx::test(migrations = "../../migrations")]
async fn disorder_ends_in_the_full_computation_with_one_explanation_each(db: PgPool) {
    let pipeline = in_disorder(db, 1).await;

    let expected = full_computation(&pipeline).await;
    let standing = standing(&pipeline).await;
    assert!(expected.len() > 10, "{} triggers prove little", expected.len());
    assert_eq!(standing.len(), expected.len());
    for key in expected {
        let prefix = json!([key.symbol, key.rule, key.direction]).to_string();
        let prefix = prefix.trim_end_matches(']');
        let minute = key.at.format("%Y-%m-%dT%H:%M").to_string();
        let found = |row: &&String| row.starts_with(prefix) && row.contains(&minute);
        assert!(standing.iter().any(|row| found(&row)), "{key:?}");
    }
    let unmatched = "select to_jsonb(count(*))
                       from price_trigger t
                       full join explanation e using (dataset, symbol, rule, direction, window_start)
                      where (t.withdrawn_at is null) is distinct from (e.trigger_revision is not null)
                         or e.trigger_revision <> t.revision";
    assert_eq!(pipeline.rows(unmatched).await, [json!(0)]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn every_order_ends_in_the_same_rows(db: PgPool) {
    let first = in_disorder(db, 2).await;
    let rows = standing(&first).await;
    sqlx::query(
        "truncate explanation, price_trigger, price_bar, collection_window, trading_session, outbox_event, job, artifact cascade",
    )
    .execute(&first.db)
    .await
    .unwrap();

    let second = in_disorder(first.db, 3).await;
    assert_eq!(standing(&second).await, rows);
}

#[sqlx::test(migrations = "../../migrations")]
async fn correction_withdraws_a_trigger_with_its_explanation_and_brings_it_back(db: PgPool) {
    let pipeline = Pipeline::new(db);
    let row = |revision, withdrawn| {
        json!({"symbol": "AAPL", "rule": "THIRTY_MINUTES", "direction": "UP", "minute": 30,
               "revision": revision, "withdrawn": withdrawn})
    };
    trigger_at_30(&pipeline).await;
    pipeline.deliver_all("explain").await;
    assert_eq!(pipeline.rows(TRIGGERS).await, [row(1, false)]);
    assert_eq!(pipeline.rows(EXPLAINED).await, [json!(1)]);

    pipeline.collect(30, &[("AAPL", "100.5")]).await;
    pipeline.deliver_all("price").await;
    assert_eq!(pipeline.rows(TRIGGERS).await, [row(1, true)]);
    assert_eq!(pipeline.rows(EXPLAINED).await, Vec::<serde_json::Value>::new());

    pipeline.collect(30, &[("AAPL", "102")]).await;
    pipeline.deliver_all("price").await;
    pipeline.deliver_all("explain").await;
    assert_eq!(pipeline.rows(TRIGGERS).await, [row(2, false)]);
    assert_eq!(pipeline.rows(EXPLAINED).await, [json!(2)]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn minute_that_loses_its_bars_loses_its_trigger(db: PgPool) {
    let pipeline = Pipeline::new(db);
    trigger_at_30(&pipeline).await;

    pipeline.collect(30, &[]).await;
    pipeline.deliver_all("price").await;

    assert_eq!(pipeline.rows(TRIGGERS).await[0]["withdrawn"], true);
}

#[sqlx::test(migrations = "../../migrations")]
async fn correction_that_keeps_an_unexplained_trigger_has_it_explained(db: PgPool) {
    let pipeline = Pipeline::new(db);
    trigger_at_30(&pipeline).await;

    pipeline.collect(30, &[("AAPL", "102"), ("AMD", "10")]).await;
    pipeline.deliver_all("explain").await;
    pipeline.deliver_all("price").await;
    pipeline.deliver_all("explain").await;

    assert_eq!(pipeline.jobs("explain").await, [("STALE".to_owned(), 1), ("SUCCEEDED".to_owned(), 1)]);
    assert_eq!(pipeline.rows(EXPLAINED).await, [json!(2)]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn explain_job_of_a_replaced_trigger_is_stale_and_the_newer_one_explains(db: PgPool) {
    let pipeline = Pipeline::new(db);
    trigger_at_30(&pipeline).await;

    // The window that caused it stays as it is; what it is measured against does not.
    pipeline.collect(0, &[("AAPL", "100.2")]).await;
    pipeline.deliver_all("price").await;
    pipeline.deliver_all("explain").await;

    assert_eq!(pipeline.jobs("explain").await, [("STALE".to_owned(), 1), ("SUCCEEDED".to_owned(), 1)]);
    assert_eq!(pipeline.rows(EXPLAINED).await, [json!(2)]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn backfilled_window_takes_no_part(db: PgPool) {
    let pipeline = Pipeline::new(db);
    pipeline.backfill(0, &[("AAPL", "100")]).await;
    pipeline.backfill(30, &[("AAPL", "102")]).await;
    pipeline.collect(32, &[("AAPL", "105")]).await;
    pipeline.deliver_all("price").await;

    assert_eq!(pipeline.rows(TRIGGERS).await, Vec::<serde_json::Value>::new());
    assert_eq!(pipeline.messages("explain").await, Vec::<String>::new());
}

#[sqlx::test(migrations = "../../migrations")]
async fn job_of_a_dataset_that_is_not_configured_is_dead(db: PgPool) {
    let mut pipeline = Pipeline::new(db);
    pipeline.collect(0, &[("AAPL", "100")]).await;
    let mut config = (*pipeline.config).clone();
    config.datasets.clear();
    pipeline.config = config.into();

    pipeline.deliver_all("price").await;

    assert_eq!(pipeline.jobs("price").await, [("UNKNOWN_DATASET".to_owned(), 1)]);
}

/// A real day, where it is at hand (`TAILCAR_SAMPLE_BARS` names `us8_2018-04-04_long_naive_et.csv`),
/// its minutes collected and its jobs run in shuffled orders.
#[sqlx::test(migrations = "../../migrations")]
async fn real_day_in_disorder_has_the_known_triggers(db: PgPool) {
    let Some(path) = std::env::var_os("TAILCAR_SAMPLE_BARS") else {
        eprintln!("NOT RUN: TAILCAR_SAMPLE_BARS names no file");
        return;
    };
    let pipeline = Pipeline::new(db);
    let mut random = fastrand::Rng::with_seed(4);
    let mut minutes: Vec<_> = read_minutes(&std::fs::read_to_string(path).unwrap()).into_iter().collect();
    random.shuffle(&mut minutes);
    for (minute, closes) in &minutes {
        let closes: Vec<_> = closes.iter().map(|(symbol, close)| (symbol.as_str(), close.as_str())).collect();
        pipeline.collect(*minute, &closes).await;
    }
    let mut messages = pipeline.messages("price").await;
    random.shuffle(&mut messages);
    pipeline.deliver("price", &messages).await;

    let counts = "select jsonb_build_array(rule, symbol, count(*))
                    from price_trigger where withdrawn_at is null group by rule, symbol order by rule, symbol";
    let symbols = ["AAPL", "AMD", "AMZN", "INTC", "MSFT", "NVDA", "SNAP", "TSLA"];
    let of = |rule, counts: [i32; 8]| {
        symbols.into_iter().zip(counts).map(move |(symbol, count)| json!([rule, symbol, count]))
    };
    let expected =
        of("SESSION_OPEN", [1, 1, 1, 1, 1, 1, 2, 1]).chain(of("THIRTY_MINUTES", [1, 5, 4, 3, 4, 5, 3, 6]));
    assert_eq!(pipeline.rows(counts).await, expected.collect::<Vec<_>>());
}

/// The minutes after 09:30 of a file with the columns `timestamp,symbol,open,high,low,close,volume`.
fn read_minutes(csv: &str) -> BTreeMap<i64, Vec<(String, String)>> {
    let mut minutes = BTreeMap::<_, Vec<_>>::new();
    for row in csv.lines().skip(1) {
        let columns: Vec<&str> = row.split(',').collect();
        let time: Vec<i64> = columns[0][11..16].split(':').map(|part| part.parse().unwrap()).collect();
        let minute = time[0] * 60 + time[1] - 570;
        minutes.entry(minute).or_default().push((columns[1].to_owned(), columns[5].to_owned()));
    }
    minutes
}
