//! Holds the moves that nobody's claim makes to the table in `domain`: from every state each statement
//! moves the row where `JobStatus::after` says, or leaves every column as it was. A live lease and a
//! later generation stop all of them but the operator's.

use std::time::Duration;

use domain::{JobId, JobStatus, Transition, event_id};
use sqlx::PgPool;
use store::claim::{Asked, claim_suspect};
use store::dead_letter::{Policy, decide};
use store::dismiss::dismiss;
use store::operator_action::{Order, Selection};
use store::outbox::{self, Key, Unsendable};
use store::reconcile::{self, Pace};
use testkit::jobs::{DESTINATION, LEASE, put_in_state, queued_job, redrive, row, state_of};

/// Who moves a job without holding it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Move {
    /// A claim that finds it too old.
    Expire,
    /// A claim that finds no attempt left.
    Exhaust,
    /// A relay whose queue will never take the event.
    Refuse,
    /// The dead-letter function, by either policy.
    Return,
    DeadLetter,
    /// The reconciler.
    Ring,
    /// An operator.
    Redrive,
    Dismiss,
}

impl Move {
    const ALL: [Self; 8] = [
        Self::Expire,
        Self::Exhaust,
        Self::Refuse,
        Self::Return,
        Self::DeadLetter,
        Self::Ring,
        Self::Redrive,
        Self::Dismiss,
    ];

    fn transition(self) -> Transition {
        match self {
            Self::Expire | Self::Exhaust | Self::Refuse | Self::DeadLetter => Transition::Bury,
            Self::Return => Transition::Return,
            Self::Ring => Transition::Ring,
            Self::Redrive => Transition::Redrive,
            Self::Dismiss => Transition::Dismiss,
        }
    }

    /// What the move needs beside the job's state.
    async fn prepare(self, db: &PgPool, id: &JobId) {
        match self {
            Self::Expire => run(db, "update job set max_age = interval '1 hour' where job_id = $1", id).await,
            Self::Exhaust => {
                run(db, "update job set attempt_count = max_attempts where job_id = $1", id).await;
            }
            Self::Ring | Self::Return | Self::DeadLetter => publish(db, id).await,
            Self::Refuse | Self::Redrive | Self::Dismiss => {}
        }
    }

    /// Makes the move for a message or event of `generation`.
    async fn make(self, db: &PgPool, id: &JobId, generation: i32) {
        let asked = Asked { job_id: id.clone(), redrive_generation: generation };
        match self {
            Self::Expire | Self::Exhaust => {
                claim_suspect(db, DESTINATION, &asked, LEASE).await.unwrap();
            }
            Self::Refuse => {
                let key = Key { event_id: event_id(DESTINATION, id, generation), ring: 0 };
                let refused = Unsendable { key, reason: "REFUSED", error: "why".to_owned() };
                outbox::bury(db, &[refused]).await.unwrap();
            }
            Self::Return => drop(decide(db, DESTINATION, &[asked], Policy::Return).await.unwrap()),
            Self::DeadLetter => drop(decide(db, DESTINATION, &[asked], Policy::Dead).await.unwrap()),
            Self::Ring => drop(reconcile::ring(db, &Pace::default()).await.unwrap()),
            Self::Redrive => drop(store::redrive::redrive(db, &order(id), None).await.unwrap()),
            Self::Dismiss => drop(dismiss(db, &order(id)).await.unwrap()),
        }
    }
}

fn order(id: &JobId) -> Order {
    let selection = Selection::Ids(vec![id.clone()]);
    Order { selection, dry_run: false, who: "ada".to_owned(), why: "a test".to_owned() }
}

async fn run(db: &PgPool, statement: &'static str, id: &JobId) {
    sqlx::query(statement).bind(id.as_str()).execute(db).await.unwrap();
}

async fn publish(db: &PgPool, id: &JobId) {
    let sent = "update outbox_event set status = 'PUBLISHED', published_at = now() where job_id = $1";
    run(db, sent, id).await;
}

/// Lets a day go by for the job and its events.
async fn a_day_passes(db: &PgPool, id: &JobId) {
    let job = "update job set next_attempt_at = next_attempt_at - interval '1 day',
                      lease_until = lease_until - interval '1 day',
                      enqueued_at = enqueued_at - interval '1 day' where job_id = $1";
    run(db, job, id).await;
    run(db, "update outbox_event set published_at = published_at - interval '1 day' where job_id = $1", id)
        .await;
}

/// A job in `status` that `step` could move.
async fn job_for(db: &PgPool, step: Move, status: JobStatus) -> JobId {
    let id = queued_job(db).await;
    put_in_state(db, &id, status).await;
    step.prepare(db, &id).await;
    id
}

#[sqlx::test(migrations = "../../migrations")]
async fn move_without_a_claim_goes_where_the_table_says_from_every_state(db: PgPool) {
    for step in Move::ALL {
        for from in JobStatus::ALL {
            let id = job_for(&db, step, from).await;
            a_day_passes(&db, &id).await;
            let before = row(&db, &id).await;

            step.make(&db, &id, 0).await;

            match from.after(step.transition()) {
                Ok(to) => assert_eq!(state_of(&db, &id).await, to, "{step:?} from {from}"),
                Err(_) => assert_eq!(row(&db, &id).await, before, "{step:?} from {from}"),
            }
            assert_eq!(
                row(&db, &id).await != before,
                from.after(step.transition()).is_ok(),
                "{step:?} from {from}"
            );
        }
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn live_lease_stops_every_move_but_its_holders(db: PgPool) {
    for step in Move::ALL {
        let id = job_for(&db, step, JobStatus::Claimed).await;
        a_day_passes(&db, &id).await;
        run(&db, "update job set lease_until = now() + interval '1 hour' where job_id = $1", &id).await;
        let before = row(&db, &id).await;

        step.make(&db, &id, 0).await;

        assert_eq!(row(&db, &id).await, before, "{step:?}");
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn message_or_event_of_an_older_generation_moves_nothing(db: PgPool) {
    for step in [Move::Expire, Move::Exhaust, Move::Refuse, Move::Return, Move::DeadLetter] {
        for from in [JobStatus::Pending, JobStatus::Retry, JobStatus::Claimed] {
            let id = queued_job(&db).await;
            put_in_state(&db, &id, JobStatus::Dead).await;
            redrive(&db, &id).await;
            put_in_state(&db, &id, from).await;
            step.prepare(&db, &id).await;
            a_day_passes(&db, &id).await;
            let before = row(&db, &id).await;

            step.make(&db, &id, 0).await;

            assert_eq!(row(&db, &id).await, before, "{step:?} from {from}");
        }
    }
}

/// The reconciler's own fence: what the relay still has to send is not lost, however old.
#[sqlx::test(migrations = "../../migrations")]
async fn ring_leaves_a_job_alone_whose_event_is_not_sent_yet_or_was_sent_just_now(db: PgPool) {
    let unsent = queued_job(&db).await;
    a_day_passes(&db, &unsent).await;
    let fresh = queued_job(&db).await;
    publish(&db, &fresh).await;
    let before = (row(&db, &unsent).await, row(&db, &fresh).await);

    let pace = Pace { safe_delay: Duration::from_mins(5), ..Pace::default() };
    let rung = reconcile::ring(&db, &pace).await.unwrap();

    assert_eq!(rung, []);
    assert_eq!((row(&db, &unsent).await, row(&db, &fresh).await), before);
}
