//! Migrations: each once, in order, and never a changed one.

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{PgPool, SqlSafeStr};
use store::Error;
use store::migrate::{migrate, migrate_own};

#[sqlx::test(migrations = false)]
async fn empty_database_gets_every_migration_once(db: PgPool) {
    let applied = migrate(&db).await.unwrap();

    assert_eq!(applied.first().map(String::as_str), Some("0001 protocol"));
    assert_eq!(migrate(&db).await.unwrap(), Vec::<String>::new());
}

#[sqlx::test(migrations = false)]
async fn two_migrators_at_once_apply_each_migration_once(db: PgPool) {
    let (one, other) = futures::join!(migrate(&db), migrate(&db));

    let (one, other) = (one.unwrap(), other.unwrap());
    assert_ne!(one.is_empty(), other.is_empty(), "{one:?} {other:?}");
}

#[sqlx::test(migrations = false)]
async fn edited_migration_is_refused_and_leaves_no_lock_behind(db: PgPool) {
    migrate(&db).await.unwrap();
    sqlx::query("update _sqlx_migrations set checksum = '\\x00' where version = 1")
        .execute(&db)
        .await
        .unwrap();

    for _ in 0..2 {
        let error = migrate(&db).await.unwrap_err();
        assert!(matches!(error, Error::Migration(_)), "{error:?}");
        assert!(!error.is_transient());
    }
}

#[sqlx::test(migrations = false)]
async fn migration_of_a_newer_release_is_passed_over(db: PgPool) {
    migrate(&db).await.unwrap();
    sqlx::query(
        "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
         values (9999, 'newer', true, '\\x00', 0)",
    )
    .execute(&db)
    .await
    .unwrap();

    assert_eq!(migrate(&db).await.unwrap(), Vec::<String>::new());
}

#[sqlx::test(migrations = false)]
async fn own_migrations_may_have_any_number_and_refer_to_the_tables_of_the_protocol(db: PgPool) {
    let statement = "create table receipt (job_id text not null references job (job_id))".into_sql_str();
    let first = Migration::new(1, "receipts".into(), MigrationType::Simple, statement, false);
    let own = Migrator::with_migrations(vec![first]);
    migrate(&db).await.unwrap();

    assert_eq!(migrate_own(&db, &own).await.unwrap(), ["0001 receipts"]);
    assert_eq!(migrate_own(&db, &own).await.unwrap(), Vec::<String>::new());
    assert_eq!(migrate(&db).await.unwrap(), Vec::<String>::new());
}
