//! The sweeper's tables refuse rows that no correct sweeper could write.
#![allow(clippy::unwrap_used, reason = "a test that can not go on stops here")]

use sqlx::PgPool;
use store::sweep::{Doomed, installation, objects};

const BAD: &[(&str, &str)] = &[
    ("insert into installation (is_only) values (false)", "installation_is_single"),
    ("insert into installation default values", "installation_pkey"),
    ("update installation set bucket = 'b'", "installation_adopted_is_whole"),
    (
        "update installation set bucket = 'b', adopted_at = now(), adopted_by = '', adopted_why = 'w'",
        "installation_adopted_by_not_empty",
    ),
    (
        "update installation set bucket = 'b', adopted_at = now(), adopted_by = 'a', adopted_why = ''",
        "installation_adopted_why_not_empty",
    ),
    ("insert into sweep_lap (lap, dry_run) values ('SLOW', true)", "sweep_lap_is_known"),
    ("insert into sweep_lap (lap, dry_run, step) values ('LATE', true, -1)", "sweep_lap_step_not_negative"),
    (
        "insert into sweep_lap (lap, dry_run, until_key) values ('LATE', true, 'k')",
        "sweep_lap_running_has_start",
    ),
    (
        "insert into sweep_lap (lap, dry_run, checksums) values ('LATE', true, true)",
        "sweep_lap_checksums_in_audits",
    ),
    ("insert into sweep_lap (lap, dry_run) values ('AUDIT', true)", "sweep_lap_audits_are_requested"),
    ("insert into pending_deletion (key, etag) values ('nowhere', 'e')", "pending_deletion_artifact_fkey"),
    (
        "update pending_deletion set attempt_count = -1, tried_at = now()",
        "pending_deletion_attempts_not_negative",
    ),
    ("update pending_deletion set attempt_count = 1", "pending_deletion_tried_has_time"),
    ("insert into artifact_damage (key, kind, detail) values ('k', 'ODD', '')", "artifact_damage_is_known"),
    (
        "insert into sweep_run (dry_run, listed, orphans, reclaimed, refused, missing, report)
         values (true, 0, 0, 0, -1, 0, '{}')",
        "sweep_run_counts_not_negative",
    ),
];

fn doomed(key: &str) -> Doomed {
    Doomed { key: key.to_owned(), etag: "e".to_owned() }
}

#[sqlx::test(migrations = "../../migrations")]
async fn impossible_rows_are_refused_by_the_constraint_that_says_so(db: PgPool) {
    objects::reclaim(&db, &[doomed("k")]).await.unwrap();
    for (change, constraint) in BAD {
        let error = sqlx::query(*change).execute(&db).await.expect_err(change);
        let refusal = error.as_database_error().unwrap();
        assert_eq!(refusal.constraint(), Some(*constraint), "{change}: {refusal}");
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn reclaim_wins_what_has_no_row_and_what_was_reclaimed_and_nothing_else(db: PgPool) {
    sqlx::query(
        "insert into artifact (key, state, sha256, size_bytes, owner) values ('live', 'REFERENCED', repeat('a', 64), 1, 'test')",
    )
    .execute(&db)
    .await
    .unwrap();

    let first = objects::reclaim(&db, &[doomed("orphan"), doomed("live")]).await.unwrap();
    let again = objects::reclaim(&db, &[doomed("orphan"), doomed("live")]).await.unwrap();

    assert_eq!(first, [doomed("orphan")]);
    assert_eq!(again, [doomed("orphan")]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn database_that_was_made_is_a_writer_without_artifacts_or_bucket(db: PgPool) {
    let standing = installation::standing(&db).await.unwrap();
    assert!(!standing.replica && !standing.read_only && !standing.holds_artifacts);
    assert_eq!(standing.bucket, None);
}
