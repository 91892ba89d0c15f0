//! Holds each statement to the table in `domain`: from every state it moves the row exactly where
//! `JobStatus::after` says, or leaves every column as it was.

use std::time::Duration;

use domain::{DeadReason, JobId, JobStatus, Transition};
use sqlx::PgPool;
use store::claim::{Claim, claim_suspect};
use store::job::{self, Moved, Retried};
use testkit::jobs::{
    DESTINATION, LEASE, asked, claimed, dead_reason_of, end_lease, fence_of, put_in_state, queued_job,
    redrive, row, state_of,
};

/// The moves out of CLAIMED.
#[derive(Clone, Copy, Debug)]
enum Leave {
    Complete,
    Retry,
    Release,
    Bury,
}

impl Leave {
    const ALL: [Self; 4] = [Self::Complete, Self::Retry, Self::Release, Self::Bury];

    fn transition(self) -> Transition {
        match self {
            Self::Complete => Transition::Complete,
            Self::Retry | Self::Release => Transition::Retry,
            Self::Bury => Transition::Bury,
        }
    }

    /// Makes the move; says whether it happened.
    async fn make(self, db: &PgPool, claim: &Claim) -> bool {
        let moved = match self {
            Self::Complete => job::complete(db, claim).await,
            Self::Release => job::release(db, claim).await,
            Self::Bury => job::bury(db, claim, &DeadReason::Handler("UNREADABLE"), "why").await,
            Self::Retry => {
                let retried = job::retry(db, claim, Duration::from_secs(2), "why").await.unwrap();
                return retried != Retried::Lost;
            }
        };
        moved.unwrap() == Moved::Done
    }
}

/// Brings a job that `claim` holds into `status`, so that the claim is a former one (but for CLAIMED).
async fn move_on(db: &PgPool, id: &JobId, claim: &Claim, status: JobStatus) {
    let moved = match status {
        JobStatus::Claimed => return,
        JobStatus::Retry => job::release(db, claim).await,
        JobStatus::Succeeded => job::complete(db, claim).await,
        JobStatus::Pending | JobStatus::Dead => {
            job::bury(db, claim, &DeadReason::Handler("UNREADABLE"), "why").await
        }
    };
    assert_eq!(moved.unwrap(), Moved::Done);
    if status == JobStatus::Pending {
        redrive(db, id).await;
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn claim_moves_every_state_as_the_table_says(db: PgPool) {
    for from in JobStatus::ALL {
        let id = queued_job(&db).await;
        put_in_state(&db, &id, from).await;
        if from == JobStatus::Claimed {
            end_lease(&db, &id).await;
        }
        let before = fence_of(&db, &id).await;

        claim_suspect(&db, DESTINATION, &asked(&db, &id).await, LEASE).await.unwrap();

        let expected = from.after(Transition::Claim);
        assert_eq!(state_of(&db, &id).await, *expected.as_ref().unwrap_or(&from), "claim from {from}");
        assert_eq!(fence_of(&db, &id).await != before, expected.is_ok(), "fence after claim from {from}");
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn claim_leaves_a_live_lease_alone(db: PgPool) {
    let id = queued_job(&db).await;
    put_in_state(&db, &id, JobStatus::Claimed).await;
    let before = row(&db, &id).await;

    claim_suspect(&db, DESTINATION, &asked(&db, &id).await, LEASE).await.unwrap();

    assert_eq!(row(&db, &id).await, before);
}

#[sqlx::test(migrations = "../../migrations")]
async fn move_out_of_claimed_happens_from_no_other_state(db: PgPool) {
    for leave in Leave::ALL {
        for from in JobStatus::ALL {
            let id = queued_job(&db).await;
            let claim = claimed(&db, &id).await.claim;
            move_on(&db, &id, &claim, from).await;
            let before = row(&db, &id).await;

            let happened = leave.make(&db, &claim).await;

            let holds = from == JobStatus::Claimed;
            assert_eq!(happened, holds, "{leave:?} from {from}");
            if holds {
                assert_eq!(state_of(&db, &id).await, from.after(leave.transition()).unwrap(), "{leave:?}");
            } else {
                assert_eq!(row(&db, &id).await, before, "{leave:?} from {from}");
            }
        }
    }
}

/// Each guard on its own: the row differs from the claim in that one column.
#[sqlx::test(migrations = "../../migrations")]
async fn each_guard_alone_refuses_a_former_claim(db: PgPool) {
    let differences = [
        "update job set claimed_by = gen_random_uuid() where job_id = $1",
        "update job set attempt_count = attempt_count + 1 where job_id = $1",
        "update job set redrive_generation = redrive_generation + 1 where job_id = $1",
    ];
    for leave in Leave::ALL {
        for difference in differences {
            let id = queued_job(&db).await;
            let claim = claimed(&db, &id).await.claim;
            sqlx::query(difference).bind(id.as_str()).execute(&db).await.unwrap();
            let before = row(&db, &id).await;

            assert!(!leave.make(&db, &claim).await, "{leave:?} after {difference}");

            assert_eq!(row(&db, &id).await, before, "{leave:?} after {difference}");
        }
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn complete_after_lease_was_taken_over_changes_nothing(db: PgPool) {
    let id = queued_job(&db).await;
    let stale = claimed(&db, &id).await.claim;
    end_lease(&db, &id).await;
    let fresh = claimed(&db, &id).await.claim;
    assert_eq!(fresh.attempt_count(), 2);

    assert_eq!(job::complete(&db, &stale).await.unwrap(), Moved::Lost);
    assert_eq!(job::complete(&db, &fresh).await.unwrap(), Moved::Done);
}

#[sqlx::test(migrations = "../../migrations")]
async fn lease_that_ran_out_without_a_successor_still_completes(db: PgPool) {
    let id = queued_job(&db).await;
    let claim = claimed(&db, &id).await.claim;
    end_lease(&db, &id).await;

    assert_eq!(job::complete(&db, &claim).await.unwrap(), Moved::Done);
}

#[sqlx::test(migrations = "../../migrations")]
async fn failure_of_the_last_allowed_attempt_is_dead_at_once(db: PgPool) {
    let id = queued_job(&db).await;
    let delay = Duration::from_secs(2);
    for _ in 1..8 {
        let claim = claimed(&db, &id).await.claim;
        assert!(matches!(job::retry(&db, &claim, delay, "why").await.unwrap(), Retried::Waiting { .. }));
        testkit::jobs::wait(&db, &id, Duration::ZERO).await;
    }

    let last = claimed(&db, &id).await.claim;
    assert_eq!(job::retry(&db, &last, delay, "why").await.unwrap(), Retried::Dead);

    assert_eq!(state_of(&db, &id).await, JobStatus::Dead);
    assert_eq!(dead_reason_of(&db, &id).await.as_deref(), Some("ATTEMPTS_EXHAUSTED"));
}

#[sqlx::test(migrations = "../../migrations")]
async fn retry_waits_by_the_database_clock_and_answers_that_wait(db: PgPool) {
    let id = queued_job(&db).await;
    let claim = claimed(&db, &id).await.claim;

    let retried = job::retry(&db, &claim, Duration::from_mins(5), "why").await.unwrap();

    let Retried::Waiting { wait } = retried else { panic!("{retried:?}") };
    assert!(wait <= Duration::from_mins(5) && wait > Duration::from_secs(295), "{wait:?}");
    let due: f64 = sqlx::query_scalar("select extract(epoch from next_attempt_at - now())::float8 from job")
        .fetch_one(&db)
        .await
        .unwrap();
    assert!((due - wait.as_secs_f64()).abs() < 5.0, "{due}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn released_job_is_due_at_once_and_keeps_its_attempt(db: PgPool) {
    let id = queued_job(&db).await;
    let claim = claimed(&db, &id).await.claim;

    assert_eq!(job::release(&db, &claim).await.unwrap(), Moved::Done);

    assert_eq!(claimed(&db, &id).await.claim.attempt_count(), 2);
}

#[sqlx::test(migrations = "../../migrations")]
async fn error_text_that_postgresql_refuses_does_not_keep_the_claim_open(db: PgPool) {
    let id = queued_job(&db).await;
    let claim = claimed(&db, &id).await.claim;

    let text = format!("nul \0 and {}", "ü".repeat(100_000));
    assert!(matches!(job::retry(&db, &claim, Duration::ZERO, &text).await.unwrap(), Retried::Waiting { .. }));

    assert!(row(&db, &id).await["last_error"].as_str().unwrap().starts_with("nul  and ü"));
}
