//! One row of every kind in one batch, and the answer of the design to each message.

use std::time::Duration;

use domain::Answer::{
    Early, Exhausted, Expired, Held, Settled, Stale, Superseded, Suspect, Undecidable, Won,
};
use domain::{Answer, Identity, JobId, JobStatus};
use sqlx::PgPool;
use store::claim::{Answered, Asked, claim_batch, claim_suspect};
use store::enqueue::NewJob;
use store::job;
use testkit::jobs::{
    DESTINATION, LEASE, age, asked, claimed, dead_reason_of, end_lease, fence_of, new_job, put_in_state,
    queued, queued_job, redrive, row, state_of, wait,
};
use testkit::windows::{corrected, first_minute, opened};

async fn ask(db: &PgPool, asked: &[Asked]) -> Vec<Answered> {
    claim_batch(db, DESTINATION, asked, LEASE).await.unwrap()
}

async fn answer(db: &PgPool, id: &JobId, redrive_generation: i32) -> Answer {
    ask(db, &[Asked { job_id: id.clone(), redrive_generation }]).await.remove(0).answer
}

async fn in_state(db: &PgPool, status: JobStatus) -> JobId {
    let id = queued_job(db).await;
    put_in_state(db, &id, status).await;
    id
}

async fn early(db: &PgPool) -> JobId {
    let id = in_state(db, JobStatus::Retry).await;
    wait(db, &id, Duration::from_secs(100)).await;
    id
}

/// Tried once, and once was all it may.
async fn exhausted(db: &PgPool) -> JobId {
    let id = queued(db, &NewJob { max_attempts: 1, ..new_job("exhausted") }).await;
    let claim = claimed(db, &id).await.claim;
    let _ = job::release(db, &claim).await.unwrap();
    id
}

async fn expired(db: &PgPool) -> JobId {
    let max_age = Some(Duration::from_mins(10));
    let id = queued(db, &NewJob { max_age, ..new_job("expired") }).await;
    age(db, &id).await;
    id
}

async fn stale(db: &PgPool) -> JobId {
    let window = opened(db, first_minute()).await;
    let id = queued(db, &NewJob { window: Some(window.clone()), ..new_job("stale") }).await;
    corrected(db, &window).await;
    id
}

async fn redriven(db: &PgPool) -> JobId {
    let id = in_state(db, JobStatus::Dead).await;
    redrive(db, &id).await;
    id
}

async fn lease_ended(db: &PgPool) -> JobId {
    let id = in_state(db, JobStatus::Claimed).await;
    end_lease(db, &id).await;
    id
}

async fn elsewhere(db: &PgPool) -> JobId {
    queued(db, &NewJob { destination: "price".to_owned(), ..new_job("elsewhere") }).await
}

#[sqlx::test(migrations = "../../migrations")]
async fn every_kind_of_row_gets_its_answer_in_one_batch(db: PgPool) {
    let pending = queued_job(&db).await;
    let again = redriven(&db).await;
    let kinds = [
        (Identity::new("no such job").job_id(), 0, Undecidable),
        (elsewhere(&db).await, 0, Undecidable),
        (queued_job(&db).await, 1, Undecidable),
        (again.clone(), 0, Superseded),
        (in_state(&db, JobStatus::Succeeded).await, 0, Settled),
        (in_state(&db, JobStatus::Dead).await, 0, Settled),
        (in_state(&db, JobStatus::Claimed).await, 0, Held),
        (early(&db).await, 0, Early),
        (stale(&db).await, 0, Stale),
        (expired(&db).await, 0, Expired),
        (exhausted(&db).await, 0, Exhausted),
        (in_state(&db, JobStatus::Retry).await, 0, Suspect),
        (lease_ended(&db).await, 0, Suspect),
        (pending.clone(), 0, Won),
        (pending, 0, Held),
        (again, 1, Won),
    ];
    let asked: Vec<Asked> = kinds
        .iter()
        .map(|(id, generation, _)| Asked { job_id: id.clone(), redrive_generation: *generation })
        .collect();

    let answers = ask(&db, &asked).await;

    for ((answered, asked), (_, _, expected)) in answers.iter().zip(&asked).zip(&kinds) {
        assert_eq!(answered.answer, *expected, "{asked:?}");
        assert_eq!(answered.job.is_some(), *expected == Won, "{expected:?}");
        assert_eq!(answered.wait.is_some(), matches!(expected, Held | Early), "{expected:?}");
    }
    let given: Vec<Answer> = answers.iter().map(|answered| answered.answer).collect();
    assert!(Answer::ALL.iter().all(|answer| given.contains(answer)), "{given:?}");
}

/// The order of the design: with several reasons at once, the earlier answer is given.
#[sqlx::test(migrations = "../../migrations")]
async fn earlier_answer_goes_before_a_later_one(db: PgPool) {
    let window = opened(&db, first_minute()).await;
    let everything = NewJob {
        window: Some(window.clone()),
        max_age: Some(Duration::from_mins(10)),
        max_attempts: 1,
        ..new_job("everything at once")
    };
    let id = queued(&db, &everything).await;
    age(&db, &id).await;
    let claim = {
        // Claimed while it still may be, so that it is used up as well.
        sqlx::query("update job set max_age = null").execute(&db).await.unwrap();
        let claim = claimed(&db, &id).await.claim;
        sqlx::query("update job set max_age = interval '10 minutes'").execute(&db).await.unwrap();
        claim
    };
    corrected(&db, &window).await;

    assert_eq!(answer(&db, &id, 1).await, Undecidable);
    assert_eq!(answer(&db, &id, 0).await, Held);
    let _ = job::release(&db, &claim).await.unwrap();
    wait(&db, &id, Duration::from_secs(100)).await;
    assert_eq!(answer(&db, &id, 0).await, Early);
    wait(&db, &id, Duration::ZERO).await;
    assert_eq!(answer(&db, &id, 0).await, Stale);
    assert_eq!(answer(&db, &id, 0).await, Settled);
    // No redrive brings a stale job back; only the order of the answers matters here.
    sqlx::query("update job set redrive_generation = 1").execute(&db).await.unwrap();
    assert_eq!(answer(&db, &id, 0).await, Superseded);
}

#[sqlx::test(migrations = "../../migrations")]
async fn job_that_can_not_run_any_more_is_dead_for_its_reason(db: PgPool) {
    let kinds = [
        (stale(&db).await, "STALE"),
        (expired(&db).await, "EXPIRED"),
        (exhausted(&db).await, "ATTEMPTS_EXHAUSTED"),
    ];
    for (id, reason) in kinds {
        let (attempts, _) = fence_of(&db, &id).await;

        answer(&db, &id, 0).await;

        assert_eq!(state_of(&db, &id).await, JobStatus::Dead);
        assert_eq!(dead_reason_of(&db, &id).await.as_deref(), Some(reason));
        assert_eq!(fence_of(&db, &id).await.0, attempts, "{reason} is no attempt");
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn answer_that_is_no_move_leaves_every_column_as_it_was(db: PgPool) {
    let kinds = [
        (elsewhere(&db).await, 0),
        (redriven(&db).await, 0),
        (in_state(&db, JobStatus::Succeeded).await, 0),
        (in_state(&db, JobStatus::Dead).await, 0),
        (in_state(&db, JobStatus::Claimed).await, 0),
        (early(&db).await, 0),
        (in_state(&db, JobStatus::Retry).await, 0),
        (lease_ended(&db).await, 0),
        (queued_job(&db).await, 1),
    ];
    for (id, generation) in kinds {
        let before = row(&db, &id).await;
        let given = answer(&db, &id, generation).await;
        assert_eq!(row(&db, &id).await, before, "{given:?}");
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn wait_is_the_time_until_the_lease_ends_or_the_job_is_due(db: PgPool) {
    let about = |answered: &Answered, seconds| {
        let wait = answered.wait.unwrap();
        wait <= Duration::from_secs(seconds) && wait > Duration::from_secs(seconds - 5)
    };
    let held = in_state(&db, JobStatus::Claimed).await;
    let due_later = early(&db).await;
    let twice = queued_job(&db).await;
    let batch =
        [&held, &due_later, &twice, &twice].map(|id| Asked { job_id: id.clone(), redrive_generation: 0 });

    let answers = ask(&db, &batch).await;

    assert!(about(&answers[0], LEASE.as_secs()), "{:?}", answers[0]);
    assert!(about(&answers[1], 100), "{:?}", answers[1]);
    assert!(about(&answers[3], LEASE.as_secs()), "the twin waits for the winner: {:?}", answers[3]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn won_job_carries_what_its_handler_needs(db: PgPool) {
    let window = opened(&db, first_minute()).await;
    let new = NewJob {
        window: Some(window.clone()),
        trace_header: Some("Root=1-2-3".to_owned()),
        ..new_job("whole")
    };
    let id = queued(&db, &new).await;

    let job = ask(&db, &[asked(&db, &id).await]).await.remove(0).job.unwrap();

    assert_eq!(job.claim.job_id(), &id);
    assert_eq!((job.claim.attempt_count(), job.claim.redrive_generation()), (1, 0));
    assert_eq!((job.job_type, job.payload, job.max_attempts), (new.job_type, new.payload, 8));
    assert_eq!((job.window, job.trace_header, job.artifact_key), (Some(window), new.trace_header, None));
    assert_eq!(job.lease_until.signed_duration_since(job.enqueued_at).num_seconds(), 60);
}

#[sqlx::test(migrations = "../../migrations")]
async fn tried_job_is_claimed_alone_and_only_when_it_is_claimable(db: PgPool) {
    let claimable = [in_state(&db, JobStatus::Retry).await, lease_ended(&db).await, queued_job(&db).await];
    for id in claimable {
        let answered = claim_suspect(&db, DESTINATION, &asked(&db, &id).await, LEASE).await.unwrap();
        assert_eq!(answered.answer, Won);
    }
    for (id, expected) in [(early(&db).await, Early), (in_state(&db, JobStatus::Claimed).await, Held)] {
        let answered = claim_suspect(&db, DESTINATION, &asked(&db, &id).await, LEASE).await.unwrap();
        assert_eq!(answered.answer, expected);
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn each_job_of_a_batch_is_claimed_under_a_name_of_its_own(db: PgPool) {
    let batch = [asked(&db, &queued_job(&db).await).await, asked(&db, &queued_job(&db).await).await];

    let names: Vec<_> = ask(&db, &batch)
        .await
        .iter()
        .map(|answered| answered.job.as_ref().unwrap().claim.claimed_by())
        .collect();

    assert_ne!(names[0], names[1]);
}

/// Whatever somebody is doing to the row, its answer keeps the message: the outcome is not committed.
#[sqlx::test(migrations = "../../migrations")]
async fn row_that_is_locked_at_this_instant_is_held_whatever_the_snapshot_says(db: PgPool) {
    let finished = in_state(&db, JobStatus::Dead).await;
    let running = queued_job(&db).await;
    let claim = claimed(&db, &running).await.claim;
    let mut redriving = db.begin().await.unwrap();
    sqlx::query("select from job where job_id = $1 for update")
        .bind(finished.as_str())
        .execute(&mut *redriving)
        .await
        .unwrap();
    let mut completing = db.begin().await.unwrap();
    let _ = job::complete(&mut *completing, &claim).await.unwrap();

    let impatient = testkit::pools::crowd(&db, 1).await;
    for id in [&finished, &running] {
        let answered = ask(&impatient, &[asked(&db, id).await]).await.remove(0);
        assert_eq!((answered.answer, answered.wait), (Held, Some(Duration::from_secs(1))));
    }

    completing.commit().await.unwrap();
    redriving.rollback().await.unwrap();
    assert_eq!(answer(&db, &running, 0).await, Settled);
}
