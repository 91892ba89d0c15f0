//! What happens between `prepare` and `apply`: another takes over, or the window moves on.

use domain::JobStatus;
use sqlx::PgPool;
use store::enqueue::NewJob;
use testkit::inbox::body;
use testkit::jobs::{dead_reason_of, fence_of, new_job, queued, queued_job, state_of};
use testkit::windows::{first_minute, opened};

use crate::script::{Act, Bench};

#[sqlx::test(migrations = "../../migrations")]
async fn lost_claim_rolls_its_effects_back_and_keeps_the_message(db: PgPool) {
    let id = queued_job(&db).await;
    let neighbour = queued_job(&db).await;
    let bench = Bench::new(&db, &[(&id, Act::TakenOver)]).await;

    let kept = bench.consume(&[("lost", body(&id, 0)), ("fine", body(&neighbour, 0))]).await;

    assert_eq!(kept, ["lost"]);
    assert_eq!(bench.effects_of(&id).await, 0);
    assert_eq!(state_of(&db, &id).await, JobStatus::Claimed, "the successor holds it");
    assert_eq!(fence_of(&db, &id).await.0, 2);
    assert_eq!(bench.effects_of(&neighbour).await, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn correction_between_claim_and_apply_leaves_no_effect(db: PgPool) {
    let window = opened(&db, first_minute()).await;
    let id = queued(&db, &NewJob { window: Some(window.clone()), ..new_job("corrected") }).await;
    let bench = Bench::new(&db, &[(&id, Act::Corrected(window))]).await;

    let kept = bench.consume(&[("m", body(&id, 0))]).await;

    assert_eq!(kept, Vec::<String>::new());
    assert_eq!(bench.effects_of(&id).await, 0);
    assert_eq!(dead_reason_of(&db, &id).await.as_deref(), Some("STALE"));
}

#[sqlx::test(migrations = "../../migrations")]
async fn job_of_a_current_window_has_its_effect(db: PgPool) {
    let window = opened(&db, first_minute()).await;
    let id = queued(&db, &NewJob { window: Some(window), ..new_job("current") }).await;
    let bench = Bench::new(&db, &[]).await;

    bench.consume(&[("m", body(&id, 0))]).await;

    assert_eq!(bench.effects_of(&id).await, 1);
    assert_eq!(state_of(&db, &id).await, JobStatus::Succeeded);
}

/// Nobody can tell a commit that failed from one whose answer was lost, so neither is success.
#[sqlx::test(migrations = "../../migrations")]
async fn commit_that_is_not_confirmed_keeps_the_message_until_the_row_knows(db: PgPool) {
    let id = queued_job(&db).await;
    let neighbour = queued_job(&db).await;
    let bench = Bench::new(&db, &[(&id, Act::CommitFails)]).await;

    let kept = bench.consume(&[("m", body(&id, 0)), ("fine", body(&neighbour, 0))]).await;

    assert_eq!(kept, ["m"]);
    assert_eq!(bench.visibility_of("m"), None, "the queue's own timeout is longer than the lease");
    assert_eq!(bench.effects_of(&id).await, 0);
    assert_eq!(state_of(&db, &id).await, JobStatus::Claimed);
}
