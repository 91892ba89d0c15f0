//! What each role may do, by refusals. That it may do what its statements need is shown where the real
//! functions run: the fault scenarios log in as these roles.

#![allow(clippy::unwrap_used, reason = "a test that can not go on has failed")]

use sqlx::postgres::PgPoolOptions;
use sqlx::{PgPool, Row};
use store::roles::{ROLES, create_logins, login};

/// Each table of the protocol, and who may read it.
const READERS: [(&str, &[&str]); 4] = [
    (
        "job",
        &["collector", "consumer", "dead_letter", "reconciler", "sweeper", "janitor", "monitor", "operator"],
    ),
    (
        "outbox_event",
        &["collector", "relay", "consumer", "dead_letter", "reconciler", "janitor", "monitor", "operator"],
    ),
    ("lane", &["relay", "monitor", "operator"]),
    ("quarantined_message", &["dead_letter", "monitor", "operator"]),
];

/// A pool that is logged in as `role`.
async fn logged_in(db: &PgPool, role: &str) -> PgPool {
    create_logins(db).await.unwrap();
    let options = (*db.connect_options()).clone().username(&login(role));
    PgPoolOptions::new().max_connections(1).connect_with(options).await.unwrap()
}

/// Whether PostgreSQL says that the role may not do this.
async fn is_refused(db: &PgPool, statement: &'static str) -> bool {
    let error = sqlx::query(statement).execute(db).await.expect_err(statement);
    error.as_database_error().unwrap().code().as_deref() == Some("42501")
}

#[sqlx::test(migrations = "../../migrations")]
async fn role_reads_exactly_the_tables_it_needs(db: PgPool) {
    for (table, readers) in READERS {
        for role in ROLES {
            let may: bool = sqlx::query_scalar("select has_any_column_privilege($1, $2, 'select')")
                .bind(role)
                .bind(table)
                .fetch_one(&db)
                .await
                .unwrap();
            let named = readers.iter().any(|reader| role == format!("tailcar_{reader}"));
            assert_eq!(may, named, "{role} on {table}");
        }
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn relay_can_not_touch_a_job(db: PgPool) {
    let relay = logged_in(&db, "tailcar_relay").await;
    for statement in [
        "select from job",
        "update job set status = 'SUCCEEDED'",
        "delete from job",
        "insert into job default values",
        "delete from outbox_event",
        "update outbox_event set body = ''",
        "update outbox_event set dead_reason = 'X'",
    ] {
        assert!(is_refused(&relay, statement).await, "{statement}");
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn sweeper_can_not_touch_an_event_and_a_reconciler_no_state_of_a_job(db: PgPool) {
    let sweeper = logged_in(&db, "tailcar_sweeper").await;
    let reconciler = logged_in(&db, "tailcar_reconciler").await;

    for statement in ["select from outbox_event", "delete from outbox_event", "select payload from job"] {
        assert!(is_refused(&sweeper, statement).await, "{statement}");
    }
    for statement in ["update job set status = 'DEAD'", "update job set attempt_count = 0", "delete from job"]
    {
        assert!(is_refused(&reconciler, statement).await, "{statement}");
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn monitor_writes_nothing_anywhere(db: PgPool) {
    let monitor = logged_in(&db, "tailcar_monitor").await;
    let writable: Vec<String> = sqlx::query(
        "select relname::text as name from pg_class
          where relnamespace = current_schema()::regnamespace and relkind = 'r'
            and (has_table_privilege(current_user, oid, 'insert, delete, truncate')
                 or has_any_column_privilege(current_user, oid, 'update'))",
    )
    .fetch_all(&monitor)
    .await
    .unwrap()
    .iter()
    .map(|row| row.get("name"))
    .collect();
    assert!(writable.is_empty(), "{writable:?}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn login_has_its_limits_of_its_own(db: PgPool) {
    let relay = logged_in(&db, "tailcar_relay").await;
    for (setting, limit) in [("statement_timeout", "30s"), ("lock_timeout", "5s")] {
        // Not what the pool of the test asks for: what the user brings along.
        let set: Option<String> = sqlx::query_scalar(
            "select split_part(setting, '=', 2) from pg_db_role_setting, unnest(setconfig) as setting
              where setrole = (select oid from pg_roles where rolname = current_user)
                and setting like $1 || '=%'",
        )
        .bind(setting)
        .fetch_optional(&relay)
        .await
        .unwrap();
        assert_eq!(set.as_deref(), Some(limit), "{setting}");
    }
}

/// RDS gives nobody a superuser: its master may create roles and databases, and owns what it makes.
#[sqlx::test(migrations = false)]
async fn master_that_is_no_superuser_migrates_and_makes_the_logins(db: PgPool) {
    let master = format!("master_{}", uuid::Uuid::new_v4().simple());
    for statement in [
        format!("create role {master} login createrole createdb"),
        format!("grant create, usage on schema public to {master}"),
    ] {
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&db).await.unwrap();
    }
    let options = (*db.connect_options()).clone().username(&master);
    let pool = PgPoolOptions::new().max_connections(2).connect_with(options).await.unwrap();

    let applied = store::migrate::migrate(&pool).await.unwrap();
    create_logins(&pool).await.unwrap();
    store::migrate::require(&pool).await.unwrap();

    let relay = logged_in(&db, "tailcar_relay").await;
    assert!(applied.iter().any(|migration| migration == "0006 roles"), "{applied:?}");
    assert!(is_refused(&relay, "select from job").await);
    sqlx::query("select from outbox_event").execute(&relay).await.unwrap();
    store::migrate::require(&relay).await.unwrap();
    relay.close().await;
    pool.close().await;
    for statement in [format!("drop owned by {master}"), format!("drop role {master}")] {
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&db).await.unwrap();
    }
}

#[sqlx::test(migrations = false)]
async fn schema_that_is_too_old_is_refused_by_name_and_a_newer_one_is_not(db: PgPool) {
    let refusal = store::migrate::require(&db).await.unwrap_err().to_string();
    assert!(refusal.contains("the newest there is none; run the migrator"), "{refusal}");

    store::migrate::migrate(&db).await.unwrap();
    store::migrate::require(&db).await.unwrap();

    sqlx::query("delete from _sqlx_migrations where version > 3").execute(&db).await.unwrap();
    let refusal = store::migrate::require(&db).await.unwrap_err().to_string();
    assert!(refusal.contains("is needed, the newest there is 0003 repair"), "{refusal}");

    sqlx::query(
        "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
         values (9999, 'of a later release', true, '', 0)",
    )
    .execute(&db)
    .await
    .unwrap();
    store::migrate::require(&db).await.unwrap();
}
