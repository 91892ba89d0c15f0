//! The other direction: rows whose object is missing or differs are reported with the jobs they endanger.

use runtime::sweeper::request::Person;
use runtime::sweeper::{Order, Policy};
use sqlx::PgPool;
use store::enqueue::NewJob;
use store::sweep::{Kind, gauges};
use testkit::jobs::{new_job, queued};

use crate::fixtures::{HOUR, OLD, adopted, count, key, live, order, policy, state, sweep};

fn audit() -> Order {
    let person = Person { who: "ann".to_owned(), why: "a restore".to_owned() };
    Order::Audit { checksums: true, person }
}

#[sqlx::test(migrations = "../../migrations")]
async fn row_without_an_object_is_reported_with_its_jobs_and_not_mended(db: PgPool) {
    let bucket = adopted(&db).await;
    let lost = key("lost", OLD);
    live(&db, &bucket, &lost).await;
    let job = queued(&db, &NewJob { artifact_key: Some(lost.clone()), ..new_job("endangered") }).await;
    sqlx::query("update artifact set created_at = now() - interval '1 hour'").execute(&db).await.unwrap();
    bucket.lose(&lost);

    let report = sweep(&db, &bucket, &policy()).await;

    assert_eq!((report.missing, report.damages[0].kind), (1, Kind::Missing));
    assert_eq!(report.damages[0].key, lost);
    assert_eq!(report.endangered_jobs[0].job_id, job.as_str());
    assert_eq!(gauges(&db).await.unwrap().artifacts_missing, 1);
    assert_eq!(state(&db, &lost).await.as_deref(), Some("REFERENCED"));
    assert_eq!(count(&db, "select count(*) from job where status = 'PENDING'").await, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn size_and_checksum_that_differ_are_reported(db: PgPool) {
    let bucket = adopted(&db).await;
    let [longer, other] = ["longer", "other"].map(|name| key(name, OLD));
    live(&db, &bucket, &longer).await;
    live(&db, &bucket, &other).await;
    bucket.put(&longer, b"x", OLD);
    bucket.put(&other, "x".repeat(other.len()).as_bytes(), OLD);

    let swept = sweep(&db, &bucket, &policy()).await;
    let audited = order(&db, &bucket, &policy(), &audit()).await.unwrap();

    assert_eq!((swept.differing, swept.damages[0].kind), (1, Kind::Size));
    let mut kinds: Vec<_> = audited.damages.iter().map(|damage| (damage.key.as_str(), damage.kind)).collect();
    kinds.sort_unstable_by_key(|(key, _)| *key);
    assert_eq!(kinds, [(longer.as_str(), Kind::Size), (other.as_str(), Kind::Checksum)]);
    assert_eq!(gauges(&db).await.unwrap().artifacts_differing, 2);
    assert_eq!(bucket.deleted(), Vec::<String>::new());
}

#[sqlx::test(migrations = "../../migrations")]
async fn object_that_came_back_takes_its_report_back(db: PgPool) {
    let bucket = adopted(&db).await;
    let lost = key("lost", OLD);
    live(&db, &bucket, &lost).await;
    sqlx::query("update artifact set created_at = now() - interval '1 hour'").execute(&db).await.unwrap();
    bucket.lose(&lost);
    sweep(&db, &bucket, &policy()).await;

    bucket.put(&lost, lost.as_bytes(), OLD);
    order(&db, &bucket, &policy(), &audit()).await.unwrap();

    assert_eq!(gauges(&db).await.unwrap().artifacts_missing, 0);
}

/// Its object may have been written after the page was listed.
#[sqlx::test(migrations = "../../migrations")]
async fn row_that_is_younger_than_the_listing_is_not_reported(db: PgPool) {
    let bucket = adopted(&db).await;
    let key = key("committed meanwhile", OLD);
    live(&db, &bucket, &key).await;
    sqlx::query("update artifact set created_at = now() + interval '1 hour'").execute(&db).await.unwrap();
    bucket.lose(&key);
    assert_eq!(sweep(&db, &bucket, &policy()).await.missing, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn bucket_that_was_emptied_is_looked_at_in_pieces(db: PgPool) {
    let bucket = adopted(&db).await;
    sqlx::query(
        "insert into artifact (key, state, sha256, size_bytes, owner, created_at)
         select $1 || lpad(n::text, 5, '0'), 'REFERENCED', repeat('a', 64), 1, 'window', now() - interval '1 day'
           from generate_series(1, 4500) as n",
    )
    .bind(key("lost-", OLD + HOUR))
    .execute(&db)
    .await
    .unwrap();

    let report = sweep(&db, &bucket, &Policy { max_pages: 50, ..policy() }).await;

    assert_eq!((report.missing, report.listed), (4_500, 1));
    assert_eq!(gauges(&db).await.unwrap().artifacts_missing, 4_500);
}
