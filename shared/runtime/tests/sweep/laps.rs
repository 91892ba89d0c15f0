//! Cost follows what is new: cursors, marks, bounds, and audits that are resumed.

use std::time::Duration;

use runtime::sweeper::request::Person;
use runtime::sweeper::{Order, Policy, Stopped, keys};
use runtime::time_left::TimeLeft;
use sqlx::PgPool;

use crate::fixtures::{HOUR, OLD, adopted, dry, key, live, order, orphan, policy, sweep};

const DAY: Duration = Duration::from_hours(24);

fn audit(checksums: bool) -> Order {
    Order::Audit {
        checksums,
        person: Person { who: "ann".to_owned(), why: "a look at everything".to_owned() },
    }
}

/// Orphans `from..to`, each page's worth in an hour of its own, the oldest first.
fn pages_of_orphans(bucket: &testkit::TwinBucket, pages: u32) {
    for page in 0..pages {
        for number in 0..1_000 {
            orphan(bucket, &format!("{number:04}"), OLD + HOUR * (pages - page));
        }
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn second_run_lists_only_what_is_new(db: PgPool) {
    let bucket = adopted(&db).await;
    for number in 0..50 {
        live(&db, &bucket, &key(&format!("{number}"), OLD)).await;
    }
    assert_eq!(sweep(&db, &bucket, &policy()).await.listed, 51);

    let second = sweep(&db, &bucket, &policy()).await;
    let new = orphan(&bucket, "new", HOUR + policy().longest_write);
    let third = sweep(&db, &bucket, &policy()).await;

    assert_eq!((second.listed, second.orphans), (0, 0));
    assert_eq!((third.listed, third.reclaimed), (1, 1));
    assert_eq!(bucket.deleted(), [new]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn run_that_reaches_its_bound_is_resumed_by_the_next(db: PgPool) {
    let bucket = adopted(&db).await;
    pages_of_orphans(&bucket, 3);
    let bounded = Policy { max_pages: 2, max_deletes: 10_000, max_orphan_ratio: 1.0, ..policy() };

    let first = sweep(&db, &bucket, &bounded).await;
    let second = sweep(&db, &bucket, &bounded).await;

    assert_eq!((first.pages, first.reclaimed, first.stopped), (2, 2_000, Some(Stopped::Pages)));
    assert_eq!((second.listed, second.reclaimed), (1_001, 1_000));
    assert_eq!(bucket.deleted().len(), 3_000);
}

#[sqlx::test(migrations = "../../migrations")]
async fn run_without_time_begins_no_page(db: PgPool) {
    let bucket = adopted(&db).await;
    let over = TimeLeft::lasting(Duration::ZERO);
    let report = runtime::sweeper::run(&db, &bucket, &policy(), &Order::Sweep, over).await.unwrap();
    assert_eq!((report.pages, report.stopped), (0, Some(Stopped::Time)));
}

#[sqlx::test(migrations = "../../migrations")]
async fn object_that_landed_late_is_found_by_the_second_look(db: PgPool) {
    let bucket = adopted(&db).await;
    let eager = Policy { late: DAY, ..policy() };
    assert_eq!(sweep(&db, &bucket, &eager).await.laps_finished, ["FRESH", "LATE"]);
    let late = orphan(&bucket, "landed late", OLD);
    assert_eq!(sweep(&db, &bucket, &eager).await.orphans, 0, "its hour was swept");

    let a_day_later = Policy { late: Duration::ZERO, ..eager };
    let report = sweep(&db, &bucket, &a_day_later).await;

    assert_eq!(report.reclaimed, 1);
    assert_eq!(bucket.deleted(), [late]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn dry_run_moves_no_mark_of_the_real_one(db: PgPool) {
    let bucket = adopted(&db).await;
    let orphan = orphan(&bucket, "orphan", OLD);
    for _ in 0..2 {
        sweep(&db, &bucket, &dry()).await;
    }
    assert_eq!(sweep(&db, &bucket, &policy()).await.reclaimed, 1);
    assert_eq!(bucket.deleted(), [orphan]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn audit_looks_at_everything_in_as_many_runs_as_it_takes(db: PgPool) {
    let bucket = adopted(&db).await;
    sweep(&db, &bucket, &policy()).await;
    pages_of_orphans(&bucket, 3);
    let bounded = Policy { max_pages: 4, max_deletes: 10_000, max_orphan_ratio: 1.0, ..policy() };
    assert_eq!(sweep(&db, &bucket, &bounded).await.orphans, 0, "all of it lies before the mark");

    let started = order(&db, &bucket, &bounded, &audit(false)).await.unwrap();
    let again = order(&db, &bucket, &bounded, &audit(false)).await.unwrap();

    assert_eq!((started.audit_started, started.stopped), (Some(true), Some(Stopped::Pages)));
    assert_eq!((started.orphans, again.orphans), (2_000, 1_000));
    assert_eq!(again.audit_started, Some(false), "the first one was not through");
    assert_eq!(again.laps_finished, ["FRESH", "LATE", "AUDIT"]);
    assert_eq!(bucket.deleted().len(), 3_000);
}

#[sqlx::test(migrations = "../../migrations")]
async fn sweepers_at_the_same_moment_delete_each_orphan_once(db: PgPool) {
    let bucket = adopted(&db).await;
    pages_of_orphans(&bucket, 2);
    let policy = Policy { max_deletes: 10_000, max_orphan_ratio: 1.0, ..policy() };

    let runs = futures::future::join_all((0..4).map(|_| sweep(&db, &bucket, &policy))).await;

    assert_eq!(bucket.deleted().len(), 2_000);
    assert!(runs.iter().any(|run| run.laps_finished.contains(&"FRESH")), "{runs:?}");
    assert_eq!(sweep(&db, &bucket, &policy).await.orphans, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn mark_never_moves_back(db: PgPool) {
    let bucket = adopted(&db).await;
    sweep(&db, &bucket, &policy()).await;
    let patient = Policy { grace: DAY, ..policy() };
    sweep(&db, &bucket, &patient).await;
    let mark: String =
        sqlx::query_scalar("select swept_from from sweep_lap where lap = 'FRESH' and not dry_run")
            .fetch_one(&db)
            .await
            .unwrap();
    assert!(mark > keys::hour(chrono::Utc::now() - 4 * HOUR), "{mark}");
}
