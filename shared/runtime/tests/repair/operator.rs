//! Requests of an operator, as they are sent.

use runtime::operator::{Error, answer};
use serde_json::json;
use sqlx::PgPool;

use crate::{execute, job, status};

const BURY: &str =
    "update job set status = 'DEAD', dead_reason = 'DLQ', finished_at = now() where job_id = $1";

#[sqlx::test(migrations = "../../migrations")]
async fn dead_job_is_found_by_a_dry_run_redriven_and_inspected(db: PgPool) {
    let job_id = job(&db, "a").await;
    execute(&db, BURY, &job_id).await;
    let mut request = json!({ "action": "redrive", "filter": { "reason": "DLQ" }, "limit": 10, "dry_run": true,
                              "who": "ada", "why": "the database is back" });

    let foretold = answer(&db, &request).await.unwrap();
    assert_eq!(status(&db, &job_id).await, "DEAD");
    request["dry_run"] = json!(false);
    let done = answer(&db, &request).await.unwrap();
    let seen =
        answer(&db, &json!({ "action": "inspect", "job_ids": [job_id, "0".repeat(64)] })).await.unwrap();

    let redriven = json!([{ "job_id": job_id, "event_id": format!("news:{job_id}:1") }]);
    let empty = json!([]);
    let result = json!({ "redriven": redriven, "stale": empty, "not_dead": empty, "missing": empty });
    assert_eq!(foretold, json!({ "action": "redrive", "action_id": 1, "dry_run": true, "result": result }));
    assert_eq!(done, json!({ "action": "redrive", "action_id": 2, "dry_run": false, "result": result }));
    assert_eq!(seen["jobs"][0]["job"]["status"], "PENDING");
    assert_eq!(seen["jobs"][0]["actions"][1]["why"], "the database is back");
    assert_eq!(seen["missing"], json!(["0".repeat(64)]));
}

#[sqlx::test(migrations = "../../migrations")]
async fn dead_job_is_dismissed(db: PgPool) {
    let job_id = job(&db, "a").await;
    execute(&db, BURY, &job_id).await;
    let request = json!({ "action": "dismiss", "job_ids": [job_id], "who": "ada", "why": "nobody needs it" });

    let done = answer(&db, &request).await.unwrap();

    assert_eq!(done["action"], "dismiss");
    assert_eq!(done["result"]["dismissed"], json!([job_id]));
}

#[sqlx::test(migrations = "../../migrations")]
async fn request_that_is_not_clear_does_nothing_and_leaves_no_record(db: PgPool) {
    let job_id = job(&db, "a").await;
    execute(&db, BURY, &job_id).await;

    let refused = answer(&db, &json!({ "action": "redrive", "job_ids": [job_id], "who": "ada" })).await;

    assert!(matches!(&refused, Err(Error::BadRequest(_))), "{refused:?}");
    assert_eq!(refused.unwrap_err().to_string(), "bad request: why is missing");
    assert_eq!(status(&db, &job_id).await, "DEAD");
    let records: i64 =
        sqlx::query_scalar("select count(*) from operator_action").fetch_one(&db).await.unwrap();
    assert_eq!(records, 0);
}
