//! News jobs: an item counts once, by its newest text that was read.

use serde_json::{Value, json};
use sqlx::PgPool;

use crate::pipeline::{Pipeline, at};

const MENTIONS: &str =
    "select jsonb_build_array(symbol, to_char(bucket_start at time zone 'UTC', 'HH24'), mentions)
                          from mention_bucket where mentions > 0 order by symbol, bucket_start";
const HEADS: &str = "select to_jsonb(title) from news_item order by title";
const FINDINGS: &str = "select jsonb_build_array(symbol, event_kind, confidence::text, matched)
                          from news_finding order by symbol, event_kind, revision";

#[sqlx::test(migrations = "../../migrations")]
async fn item_is_read_into_segments_findings_and_buckets(db: PgPool) {
    let pipeline = Pipeline::new(db);
    pipeline.publish("1", "Apple and Intel agree to a merger", at(0)).await;
    pipeline.publish("2", "Apple raises its guidance", at(10)).await;

    pipeline.deliver_all("news").await;

    assert_eq!(
        pipeline.rows(FINDINGS).await,
        [
            json!(["AAPL", "GUIDANCE", "0.8", "Apple, guidance"]),
            json!(["AAPL", "MERGER", "0.8", "Apple, merger"]),
            json!(["INTC", "MERGER", "0.8", "Intel, merger"]),
        ]
    );
    assert_eq!(pipeline.rows(MENTIONS).await, [json!(["AAPL", "13", 2]), json!(["INTC", "13", 1])]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn edit_counts_instead_of_the_text_before_and_redelivery_changes_nothing(db: PgPool) {
    let pipeline = Pipeline::new(db);
    pipeline.publish("1", "Apple sues Intel", at(0)).await;
    pipeline.deliver_all("news").await;
    pipeline.publish("1", "Apple sues Microsoft", at(60)).await;

    for _ in 0..3 {
        pipeline.deliver_all("news").await;
    }

    assert_eq!(pipeline.rows(MENTIONS).await, [json!(["AAPL", "14", 1]), json!(["MSFT", "14", 1])]);
    assert_eq!(pipeline.rows(HEADS).await, [json!("Apple sues Microsoft")]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn older_text_that_is_read_late_does_not_count(db: PgPool) {
    let pipeline = Pipeline::new(db);
    pipeline.publish("1", "Apple sues Intel", at(0)).await;
    pipeline.publish("1", "Apple sues Microsoft", at(0)).await;
    let mut messages = pipeline.messages("news").await;
    messages.reverse();

    pipeline.deliver("news", &messages).await;

    assert_eq!(pipeline.rows(MENTIONS).await, [json!(["AAPL", "13", 1]), json!(["MSFT", "13", 1])]);
    assert_eq!(pipeline.rows(HEADS).await, [json!("Apple sues Microsoft")]);
    assert_eq!(pipeline.rows(FINDINGS).await.len(), 4);
}

#[sqlx::test(migrations = "../../migrations")]
async fn revision_whose_job_came_again_after_its_row_was_purged_counts_once(db: PgPool) {
    let pipeline = Pipeline::new(db);
    pipeline.publish("1", "Apple sues Intel", at(0)).await;
    pipeline.deliver_all("news").await;
    sqlx::query("update job set status = 'PENDING', finished_at = null, attempt_count = 0")
        .execute(&pipeline.db)
        .await
        .unwrap();

    pipeline.deliver_all("news").await;

    assert_eq!(pipeline.jobs("news").await, [("SUCCEEDED".to_owned(), 1)]);
    assert_eq!(pipeline.rows(MENTIONS).await, [json!(["AAPL", "13", 1]), json!(["INTC", "13", 1])]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn many_readers_of_many_items_lose_no_count(db: PgPool) {
    let pipeline = Pipeline::new(db);
    for item in 0..12 {
        pipeline.publish(&item.to_string(), "Apple, Intel and Tesla launch a product", at(0)).await;
        pipeline.publish(&item.to_string(), "Apple and Intel launch a product", at(0)).await;
    }
    let messages = pipeline.messages("news").await;
    let (left, right): (Vec<_>, Vec<_>) = messages.into_iter().enumerate().partition(|(at, _)| at % 2 == 0);
    let bodies = |side: Vec<(usize, String)>| side.into_iter().map(|(_, body)| body).collect::<Vec<_>>();

    let (left, right) = (bodies(left), bodies(right));
    tokio::join!(pipeline.deliver("news", &left), pipeline.deliver("news", &right));
    while pipeline.jobs("news").await != [("SUCCEEDED".to_owned(), 24)] {
        // A deadlock would be a reason to try again, and no reason to count wrongly.
        pipeline.pass_time().await;
        pipeline.deliver_all("news").await;
    }

    assert_eq!(pipeline.rows(MENTIONS).await, [json!(["AAPL", "13", 12]), json!(["INTC", "13", 12])]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn missing_document_ends_the_job_and_one_out_of_reach_is_waited_for(db: PgPool) {
    let mut pipeline = Pipeline::new(db);
    pipeline.publish("1", "Apple sues Intel", at(0)).await;
    pipeline.shelf.unavailable = true;
    pipeline.deliver_all("news").await;
    assert_eq!(pipeline.jobs("news").await, [("RETRY".to_owned(), 1)]);

    pipeline.shelf.unavailable = false;
    pipeline.lose_documents();
    pipeline.pass_time().await;
    pipeline.deliver_all("news").await;

    assert_eq!(pipeline.jobs("news").await, [("ARTIFACT_MISSING".to_owned(), 1)]);
    assert_eq!(pipeline.rows(FINDINGS).await, Vec::<Value>::new());
}
