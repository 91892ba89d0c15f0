//! The recount against rows written by hand: what one application leaves, and what two would.

use domain::Identity;
use sqlx::PgPool;

use super::{Miscounted, digests, explanations, findings, implied_jobs, miscounted, news, symbols, triggers};
use crate::triggers::{Direction, Rule};

/// One item, read once, that mentions ABC twice and XYZ once; one live trigger of ABC with its
/// explanation, one withdrawn trigger of XYZ without.
const ONE_APPLICATION: &str = "
    insert into artifact (key, state, sha256, size_bytes, owner)
    values ('a', 'REFERENCED', repeat('a', 64), 1, 'news');

    insert into news_revision (item_id, revision, dataset, feed, title, published_at, artifact_key)
    values (repeat('1', 64), repeat('2', 64), 'us8', 'wire', 'ABC and XYZ', '2018-04-04T14:59:00Z', 'a');
    insert into news_item (item_id, revision, sequence, title, published_at)
    select item_id, revision, sequence, title, published_at from news_revision;
    insert into news_segment (item_id, revision, segment_index, body)
    values (repeat('1', 64), repeat('2', 64), 0, 'ABC and XYZ');
    insert into news_finding (item_id, revision, segment_index, finding_index, symbol, event_kind, confidence, matched)
    values (repeat('1', 64), repeat('2', 64), 0, 0, 'ABC', 'MERGER', 0.9, 'ABC'),
           (repeat('1', 64), repeat('2', 64), 0, 1, 'XYZ', 'MERGER', 0.9, 'XYZ'),
           (repeat('1', 64), repeat('2', 64), 0, 2, 'ABC', 'LEGAL', 0.5, 'ABC');
    insert into mention_bucket (symbol, bucket_start, mentions)
    values ('ABC', '2018-04-04T14:00:00Z', 1), ('XYZ', '2018-04-04T14:00:00Z', 1);

    insert into trading_session (dataset, session_date) values ('us8', '2018-04-04');
    insert into price_trigger (dataset, symbol, rule, direction, window_start, session_date, reference_window,
                               reference_close, close, move, cause_window_start, cause_window_generation, withdrawn_at)
    values ('us8', 'ABC', 'THIRTY_MINUTES', 'UP', '2018-04-04T15:00:00Z', '2018-04-04', '2018-04-04T14:30:00Z',
            100, 102, 0.02, '2018-04-04T15:00:00Z', 1, null),
           ('us8', 'XYZ', 'SESSION_OPEN', 'UP', '2018-04-04T15:00:00Z', '2018-04-04', '2018-04-04T14:30:00Z',
            100, 105, 0.05, '2018-04-04T15:00:00Z', 1, now());
    insert into explanation (dataset, symbol, rule, direction, window_start, trigger_revision, verdict, body, evidence)
    values ('us8', 'ABC', 'THIRTY_MINUTES', 'UP', '2018-04-04T15:00:00Z', 1, 'NEWS', 'A merger.', '[]')
";

async fn applied_once(db: &PgPool) {
    sqlx::raw_sql(ONE_APPLICATION).execute(db).await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn one_application_leaves_nothing_to_complain_about(db: PgPool) {
    applied_once(&db).await;
    assert_eq!(miscounted(&db).await.unwrap(), Miscounted::default());
}

#[sqlx::test(migrations = "../../migrations")]
async fn mention_counted_twice_or_not_at_all_is_found(db: PgPool) {
    applied_once(&db).await;
    sqlx::query!("update mention_bucket set mentions = 2 where symbol = 'ABC'").execute(&db).await.unwrap();
    sqlx::query!("delete from mention_bucket where symbol = 'XYZ'").execute(&db).await.unwrap();

    assert_eq!(miscounted(&db).await.unwrap(), Miscounted { mention_buckets: 2, ..Miscounted::default() });
}

#[sqlx::test(migrations = "../../migrations")]
async fn explanation_must_follow_its_trigger(db: PgPool) {
    applied_once(&db).await;
    sqlx::query!("update price_trigger set revision = 2 where symbol = 'ABC'").execute(&db).await.unwrap();

    let expected = Miscounted { unexplained: 1, outdated_explanations: 1, ..Miscounted::default() };
    assert_eq!(miscounted(&db).await.unwrap(), expected);
}

#[sqlx::test(migrations = "../../migrations")]
async fn explanation_of_a_withdrawn_trigger_is_outdated(db: PgPool) {
    applied_once(&db).await;
    sqlx::query!("update price_trigger set withdrawn_at = now()").execute(&db).await.unwrap();

    let expected = Miscounted { outdated_explanations: 1, ..Miscounted::default() };
    assert_eq!(miscounted(&db).await.unwrap(), expected);
}

#[sqlx::test(migrations = "../../migrations")]
async fn edited_item_that_was_not_read_again_is_outdated(db: PgPool) {
    applied_once(&db).await;
    sqlx::raw_sql(
        "insert into news_revision (item_id, revision, dataset, feed, title, published_at, artifact_key)
         values (repeat('1', 64), repeat('3', 64), 'us8', 'wire', 'ABC only', '2018-04-04T14:59:00Z', 'a')",
    )
    .execute(&db)
    .await
    .unwrap();

    assert_eq!(miscounted(&db).await.unwrap(), Miscounted { outdated_items: 1, ..Miscounted::default() });
}

#[sqlx::test(migrations = "../../migrations")]
async fn report_counts_live_triggers_only(db: PgPool) {
    applied_once(&db).await;

    let counted = symbols(&db, "us8").await.unwrap();
    let by_rule: Vec<_> =
        counted.iter().map(|row| (row.symbol.as_str(), row.thirty_minutes, row.session_open)).collect();
    assert_eq!(by_rule, [("ABC", 1, 0)]);

    let keys = triggers(&db, "us8").await.unwrap();
    let keys: Vec<_> = keys.iter().map(|key| (key.symbol.as_str(), key.rule, key.direction)).collect();
    assert_eq!(keys, [("ABC", Rule::ThirtyMinutes, Direction::Up)]);

    let texts = explanations(&db, "us8").await.unwrap();
    assert_eq!((texts.len(), texts[0].body.as_str()), (1, "A merger."));
}

#[sqlx::test(migrations = "../../migrations")]
async fn report_counts_what_was_read(db: PgPool) {
    applied_once(&db).await;

    let counted = news(&db).await.unwrap();
    assert_eq!((counted.revisions, counted.items, counted.segments, counted.findings), (1, 1, 1, 3));
    let kinds: Vec<_> = findings(&db)
        .await
        .unwrap()
        .into_iter()
        .map(|row| (row.event_kind, row.findings, row.symbols))
        .collect();
    assert_eq!(kinds, [("LEGAL".to_owned(), 1, 1), ("MERGER".to_owned(), 2, 2)]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn digest_of_a_table_changes_with_its_rows(db: PgPool) {
    applied_once(&db).await;
    let before = digests(&db).await.unwrap();
    sqlx::query!("update mention_bucket set mentions = mentions + 1 where symbol = 'ABC'")
        .execute(&db)
        .await
        .unwrap();

    let after = digests(&db).await.unwrap();
    let changed: Vec<&str> = before
        .iter()
        .zip(&after)
        .filter(|(one, other)| one != other)
        .map(|(one, _)| one.table.as_str())
        .collect();
    assert_eq!(changed, ["mention_bucket"]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn committed_rows_imply_their_jobs(db: PgPool) {
    applied_once(&db).await;
    sqlx::raw_sql(
        "insert into collection_window
                (dataset, window_start, session_date, content_digest, bar_count, artifact_key, backfilled)
         values ('us8', '2018-04-04T15:00:00Z', '2018-04-04', repeat('a', 64), 1, 'a', false),
                ('us8', '2018-04-04T15:01:00Z', '2018-04-04', repeat('a', 64), 0, null, false),
                ('us8', '2018-04-04T15:02:00Z', '2018-04-04', repeat('a', 64), 1, 'a', true)",
    )
    .execute(&db)
    .await
    .unwrap();

    let implied = implied_jobs(&db, "us8").await.unwrap();

    let price = Identity::new("price")
        .text("dataset", "us8")
        .text("window_start", "2018-04-04T15:00:00Z")
        .integer("window_generation", 1);
    let news = Identity::new("news").text("item_id", &"1".repeat(64)).text("revision", &"2".repeat(64));
    let explain = Identity::new("explain")
        .text("dataset", "us8")
        .text("symbol", "ABC")
        .text("rule", "THIRTY_MINUTES")
        .text("direction", "UP")
        .text("window_start", "2018-04-04T15:00:00Z")
        .integer("trigger_revision", 1)
        .text("cause_window_start", "2018-04-04T15:00:00Z")
        .integer("window_generation", 1);
    assert_eq!(implied, [price, news, explain].map(|identity| identity.job_id()));
}
