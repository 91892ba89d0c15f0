//! DEAD jobs run again: a new life, whole or not at all, and on the record.

use std::time::Duration;

use domain::{Identity, JobId, JobStatus, Message, Transition};
use serde_json::{Value, json};
use sqlx::PgPool;
use store::{
    operator_action::{Filter, Order, Selection},
    redrive::{Outcome, redrive},
};

use crate::fixtures::{events, job, job_in, order, pass, read, tie_to_window};

fn by_filter(filter: Filter, limit: i64) -> Order {
    Order { selection: Selection::Filter { filter, limit }, ..order(&[]) }
}

async fn outcomes(db: &PgPool, order: &Order) -> Vec<Outcome> {
    redrive(db, order, None).await.unwrap().outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

fn redriven(job_id: &JobId, generation: i32) -> Outcome {
    Outcome::Redriven { event_id: format!("news:{job_id}:{generation}") }
}

#[sqlx::test(migrations = "../../migrations")]
async fn job_in_every_state_is_redriven_exactly_as_the_table_says(db: PgPool) {
    for from in JobStatus::ALL {
        let job_id = job_in(&db, from.as_str(), from).await;
        let before = read(&db, &job_id).await;

        let outcome = outcomes(&db, &order(&[&job_id])).await.remove(0);

        let after = read(&db, &job_id).await;
        if let Ok(to) = from.after(Transition::Redrive) {
            assert_eq!(outcome, redriven(&job_id, 1));
            assert_eq!((after.status.as_str(), after.redrive_generation), (to.as_str(), 1));
            assert_eq!((after.attempt_count, after.requeue_count, after.dead_reason), (0, 0, None));
            assert_eq!(events(&db, &job_id).await.len(), 2);
        } else {
            assert_eq!((outcome, after), (Outcome::NotDead(from), before));
            assert_eq!(events(&db, &job_id).await.len(), 1);
        }
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn fresh_event_is_byte_for_byte_the_message_of_the_new_generation(db: PgPool) {
    for (nth, job_type) in ["news", "odd \"type\" \\ with\u{1}control\n and ünïcode/"].into_iter().enumerate()
    {
        let job_id = job_in(&db, &nth.to_string(), JobStatus::Dead).await;
        sqlx::query("update job set job_type = $2, trace_header = 'Root=1' where job_id = $1")
            .bind(job_id.as_str())
            .bind(job_type)
            .execute(&db)
            .await
            .unwrap();

        redrive(&db, &order(&[&job_id]), None).await.unwrap();

        let expected = Message::new(job_type, job_id.clone(), 1);
        let event: (String, String, String, i32, String, String) = sqlx::query_as(
            "select event_id, body, event_type, ring, trace_header, ordering_key
               from outbox_event where job_id = $1 and redrive_generation = 1 and status = 'NEW'",
        )
        .bind(job_id.as_str())
        .fetch_one(&db)
        .await
        .unwrap();
        let whole = (
            expected.event_id.clone(),
            expected.to_body(),
            job_type.into(),
            0,
            "Root=1".into(),
            "AAPL".into(),
        );
        assert_eq!(event, whole);
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn second_death_is_redriven_like_the_first(db: PgPool) {
    let job_id = job_in(&db, "dies twice", JobStatus::Dead).await;
    for generation in 1..=2 {
        assert_eq!(outcomes(&db, &order(&[&job_id])).await, [redriven(&job_id, generation)]);
        crate::fixtures::put(&db, &job_id, JobStatus::Dead, 0.0).await;
    }
    assert_eq!(events(&db, &job_id).await.len(), 3);
}

#[sqlx::test(migrations = "../../migrations")]
async fn stale_job_is_refused_and_marked(db: PgPool) {
    let behind = job_in(&db, "behind its window", JobStatus::Dead).await;
    let current = job_in(&db, "as its window", JobStatus::Dead).await;
    let withdrawn = job_in(&db, "stale without a window", JobStatus::Dead).await;
    tie_to_window(&db, &behind, 1).await;
    tie_to_window(&db, &current, 2).await;
    sqlx::query("update job set dead_reason = 'STALE' where job_id = $1")
        .bind(withdrawn.as_str())
        .execute(&db)
        .await
        .unwrap();

    let report = redrive(&db, &order(&[&behind, &current, &withdrawn]), None).await.unwrap();

    assert_eq!(
        report.outcomes,
        [
            (behind.to_string(), Outcome::Stale),
            (current.to_string(), redriven(&current, 1)),
            (withdrawn.to_string(), Outcome::Stale),
        ]
    );
    for job_id in [behind, withdrawn] {
        let refused = read(&db, &job_id).await;
        assert_eq!((refused.status.as_str(), refused.dead_reason.as_deref()), ("DEAD", Some("STALE")));
        assert_eq!(refused.redrive_generation, 0);
        assert_eq!(events(&db, &job_id).await.len(), 1);
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn dry_run_foretells_the_outcomes_and_writes_only_the_record(db: PgPool) {
    let dead = job_in(&db, "dead", JobStatus::Dead).await;
    let stale = job_in(&db, "stale", JobStatus::Dead).await;
    tie_to_window(&db, &stale, 1).await;
    let before = (read(&db, &dead).await, read(&db, &stale).await);
    let dry = Order { dry_run: true, ..order(&[&dead, &stale]) };

    let foretold = redrive(&db, &dry, None).await.unwrap();

    assert_eq!((read(&db, &dead).await, read(&db, &stale).await), before);
    assert_eq!(events(&db, &dead).await.len(), 1);
    let done = redrive(&db, &order(&[&dead, &stale]), None).await.unwrap();
    assert_eq!(done.outcomes, foretold.outcomes);
    let recorded: Vec<bool> = sqlx::query_scalar("select dry_run from operator_action order by action_id")
        .fetch_all(&db)
        .await
        .unwrap();
    assert_eq!(recorded, [true, false]);
}

/// The event of the new generation of one job exists already, which no correct program could have done.
#[sqlx::test(migrations = "../../migrations")]
async fn redrive_that_fails_for_one_job_moves_none(db: PgPool) {
    let (good, broken) =
        (job_in(&db, "good", JobStatus::Dead).await, job_in(&db, "broken", JobStatus::Dead).await);
    crate::fixtures::publish_new_event(&db, &broken, 1).await;

    redrive(&db, &order(&[&good, &broken]), None).await.unwrap_err();

    for job_id in [good, broken] {
        assert_eq!(read(&db, &job_id).await.status, "DEAD");
    }
    let records: i64 =
        sqlx::query_scalar("select count(*) from operator_action").fetch_one(&db).await.unwrap();
    assert_eq!(records, 0);
}

/// Both have read the job as DEAD and wait for its row when it is let go.
#[sqlx::test(migrations = "../../migrations")]
async fn two_redrives_at_the_same_moment_are_one_new_life(db: PgPool) {
    let job_id = job_in(&db, "wanted by two", JobStatus::Dead).await;
    let wanted = order(&[&job_id, &job_id]);
    let mut holder = db.begin().await.unwrap();
    let hold = "select from job where job_id = $1 for update";
    sqlx::query(hold).bind(job_id.as_str()).execute(&mut *holder).await.unwrap();

    let let_go_when_both_wait = async {
        let waiting = "select count(*) from pg_stat_activity
                        where datname = current_database() and wait_event_type = 'Lock'";
        while sqlx::query_scalar::<_, i64>(waiting).fetch_one(&db).await.unwrap() < 2 {}
        holder.rollback().await.unwrap();
    };
    let (one, other, ()) =
        tokio::join!(outcomes(&db, &wanted), outcomes(&db, &wanted), let_go_when_both_wait);

    let both = [one, other].concat();
    assert!(both.contains(&redriven(&job_id, 1)) && both.contains(&Outcome::NotDead(JobStatus::Pending)));
    assert_eq!(both.len(), 2);
    assert_eq!(read(&db, &job_id).await.redrive_generation, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn filter_takes_what_fits_longest_dead_first_up_to_the_limit(db: PgPool) {
    let mut dead = Vec::new();
    for name in ["a", "b", "c"] {
        dead.push(job_in(&db, name, JobStatus::Dead).await);
        pass(&db, Duration::from_hours(1)).await;
    }
    job_in(&db, "alive", JobStatus::Retry).await;
    let dry = |filter, limit| Order { dry_run: true, ..by_filter(filter, limit) };
    let hours = |hours: u64| Some(Duration::from_secs(hours * 3600 - 60));
    let all = Filter::default();

    let expected: Vec<_> = dead.iter().map(|job_id| redriven(job_id, 1)).collect();
    assert_eq!(outcomes(&db, &dry(all.clone(), 10)).await, expected);
    assert_eq!(outcomes(&db, &dry(all.clone(), 2)).await, expected[..2]);
    let old = Filter { dead_at_least: hours(2), ..all.clone() };
    assert_eq!(outcomes(&db, &dry(old, 10)).await, expected[..2]);
    let young = Filter { dead_at_most: hours(3), ..all.clone() };
    assert_eq!(outcomes(&db, &dry(young, 10)).await, expected[1..]);
    for (filter, found) in [
        (Filter { reason: Some("ATTEMPTS_EXHAUSTED".into()), ..all.clone() }, 3),
        (Filter { reason: Some("DLQ".into()), ..all.clone() }, 0),
        (Filter { job_type: Some("news".into()), destination: Some("news".into()), ..all.clone() }, 3),
        (Filter { destination: Some("price".into()), ..all.clone() }, 0),
    ] {
        assert_eq!(outcomes(&db, &dry(filter.clone(), 10)).await.len(), found, "{filter:?}");
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn rate_spreads_the_instants_the_relay_sends_at(db: PgPool) {
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        ids.push(job_in(&db, name, JobStatus::Dead).await);
    }

    redrive(&db, &order(&ids.iter().collect::<Vec<_>>()), Some(0.5)).await.unwrap();

    let waits: Vec<i32> = sqlx::query_scalar(
        "select extract(epoch from next_attempt_at - created_at)::integer
           from outbox_event where redrive_generation = 1 order by next_attempt_at",
    )
    .fetch_all(&db)
    .await
    .unwrap();
    assert_eq!(waits, [0, 2, 4]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn record_says_who_why_what_was_asked_and_what_came_of_it(db: PgPool) {
    let dead = job_in(&db, "dead", JobStatus::Dead).await;
    let alive = job(&db, "alive").await;
    let unknown = Identity::new("news").text("item_id", "unknown").job_id();

    let report = redrive(&db, &order(&[&dead, &alive, &unknown]), None).await.unwrap();

    let (action, who, why, selection, result): (String, String, String, Value, Value) = sqlx::query_as(
        "select action, who, why, selection, result from operator_action where action_id = $1",
    )
    .bind(report.action_id)
    .fetch_one(&db)
    .await
    .unwrap();
    assert_eq!((action.as_str(), who.as_str(), why.as_str()), ("REDRIVE", "ada", "the cause is fixed"));
    assert_eq!(selection["job_ids"].as_array().unwrap().len(), 3);
    assert_eq!(
        result,
        json!({
            "redriven": [{ "job_id": dead, "event_id": format!("news:{dead}:1") }],
            "stale": [],
            "not_dead": [{ "job_id": alive, "status": "PENDING" }],
            "missing": [unknown],
        })
    );
    assert_eq!(report.to_json()["result"], result);
}
