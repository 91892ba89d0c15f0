//! The reconciler says what it did.

use runtime::reconciler;
use serde_json::json;
use sqlx::PgPool;
use store::reconcile::Pace;

use crate::{execute, job};

#[sqlx::test(migrations = "../../migrations")]
async fn run_says_what_it_rang_for_and_whether_there_is_more(db: PgPool) {
    for name in ["a", "b"] {
        job(&db, name).await;
    }
    let price = job(&db, "c").await;
    execute(&db, "update job set destination = 'price', requeue_count = 0 where job_id = $1", &price).await;
    let pace = Pace { limit: 3, ..Pace::default() };

    let first = reconciler::run(&db, &pace).await.unwrap();
    let second = reconciler::run(&db, &pace).await.unwrap();

    assert_eq!(
        serde_json::to_value(first).unwrap(),
        json!({ "requeued": 3, "by_destination": { "news": 2, "price": 1 }, "requeue_count_max": 1, "limit_reached": true })
    );
    assert_eq!(
        serde_json::to_value(second).unwrap(),
        json!({ "requeued": 0, "by_destination": {}, "requeue_count_max": 0, "limit_reached": false })
    );
}
