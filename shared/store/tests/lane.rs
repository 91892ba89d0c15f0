//! Lanes against a real PostgreSQL: who may take one, and what a holder that came too late can still do.

#![allow(clippy::unwrap_used, reason = "a test that can not go on has failed")]

use std::time::Duration;

use sqlx::PgPool;
use store::lane::{self, Kept, Lease, Taken};

const LEASE: Duration = Duration::from_mins(1);
const NEWS: &str = "news";

async fn declared(db: &PgPool) {
    lane::declare(db, &[NEWS.to_owned()]).await.unwrap();
}

async fn take(db: &PgPool) -> Option<Lease> {
    match lane::take(db, NEWS, LEASE).await.unwrap() {
        Taken::Ours(lease) => Some(lease),
        Taken::Held | Taken::BackingOff { .. } => None,
    }
}

async fn end_lease(db: &PgPool) {
    sqlx::query("update lane set lease_until = now() - interval '1 second'").execute(db).await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn lane_is_taken_by_exactly_one_of_eight_relays(db: PgPool) {
    declared(&db).await;

    let rivals: Vec<_> = (0..8)
        .map(|_| {
            let db = db.clone();
            tokio::spawn(async move { take(&db).await.is_some() })
        })
        .collect();

    let mut winners = 0;
    for rival in rivals {
        winners += usize::from(rival.await.unwrap());
    }
    assert_eq!(winners, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn lane_is_declared_once_whatever_it_is_doing(db: PgPool) {
    declared(&db).await;
    let lease = take(&db).await.unwrap();

    declared(&db).await;

    assert_eq!(lane::renew(&db, &lease, LEASE).await.unwrap(), Kept::Kept);
}

#[sqlx::test(migrations = "../../migrations")]
async fn lane_given_back_is_taken_at_once_and_one_held_is_not(db: PgPool) {
    declared(&db).await;
    let lease = take(&db).await.unwrap();
    assert!(take(&db).await.is_none());

    assert_eq!(lane::release(&db, lease).await.unwrap(), Kept::Kept);

    assert!(take(&db).await.is_some());
}

#[sqlx::test(migrations = "../../migrations")]
async fn lane_of_a_dead_holder_is_free_when_its_lease_ends(db: PgPool) {
    declared(&db).await;
    let dead = take(&db).await.unwrap();
    end_lease(&db).await;

    assert!(take(&db).await.is_some());
    assert_eq!(lane::renew(&db, &dead, LEASE).await.unwrap(), Kept::Lost);
}

#[sqlx::test(migrations = "../../migrations")]
async fn holder_that_came_too_late_writes_nothing_to_the_lane(db: PgPool) {
    declared(&db).await;
    let mut leases = Vec::new();
    for _ in 0..3 {
        leases.push(take(&db).await.unwrap());
        end_lease(&db).await;
    }
    let mut heir = take(&db).await.unwrap();
    let before = row(&db).await;

    assert_eq!(lane::recover(&db, &mut leases[0]).await.unwrap(), Kept::Lost);
    assert_eq!(lane::back_off(&db, leases.remove(0), LEASE, "late").await.unwrap(), Kept::Lost);
    assert_eq!(lane::release(&db, leases.remove(0)).await.unwrap(), Kept::Lost);
    assert_eq!(lane::renew(&db, &leases[0], LEASE).await.unwrap(), Kept::Lost);

    assert_eq!(row(&db).await, before);
    assert_eq!(lane::recover(&db, &mut heir).await.unwrap(), Kept::Kept);
}

#[sqlx::test(migrations = "../../migrations")]
async fn lane_in_trouble_waits_counts_and_recovers(db: PgPool) {
    declared(&db).await;
    let lease = take(&db).await.unwrap();
    assert_eq!(lease.failures(), 0);

    lane::back_off(&db, lease, LEASE, "RequestThrottled\0").await.unwrap();
    match lane::take(&db, NEWS, LEASE).await.unwrap() {
        Taken::BackingOff { wait, last_error } => {
            assert!(wait > LEASE / 2 && wait <= LEASE, "{wait:?}");
            assert_eq!(last_error, "RequestThrottled");
        }
        other => panic!("{other:?}"),
    }

    sqlx::query("update lane set retry_at = now()").execute(&db).await.unwrap();
    let mut probing = take(&db).await.unwrap();
    assert_eq!(probing.failures(), 1);

    lane::recover(&db, &mut probing).await.unwrap();
    lane::release(&db, probing).await.unwrap();
    assert_eq!(take(&db).await.unwrap().failures(), 0);
}

/// The lane as text, whatever columns it has.
async fn row(db: &PgPool) -> String {
    sqlx::query_scalar("select lane::text from lane").fetch_one(db).await.unwrap()
}
