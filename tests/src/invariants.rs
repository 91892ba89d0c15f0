//! What must hold when everything has come to rest, whatever died on the way.

use sqlx::PgPool;

use crate::Result;
use crate::effects;
use crate::world::World;

/// A property, and a query that counts what breaks it.
type Invariant = (&'static str, &'static str);

/// The protocol's own. Each counts rows that must not be there.
const PROTOCOL: [Invariant; 6] = [
    ("every committed job is terminal", "select count(*) from job where status not in ('SUCCEEDED', 'DEAD')"),
    (
        "no event without a job",
        "select count(*) from outbox_event e where not exists (select from job where job.job_id = e.job_id)",
    ),
    (
        "no job without an event of its generation",
        "select count(*) from job where not exists (select from outbox_event e where e.job_id = job.job_id \
         and e.redrive_generation = job.redrive_generation)",
    ),
    ("no event waits", "select count(*) from outbox_event where status = 'NEW'"),
    (
        "the sums agree",
        "select abs((select count(*) from job) - (select count(*) from job where status in ('SUCCEEDED', 'DEAD'))) \
              + abs((select coalesce(sum(redrive_generation + 1), 0) from job) - (select count(*) from outbox_event))",
    ),
    (
        "every artifact that a row names has its own",
        "select count(*) from job left join artifact on key = artifact_key where artifact_key is not null \
         and state is distinct from 'REFERENCED'",
    ),
];

/// Those of worlds whose jobs are the subject's.
const SUBJECT: [Invariant; 3] = [
    (
        "every job that succeeded had its effect exactly once",
        "select count(*) from job where status = 'SUCCEEDED' \
         and (select count(*) from subject_effect effect where effect.job_id = job.job_id) <> 1",
    ),
    (
        "no job that failed had an effect",
        "select count(*) from subject_effect effect join job using (job_id) where status <> 'SUCCEEDED'",
    ),
    (
        "a follow-up is there exactly when its parent succeeded",
        "select count(*) from (select payload ->> 'name' || '-follow-up' as name, payload ->> 'number' as number, job_id \
           from job where payload ->> 'behave' = 'follow-up' and status = 'SUCCEEDED') as parent \
         full join (select payload ->> 'name' as name, payload ->> 'number' as number, job_id from job \
           where payload ->> 'name' like '%-follow-up') as child using (name, number) \
         where parent.job_id is null or child.job_id is null",
    ),
];

/// The protocol's invariants that do not hold in `db`, in words.
///
/// # Errors
///
/// The database refuses.
pub async fn broken(db: &PgPool) -> Result<Vec<String>> {
    check(db, &PROTOCOL).await
}

/// The same for a world of the subject's jobs.
///
/// # Errors
///
/// The database refuses.
pub async fn broken_with_subject(db: &PgPool) -> Result<Vec<String>> {
    let mut broken = check(db, &PROTOCOL).await?;
    broken.extend(check(db, &SUBJECT).await?);
    Ok(broken)
}

/// The same for a world of a market: its effects are those that follow from what it committed.
///
/// # Errors
///
/// The database refuses, or the world has no configuration.
pub async fn broken_with_market(world: &World) -> Result<Vec<String>> {
    let mut broken = check(&world.db, &PROTOCOL).await?;
    broken.extend(effects::wrong(&world.db, &std::fs::read_to_string(world.configuration())?).await?);
    Ok(broken)
}

async fn check(db: &PgPool, invariants: &[Invariant]) -> Result<Vec<String>> {
    let mut broken = Vec::new();
    for (property, query) in invariants {
        let count: i64 = sqlx::query_scalar(*query).fetch_one(db).await?;
        if count != 0 {
            broken.push(format!("not so: {property} ({count})"));
        }
    }
    Ok(broken)
}
