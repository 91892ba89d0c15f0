//! Artifacts: immutable objects in S3, each with its row here.
//!
//! The primary key decides between a late writer and the sweeper: whoever inserts first wins. So the
//! writer's insert is plain, never `do nothing`, and runs in the transaction whose rows need the object.

use fault::FaultPoint;
use sqlx::PgExecutor;

use crate::Error;

/// An object that was written and is about to be referred to.
#[derive(Clone, Copy, Debug)]
pub struct NewArtifact<'a> {
    /// Its key in the bucket; never used before, never used again.
    pub key: &'a str,
    /// SHA-256 of its bytes, in hex.
    pub sha256: &'a str,
    /// Its size.
    pub size_bytes: i64,
    /// What it belongs to, for people: `window`, `news`, ….
    pub owner: &'a str,
}

/// Makes `artifacts` referenced, so that the sweeper leaves them alone for ever.
///
/// # Errors
///
/// [`Error::ArtifactReclaimed`] when a key has a row already: the sweeper was faster. Roll back, write
/// the object again under a new key. [`Error::Database`] otherwise.
pub async fn refer(tx: impl PgExecutor<'_>, artifacts: &[NewArtifact<'_>]) -> Result<(), Error> {
    let keys: Vec<&str> = artifacts.iter().map(|artifact| artifact.key).collect();
    let digests: Vec<&str> = artifacts.iter().map(|artifact| artifact.sha256).collect();
    let sizes: Vec<i64> = artifacts.iter().map(|artifact| artifact.size_bytes).collect();
    let owners: Vec<&str> = artifacts.iter().map(|artifact| artifact.owner).collect();
    sqlx::query!(
        r#"
        -- artifact::refer
        insert into artifact (key, state, sha256, size_bytes, owner)
        select key, 'REFERENCED', sha256, size_bytes, owner
          from unnest($1::text[], $2::text[], $3::bigint[], $4::text[])
               as written (key, sha256, size_bytes, owner)
         order by key
        "#,
        &keys as &[&str],
        &digests as &[&str],
        &sizes,
        &owners as &[&str],
    )
    .execute(tx)
    .fault_point("artifact::refer")
    .await
    .map_err(reclaimed)?;
    Ok(())
}

fn reclaimed(error: sqlx::Error) -> Error {
    let constraint = error.as_database_error().and_then(|refusal| refusal.constraint());
    if constraint == Some("artifact_pkey") { Error::ArtifactReclaimed } else { Error::Database(error) }
}
