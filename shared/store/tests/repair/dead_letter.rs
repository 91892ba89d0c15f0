//! Every state, generation and lease meets a message from a dead-letter queue.

use std::time::Duration;

use domain::{Identity, JobId, JobStatus, Transition};
use sqlx::PgPool;
use store::{
    claim::Asked,
    dead_letter::{Doubt, Policy, Verdict, decide},
};

use crate::fixtures::{DESTINATION, MAX_ATTEMPTS, events, job, job_in, order, put, read};

async fn verdict(db: &PgPool, job_id: &JobId, generation: i32, policy: Policy) -> Verdict {
    let asked = [Asked { job_id: job_id.clone(), redrive_generation: generation }];
    decide(db, DESTINATION, &asked, policy).await.unwrap()[0]
}

async fn set(db: &PgPool, job_id: &JobId, assignment: &'static str) {
    let statement = match assignment {
        "used up" => "update job set attempt_count = max_attempts where job_id = $1",
        "redriven once" => "update job set redrive_generation = 1 where job_id = $1",
        "without event" => "delete from outbox_event where job_id = $1",
        "not sent yet" => "update outbox_event set status = 'NEW', published_at = null where job_id = $1",
        other => panic!("{other}"),
    };
    sqlx::query(statement).bind(job_id.as_str()).execute(db).await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn job_in_every_state_is_returned_as_the_table_says(db: PgPool) {
    for from in JobStatus::ALL {
        let job_id = job_in(&db, from.as_str(), from).await;
        let before = read(&db, &job_id).await;

        let verdict = verdict(&db, &job_id, 0, Policy::Return).await;

        let (after, event) = (read(&db, &job_id).await, &events(&db, &job_id).await[0]);
        if let Ok(to) = from.after(Transition::Return) {
            assert_eq!(verdict, Verdict::Returned, "{from}");
            assert_eq!(after.status, to.as_str(), "{from}");
            assert_eq!(after.attempt_count, before.attempt_count + 1, "{from}");
            assert_eq!((event.status.as_str(), event.ring), ("NEW", 1), "{from}");
        } else {
            assert_eq!(verdict, Verdict::Settled, "{from}");
            assert_eq!((after, event.ring), (before, 0), "{from}");
        }
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn job_in_every_state_is_buried_by_the_policy_dead(db: PgPool) {
    for from in JobStatus::ALL {
        let job_id = job_in(&db, from.as_str(), from).await;
        let before = read(&db, &job_id).await;

        let verdict = verdict(&db, &job_id, 0, Policy::Dead).await;

        let after = read(&db, &job_id).await;
        if from.after(Transition::Bury).is_ok() {
            assert_eq!(verdict, Verdict::Buried, "{from}");
            assert_eq!(
                (after.status.as_str(), after.dead_reason.as_deref()),
                ("DEAD", Some("DLQ")),
                "{from}"
            );
            assert_eq!(after.attempt_count, before.attempt_count, "{from}");
        } else {
            assert_eq!((verdict, after), (Verdict::Settled, before), "{from}");
        }
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn job_without_attempts_left_is_buried(db: PgPool) {
    for from in [JobStatus::Claimed, JobStatus::Retry] {
        let job_id = job_in(&db, from.as_str(), from).await;
        set(&db, &job_id, "used up").await;

        assert_eq!(verdict(&db, &job_id, 0, Policy::Return).await, Verdict::Buried, "{from}");

        let after = read(&db, &job_id).await;
        assert_eq!(
            (after.dead_reason.as_deref(), after.attempt_count),
            (Some("DLQ"), MAX_ATTEMPTS),
            "{from}"
        );
        assert_eq!(events(&db, &job_id).await[0].status, "PUBLISHED", "{from}");
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn message_of_another_generation_moves_no_job_whatever_its_state(db: PgPool) {
    for from in JobStatus::ALL {
        let job_id = job_in(&db, from.as_str(), from).await;
        set(&db, &job_id, "redriven once").await;
        let before = read(&db, &job_id).await;

        for policy in [Policy::Return, Policy::Dead] {
            assert_eq!(verdict(&db, &job_id, 0, policy).await, Verdict::Superseded, "{from}");
            assert_eq!(
                verdict(&db, &job_id, 2, policy).await,
                Verdict::Undecidable(Doubt::FutureGeneration),
                "{from}"
            );
        }

        assert_eq!(read(&db, &job_id).await, before, "{from}");
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn job_under_a_live_lease_is_left_alone_until_the_lease_ends(db: PgPool) {
    let job_id = job(&db, "held").await;
    put(&db, &job_id, JobStatus::Claimed, 90.0).await;
    let before = read(&db, &job_id).await;

    for policy in [Policy::Return, Policy::Dead] {
        let Verdict::Held { wait: Some(wait) } = verdict(&db, &job_id, 0, policy).await else { panic!() };
        assert!(wait > Duration::from_mins(1) && wait <= Duration::from_secs(90), "{wait:?}");
    }

    assert_eq!(read(&db, &job_id).await, before);
    assert_eq!(events(&db, &job_id).await[0].ring, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn live_last_attempt_is_not_buried(db: PgPool) {
    let job_id = job(&db, "last attempt").await;
    put(&db, &job_id, JobStatus::Claimed, 90.0).await;
    set(&db, &job_id, "used up").await;

    assert!(matches!(verdict(&db, &job_id, 0, Policy::Return).await, Verdict::Held { .. }));

    assert_eq!(read(&db, &job_id).await.status, "CLAIMED");
}

#[sqlx::test(migrations = "../../migrations")]
async fn job_or_event_locked_by_somebody_is_looked_at_again_later(db: PgPool) {
    for locking in [
        "select from job where job_id = $1 for update",
        "select from outbox_event where job_id = $1 for update",
    ] {
        let job_id = job(&db, locking).await;
        let mut holder = db.begin().await.unwrap();
        sqlx::query(locking).bind(job_id.as_str()).execute(&mut *holder).await.unwrap();

        let locked = verdict(&db, &job_id, 0, Policy::Return).await;
        holder.rollback().await.unwrap();

        assert_eq!(locked, Verdict::Held { wait: None }, "{locking}");
        assert_eq!(read(&db, &job_id).await.status, "PENDING", "{locking}");
        assert_eq!(verdict(&db, &job_id, 0, Policy::Return).await, Verdict::Returned, "{locking}");
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn event_not_marked_yet_rings_again_so_that_a_frozen_relay_can_not_swallow_it(db: PgPool) {
    let job_id = job(&db, "frozen relay").await;
    set(&db, &job_id, "not sent yet").await;

    assert_eq!(verdict(&db, &job_id, 0, Policy::Return).await, Verdict::Returned);

    assert_eq!(events(&db, &job_id).await[0].ring, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn message_nobody_can_decide_says_why_and_moves_nothing(db: PgPool) {
    let unknown = Identity::new("news").text("item_id", "never enqueued").job_id();
    let known = job(&db, "known").await;
    let silent = job(&db, "silent").await;
    set(&db, &silent, "without event").await;

    let elsewhere = [Asked { job_id: known.clone(), redrive_generation: 0 }];
    let elsewhere = decide(&db, "price", &elsewhere, Policy::Return).await.unwrap()[0];

    assert_eq!(verdict(&db, &unknown, 0, Policy::Return).await, Verdict::Undecidable(Doubt::UnknownJob));
    assert_eq!(elsewhere, Verdict::Undecidable(Doubt::WrongDestination));
    assert_eq!(verdict(&db, &silent, 0, Policy::Return).await, Verdict::Undecidable(Doubt::NoEvent));
    for job_id in [known, silent] {
        assert_eq!(read(&db, &job_id).await.status, "PENDING");
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn verdicts_of_a_mixed_batch_come_in_the_order_asked(db: PgPool) {
    let done = job_in(&db, "done", JobStatus::Succeeded).await;
    let waiting = job(&db, "waiting").await;
    let asked = [(&waiting, 0), (&done, 0), (&waiting, 1), (&waiting, 0)]
        .map(|(job_id, redrive_generation)| Asked { job_id: job_id.clone(), redrive_generation });

    let verdicts = decide(&db, DESTINATION, &asked, Policy::Return).await.unwrap();

    let future = Verdict::Undecidable(Doubt::FutureGeneration);
    assert_eq!(verdicts, [Verdict::Returned, Verdict::Settled, future, Verdict::Returned]);
    assert_eq!(read(&db, &waiting).await.attempt_count, 1, "two copies of one message are one attempt");
    assert!(decide(&db, DESTINATION, &[], Policy::Return).await.unwrap().is_empty());
}

/// The redrive holds the row's lock when the statement starts, or commits before it: either way the old
/// message does not touch the new life.
#[sqlx::test(migrations = "../../migrations")]
async fn redrive_that_commits_after_the_receive_supersedes_the_message(db: PgPool) {
    let job_id = job_in(&db, "redriven", JobStatus::Dead).await;
    store::redrive::redrive(&db, &order(&[&job_id]), None).await.unwrap();

    for policy in [Policy::Return, Policy::Dead] {
        assert_eq!(verdict(&db, &job_id, 0, policy).await, Verdict::Superseded);
    }

    let after = read(&db, &job_id).await;
    assert_eq!((after.status.as_str(), after.attempt_count), ("PENDING", 0));
}

/// Not a fixed interleaving but many: whichever of the two comes first, the new life begins untouched.
#[sqlx::test(migrations = "../../migrations")]
async fn redrive_at_the_same_moment_begins_its_life_untouched(db: PgPool) {
    for nth in 0..60 {
        let policy = [Policy::Return, Policy::Dead][nth % 2];
        let job_id = job_in(&db, &nth.to_string(), JobStatus::Dead).await;
        let wanted = order(&[&job_id]);

        let (found, ()) = tokio::join!(verdict(&db, &job_id, 0, policy), async {
            store::redrive::redrive(&db, &wanted, None).await.unwrap();
        });

        let expected = [Verdict::Settled, Verdict::Superseded, Verdict::Held { wait: None }];
        assert!(expected.contains(&found), "{found:?}");
        let after = read(&db, &job_id).await;
        assert_eq!((after.status.as_str(), after.redrive_generation, after.attempt_count), ("PENDING", 1, 0));
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn late_mark_of_a_relay_never_swallows_the_ring(db: PgPool) {
    for nth in 0..60 {
        let job_id = job(&db, &nth.to_string()).await;
        set(&db, &job_id, "not sent yet").await;
        let mark = "update outbox_event set status = 'PUBLISHED', published_at = now()
                     where job_id = $1 and ring = 0 and published_at is null";

        let (found, ()) = tokio::join!(verdict(&db, &job_id, 0, Policy::Return), async {
            sqlx::query(mark).bind(job_id.as_str()).execute(&db).await.unwrap();
        });

        let (job, event) = (read(&db, &job_id).await, events(&db, &job_id).await.remove(0));
        let whole = match found {
            Verdict::Returned => ("RETRY", "NEW", 1),
            Verdict::Held { wait: None } => ("PENDING", "PUBLISHED", 0),
            other => panic!("{other:?}"),
        };
        assert_eq!((job.status.as_str(), event.status.as_str(), event.ring), whole);
    }
}
