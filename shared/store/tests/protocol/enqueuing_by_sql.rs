//! Enqueue from any language: the SQL function does what the Rust call does, byte for byte.

use domain::{Identity, JobType};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use sqlx::{PgConnection, PgPool};
use store::enqueue::{Enqueued, NewJob, enqueue, enqueue_one};
use testkit::windows::{first_minute, opened};

/// Identities of one run; each is compared in every way of writing it.
const CASES: usize = 500;

/// How a text is written as JSON.
type Quoted = fn(&str) -> String;

/// A field of an identity.
#[derive(Clone, Debug)]
enum Field {
    Text(String),
    Integer(i64),
}

/// A job type and the fields of an identity, in their order.
#[derive(Clone, Debug)]
struct Case {
    job_type: String,
    fields: Vec<(String, Field)>,
}

impl Case {
    fn identity(&self) -> Identity {
        self.fields.iter().fold(Identity::new(&self.job_type), |identity, (name, field)| match field {
            Field::Text(text) => identity.text(name, text),
            Field::Integer(number) => identity.integer(name, *number),
        })
    }

    /// The fields as JSON, texts written by `quoted` and apart by `space`.
    fn json(&self, quoted: Quoted, space: &str) -> String {
        let fields = self.fields.iter().map(|(name, field)| {
            let value = match field {
                Field::Text(text) => quoted(text),
                Field::Integer(number) => number.to_string(),
            };
            format!("{space}{}{space}:{space}{value}{space}", quoted(name))
        });
        format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
    }
}

fn plain(text: &str) -> String {
    Value::from(text).to_string()
}

/// Every character as `\uXXXX`, in pairs where one is not enough.
fn escaped(text: &str) -> String {
    let units = text.encode_utf16().map(|unit| format!("\\u{unit:04X}"));
    format!("\"{}\"", units.collect::<String>())
}

/// Any text but NUL, which PostgreSQL does not store, rich in what JSON escapes.
fn text() -> impl Strategy<Value = String> {
    let special = prop_oneof![
        Just('"'),
        Just('\\'),
        Just('/'),
        Just('\u{7f}'),
        Just('\u{2028}'),
        Just('\u{feff}'),
        Just('𝄞'),
        Just('é'),
        proptest::char::range('\u{1}', '\u{1f}'),
    ];
    let any = any::<char>().prop_filter("NUL", |c| *c != '\0');
    proptest::collection::vec(prop_oneof![special, any], 0..12).prop_map(String::from_iter)
}

fn field() -> impl Strategy<Value = Field> {
    let edges = prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(0), Just(-1), any::<i64>()];
    prop_oneof![text().prop_map(Field::Text), edges.prop_map(Field::Integer)]
}

fn case() -> impl Strategy<Value = Case> {
    let fields = proptest::collection::vec((text(), field()), 0..5);
    (text().prop_filter("empty", |text| !text.is_empty()), fields).prop_map(|(job_type, mut fields)| {
        let mut seen = std::collections::HashSet::from(["job_type".to_owned()]);
        fields.retain(|(name, _)| seen.insert(name.clone()));
        Case { job_type, fields }
    })
}

fn cases() -> Vec<Case> {
    let mut runner = TestRunner::deterministic();
    (0..CASES).map(|_| case().new_tree(&mut runner).unwrap().current()).collect()
}

#[sqlx::test(migrations = "../../migrations")]
async fn ids_are_the_same_byte_for_byte_however_the_identity_is_written(db: PgPool) {
    let cases = cases();
    let ways: [(Quoted, &str); 3] = [(plain, ""), (plain, " \n\t"), (escaped, "")];
    for (quoted, space) in ways {
        let written: Vec<String> = cases.iter().map(|case| case.json(quoted, space)).collect();
        let job_types: Vec<&str> = cases.iter().map(|case| case.job_type.as_str()).collect();
        let ids: Vec<String> = sqlx::query_scalar(
            "select tailcar_job_id(job_type, identity::json) from unnest($1::text[], $2::text[]) as a (job_type, identity)",
        )
        .bind(&job_types)
        .bind(&written)
        .fetch_all(&db)
        .await
        .unwrap();
        for ((case, written), id) in cases.iter().zip(&written).zip(ids) {
            assert_eq!(id, case.identity().job_id().as_str(), "{written}");
        }
    }
}

/// The job and the event of a transaction, without instants and without what is counted.
async fn rows(tx: &mut PgConnection) -> Value {
    let rows = sqlx::query_scalar(
        "select jsonb_build_array(
                    to_jsonb(job) - array['created_at', 'enqueued_at', 'next_attempt_at'],
                    to_jsonb(event) - array['created_at', 'next_attempt_at', 'sequence'])
           from job join outbox_event event using (job_id)",
    );
    rows.fetch_one(tx).await.unwrap()
}

#[sqlx::test(migrations = "../../migrations")]
async fn rows_are_those_of_the_rust_call(db: PgPool) {
    let window = opened(&db, first_minute()).await;
    let start = window.start.to_rfc3339();
    let mut tx = db.begin().await.unwrap();
    for (place, case) in cases().iter().take(60).enumerate() {
        let payload = json!({ "text": case.job_type, "number": 1.5, "list": [null, true] });
        let full = place % 2 == 1;
        let job = NewJob {
            identity: case.identity(),
            job_type: case.job_type.clone(),
            window: full.then(|| window.clone()),
            max_attempts: if full { 3 } else { 8 },
            max_age: full.then(|| std::time::Duration::from_secs(90)),
            ordering_key: full.then(|| "tenant".to_owned()),
            trace_header: full.then(|| "Root=1-0".to_owned()),
            ..NewJob::new(&JobType::new("any").sent_to("mail"), case.identity(), payload.clone())
        };
        let more = format!(
            r#","window":{{"dataset":"{}","start":"{start}","generation":{}}},"max_attempts":3,"max_age_seconds":90,"ordering_key":"tenant","trace_header":"Root=1-0""#,
            window.dataset, window.generation,
        );
        let asked = format!(
            r#"[{{"job_type":{},"destination":"mail","identity":{},"payload":{payload}{}}}]"#,
            plain(&case.job_type),
            case.json(escaped, " "),
            if full { more.as_str() } else { "" },
        );

        sqlx::query("savepoint before").execute(&mut *tx).await.unwrap();
        enqueue_one(&mut tx, &job).await.unwrap();
        let by_rust = rows(&mut tx).await;
        sqlx::query("rollback to before").execute(&mut *tx).await.unwrap();
        assert_eq!(outcomes(&mut tx, &asked, false).await.unwrap(), ["CREATED"]);
        assert_eq!(rows(&mut tx).await, by_rust, "{asked}");
        sqlx::query("rollback to before").execute(&mut *tx).await.unwrap();
    }
}

async fn outcomes(tx: &mut PgConnection, jobs: &str, report: bool) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar("select outcome from tailcar_enqueue($1::text::json, $2)")
        .bind(jobs)
        .bind(report)
        .fetch_all(tx)
        .await
}

fn mail(identity: &str, payload: &str) -> String {
    format!(r#"{{"job_type":"mail","destination":"mail","identity":{identity},"payload":{payload}}}"#)
}

#[sqlx::test(migrations = "../../migrations")]
async fn repeat_is_a_no_op_whoever_came_first(db: PgPool) {
    const MAIL: JobType = JobType::new("mail");
    let mut tx = db.begin().await.unwrap();
    let job = NewJob::new(&MAIL, MAIL.identity().integer("n", 1), json!({ "n": 1 }));
    enqueue_one(&mut tx, &job).await.unwrap();

    let jobs = [r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":2}"#].map(|fields| mail(fields, fields));
    let said = outcomes(&mut tx, &format!("[{}]", jobs.join(",")), false).await.unwrap();

    assert_eq!(said, ["KNOWN", "CREATED", "KNOWN"]);
    let events: i64 =
        sqlx::query_scalar("select count(*) from outbox_event").fetch_one(&mut *tx).await.unwrap();
    assert_eq!(events, 2);
}

#[sqlx::test(migrations = "../../migrations")]
async fn conflict_is_an_error_unless_it_is_asked_for_and_then_stays_alone(db: PgPool) {
    let mut tx = db.begin().await.unwrap();
    outcomes(&mut tx, &format!("[{}]", mail(r#"{"n":1}"#, "{}")), false).await.unwrap();
    let jobs = format!("[{},{}]", mail(r#"{"n":2}"#, "{}"), mail(r#"{"n":1}"#, r#"{"other":1}"#));
    sqlx::query("savepoint before").execute(&mut *tx).await.unwrap();

    let refused = outcomes(&mut tx, &jobs, false).await.unwrap_err();
    let refused = refused.as_database_error().unwrap();
    assert_eq!(refused.code().as_deref(), Some("23505"));
    assert!(refused.message().starts_with("jobs[1]: job "), "{refused}");

    sqlx::query("rollback to before").execute(&mut *tx).await.unwrap();
    assert_eq!(outcomes(&mut tx, &jobs, true).await.unwrap(), ["CREATED", "CONFLICT"]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn job_that_is_not_one_is_refused_by_its_place_and_field(db: PgPool) {
    let good = mail(r#"{"n":1}"#, "{}");
    let with = |field: &str| good.replacen('{', &format!("{{{field},"), 1);
    let long = format!(r#"{{"n":"{}"}}"#, "x".repeat(70_000));
    let refusals = [
        ("{}".to_owned(), "jobs is not a JSON array of jobs"),
        ("[1]".to_owned(), "jobs[0]: is not an object"),
        (format!("[{good},{}]", with(r#""jobtype":"x""#)), r#"jobs[1]: "jobtype" is no field of a job"#),
        (
            format!("[{}]", good.replace(r#""job_type":"mail","#, "")),
            "jobs[0]: job_type is missing, empty or not text",
        ),
        (format!("[{}]", good.replace(r#"{"n":1}"#, "[1]")), "jobs[0]: identity is missing or not an object"),
        (
            format!("[{}]", good.replace("\"payload\":{}", "\"payload\":\"x\"")),
            "jobs[0]: payload is missing or not an object",
        ),
        (
            format!("[{}]", mail("{}", &long)),
            "jobs[0]: payload is longer than 64 KiB; store the data and refer to them",
        ),
        (
            format!("[{}]", with(r#""max_attempts":0"#)),
            "jobs[0]: max_attempts is not a whole number between 1 and 999999999",
        ),
        (
            format!("[{}]", with(r#""max_age_seconds":1.5"#)),
            "jobs[0]: max_age_seconds is not a whole number between 1 and 999999999",
        ),
        (format!("[{}]", with(r#""ordering_key":7"#)), "jobs[0]: ordering_key is not text"),
        (
            format!("[{}]", with(r#""window":{"dataset":"us8","start":"2018-04-04 13:30","generation":1}"#)),
            r#"jobs[0]: window is not {"dataset": text, "start": text with an offset, "generation": whole number}"#,
        ),
        (
            format!("[{}]", mail(r#"{"n":1.0}"#, "{}")),
            r#"the identity field "n" is neither text nor a whole number of 64 bits"#,
        ),
        (
            format!("[{}]", mail(r#"{"n":-0}"#, "{}")),
            r#"the identity field "n" is neither text nor a whole number of 64 bits"#,
        ),
        (
            format!("[{}]", mail(r#"{"n":9223372036854775808}"#, "{}")),
            r#"the identity field "n" is neither text nor a whole number of 64 bits"#,
        ),
        (format!("[{}]", mail(r#"{"n":1,"n":1}"#, "{}")), r#"identity has the field "n" twice"#),
        (
            format!("[{}]", mail(r#"{"job_type":"x"}"#, "{}")),
            "identity names job_type; it is the first field by itself",
        ),
    ];
    for (jobs, fault) in refusals {
        let mut tx = db.begin().await.unwrap();
        let refused = outcomes(&mut tx, &jobs, true).await.unwrap_err();
        assert_eq!(refused.as_database_error().unwrap().message(), fault, "{jobs:.200}");
        tx.rollback().await.unwrap();
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn writer_needs_no_right_but_to_execute_it(db: PgPool) {
    let mut tx = db.begin().await.unwrap();
    for statement in [
        "create role tailcar_test_writer",
        "grant execute on function tailcar_enqueue(json, boolean) to tailcar_test_writer",
        "set local role tailcar_test_writer",
        // Its own table of that name is not the one that is written to.
        "create temporary table job (job_id text)",
    ] {
        sqlx::query(statement).execute(&mut *tx).await.unwrap();
    }

    assert_eq!(
        outcomes(&mut tx, &format!("[{}]", mail(r#"{"n":1}"#, "{}")), false).await.unwrap(),
        ["CREATED"]
    );

    sqlx::query("reset role").execute(&mut *tx).await.unwrap();
    let (real, own): (i64, i64) =
        sqlx::query_as("select (select count(*) from public.job), (select count(*) from pg_temp.job)")
            .fetch_one(&mut *tx)
            .await
            .unwrap();
    assert_eq!((real, own), (1, 0));
    tx.rollback().await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn overlapping_calls_in_opposite_order_do_not_deadlock_whatever_language_they_come_from(db: PgPool) {
    const MAIL: JobType = JobType::new("mail");
    for round in 0..10 {
        let numbers = || (0..40).map(|n| round * 100 + n);
        let by_sql: Vec<String> =
            numbers().map(|n| format!(r#"{{"n":{n}}}"#)).map(|id| mail(&id, &id)).collect();
        let by_rust: Vec<NewJob> = numbers()
            .rev()
            .map(|n| NewJob::new(&MAIL, MAIL.identity().integer("n", n), json!({ "n": n })))
            .collect();

        let by_sql = async {
            let mut tx = db.begin().await.unwrap();
            let said = outcomes(&mut tx, &format!("[{}]", by_sql.join(",")), false).await.unwrap();
            tx.commit().await.unwrap();
            said
        };
        let by_rust = async {
            let mut tx = db.begin().await.unwrap();
            let said = enqueue(&mut tx, &by_rust).await.unwrap();
            tx.commit().await.unwrap();
            said
        };
        let (by_sql, by_rust) = futures::join!(by_sql, by_rust);

        for (sql, rust) in by_sql.iter().zip(by_rust.iter().rev()) {
            let once = (sql == "CREATED") != (*rust == Enqueued::Created);
            assert!(once && *rust != Enqueued::Conflict, "{sql} {rust:?}");
        }
    }
}
