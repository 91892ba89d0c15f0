//! Artifacts that rows refer to and the bucket does not hold as written. Noted, never mended.

use fault::FaultPoint;
use serde::Serialize;
use sqlx::PgExecutor;

use crate::Error;

/// What is wrong with an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Kind {
    /// There is no such object.
    Missing,
    /// The object has another size than was written.
    Size,
    /// The object's bytes are others than were written.
    Checksum,
}

/// One damaged artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Its key.
    pub key: String,
    /// What is wrong.
    pub kind: Kind,
    /// For people.
    pub detail: String,
}

/// A job that reads a damaged artifact and is not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Endangered {
    /// The artifact.
    pub key: String,
    /// The job: unfinished, or dead and not dismissed.
    pub job_id: String,
}

impl Kind {
    /// As it is stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "MISSING",
            Self::Size => "SIZE",
            Self::Checksum => "CHECKSUM",
        }
    }
}

/// Notes `damages`, the whole truth about the keys `looked_at`: what was noted for others of these is
/// taken back, as they were found whole. Without `checksums` nothing was learnt about those.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn note(
    db: impl PgExecutor<'_>,
    looked_at: &[&str],
    damages: &[Damage],
    checksums: bool,
) -> Result<(), Error> {
    let keys: Vec<&str> = damages.iter().map(|damage| damage.key.as_str()).collect();
    let kinds: Vec<&str> = damages.iter().map(|damage| damage.kind.as_str()).collect();
    let details: Vec<&str> = damages.iter().map(|damage| damage.detail.as_str()).collect();
    sqlx::query!(
        r#"
        -- sweep::note_damage
        with whole as (
            delete from artifact_damage
             where key = any($1) and key <> all($2) and ($5 or kind <> 'CHECKSUM')
        )
        insert into artifact_damage (key, kind, detail)
        select key, kind, detail
          from unnest($2::text[], $3::text[], $4::text[]) as damaged (key, kind, detail)
         order by key
            on conflict (key) do update
           set kind = excluded.kind, detail = excluded.detail, last_seen_at = excluded.last_seen_at
        "#,
        looked_at as &[&str],
        &keys as &[&str],
        &kinds as &[&str],
        &details as &[&str],
        checksums,
    )
    .execute(db)
    .fault_point("sweep::note_damage")
    .await?;
    Ok(())
}

/// The jobs that need the artifacts `keys`, at most `limit`.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn endangered(
    db: impl PgExecutor<'_>,
    keys: &[&str],
    limit: i64,
) -> Result<Vec<Endangered>, Error> {
    let endangered = sqlx::query_as!(
        Endangered,
        r#"
        -- sweep::endangered
        select artifact_key as "key!", job_id
          from job
         where artifact_key = any($1)
           and (finished_at is null or (dead_reason is not null and dismissed_at is null))
         order by artifact_key, job_id
         limit $2
        "#,
        keys as &[&str],
        limit,
    )
    .fetch_all(db)
    .fault_point("sweep::endangered")
    .await?;
    Ok(endangered)
}
