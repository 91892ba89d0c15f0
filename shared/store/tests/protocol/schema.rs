//! The schema refuses rows that no correct program could write.

use sqlx::PgPool;

/// A change to a row that is right, and the constraint that refuses it.
type Bad = (&'static str, &'static str);

const JOB: &[Bad] = &[
    ("update job set job_id = 'x'", "job_id_is_hex"),
    ("update job set job_type = ''", "job_type_not_empty"),
    ("update job set destination = ''", "job_destination_not_empty"),
    ("update job set status = 'DONE'", "job_status_is_known"),
    (
        "update job set status = 'CLAIMED', attempt_count = 1, claimed_by = gen_random_uuid()",
        "job_claimed_has_lease",
    ),
    ("update job set status = 'CLAIMED', attempt_count = 1, lease_until = now()", "job_claimed_has_holder"),
    ("update job set claimed_by = gen_random_uuid()", "job_claimed_has_holder"),
    ("update job set lease_until = now()", "job_claimed_has_lease"),
    (
        "update job set status = 'CLAIMED', claimed_by = gen_random_uuid(), lease_until = now()",
        "job_claimed_was_tried",
    ),
    ("update job set status = 'SUCCEEDED', finished_at = now()", "job_claimed_was_tried"),
    ("update job set status = 'SUCCEEDED', attempt_count = 1", "job_terminal_is_finished"),
    ("update job set finished_at = now()", "job_terminal_is_finished"),
    ("update job set status = 'DEAD', finished_at = now()", "job_dead_has_reason"),
    ("update job set dead_reason = 'STALE'", "job_dead_has_reason"),
    ("update job set dismissed_at = now()", "job_dismissed_is_dead"),
    ("update job set attempt_count = 9", "job_attempts_in_range"),
    ("update job set attempt_count = -1", "job_attempts_in_range"),
    ("update job set max_attempts = 0", "job_max_attempts_positive"),
    ("update job set redrive_generation = -1", "job_generation_not_negative"),
    ("update job set requeue_count = -1", "job_requeue_count_not_negative"),
    ("update job set max_age = interval '0'", "job_max_age_positive"),
    ("update job set dataset = 'us8'", "job_window_is_whole"),
    ("update job set artifact_key = 'nowhere'", "job_artifact_fkey"),
];

const EVENT: &[Bad] = &[
    ("update outbox_event set status = 'SENT'", "outbox_event_status_is_known"),
    ("update outbox_event set event_id = 'x'", "outbox_event_id_is_derived"),
    ("update outbox_event set redrive_generation = 1", "outbox_event_id_is_derived"),
    ("update outbox_event set status = 'PUBLISHED'", "outbox_event_published_has_time"),
    ("update outbox_event set published_at = now()", "outbox_event_published_has_time"),
    ("update outbox_event set status = 'DEAD'", "outbox_event_dead_has_reason"),
    ("update outbox_event set dead_reason = 'x'", "outbox_event_dead_has_reason"),
    ("update outbox_event set attempt_count = -1", "outbox_event_attempts_not_negative"),
    ("update outbox_event set ring = -1", "outbox_event_ring_not_negative"),
    ("delete from job", "outbox_event_job_fkey"),
];

const WINDOW: &[Bad] = &[
    (
        "update collection_window set window_start = window_start + interval '1 second'",
        "collection_window_on_the_minute",
    ),
    ("update collection_window set generation = 0", "collection_window_generation_positive"),
    ("update collection_window set generation = 2", "collection_window_corrected_after_first"),
    ("update collection_window set corrected_at = now()", "collection_window_corrected_after_first"),
    ("update collection_window set content_digest = 'x'", "collection_window_digest_is_hex"),
    ("update collection_window set bar_count = 1", "collection_window_bars_have_artifact"),
    ("update collection_window set artifact_key = 'key'", "collection_window_bars_have_artifact"),
    ("update collection_window set bar_count = -1", "collection_window_bar_count_not_negative"),
    (
        "update collection_window set bar_count = 1, artifact_key = 'nowhere'",
        "collection_window_artifact_fkey",
    ),
];

const ARTIFACT: &[Bad] = &[
    ("update artifact set key = ''", "artifact_key_fits_s3"),
    ("update artifact set key = repeat('k', 1025)", "artifact_key_fits_s3"),
    ("update artifact set state = 'LOST'", "artifact_state_is_known"),
    ("update artifact set sha256 = null", "artifact_referenced_is_measured"),
    ("update artifact set size_bytes = null", "artifact_referenced_is_measured"),
    ("update artifact set sha256 = upper(sha256)", "artifact_sha256_is_hex"),
    ("update artifact set size_bytes = -1", "artifact_size_not_negative"),
];

const LANE: &[Bad] = &[
    ("update lane set lease_token = gen_random_uuid()", "lane_lease_is_whole"),
    ("update lane set lease_until = now()", "lane_lease_is_whole"),
    ("update lane set failure_count = -1, retry_at = now()", "lane_failure_count_not_negative"),
    ("update lane set failure_count = 1", "lane_backs_off_after_failure"),
    ("update lane set retry_at = now()", "lane_backs_off_after_failure"),
];

async fn one_row_of_each(db: &PgPool) {
    testkit::jobs::queued_job(db).await;
    testkit::windows::opened(db, testkit::windows::first_minute()).await;
    let rows = [
        "insert into artifact (key, state, sha256, size_bytes, owner)
         values ('key', 'REFERENCED', repeat('a', 64), 1, 'news')",
        "insert into lane (destination) values ('news') on conflict do nothing",
    ];
    for row in rows {
        sqlx::query(row).execute(db).await.unwrap();
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn impossible_rows_are_refused_by_the_constraint_that_says_so(db: PgPool) {
    one_row_of_each(&db).await;
    for (change, constraint) in [JOB, EVENT, WINDOW, ARTIFACT, LANE].concat() {
        let error = sqlx::query(change).execute(&db).await.expect_err(change);
        let refusal = error.as_database_error().unwrap();
        assert_eq!(refusal.constraint(), Some(constraint), "{change}: {refusal}");
    }
}

/// Every check of the protocol's tables is one that a row above has met.
#[sqlx::test(migrations = "../../migrations")]
async fn every_check_has_met_a_row_it_refuses(db: PgPool) {
    let checks: Vec<String> = sqlx::query_scalar(
        "select conname::text from pg_constraint
          where contype = 'c'
            and conrelid = any('{job, outbox_event, collection_window, artifact, lane}'::regclass[])
          order by conname",
    )
    .fetch_all(&db)
    .await
    .unwrap();
    let tried = [JOB, EVENT, WINDOW, ARTIFACT, LANE].concat();
    let untried: Vec<_> =
        checks.iter().filter(|check| tried.iter().all(|(_, constraint)| constraint != check)).collect();
    assert!(untried.is_empty(), "no row tries {untried:?}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn indexed_ids_of_the_protocol_compare_byte_by_byte(db: PgPool) {
    let by_language: Vec<String> = sqlx::query_scalar(
        r#"select distinct table_of_it.relname || '.' || field.attname
             from pg_index
             join pg_class as table_of_it on table_of_it.oid = pg_index.indrelid
             join pg_attribute as field on field.attrelid = table_of_it.oid and field.attnum = any (pg_index.indkey)
            where table_of_it.relname in ('artifact', 'job', 'lane', 'outbox_event', 'quarantined_message')
              and field.atttypid = 'text'::regtype
              and field.attcollation <> '"C"'::regcollation"#,
    )
    .fetch_all(&db)
    .await
    .unwrap();

    assert_eq!(by_language, Vec::<String>::new());
}
