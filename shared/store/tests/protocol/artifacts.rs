//! Artifacts: the primary key decides between a late writer and the sweeper.

use sqlx::PgPool;
use store::Error;
use store::artifact::{NewArtifact, refer};
use testkit::windows::digest;

async fn states(db: &PgPool) -> Vec<(String, String)> {
    sqlx::query_as("select key, state from artifact order by key").fetch_all(db).await.unwrap()
}

#[sqlx::test(migrations = "../../migrations")]
async fn writer_that_is_late_meets_the_sweeper_and_writes_nothing(db: PgPool) {
    sqlx::query("insert into artifact (key, state, owner) values ('b', 'RECLAIMED', 'sweeper')")
        .execute(&db)
        .await
        .unwrap();
    let sha256 = digest('a');
    let written = ["a", "b"].map(|key| NewArtifact { key, sha256: &sha256, size_bytes: 1, owner: "news" });

    let error = refer(&db, &written).await.unwrap_err();

    assert!(matches!(error, Error::ArtifactReclaimed), "{error:?}");
    assert_eq!(states(&db).await, [("b".to_owned(), "RECLAIMED".to_owned())]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn referred_artifacts_have_their_rows(db: PgPool) {
    let sha256 = digest('a');
    let written = ["b", "a"].map(|key| NewArtifact { key, sha256: &sha256, size_bytes: 1, owner: "news" });

    refer(&db, &written).await.unwrap();
    refer(&db, &[]).await.unwrap();

    assert_eq!(states(&db).await, ["a", "b"].map(|key| (key.to_owned(), "REFERENCED".to_owned())));
}

#[sqlx::test(migrations = "../../migrations")]
async fn key_is_never_used_twice(db: PgPool) {
    let sha256 = digest('a');
    let written = [NewArtifact { key: "a", sha256: &sha256, size_bytes: 1, owner: "news" }];
    refer(&db, &written).await.unwrap();

    assert!(matches!(refer(&db, &written).await.unwrap_err(), Error::ArtifactReclaimed));
}
