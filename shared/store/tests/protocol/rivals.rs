//! Many at the same moment: one wins, nobody waits, nothing deadlocks.

use domain::{Answer, JobId};
use futures::future::{join_all, try_join};
use sqlx::PgPool;
use store::claim::{Answered, Asked, claim_batch, claim_suspect};
use testkit::jobs::{DESTINATION, LEASE, asked, fence_of, put_in_state, queued_job};
use testkit::pools::crowd;

fn winners(answers: &[Answered]) -> usize {
    answers.iter().filter(|answered| answered.answer == Answer::Won).count()
}

async fn jobs(db: &PgPool, count: usize) -> Vec<JobId> {
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(queued_job(db).await);
    }
    ids
}

#[sqlx::test(migrations = "../../migrations")]
async fn claim_is_won_by_exactly_one_of_eight_rivals(db: PgPool) {
    let crowd = crowd(&db, 8).await;
    for id in jobs(&db, 25).await {
        let batch = [asked(&db, &id).await];
        let rivals = (0..8).map(|_| claim_batch(&crowd, DESTINATION, &batch, LEASE));

        let answers: Vec<Answered> = join_all(rivals).await.into_iter().flat_map(Result::unwrap).collect();

        assert_eq!(winners(&answers), 1);
        let others = answers.iter().filter(|answered| answered.answer == Answer::Held).count();
        assert_eq!(others, 7, "{answers:?}");
        assert_eq!(fence_of(&db, &id).await.0, 1, "one claim, one attempt");
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn suspect_is_won_by_exactly_one_of_eight_rivals(db: PgPool) {
    let crowd = crowd(&db, 8).await;
    for id in jobs(&db, 25).await {
        put_in_state(&db, &id, domain::JobStatus::Retry).await;
        let asked = asked(&db, &id).await;
        let rivals = (0..8).map(|_| claim_suspect(&crowd, DESTINATION, &asked, LEASE));

        let answers: Vec<Answered> = join_all(rivals).await.into_iter().map(Result::unwrap).collect();

        assert_eq!(winners(&answers), 1);
        assert_eq!(fence_of(&db, &id).await.0, 2, "one claim, one attempt");
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn overlapping_batches_in_opposite_order_neither_deadlock_nor_both_win(db: PgPool) {
    let crowd = crowd(&db, 2).await;
    for _ in 0..20 {
        let forth: Vec<Asked> =
            jobs(&db, 50).await.into_iter().map(|job_id| Asked { job_id, redrive_generation: 0 }).collect();
        let back: Vec<Asked> = forth.iter().rev().cloned().collect();

        let (one, mut other) = try_join(
            claim_batch(&crowd, DESTINATION, &forth, LEASE),
            claim_batch(&crowd, DESTINATION, &back, LEASE),
        )
        .await
        .unwrap();

        other.reverse();
        for (one, other) in one.into_iter().zip(other) {
            assert_eq!(winners(&[one, other]), 1);
        }
    }
}

/// The same, with the first batch held open in the middle: the second passes over what is locked.
#[sqlx::test(migrations = "../../migrations")]
async fn batch_passes_over_what_another_has_locked(db: PgPool) {
    let ids = jobs(&db, 4).await;
    let asked = |ids: &[JobId]| -> Vec<Asked> {
        ids.iter().map(|id| Asked { job_id: id.clone(), redrive_generation: 0 }).collect()
    };
    let mut first = db.begin().await.unwrap();
    let locked = claim_batch(&mut *first, DESTINATION, &asked(&ids[..2]), LEASE).await.unwrap();
    assert_eq!(winners(&locked), 2);

    let answers = claim_batch(&crowd(&db, 1).await, DESTINATION, &asked(&ids), LEASE).await.unwrap();

    let given: Vec<Answer> = answers.iter().map(|answered| answered.answer).collect();
    assert_eq!(given, [Answer::Held, Answer::Held, Answer::Won, Answer::Won]);
    first.rollback().await.unwrap();
}
