//! The way to the database: who is believed, and what an old schema does to a function.
//!
//! The tests of TLS need a server that speaks it: `make database-tls`.

#![allow(clippy::unwrap_used, reason = "a test that can not go on has failed")]

use aws_config::{BehaviorVersion, SdkConfig};
use runtime::database::{Error, Postgres};
use runtime::settings::{Access, Database, Pooler, Tls};
use sqlx::PgPool;

fn settings(url: String, tls: Tls) -> Database {
    Database { access: Access::Url(url), connections_max: 1, tls, pooler: Pooler::None }
}

fn postgres(settings: &Database) -> Result<Postgres, Error> {
    Postgres::new(settings, &SdkConfig::builder().behavior_version(BehaviorVersion::latest()).build())
}

/// What an attempt to connect says, with every cause.
async fn attempt(url: &str, root: Option<&str>) -> Result<(), String> {
    let tls = Tls::VerifyFull { root: root.map(variable) };
    let postgres = postgres(&settings(url.to_owned(), tls)).unwrap();
    let asked = sqlx::query("select 1").execute(postgres.pool()).await;
    asked.map(|_| ()).map_err(|error| format!("{error:?}"))
}

fn variable(name: &str) -> String {
    std::env::var(name).expect("run it by `make database-tls`")
}

#[tokio::test]
#[ignore = "needs a server with TLS"]
async fn tls_server_of_the_named_authority_is_believed() {
    attempt(&variable("TAILCAR_TLS_URL"), Some("TAILCAR_TLS_ROOT")).await.unwrap();
}

#[tokio::test]
#[ignore = "needs a server with TLS"]
async fn tls_server_of_another_authority_is_refused() {
    let url = variable("TAILCAR_TLS_URL");
    for root in [Some("TAILCAR_TLS_STRANGER"), None] {
        let refusal = attempt(&url, root).await.unwrap_err();
        assert!(refusal.contains("UnknownIssuer") || refusal.contains("BadSignature"), "{refusal}");
    }
}

#[tokio::test]
#[ignore = "needs a server with TLS"]
async fn tls_server_with_another_name_is_refused() {
    let url = variable("TAILCAR_TLS_URL").replace("localhost", "127.0.0.1");
    let refusal = attempt(&url, Some("TAILCAR_TLS_ROOT")).await.unwrap_err();
    assert!(refusal.contains("NotValidForName"), "{refusal}");
}

#[sqlx::test(migrations = false)]
async fn function_works_on_no_event_before_the_schema_is_new_enough(db: PgPool) {
    let url = sqlx::ConnectOptions::to_url_lossy(&*db.connect_options()).to_string();
    let postgres = postgres(&settings(url, Tls::AsUrl)).unwrap();

    let refusal = postgres.ready().await.unwrap_err();
    assert!(matches!(refusal, Error::Store(store::Error::SchemaTooOld { .. })), "{refusal:?}");

    store::migrate::migrate(&db).await.unwrap();
    postgres.ready().await.unwrap();
}

#[tokio::test]
async fn database_that_is_away_stops_no_start() {
    let postgres = postgres(&settings("postgres://127.0.0.1:1/none".to_owned(), Tls::AsUrl)).unwrap();
    assert!(postgres.ready().await.is_err());
}
