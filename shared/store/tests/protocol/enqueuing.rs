//! Enqueue: once is all, again is nothing, and a conflict stays alone.

use domain::JobId;
use serde_json::json;
use sqlx::PgPool;
use store::artifact::{NewArtifact, refer};
use store::enqueue::{Enqueued, NewJob, enqueue};
use testkit::jobs::{new_job, queued, row};
use testkit::windows::{digest, first_minute, opened};

async fn enqueued(db: &PgPool, jobs: &[NewJob]) -> Vec<Enqueued> {
    let mut tx = db.begin().await.unwrap();
    let outcomes = enqueue(&mut tx, jobs).await.unwrap();
    tx.commit().await.unwrap();
    outcomes
}

async fn events_of(db: &PgPool, id: &JobId) -> Vec<(String, String, String, String)> {
    sqlx::query_as("select event_id, event_type, destination, body from outbox_event where job_id = $1")
        .bind(id.as_str())
        .fetch_all(db)
        .await
        .unwrap()
}

#[sqlx::test(migrations = "../../migrations")]
async fn new_job_has_one_event_that_wakes_it_up(db: PgPool) {
    let job = new_job("a");

    assert_eq!(enqueued(&db, std::slice::from_ref(&job)).await, [Enqueued::Created]);

    let id = job.identity.job_id();
    let body = domain::Message::new("news", id.clone(), 0).to_body();
    let expected = (format!("news:{id}:0"), "news".to_owned(), "news".to_owned(), body);
    assert_eq!(events_of(&db, &id).await, [expected]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn same_job_again_is_a_silent_no_op(db: PgPool) {
    let window = opened(&db, first_minute()).await;
    let job = NewJob { window: Some(window), ..new_job("a") };
    let id = queued(&db, &job).await;
    let before = row(&db, &id).await;

    let again = NewJob { payload: json!({"revision": "1", "item_id": "a"}), ..job };
    assert_eq!(enqueued(&db, &[again]).await, [Enqueued::Known]);

    assert_eq!(row(&db, &id).await, before);
    assert_eq!(events_of(&db, &id).await.len(), 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn known_job_whose_event_was_removed_gets_no_new_one(db: PgPool) {
    let job = new_job("a");
    let id = queued(&db, &job).await;
    sqlx::query("delete from outbox_event").execute(&db).await.unwrap();

    assert_eq!(enqueued(&db, &[job]).await, [Enqueued::Known]);

    assert_eq!(events_of(&db, &id).await, []);
}

#[sqlx::test(migrations = "../../migrations")]
async fn conflict_leaves_its_neighbours_alone(db: PgPool) {
    let known = new_job("b");
    let changed = NewJob { payload: json!({"other": true}), ..known.clone() };
    queued(&db, &known).await;
    let before = row(&db, &known.identity.job_id()).await;

    let outcomes = enqueued(&db, &[new_job("a"), changed, new_job("c"), known.clone()]).await;

    assert_eq!(outcomes, [Enqueued::Created, Enqueued::Conflict, Enqueued::Created, Enqueued::Known]);
    assert_eq!(row(&db, &known.identity.job_id()).await, before);
}

#[sqlx::test(migrations = "../../migrations")]
async fn every_logical_field_is_content_and_the_artifact_is_not(db: PgPool) {
    let window = opened(&db, first_minute()).await;
    let other_artifact = NewArtifact { key: "k", sha256: &digest('c'), size_bytes: 1, owner: "news" };
    refer(&db, &[other_artifact]).await.unwrap();
    let job = NewJob { window: Some(window.clone()), ..new_job("a") };
    queued(&db, &job).await;

    let later = store::window::WindowRef { generation: 2, ..window };
    let conflicts = [
        NewJob { job_type: "other".to_owned(), ..job.clone() },
        NewJob { destination: "other".to_owned(), ..job.clone() },
        NewJob { payload: json!({}), ..job.clone() },
        NewJob { window: None, ..job.clone() },
        NewJob { window: Some(later), ..job.clone() },
    ];
    assert_eq!(enqueued(&db, &conflicts).await, [Enqueued::Conflict; 5]);
    let same = [
        NewJob { artifact_key: Some("k".to_owned()), ..job.clone() },
        NewJob { max_attempts: 3, trace_header: Some("t".to_owned()), ..job },
    ];
    assert_eq!(enqueued(&db, &same).await, [Enqueued::Known; 2]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn first_of_two_in_one_call_is_created(db: PgPool) {
    let job = new_job("a");
    let other = NewJob { payload: json!({}), ..job.clone() };
    let jobs = [job.clone(), new_job("b"), job.clone(), other];

    let outcomes = enqueued(&db, &jobs).await;

    assert_eq!(outcomes, [Enqueued::Created, Enqueued::Created, Enqueued::Known, Enqueued::Conflict]);
    assert_eq!(events_of(&db, &job.identity.job_id()).await.len(), 1);
    assert_eq!(row(&db, &job.identity.job_id()).await["payload"], job.payload);
}

#[sqlx::test(migrations = "../../migrations")]
async fn nothing_to_enqueue_is_no_statement(db: PgPool) {
    let mut tx = db.begin().await.unwrap();
    assert_eq!(enqueue(&mut tx, &[]).await.unwrap(), []);
    tx.rollback().await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn transaction_that_rolls_back_leaves_neither_job_nor_event(db: PgPool) {
    let mut tx = db.begin().await.unwrap();
    enqueue(&mut tx, &[new_job("a")]).await.unwrap();
    tx.rollback().await.unwrap();

    let left: i64 =
        sqlx::query_scalar("select (select count(*) from job) + (select count(*) from outbox_event)")
            .fetch_one(&db)
            .await
            .unwrap();
    assert_eq!(left, 0);
}

/// Two transactions that enqueue the same jobs in opposite order: both finish, one creates.
#[sqlx::test(migrations = "../../migrations")]
async fn overlapping_calls_in_opposite_order_do_not_deadlock(db: PgPool) {
    for round in 0..10 {
        let forth: Vec<NewJob> = (0..40).map(|n| new_job(&format!("{round} {n}"))).collect();
        let back: Vec<NewJob> = forth.iter().rev().cloned().collect();

        let (one, mut other) = futures::join!(enqueued(&db, &forth), enqueued(&db, &back));

        other.reverse();
        for pair in one.into_iter().zip(other) {
            assert!(matches!(
                pair,
                (Enqueued::Created, Enqueued::Known) | (Enqueued::Known, Enqueued::Created)
            ));
        }
    }
}
