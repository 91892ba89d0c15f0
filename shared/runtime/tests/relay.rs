//! The relay against a real PostgreSQL and queues that misbehave.
//!
//! Time is never asserted, except that an invocation ends inside its budget. Pauses after trouble are an
//! hour here and end when a test says so.

#![allow(clippy::unwrap_used, reason = "a test that can not go on has failed")]

use std::time::{Duration, Instant};

use domain::Backoff;
use runtime::relay::sender::{Answer, CallError, Entry, Sender};
use runtime::relay::{Ending, LaneReport, Relay, Report, Route, Settings};
use sqlx::PgPool;
use testkit::outbox::{count, fill};
use testkit::{Fault, Health, Queues};

/// What an invocation has; far more than any test here needs.
const BUDGET: Duration = Duration::from_mins(1);
const NEWS: &str = "news";
const MIB: usize = 1_048_576;

fn url(destination: &str) -> String {
    format!("https://sqs/1/{destination}")
}

fn settings(destinations: &[&str]) -> Settings {
    let route =
        |destination: &&str| Route { destination: (*destination).to_owned(), queue_url: url(destination) };
    Settings {
        backoff: Backoff { base: Duration::from_hours(1), cap: Duration::from_hours(1) },
        linger: Duration::ZERO,
        send_timeout: Duration::from_millis(500),
        ..Settings::new(destinations.iter().map(route).collect())
    }
}

fn relay(db: &PgPool) -> Relay<Queues> {
    Relay::new(db.clone(), Queues::default(), settings(&[NEWS]))
}

async fn drain<S: Sender>(relay: &Relay<S>) -> LaneReport {
    let mut report = relay.run(BUDGET).await.unwrap();
    report.destinations.remove(NEWS).unwrap()
}

async fn execute(db: &PgPool, sql: &'static str) {
    sqlx::query(sql).execute(db).await.unwrap();
}

async fn number(db: &PgPool, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(db).await.unwrap()
}

/// Makes every pause of events and lanes be over.
async fn let_time_pass(db: &PgPool) {
    execute(db, "update outbox_event set next_attempt_at = now() where status = 'NEW'").await;
    execute(db, "update lane set retry_at = now() where retry_at is not null").await;
}

fn bodies(entries: &[Entry]) -> Vec<&str> {
    let mut bodies: Vec<_> = entries.iter().map(|entry| entry.body.as_str()).collect();
    bodies.sort_unstable();
    bodies
}

#[sqlx::test(migrations = "../../migrations")]
async fn hundred_events_are_ten_batches_and_an_eleventh_idle_look(db: PgPool) {
    fill(&db, NEWS, "a", 100, "{}").await.unwrap();
    let relay = relay(&db);

    let report = drain(&relay).await;

    assert_eq!((report.published, report.batches, report.looks, report.idle_looks), (100, 10, 2, 1));
    assert_eq!(report.ending, Ending::Drained);
    assert_eq!((relay.sender().calls(&url(NEWS)), relay.sender().count(&url(NEWS))), (10, 100));
    assert_eq!(count(&db, NEWS, "PUBLISHED").await.unwrap(), 100);
}

#[sqlx::test(migrations = "../../migrations")]
async fn thousand_events_take_two_writes_and_four_looks(db: PgPool) {
    fill(&db, NEWS, "a", 1_000, "{}").await.unwrap();

    let report = drain(&relay(&db)).await;

    // Two full reads, an empty one behind them, and one more from the start.
    assert_eq!((report.published, report.writes, report.looks, report.idle_looks), (1_000, 2, 4, 2));
}

#[sqlx::test(migrations = "../../migrations")]
async fn lane_is_free_after_a_drain_and_nothing_is_sent_twice(db: PgPool) {
    fill(&db, NEWS, "a", 25, "{}").await.unwrap();
    let relay = relay(&db);
    drain(&relay).await;

    let again = drain(&relay).await;

    assert_eq!((again.published, again.batches, again.ending), (0, 0, Ending::Drained));
    assert_eq!(
        number(&db, "select count(*) from lane where lease_token is null and failure_count = 0").await,
        1
    );
}

#[sqlx::test(migrations = "../../migrations")]
async fn missing_throttled_and_black_holed_queues_leave_the_healthy_one_unaffected(db: PgPool) {
    let lanes = ["missing", "throttled", "hole", NEWS];
    for lane in lanes {
        fill(&db, lane, "a", 1_000, "{}").await.unwrap();
    }
    let relay = Relay::new(db.clone(), Queues::default(), settings(&lanes));
    relay.sender().set_health(&url("missing"), Health::Missing);
    relay.sender().set_health(&url("throttled"), Health::Throttled);
    relay.sender().set_health(&url("hole"), Health::BlackHole);

    let began = Instant::now();
    let Report { destinations, .. } = relay.run(BUDGET).await.unwrap();
    assert!(began.elapsed() < BUDGET);

    assert_eq!((destinations[NEWS].published, destinations[NEWS].ending), (1_000, Ending::Drained));
    for (lane, reason) in [
        ("missing", "QueueDoesNotExist"),
        ("throttled", "RequestThrottled"),
        ("hole", "nothing within 500ms"),
    ] {
        let report = &destinations[lane];
        assert_eq!((report.ending, report.published, report.back_offs), (Ending::BackingOff, 0, 1), "{lane}");
        assert!(report.last_error.as_ref().unwrap().contains(reason), "{report:?}");
    }
    assert_eq!(
        number(&db, "select max(attempt_count)::bigint from outbox_event").await,
        0,
        "no event is to blame"
    );
    assert_eq!(number(&db, "select count(*) from outbox_event where status = 'NEW'").await, 3_000);
}

#[sqlx::test(migrations = "../../migrations")]
async fn lane_in_trouble_sends_one_probe_and_flows_at_once_when_it_is_well(db: PgPool) {
    fill(&db, NEWS, "a", 200, "{}").await.unwrap();
    let relay = relay(&db);
    relay.sender().set_health(&url(NEWS), Health::Throttled);
    drain(&relay).await;
    let calls = relay.sender().calls(&url(NEWS));

    let early = drain(&relay).await;
    assert_eq!((early.ending, early.looks), (Ending::BackingOff, 0), "not before its time");

    let_time_pass(&db).await;
    let probed = drain(&relay).await;
    assert_eq!((probed.batches, probed.back_offs, probed.published), (1, 1, 0));
    assert_eq!(relay.sender().calls(&url(NEWS)), calls + 1);

    let_time_pass(&db).await;
    relay.sender().set_health(&url(NEWS), Health::Well);
    let recovered = drain(&relay).await;
    assert_eq!((recovered.published, recovered.batches), (200, 20));
    assert_eq!(number(&db, "select failure_count::bigint from lane").await, 0);
    assert_eq!(number(&db, "select max(attempt_count)::bigint from outbox_event").await, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn lane_in_trouble_is_tried_again_while_lingering_until_everything_flowed(db: PgPool) {
    fill(&db, NEWS, "a", 50, "{}").await.unwrap();
    let backoff = Backoff { base: Duration::from_millis(20), cap: Duration::from_millis(50) };
    let settings = Settings { linger: Duration::from_secs(2), backoff, ..settings(&[NEWS]) };
    let relay = Relay::new(db.clone(), Queues::default(), settings);
    relay.sender().fail_next(&url(NEWS), [Fault::NoAnswer, Fault::NoAnswer, Fault::NoAnswer]);

    let report = drain(&relay).await;

    assert_eq!(relay.sender().count(&url(NEWS)), 50 + usize::try_from(report.repeated).unwrap());
    assert_eq!(count(&db, NEWS, "PUBLISHED").await.unwrap(), 50);
    assert!(report.back_offs >= 1, "{report:?}");
    assert_eq!(report.ending, Ending::Drained);
}

#[sqlx::test(migrations = "../../migrations")]
async fn one_mebibyte_goes_out_and_whatever_can_never_is_dead_while_the_rest_flows(db: PgPool) {
    fill(&db, NEWS, "full", 1, &"x".repeat(MIB)).await.unwrap();
    fill(&db, NEWS, "over", 1, &"x".repeat(MIB + 1)).await.unwrap();
    fill(&db, NEWS, "control", 1, "a\u{1}b").await.unwrap();
    fill(&db, NEWS, "empty", 1, "").await.unwrap();
    fill(&db, NEWS, "large", 10, &"y".repeat(200 * 1024)).await.unwrap();
    fill(&db, NEWS, "small", 30, "{}").await.unwrap();
    let relay = relay(&db);

    let report = drain(&relay).await;

    assert_eq!((report.published, report.dead, report.dead_jobs), (41, 3, 3));
    let taken = relay.sender().taken(&url(NEWS));
    assert_eq!(taken.iter().filter(|entry| entry.body.len() == MIB).count(), 1);
    let reasons: Vec<(String, i32, String)> = sqlx::query_as(
        "select event.dead_reason, octet_length(body), job.dead_reason from outbox_event as event join job using (job_id)
          where event.status = 'DEAD' order by octet_length(body)",
    )
    .fetch_all(&db)
    .await
    .unwrap();
    let dead = |reason: &str, bytes: usize| {
        (reason.to_owned(), i32::try_from(bytes).unwrap(), "UNSENDABLE".to_owned())
    };
    assert_eq!(
        reasons,
        [dead("EMPTY_BODY", 0), dead("INVALID_CHARACTERS", 3), dead("MESSAGE_TOO_LARGE", MIB + 1)],
        "the body is kept"
    );
}

#[sqlx::test(migrations = "../../migrations")]
async fn ten_events_of_200_kib_become_several_calls(db: PgPool) {
    fill(&db, NEWS, "large", 10, &"y".repeat(200 * 1024)).await.unwrap();

    let report = drain(&relay(&db)).await;

    assert_eq!((report.published, report.batches, report.splits, report.dead), (10, 2, 0, 0));
}

#[sqlx::test(migrations = "../../migrations")]
async fn maximum_of_the_queue_itself_is_respected(db: PgPool) {
    fill(&db, NEWS, "fits", 5, &"x".repeat(1_024)).await.unwrap();
    fill(&db, NEWS, "over", 1, &"x".repeat(1_025)).await.unwrap();
    let relay = relay(&db);
    relay.sender().set_message_bytes_max(&url(NEWS), 1_024);

    let report = drain(&relay).await;

    assert_eq!((report.published, report.dead, report.batches), (5, 1, 1));
}

#[sqlx::test(migrations = "../../migrations")]
async fn batch_refused_as_too_long_is_cut_and_made_again(db: PgPool) {
    fill(&db, NEWS, "a", 10, "{}").await.unwrap();
    let relay = relay(&db);
    relay.sender().fail_next(&url(NEWS), [Fault::Call("BatchRequestTooLong")]);

    let report = drain(&relay).await;

    assert_eq!((report.published, report.batches, report.splits, report.dead), (10, 3, 1, 0));
}

#[sqlx::test(migrations = "../../migrations")]
async fn lost_answer_repeats_messages_and_loses_none(db: PgPool) {
    fill(&db, NEWS, "a", 10, "{}").await.unwrap();
    let relay = relay(&db);
    relay.sender().fail_next(&url(NEWS), [Fault::LostAnswer]);

    let first = drain(&relay).await;
    assert_eq!((first.published, first.ending), (0, Ending::BackingOff));
    let_time_pass(&db).await;
    let second = drain(&relay).await;

    assert_eq!(second.published, 10);
    assert_eq!(relay.sender().count(&url(NEWS)), 20);
    assert_eq!(number(&db, "select max(attempt_count)::bigint from outbox_event").await, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn each_entry_has_the_answer_with_its_own_id(db: PgPool) {
    for label in ["0", "1", "2", "3"] {
        fill(&db, NEWS, label, 1, &format!("body {label}")).await.unwrap();
    }
    let relay = relay(&db);
    relay.sender().fail_next(&url(NEWS), [Fault::Refuse(2, "InternalError", false)]);

    let first = drain(&relay).await;

    assert_eq!((first.published, first.transient), (3, 1));
    let left: Vec<(String, i32)> =
        sqlx::query_as("select body, attempt_count from outbox_event where status = 'NEW'")
            .fetch_all(&db)
            .await
            .unwrap();
    assert_eq!(left, [("body 2".to_owned(), 1)]);
    let_time_pass(&db).await;
    drain(&relay).await;
    assert_eq!(bodies(&relay.sender().taken(&url(NEWS))), ["body 0", "body 1", "body 2", "body 3"]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn entry_in_neither_list_counts_as_not_sent(db: PgPool) {
    fill(&db, NEWS, "a", 3, "{}").await.unwrap();
    let relay = relay(&db);
    relay.sender().fail_next(&url(NEWS), [Fault::Forget(1)]);

    let first = drain(&relay).await;
    let_time_pass(&db).await;
    let second = drain(&relay).await;

    assert_eq!((first.published, first.transient, second.published), (2, 1, 1));
    assert_eq!(relay.sender().count(&url(NEWS)), 3);
}

#[sqlx::test(migrations = "../../migrations")]
async fn blame_by_the_queue_kills_no_event_when_the_code_says_otherwise(db: PgPool) {
    fill(&db, NEWS, "a", 3, "{}").await.unwrap();
    let relay = relay(&db);
    relay.sender().fail_next(&url(NEWS), [Fault::Refuse(0, "KmsAccessDenied", true)]);

    let report = drain(&relay).await;

    assert_eq!(
        (report.published, report.dead, report.transient, report.ending),
        (2, 0, 0, Ending::BackingOff)
    );
    assert_eq!(number(&db, "select max(attempt_count)::bigint from outbox_event").await, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn entry_blamed_with_a_code_nobody_knows_is_dead_and_the_rest_flows(db: PgPool) {
    fill(&db, NEWS, "a", 3, "{}").await.unwrap();
    let relay = relay(&db);
    relay.sender().fail_next(&url(NEWS), [Fault::Refuse(0, "Surprise", true)]);

    let report = drain(&relay).await;

    assert_eq!((report.published, report.dead, report.ending), (2, 1, Ending::Drained));
}

#[sqlx::test(migrations = "../../migrations")]
async fn ordering_key_and_trace_travel_with_each_entry(db: PgPool) {
    fill(&db, NEWS, "a", 1, "{}").await.unwrap();
    execute(&db, "update outbox_event set ordering_key = 'AAPL', trace_header = 'Root=1-5759e988-bd862e3fe1be46a994272793'").await;
    let relay = relay(&db);

    drain(&relay).await;

    let entry = relay.sender().taken(&url(NEWS)).remove(0);
    assert_eq!(entry.group_id.as_deref(), Some("AAPL"));
    assert_eq!(entry.trace_header.as_deref(), Some("Root=1-5759e988-bd862e3fe1be46a994272793"));
}

#[sqlx::test(migrations = "../../migrations")]
async fn events_of_an_unknown_destination_are_dead_with_their_jobs_after_the_grace(db: PgPool) {
    fill(&db, "nowhere", "a", 3, "{}").await.unwrap();
    let relay = relay(&db);
    assert_eq!(relay.run(BUDGET).await.unwrap().unknown_destination, 0);

    execute(&db, "update outbox_event set next_attempt_at = now() - interval '11 min'").await;

    assert_eq!(relay.run(BUDGET).await.unwrap().unknown_destination, 3);
    let dead = "select count(*) from outbox_event as event join job using (job_id)
                 where event.dead_reason = 'UNKNOWN_DESTINATION' and job.dead_reason = 'UNSENDABLE'";
    assert_eq!(number(&db, dead).await, 3);
}

#[sqlx::test(migrations = "../../migrations")]
async fn transactions_that_commit_in_the_other_order_are_both_delivered(db: PgPool) {
    let settings = Settings { linger: Duration::from_secs(2), ..settings(&[NEWS]) };
    let relay = Relay::new(db.clone(), Queues::default(), settings);
    let mut first = db.begin().await.unwrap();
    insert(&mut first, 'a').await;
    let mut second = db.begin().await.unwrap();
    insert(&mut second, 'b').await;

    let commits = async {
        second.commit().await.unwrap();
        until(|| relay.sender().count(&url(NEWS)) == 1).await;
        first.commit().await.unwrap();
    };
    let (report, ()) = tokio::join!(drain(&relay), commits);

    assert_eq!(report.published, 2);
    assert_eq!(relay.sender().count(&url(NEWS)), 2);
}

/// A job with its event, of this transaction's time.
async fn insert(tx: &mut sqlx::PgConnection, digit: char) {
    let id = digit.to_string().repeat(64);
    let job = "insert into job (job_id, job_type, destination, max_attempts, payload) values ($1, 'news', 'news', 8, '{}')";
    let event =
        "insert into outbox_event (event_id, job_id, event_type, destination, redrive_generation, body)
                 values ('news:' || $1 || ':0', $1, 'news', 'news', 0, '{}')";
    sqlx::query(job).bind(&id).execute(&mut *tx).await.unwrap();
    sqlx::query(event).bind(&id).execute(&mut *tx).await.unwrap();
}

/// Waits until `holds`; that it never does is a failed test and no endless one.
async fn until(holds: impl Fn() -> bool) {
    let held = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(BUDGET, held).await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn overlapping_invocations_hand_the_lane_over_and_send_each_event_once(db: PgPool) {
    let short = Settings { linger: Duration::from_millis(500), ..settings(&[NEWS]) };
    let long = Settings { linger: Duration::from_secs(3), ..settings(&[NEWS]) };
    let first = Relay::new(db.clone(), Queues::default(), short);
    let second = Relay::new(db.clone(), Queues::default(), long);
    fill(&db, NEWS, "a", 300, "{}").await.unwrap();

    let first_and_then = async {
        let report = drain(&first).await;
        fill(&db, NEWS, "b", 300, "{}").await.unwrap();
        report
    };
    let (first, second) = tokio::join!(first_and_then, drain(&second));

    assert_eq!(first.published + second.published, 600);
    assert_eq!(first.repeated + second.repeated, 0);
    assert!(second.published >= 300, "{second:?}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn lane_of_a_relay_that_died_is_drained_when_its_lease_ends(db: PgPool) {
    fill(&db, NEWS, "a", 20, "{}").await.unwrap();
    let relay = relay(&db);
    drain(&Relay::new(db.clone(), Queues::default(), settings(&[NEWS]))).await;
    fill(&db, NEWS, "b", 20, "{}").await.unwrap();
    execute(&db, "update lane set lease_token = gen_random_uuid(), lease_until = now() + interval '10 s'")
        .await;
    assert_eq!(drain(&relay).await.ending, Ending::Held);

    execute(&db, "update lane set lease_until = now()").await;

    assert_eq!(drain(&relay).await.published, 20);
}

/// A queue whose every call first makes another relay's view true: it takes the lane away, or rings.
struct Meddler {
    db: PgPool,
    queues: Queues,
    meddling: &'static str,
}

impl Sender for Meddler {
    async fn send(&self, queue_url: &str, entries: &[Entry]) -> Result<Answer, CallError> {
        execute(&self.db, self.meddling).await;
        self.queues.send(queue_url, entries).await
    }

    async fn message_bytes_max(&self, queue_url: &str) -> Result<usize, CallError> {
        self.queues.message_bytes_max(queue_url).await
    }
}

fn meddled(db: &PgPool, meddling: &'static str) -> Relay<Meddler> {
    let meddler = Meddler { db: db.clone(), queues: Queues::default(), meddling };
    Relay::new(db.clone(), meddler, settings(&[NEWS]))
}

#[sqlx::test(migrations = "../../migrations")]
async fn relay_that_lost_its_lane_while_sending_leaves_the_lane_to_its_heir(db: PgPool) {
    fill(&db, NEWS, "a", 10, "{}").await.unwrap();
    let heir = "update lane set lease_token = '00000000-0000-0000-0000-000000000001', lease_until = now() + interval '1 h'";
    let relay = meddled(&db, heir);
    relay.sender().queues.fail_next(&url(NEWS), [Fault::NoAnswer]);

    drain(&relay).await;

    let kept = "select count(*) from lane where failure_count = 0
                   and lease_token = '00000000-0000-0000-0000-000000000001'";
    assert_eq!(number(&db, kept).await, 1);
    assert_eq!(count(&db, NEWS, "NEW").await.unwrap(), 10);
}

#[sqlx::test(migrations = "../../migrations")]
async fn ring_that_came_while_sending_is_not_swallowed(db: PgPool) {
    fill(&db, NEWS, "a", 10, "{}").await.unwrap();
    let relay = meddled(&db, "update outbox_event set ring = ring + 1 where ring = 0");

    let report = drain(&relay).await;

    assert_eq!(
        (report.published, report.repeated),
        (10, 10),
        "sent under the old ring, and again under the new one"
    );
}

/// A queue that looks for open transactions of the relay whenever it is called.
struct Witness {
    db: PgPool,
    queues: Queues,
}

impl Sender for Witness {
    async fn send(&self, queue_url: &str, entries: &[Entry]) -> Result<Answer, CallError> {
        let open = "select count(*) from pg_stat_activity
                     where datname = current_database() and state like 'idle in transaction%'";
        assert_eq!(number(&self.db, open).await, 0, "a transaction is open while a message is sent");
        self.queues.send(queue_url, entries).await
    }

    async fn message_bytes_max(&self, queue_url: &str) -> Result<usize, CallError> {
        self.queues.message_bytes_max(queue_url).await
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn no_transaction_is_open_while_a_message_is_sent(db: PgPool) {
    fill(&db, NEWS, "a", 100, "{}").await.unwrap();
    let witness = Witness { db: db.clone(), queues: Queues::default() };

    let report = drain(&Relay::new(db.clone(), witness, settings(&[NEWS]))).await;

    assert_eq!(report.published, 100);
}

#[sqlx::test(migrations = "../../migrations")]
async fn relay_whose_time_is_up_marks_what_it_sent_and_leaves_the_rest(db: PgPool) {
    fill(&db, NEWS, "a", 2_000, "{}").await.unwrap();
    let slow = Settings { in_flight: 1, ..settings(&[NEWS]) };
    let relay = Relay::new(db.clone(), Queues::with_latency(Duration::from_millis(20)), slow.clone());

    let report = relay
        .run(slow.margin() + Duration::from_millis(300))
        .await
        .unwrap()
        .destinations
        .remove(NEWS)
        .unwrap();

    assert_eq!(report.ending, Ending::OutOfTime);
    assert!(report.published > 0 && report.published < 2_000, "{report:?}");
    assert_eq!(relay.sender().count(&url(NEWS)), usize::try_from(report.published).unwrap());
    assert_eq!(number(&db, "select count(*) from lane where lease_token is null").await, 1);
}
