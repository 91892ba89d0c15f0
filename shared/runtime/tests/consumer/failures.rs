//! Handlers that fail, each in its way: what becomes of the job, the message and the neighbours.

use std::time::Duration;

use domain::{JobId, JobStatus};
use serde_json::json;
use sqlx::PgPool;
use store::enqueue::NewJob;
use testkit::Inbox;
use testkit::inbox::{body, event};
use testkit::jobs::{dead_reason_of, new_job, put_in_state, queued, queued_job, row, state_of};

use crate::script::{Act, Bench};

/// Consumes the failing job between two neighbours, which must not notice.
async fn among_neighbours(db: &PgPool, failing: &JobId, act: Act) -> (Bench, bool) {
    let (before, after) = (queued_job(db).await, queued_job(db).await);
    let bench = Bench::new(db, &[(failing, act)]).await;

    let kept = bench
        .consume(&[("before", body(&before, 0)), ("failing", body(failing, 0)), ("after", body(&after, 0))])
        .await;

    for neighbour in [&before, &after] {
        assert_eq!(state_of(db, neighbour).await, JobStatus::Succeeded);
        assert_eq!(bench.effects_of(neighbour).await, 1);
    }
    assert!(kept.iter().all(|id| id == "failing"), "{kept:?}");
    (bench, !kept.is_empty())
}

#[sqlx::test(migrations = "../../migrations")]
async fn transient_failure_waits_and_its_message_waits_as_long(db: PgPool) {
    let acts =
        [Act::PrepareFails, Act::PreparePanics, Act::ApplyFails, Act::ApplyPanics, Act::ApplyIsRefused];
    for act in acts {
        let id = queued_job(&db).await;

        let (bench, kept) = among_neighbours(&db, &id, act.clone()).await;

        assert!(kept, "{act:?}");
        assert_eq!(state_of(&db, &id).await, JobStatus::Retry, "{act:?}");
        assert_eq!(bench.effects_of(&id).await, 0, "{act:?}");
        let due: f64 = sqlx::query_scalar(
            "select extract(epoch from next_attempt_at - now())::float8 from job where job_id = $1",
        )
        .bind(id.as_str())
        .fetch_one(&db)
        .await
        .unwrap();
        let visibility = f64::from(bench.visibility_of("failing").unwrap());
        assert!((15.0..=40.0).contains(&due), "{act:?}: due in {due}");
        assert!(visibility >= due && visibility < due + 3.0, "{act:?}: {visibility} against {due}");
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn cause_of_a_failure_is_kept_in_the_row(db: PgPool) {
    let id = queued_job(&db).await;

    among_neighbours(&db, &id, Act::PreparePanics).await;

    assert_eq!(row(&db, &id).await["last_error"], "the handler panicked: prepare fell over");
}

#[sqlx::test(migrations = "../../migrations")]
async fn permanent_failure_is_dead_for_its_reason_and_acknowledged(db: PgPool) {
    let id = queued_job(&db).await;

    let (bench, kept) = among_neighbours(&db, &id, Act::PrepareFailsForGood).await;

    assert!(!kept);
    assert_eq!(dead_reason_of(&db, &id).await.as_deref(), Some("ARTIFACT_MISSING"));
    assert_eq!(bench.effects_of(&id).await, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn subject_that_changed_is_stale_and_acknowledged(db: PgPool) {
    let id = queued_job(&db).await;

    let (bench, kept) = among_neighbours(&db, &id, Act::ApplyIsStale).await;

    assert!(!kept);
    assert_eq!(dead_reason_of(&db, &id).await.as_deref(), Some("STALE"));
    assert_eq!(bench.effects_of(&id).await, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn failure_of_the_last_attempt_is_dead_and_acknowledged(db: PgPool) {
    let id = queued(&db, &NewJob { max_attempts: 1, ..new_job("last") }).await;

    let (_, kept) = among_neighbours(&db, &id, Act::ApplyFails).await;

    assert!(!kept);
    assert_eq!(dead_reason_of(&db, &id).await.as_deref(), Some("ATTEMPTS_EXHAUSTED"));
}

#[sqlx::test(migrations = "../../migrations")]
async fn job_that_can_not_be_started_in_time_is_given_back(db: PgPool) {
    let id = queued_job(&db).await;
    let tried = queued_job(&db).await;
    put_in_state(&db, &tried, JobStatus::Retry).await;
    let untouched = row(&db, &tried).await;
    let bench = Bench::new(&db, &[]).await;

    let messages = [("new", body(&id, 0)), ("tried", body(&tried, 0))];
    let kept = bench.consume_within(&messages, Duration::from_secs(4)).await;

    assert_eq!(kept, ["new", "tried"]);
    assert_eq!(bench.prepared(), []);
    assert_eq!(state_of(&db, &id).await, JobStatus::Retry);
    assert_eq!(row(&db, &tried).await, untouched, "a job tried before is not even claimed");
    assert_eq!(bench.visibility_of("new"), Some(1));
    assert_eq!(bench.consume(&messages).await, Vec::<String>::new());
}

#[sqlx::test(migrations = "../../migrations")]
async fn queue_that_can_not_be_told_costs_nothing_but_time(db: PgPool) {
    for inbox in [Inbox::unreachable(), Inbox::without("m")] {
        let id = queued_job(&db).await;
        let bench = Bench::with(&db, &[(&id, Act::PrepareFails)], inbox).await;

        assert_eq!(bench.consume(&[("m", body(&id, 0))]).await, ["m"]);

        assert_eq!(state_of(&db, &id).await, JobStatus::Retry);
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn database_that_is_away_fails_the_whole_invocation(db: PgPool) {
    let id = queued_job(&db).await;
    let bench = Bench::new(&db, &[]).await;
    db.close().await;

    let left = runtime::time_left::TimeLeft::lasting(Duration::from_mins(1));
    let error = bench.engine.consume(event(&[("m", body(&id, 0))]), left).await.unwrap_err();

    assert!(matches!(error, runtime::consumer::Error::Claim(_)), "{error:?}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn database_that_goes_away_under_every_job_fails_the_whole_invocation(db: PgPool) {
    let id = queued_job(&db).await;
    let bench = Bench::new(&db, &[(&id, Act::DatabaseGone)]).await;

    let left = runtime::time_left::TimeLeft::lasting(Duration::from_mins(1));
    let error = bench.engine.consume(event(&[("m", body(&id, 0))]), left).await.unwrap_err();

    assert!(matches!(error, runtime::consumer::Error::NothingSettled), "{error:?}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn payload_that_can_not_be_read_is_dead_before_the_handler_is_asked(db: PgPool) {
    let job = NewJob { payload: json!({ "item_id": 7, "revision": "1" }), ..new_job("odd") };
    let id = queued(&db, &job).await;

    let bench = Bench::new(&db, &[]).await;
    let kept = bench.consume(&[("odd", body(&id, 0))]).await;

    assert!(kept.is_empty(), "{kept:?}");
    assert_eq!(dead_reason_of(&db, &id).await.as_deref(), Some("BAD_PAYLOAD"));
    assert!(bench.prepared().is_empty());
    let error = row(&db, &id).await["last_error"].as_str().unwrap().to_owned();
    assert!(error.starts_with("the payload is not what news jobs have: invalid type"), "{error}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn job_of_another_type_is_dead_and_says_who_sent_it_here(db: PgPool) {
    let id = queued(&db, &NewJob { job_type: "fax".to_owned(), ..new_job("strange") }).await;

    let bench = Bench::new(&db, &[]).await;
    bench.consume(&[("strange", domain::Message::new("fax", id.clone(), 0).to_body())]).await;

    assert_eq!(dead_reason_of(&db, &id).await.as_deref(), Some("UNKNOWN_JOB_TYPE"));
    let error = row(&db, &id).await["last_error"].clone();
    assert_eq!(error, "the consumer of news does news jobs, not fax jobs");
}
