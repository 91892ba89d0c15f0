//! Explain jobs: the verdict follows from news and market, and the evidence is cited.

use serde_json::json;
use sqlx::PgPool;

use crate::pipeline::{Pipeline, at};

const EXPLANATION: &str = "select to_jsonb(explanation) from explanation";

/// AAPL rises in half an hour; the other symbols as told.
async fn trigger(pipeline: &Pipeline, others: [(&'static str, &str); 3]) {
    let flat = others.map(|(symbol, _)| (symbol, "100"));
    pipeline.collect(0, &[&[("AAPL", "100")], &flat[..]].concat()).await;
    pipeline.collect(30, &[&[("AAPL", "102")], &others[..]].concat()).await;
    pipeline.deliver_all("price").await;
}

#[sqlx::test(migrations = "../../migrations")]
async fn news_about_the_symbol_is_cited(db: PgPool) {
    let pipeline = Pipeline::new(db);
    pipeline.publish("old", "Apple unveils a phone", at(-6 * 60)).await;
    pipeline.publish("other", "Tesla recalls a car", at(20)).await;
    pipeline.publish("late", "Apple launches a car", at(31)).await;
    pipeline.publish("cause", "Apple raises its guidance", at(25)).await;
    pipeline.deliver_all("news").await;
    trigger(&pipeline, [("AMD", "100"), ("INTC", "100"), ("TSLA", "100")]).await;

    pipeline.deliver_all("explain").await;

    let explanation = &pipeline.rows(EXPLANATION).await[0];
    assert_eq!(explanation["verdict"], "NEWS");
    assert_eq!(
        explanation["body"],
        "AAPL rose 2 % within 30 minutes: from 100 at 09:30 EDT to 102 at 10:00 EDT on 2018-04-04 [1].\n\
         News about AAPL in the 6 hours before may explain it:\n\
         [2] guidance: \"Apple raises its guidance\" (wire, 2018-04-04 09:55 EDT, https://wire.example/cause)\n\
         At the same time 0 of 3 other symbols rose by at least 0.5 % [3]."
    );
    let cited = explanation["evidence"].as_array().unwrap();
    assert_eq!(cited.len(), 3);
    assert_eq!(cited[0]["crossing"]["close"], "102");
    assert_eq!(cited[1]["title"], "Apple raises its guidance");
}

#[sqlx::test(migrations = "../../migrations")]
async fn edited_item_is_cited_by_its_newest_text(db: PgPool) {
    let pipeline = Pipeline::new(db);
    pipeline.publish("cause", "Apple raises its guidance", at(25)).await;
    pipeline.publish("cause", "Intel raises its guidance (corrected)", at(25)).await;
    pipeline.deliver_all("news").await;
    trigger(&pipeline, [("AMD", "100"), ("INTC", "100"), ("TSLA", "100")]).await;

    pipeline.deliver_all("explain").await;

    assert_eq!(pipeline.rows(EXPLANATION).await[0]["verdict"], "NO_CAUSE_FOUND");
}

#[sqlx::test(migrations = "../../migrations")]
async fn move_of_most_others_is_the_market(db: PgPool) {
    let pipeline = Pipeline::new(db);
    trigger(&pipeline, [("AMD", "100.6"), ("INTC", "100.5"), ("TSLA", "99.5")]).await;

    pipeline.deliver_all("explain").await;

    let explanation = &pipeline.rows(EXPLANATION).await[0];
    assert_eq!(explanation["verdict"], "MARKET_MOVE");
    let market = &explanation["evidence"][1];
    assert_eq!(market["observed"], 3);
    assert_eq!(market["moving"][0], json!({"symbol": "AMD", "move": "0.006"}));
}

#[sqlx::test(migrations = "../../migrations")]
async fn fresh_text_is_waited_for_but_not_for_ever(db: PgPool) {
    let mut pipeline = Pipeline::new(db);
    pipeline.publish("cause", "Apple raises its guidance", at(25)).await;
    pipeline.shelf.unavailable = true;
    pipeline.deliver_all("news").await;
    trigger(&pipeline, [("AMD", "100"), ("INTC", "100"), ("TSLA", "100")]).await;

    for _ in 0..4 {
        pipeline.deliver_all("explain").await;
        assert_eq!(pipeline.jobs("explain").await, [("RETRY".to_owned(), 1)]);
        pipeline.pass_time().await;
    }
    pipeline.deliver_all("explain").await;

    assert_eq!(pipeline.rows(EXPLANATION).await[0]["verdict"], "NO_CAUSE_FOUND");
}

#[sqlx::test(migrations = "../../migrations")]
async fn text_that_is_read_while_its_trigger_waits_explains_it(db: PgPool) {
    let pipeline = Pipeline::new(db);
    pipeline.publish("cause", "Apple raises its guidance", at(25)).await;
    trigger(&pipeline, [("AMD", "100"), ("INTC", "100"), ("TSLA", "100")]).await;
    pipeline.deliver_all("explain").await;

    pipeline.deliver_all("news").await;
    pipeline.pass_time().await;
    pipeline.deliver_all("explain").await;

    assert_eq!(pipeline.rows(EXPLANATION).await[0]["verdict"], "NEWS");
}
