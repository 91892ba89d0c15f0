//! What is deleted, and what never is.

use std::time::Duration;

use runtime::sweeper::{Policy, Stopped};
use sqlx::PgPool;
use testkit::TwinBucket;

use crate::fixtures::{HOUR, OLD, adopted, count, dry, key, live, orphan, policy, state, sweep};

#[sqlx::test(migrations = "../../migrations")]
async fn orphan_is_reclaimed_and_everything_else_is_left(db: PgPool) {
    let bucket = adopted(&db).await;
    let old = orphan(&bucket, "orphan", OLD);
    let young = key("young", OLD);
    bucket.put(&young, b"landed late", Duration::ZERO);

    let report = sweep(&db, &bucket, &policy()).await;

    assert_eq!((report.listed, report.orphans, report.reclaimed, report.young), (3, 1, 1, 1));
    assert_eq!(bucket.deleted(), [old.as_str()]);
    assert_eq!(state(&db, &old).await.as_deref(), Some("RECLAIMED"));
    assert_eq!(state(&db, &young).await, None);
    assert_eq!(count(&db, "select count(*) from pending_deletion").await, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn keys_of_every_kind_are_deleted_and_only_those_meant(db: PgPool) {
    let bucket = adopted(&db).await;
    let mut strange: Vec<String> = [
        " ",
        "a b",
        "ü/雪/🚃",
        "+",
        "%",
        "%2B",
        "line\nbreak",
        "cr\r",
        "tab\t",
        "'; drop table artifact; --",
        "a&b<c>",
    ]
    .iter()
    .map(|name| orphan(&bucket, name, OLD))
    .collect();
    let longest = key(&"x".repeat(1024 - key("", OLD).len()), OLD);
    bucket.put(&longest, b"x", OLD);
    strange.push(longest);
    let kept = key("%2B+", OLD);
    live(&db, &bucket, &kept).await;

    let report = sweep(&db, &bucket, &policy()).await;

    assert_eq!(report.reclaimed, strange.len() as u64);
    assert!(strange.iter().all(|key| !bucket.holds(key)), "{:?}", bucket.keys());
    assert!(bucket.holds(&kept));
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_is_not_the_products_is_never_touched(db: PgPool) {
    let bucket = adopted(&db).await;
    let others = [
        "artifacts",
        "artifacts/",
        "artifacts/2020/01/01/00/",
        "artifacts/2020/01/01/00/window/",
        "artifacts/2020/01/readme.txt",
        "artifacts/a.csv",
        "artifacts-of-others/2020/01/01/00/a",
        "backups/dump.sql",
    ];
    for other in others {
        bucket.put(other, b"", OLD);
    }

    let report = sweep(&db, &bucket, &policy()).await;

    assert_eq!(bucket.deleted(), Vec::<String>::new());
    assert!(report.orphans == 0 && report.left_alone > 0, "{report:?}");
    assert!(others.iter().all(|other| bucket.holds(other)));
}

#[sqlx::test(migrations = "../../migrations")]
async fn dry_run_changes_nothing_and_says_what_the_real_one_then_does(db: PgPool) {
    let bucket = adopted(&db).await;
    for number in 0..30 {
        orphan(&bucket, &format!("{number}"), OLD);
    }
    let before = bucket.keys();

    let said = sweep(&db, &bucket, &dry()).await;
    assert_eq!(bucket.keys(), before);
    assert_eq!(count(&db, "select count(*) from artifact where state = 'RECLAIMED'").await, 0);
    let done = sweep(&db, &bucket, &policy()).await;

    assert_eq!((said.orphans, said.doomed, said.reclaimed), (30, 30, 0));
    assert_eq!((done.orphans, done.doomed, done.reclaimed), (30, 30, 30));
    assert_eq!(said.orphan_keys, done.orphan_keys);
}

#[sqlx::test(migrations = "../../migrations")]
async fn thousands_are_deleted_in_calls_of_a_thousand_and_runs_of_their_bound(db: PgPool) {
    let bucket = adopted(&db).await;
    for number in 0..2_500 {
        orphan(&bucket, &format!("{number:04}"), OLD);
    }
    let policy = Policy { max_deletes: 1_700, max_orphan_ratio: 1.0, ..policy() };

    let first = sweep(&db, &bucket, &policy).await;
    let second = sweep(&db, &bucket, &policy).await;

    assert_eq!((first.reclaimed, first.stopped, first.refused), (1_700, Some(Stopped::Deletes), 1));
    assert_eq!((second.reclaimed, second.stopped, second.refused), (800, None, 0));
    assert_eq!(bucket.deleted().len(), 2_500);
}

#[sqlx::test(migrations = "../../migrations")]
async fn deletion_that_is_refused_is_tried_again_by_the_next_run(db: PgPool) {
    let bucket = adopted(&db).await;
    let (locked, fine) = (orphan(&bucket, "locked", OLD), orphan(&bucket, "fine", OLD));
    bucket.refuse(&locked, Some("AccessDenied: object lock"));

    let first = sweep(&db, &bucket, &policy()).await;
    let still = sweep(&db, &bucket, &policy()).await;
    bucket.refuse(&locked, None);
    let last = sweep(&db, &bucket, &policy()).await;

    assert_eq!((first.reclaimed, first.failed), (1, 1));
    assert_eq!((still.reclaimed, still.failed), (0, 1));
    assert_eq!((last.reclaimed, last.failed), (1, 0));
    assert_eq!(bucket.deleted(), [fine, locked]);
    assert_eq!(count(&db, "select count(*) from pending_deletion").await, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn reason_of_a_refused_deletion_is_kept(db: PgPool) {
    let bucket = adopted(&db).await;
    bucket.refuse(&orphan(&bucket, "locked", OLD), Some("AccessDenied: object lock"));
    sweep(&db, &bucket, &policy()).await;

    let (attempts, reason): (i32, String) =
        sqlx::query_as("select attempt_count, last_error from pending_deletion")
            .fetch_one(&db)
            .await
            .unwrap();

    assert_eq!((attempts, reason.as_str()), (1, "AccessDenied: object lock"));
}

#[sqlx::test(migrations = "../../migrations")]
async fn answer_that_is_lost_costs_a_run_and_nothing_else(db: PgPool) {
    let bucket = adopted(&db).await;
    let orphan = orphan(&bucket, "orphan", OLD);
    bucket.lose_an_answer();

    let failed = crate::fixtures::order(&db, &bucket, &policy(), &runtime::sweeper::Order::Sweep).await;
    assert!(failed.is_err());
    let next = sweep(&db, &bucket, &policy()).await;

    assert_eq!((next.reclaimed, next.failed), (1, 0));
    assert_eq!(bucket.deleted(), [orphan]);
    assert_eq!(count(&db, "select count(*) from pending_deletion").await, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn object_that_is_reclaimed_and_still_there_is_deleted_by_the_next_look(db: PgPool) {
    let bucket = adopted(&db).await;
    let late = key("late", OLD);
    sqlx::query("insert into artifact (key, state, owner) values ($1, 'RECLAIMED', 'sweeper')")
        .bind(&late)
        .execute(&db)
        .await
        .unwrap();
    bucket.put(&late, b"landed after its row", Duration::ZERO);

    let report = sweep(&db, &bucket, &policy()).await;

    assert_eq!((report.orphans, report.leftovers, report.reclaimed), (0, 1, 1));
    assert_eq!(bucket.deleted(), [late]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn another_object_than_was_listed_is_not_deleted(db: PgPool) {
    let bucket = adopted(&db).await;
    let key = orphan(&bucket, "changing", OLD);
    bucket.refuse(&key, Some("InternalError"));
    sweep(&db, &bucket, &policy()).await;
    bucket.refuse(&key, None);
    bucket.put(&key, b"written over", OLD);

    let report = sweep(&db, &bucket, &Policy { max_pages: 0, ..policy() }).await;

    assert_eq!((report.failed, bucket.holds(&key)), (1, true));
}

#[sqlx::test(migrations = "../../migrations")]
async fn object_whose_age_nobody_knows_is_young(db: PgPool) {
    let bucket = adopted(&db).await;
    let key = key("from the future", OLD);
    bucket.put(&key, b"x", Duration::ZERO);
    let report = sweep(&db, &bucket, &Policy { grace: 2 * HOUR, ..policy() }).await;
    assert_eq!((report.young, report.orphans), (1, 0));
    assert!(bucket.holds(&key));
}

#[sqlx::test(migrations = "../../migrations")]
async fn bucket_that_does_not_answer_fails_the_run_and_changes_nothing(db: PgPool) {
    let bucket: TwinBucket = adopted(&db).await;
    let orphan = orphan(&bucket, "orphan", OLD);
    for call in ["marker", "list", "delete"] {
        bucket.fail(call, true);
        let failed = crate::fixtures::order(&db, &bucket, &policy(), &runtime::sweeper::Order::Sweep).await;
        assert!(failed.unwrap_err().to_string().contains("could not be asked"), "{call}");
        bucket.fail(call, false);
        assert!(bucket.holds(&orphan), "{call}");
    }
    assert_eq!(sweep(&db, &bucket, &policy()).await.reclaimed, 1);
}
