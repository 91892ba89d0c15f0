//! What the pipeline promises, by the testing kit for handlers.

#![allow(clippy::unwrap_used, reason = "a fixture that fails is a failed test")]

use domain::{JobId, JobStatus};
use orders::announce::AnnouncementHandler;
use orders::order::{Order, Placed, announcement_job, place, receipt_job};
use orders::outside::{Outside, Recorder};
use orders::receipt::ReceiptHandler;
use orders::{JOB_TYPES, MIGRATIONS};
use sqlx::PgPool;
use testkit::HandlerKit;

const CALLS: &str = "select sum(calls) from outside_effect";
const MAILS: &str = "select count(*) from outside_effect where channel = 'mail'";
const RECEIPTS: &str = "select count(*) from receipt";

async fn receipts(db: PgPool) -> HandlerKit<ReceiptHandler<Recorder>> {
    let handler = ReceiptHandler::new(db.clone(), Recorder::new("mail", db.clone()));
    HandlerKit::new(db, &MIGRATIONS, handler).await
}

async fn placed(db: &PgPool, callback_url: Option<&str>) -> (Placed, JobId) {
    let order = Order {
        order_id: "A-17".to_owned(),
        email: "ada@example.com".to_owned(),
        total_cents: 1_905,
        callback_url: callback_url.map(str::to_owned),
    };
    let mut tx = db.begin().await.unwrap();
    let placed = place(&mut tx, &order).await.unwrap();
    tx.commit().await.unwrap();
    (placed, receipt_job("A-17").id())
}

#[sqlx::test(migrations = false)]
async fn receipt_is_sent_once_whatever_dies_and_however_often_it_is_delivered(db: PgPool) {
    let kit = receipts(db).await;
    let (_, job) = placed(&kit.db, None).await;

    kit.die_between_prepare_and_apply(&job).await;
    kit.die_before_commit(&job).await;
    kit.deliver_twice(&job).await;

    kit.assert_succeeded(&job).await;
    assert_eq!((kit.count(CALLS).await, kit.count(MAILS).await, kit.count(RECEIPTS).await), (3, 1, 1));
}

#[sqlx::test(migrations = false)]
async fn order_that_is_placed_twice_is_one_job(db: PgPool) {
    let kit = receipts(db).await;

    assert_eq!(placed(&kit.db, None).await.0, Placed::New);
    assert_eq!(placed(&kit.db, None).await.0, Placed::Known);

    assert_eq!(kit.deliver_all().await, 0);
    assert_eq!(kit.count("select count(*) from job").await, 1);
    let body = "select count(*) from outside_effect where body = 'Thank you for order A-17: 19.05 EUR.'";
    assert_eq!(kit.count(body).await, 1);
}

#[sqlx::test(migrations = false)]
async fn shop_that_wants_to_hear_of_a_receipt_does_and_no_other(db: PgPool) {
    let kit = receipts(db.clone()).await;
    let shop = AnnouncementHandler::new(db.clone(), Recorder::new("webhook", db.clone()));
    let webhooks = HandlerKit::beside(db, shop);
    let (_, job) = placed(&kit.db, Some("https://shop.example/receipts")).await;

    assert_eq!(kit.deliver(&job).await, JobStatus::Succeeded);
    webhooks.deliver_twice(&announcement_job("A-17").id()).await;

    webhooks.assert_succeeded(&announcement_job("A-17").id()).await;
    assert_eq!(webhooks.count("select count(*) from announcement").await, 1);
}

#[sqlx::test(migrations = false)]
async fn job_without_an_order_is_dead_for_a_word_of_its_own(db: PgPool) {
    let kit = receipts(db).await;
    let job = kit.enqueue(&receipt_job("nobody's")).await;

    kit.deliver(&job).await;

    kit.assert_dead(&job, "UNKNOWN_ORDER").await;
}

/// A provider that never answers.
struct Silent;

impl Outside for Silent {
    async fn hand_over(
        &self,
        _: &JobId,
        _: &str,
        _: &str,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Err("no answer".into())
    }
}

#[sqlx::test(migrations = false)]
async fn provider_that_never_answers_uses_the_attempts_up_and_leaves_no_receipt(db: PgPool) {
    let kit = HandlerKit::new(db.clone(), &MIGRATIONS, ReceiptHandler::new(db, Silent)).await;
    let (_, job) = placed(&kit.db, None).await;

    assert_eq!(kit.deliver(&job).await, JobStatus::Retry);
    assert_eq!(kit.deliver_all().await, 0);

    kit.assert_dead(&job, "ATTEMPTS_EXHAUSTED").await;
    assert_eq!(kit.count(RECEIPTS).await, 0);
}

#[sqlx::test(migrations = false)]
async fn order_of_a_service_in_another_language_is_the_same_job(db: PgPool) {
    let kit = receipts(db).await;
    let (_, job) = placed(&kit.db, None).await;

    let said: (String, String) = sqlx::query_as(
        r#"select * from tailcar_enqueue('[{
               "job_type": "receipt", "destination": "receipts",
               "identity": {"order_id": "A-17"}, "payload": {"order_id": "A-17"}
           }]')"#,
    )
    .fetch_one(&kit.db)
    .await
    .unwrap();

    assert_eq!(said, (job.to_string(), "KNOWN".to_owned()));
}

#[test]
fn template_has_what_the_code_declares() {
    testkit::template::assert_job_types(include_str!("../template.yaml"), &JOB_TYPES);
}
