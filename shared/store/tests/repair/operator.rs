//! Dismissing and looking.

use domain::{Identity, JobStatus};
use sqlx::PgPool;
use store::{
    dismiss::{Outcome, dismiss},
    inspect,
    operator_action::{Filter, Order, Selection},
    redrive::redrive,
};

use crate::fixtures::{job_in, order, read, tie_to_window};

#[sqlx::test(migrations = "../../migrations")]
async fn job_in_every_state_is_dismissed_exactly_if_it_is_dead(db: PgPool) {
    for status in JobStatus::ALL {
        let job_id = job_in(&db, status.as_str(), status).await;
        let dead = status == JobStatus::Dead;
        let expected = if dead { Outcome::Dismissed } else { Outcome::NotDead(status) };

        let dry = Order { dry_run: true, ..order(&[&job_id]) };
        assert_eq!(dismiss(&db, &dry).await.unwrap().outcomes, [(job_id.to_string(), expected)]);
        assert!(!read(&db, &job_id).await.dismissed, "{status}");

        assert_eq!(
            dismiss(&db, &order(&[&job_id])).await.unwrap().outcomes,
            [(job_id.to_string(), expected)]
        );
        assert_eq!(read(&db, &job_id).await.dismissed, dead, "{status}");
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn dismissed_job_is_found_by_no_filter_but_redriven_by_id(db: PgPool) {
    let job_id = job_in(&db, "given up", JobStatus::Dead).await;
    dismiss(&db, &order(&[&job_id])).await.unwrap();
    let again = dismiss(&db, &order(&[&job_id])).await.unwrap();
    assert_eq!(again.outcomes, [(job_id.to_string(), Outcome::Already)]);
    let all = Selection::Filter { filter: Filter::default(), limit: 10 };

    let by_filter = redrive(&db, &Order { selection: all, ..order(&[]) }, None).await.unwrap();
    redrive(&db, &order(&[&job_id]), None).await.unwrap();

    assert!(by_filter.outcomes.is_empty());
    let after = read(&db, &job_id).await;
    assert_eq!((after.status.as_str(), after.dismissed), ("PENDING", false));
}

#[sqlx::test(migrations = "../../migrations")]
async fn inspection_shows_the_job_its_window_its_events_and_who_touched_it(db: PgPool) {
    let job_id = job_in(&db, "looked at", JobStatus::Dead).await;
    tie_to_window(&db, &job_id, 2).await;
    redrive(&db, &order(&[&job_id]), None).await.unwrap();

    let seen = inspect::job(&db, &job_id).await.unwrap().unwrap();

    assert_eq!(seen["job"]["status"], "PENDING");
    assert_eq!(seen["window"]["generation"], 2);
    assert_eq!(seen["events"][1]["event_id"], format!("news:{job_id}:1"));
    assert_eq!(seen["actions"][0]["who"], "ada");
    let unknown = Identity::new("news").text("item_id", "unknown").job_id();
    assert_eq!(inspect::job(&db, &unknown).await.unwrap(), None);
}
