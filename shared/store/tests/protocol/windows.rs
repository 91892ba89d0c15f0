//! Windows: one insert, corrections by compare-and-set, and the lock that holds them off.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgPool;
use store::window::{
    Corrected, Lock, NewWindow, Opened, Seen, WindowRef, correct, lock_current, open, read_many,
};
use testkit::windows::{corrected, digest, empty, first_minute, opened};

async fn seen(db: &PgPool, start: DateTime<Utc>) -> Seen {
    read_many(db, "us8", &[start]).await.unwrap().remove(&start).unwrap()
}

#[sqlx::test(migrations = "../../migrations")]
async fn window_is_opened_once(db: PgPool) {
    let content = digest('a');
    let window = NewWindow { backfilled: true, ..empty(first_minute(), &content) };

    assert_eq!(open(&db, &window).await.unwrap(), Opened::Opened);
    assert_eq!(open(&db, &empty(first_minute(), &digest('b'))).await.unwrap(), Opened::Exists);

    let seen = seen(&db, first_minute()).await;
    assert_eq!((seen.generation, seen.content_digest, seen.backfilled), (1, content, true));
}

#[sqlx::test(migrations = "../../migrations")]
async fn correction_from_an_older_generation_changes_nothing(db: PgPool) {
    let window = opened(&db, first_minute()).await;
    let content = digest('c');
    let new = empty(first_minute(), &content);

    assert_eq!(correct(&db, &new, 1).await.unwrap(), Corrected::Corrected { generation: 2 });
    assert_eq!(correct(&db, &empty(first_minute(), &digest('d')), 1).await.unwrap(), Corrected::Moved);

    assert_eq!(seen(&db, window.start).await.content_digest, content);
}

#[sqlx::test(migrations = "../../migrations")]
async fn only_windows_that_have_a_row_are_seen(db: PgPool) {
    let minute = |n| first_minute() + TimeDelta::minutes(n);
    opened(&db, minute(1)).await;

    let asked = [minute(2), minute(0), minute(1), minute(0)];

    let seen = read_many(&db, "us8", &asked).await.unwrap();
    assert_eq!(seen.into_keys().collect::<Vec<_>>(), [minute(1)]);
    assert!(read_many(&db, "other", &asked).await.unwrap().is_empty());
}

#[sqlx::test(migrations = "../../migrations")]
async fn only_the_exact_generation_is_current(db: PgPool) {
    let first = opened(&db, first_minute()).await;
    let second = corrected(&db, &first).await;

    assert_eq!(lock_current(&db, &first).await.unwrap(), Lock::Moved);
    assert_eq!(lock_current(&db, &second).await.unwrap(), Lock::Current);
    let nowhere = WindowRef { dataset: "other".to_owned(), ..second };
    assert_eq!(lock_current(&db, &nowhere).await.unwrap(), Lock::Moved);
}

/// The lock excludes exactly the correction: not the jobs of the same window, and not rows that refer
/// to it.
#[sqlx::test(migrations = "../../migrations")]
async fn lock_holds_off_a_correction_and_nothing_else(db: PgPool) {
    let window = opened(&db, first_minute()).await;
    let mut holder = db.begin().await.unwrap();
    assert_eq!(lock_current(&mut *holder, &window).await.unwrap(), Lock::Current);

    let mut other = db.begin().await.unwrap();
    sqlx::query("set local lock_timeout = '50ms'").execute(&mut *other).await.unwrap();
    assert_eq!(lock_current(&mut *other, &window).await.unwrap(), Lock::Current);
    sqlx::query(
        "insert into price_bar (dataset, symbol, window_start, open, high, low, close, volume)
         values ($1, 'AAPL', $2, 1, 1, 1, 1, 0)",
    )
    .bind(&window.dataset)
    .bind(window.start)
    .execute(&mut *other)
    .await
    .unwrap();
    other.rollback().await.unwrap();

    let mut correction = db.begin().await.unwrap();
    sqlx::query("set local lock_timeout = '50ms'").execute(&mut *correction).await.unwrap();
    let error = correct(&mut *correction, &empty(window.start, &digest('b')), 1).await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    correction.rollback().await.unwrap();
    holder.commit().await.unwrap();
    corrected(&db, &window).await;
}
