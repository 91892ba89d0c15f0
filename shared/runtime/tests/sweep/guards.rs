//! Each guard refuses, says why, and leaves every object where it is.

use std::time::Duration;

use runtime::sweeper::bucket::MARKER_KEY;
use runtime::sweeper::request::Person;
use runtime::sweeper::{Order, Policy, Refusal, Report, Stopped};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use store::sweep::gauges;
use testkit::TwinBucket;

use crate::fixtures::{
    OLD, adopted, count, dry, guards_only, key, live, order, orphan, policy, state, sweep,
};

/// Sweeps, expects one refusal of the whole run, and nothing deleted.
async fn refused(db: &PgPool, bucket: &TwinBucket, policy: &Policy) -> Refusal {
    let before = bucket.keys();
    let report = sweep(db, bucket, policy).await;
    assert_eq!(bucket.keys(), before);
    assert_eq!((report.refused, report.reclaimed, report.stopped), (1, 0, Some(Stopped::Refused)));
    report.refusals[0].reason
}

#[sqlx::test(migrations = "../../migrations")]
async fn bucket_whose_marker_is_missing_or_anothers_is_refused(db: PgPool) {
    let bucket = adopted(&db).await;
    orphan(&bucket, "orphan", OLD);
    bucket.lose(MARKER_KEY);
    assert_eq!(refused(&db, &bucket, &policy()).await, Refusal::MarkerMissing);

    bucket.put(MARKER_KEY, br#"{"installation_id":"another","bucket":"twin"}"#, OLD);
    assert_eq!(refused(&db, &bucket, &policy()).await, Refusal::MarkerNamesAnother);
    assert_eq!(gauges(&db).await.unwrap().sweep_refusals, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn bucket_that_is_not_the_adopted_one_is_refused(db: PgPool) {
    let bucket = adopted(&db).await;
    orphan(&bucket, "orphan", OLD);
    sqlx::query("update installation set bucket = 'another'").execute(&db).await.unwrap();
    assert_eq!(refused(&db, &bucket, &policy()).await, Refusal::BucketIsNotTheAdopted);
}

#[sqlx::test(migrations = "../../migrations")]
async fn database_that_takes_no_writes_is_refused(db: PgPool) {
    let bucket = adopted(&db).await;
    orphan(&bucket, "orphan", OLD);
    let runs = count(&db, "select count(*) from sweep_run").await;
    let options = (*db.connect_options()).clone().options([("default_transaction_read_only", "on")]);
    let read_only = PgPoolOptions::new().max_connections(1).connect_with(options).await.unwrap();

    assert_eq!(refused(&read_only, &bucket, &policy()).await, Refusal::DatabaseIsReadOnly);
    assert_eq!(count(&db, "select count(*) from sweep_run").await, runs);
}

#[sqlx::test(migrations = "../../migrations")]
async fn database_without_artifacts_is_refused_where_the_bucket_holds_some(db: PgPool) {
    let bucket = TwinBucket::default();
    assert!(sweep(&db, &bucket, &guards_only()).await.adopted, "an empty bucket is nobody's");
    orphan(&bucket, "orphan", OLD);
    assert_eq!(refused(&db, &bucket, &policy()).await, Refusal::DatabaseHoldsNoArtifacts);
}

#[sqlx::test(migrations = "../../migrations")]
async fn clocks_that_are_apart_are_refused(db: PgPool) {
    let bucket = adopted(&db).await;
    orphan(&bucket, "orphan", OLD);
    for ahead in [-90, 90] {
        bucket.set_clock_ahead(ahead);
        assert_eq!(refused(&db, &bucket, &policy()).await, Refusal::ClocksApart);
    }
    bucket.set_clock_ahead(30);
    assert_eq!(sweep(&db, &bucket, &policy()).await.reclaimed, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn grace_that_is_too_short_is_refused(db: PgPool) {
    let bucket = adopted(&db).await;
    orphan(&bucket, "orphan", OLD);
    let hasty = Policy { longest_write: policy().grace, ..policy() };
    assert_eq!(refused(&db, &bucket, &hasty).await, Refusal::GraceTooShort);
    let restorable = Policy { backup_window: policy().grace, ..policy() };
    assert_eq!(refused(&db, &bucket, &restorable).await, Refusal::GraceTooShort);
}

#[sqlx::test(migrations = "../../migrations")]
async fn page_with_too_many_orphans_is_passed_over_and_the_rest_is_swept(db: PgPool) {
    let bucket = adopted(&db).await;
    let bad_hour = Duration::from_hours(9);
    for number in 0..1_000 {
        orphan(&bucket, &format!("{number:04}"), bad_hour);
    }
    let good = orphan(&bucket, "good", OLD);

    let report: Report = sweep(&db, &bucket, &policy()).await;

    assert_eq!((report.refused, report.reclaimed, report.stopped), (1, 1, None));
    assert_eq!(report.refusals[0].reason, Refusal::TooManyOrphans);
    assert_eq!((report.refusals[0].orphans, report.refusals[0].listed), (1_000, 1_000));
    assert_eq!(bucket.deleted(), [good]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn run_deletes_no_more_than_it_may_and_alarms(db: PgPool) {
    let bucket = adopted(&db).await;
    for name in ["a", "b", "c"] {
        orphan(&bucket, name, OLD);
    }
    let few = Policy { max_deletes: 2, ..policy() };

    let first = sweep(&db, &bucket, &few).await;
    assert_eq!((first.reclaimed, first.refusals[0].reason), (2, Refusal::TooManyDeletes));
    assert_eq!(gauges(&db).await.unwrap().sweep_refusals, 1);
    let second = sweep(&db, &bucket, &few).await;
    assert_eq!((second.reclaimed, second.refused), (1, 0));
}

#[sqlx::test(migrations = "../../migrations")]
async fn bucket_with_objects_of_others_is_not_adopted_in_silence(db: PgPool) {
    let bucket = TwinBucket::default();
    live(&db, &bucket, &key("live", OLD)).await;
    let others = orphan(&bucket, "another installation's", OLD);
    assert_eq!(refused(&db, &bucket, &policy()).await, Refusal::MarkerMissing);

    let person = Person { who: "ann".to_owned(), why: "looked at each object".to_owned() };
    let report = order(&db, &bucket, &policy(), &Order::Adopt { person }).await.unwrap();

    assert!(report.adopted);
    assert_eq!(bucket.deleted(), [others]);
    let by: String = sqlx::query_scalar("select adopted_by from installation").fetch_one(&db).await.unwrap();
    assert_eq!(by, "ann");
}

#[sqlx::test(migrations = "../../migrations")]
async fn second_installation_is_refused_even_where_nothing_is_left_of_the_first(db: PgPool) {
    let bucket = TwinBucket::default();
    bucket.put(MARKER_KEY, br#"{"installation_id":"first","bucket":"twin"}"#, OLD);
    assert_eq!(refused(&db, &bucket, &policy()).await, Refusal::MarkerNamesAnother);
}

/// Killed between the marker and its note: the marker is this installation's, and nobody else wrote it.
#[sqlx::test(migrations = "../../migrations")]
async fn adoption_that_was_cut_short_is_completed(db: PgPool) {
    let bucket = adopted(&db).await;
    sqlx::query(
        "update installation set bucket = null, adopted_at = null, adopted_by = null, adopted_why = null",
    )
    .execute(&db)
    .await
    .unwrap();
    assert!(sweep(&db, &bucket, &dry()).await.adopted);
    assert_eq!(state(&db, &key("live", OLD)).await.as_deref(), Some("REFERENCED"));
}
