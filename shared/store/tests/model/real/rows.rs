//! The rows that are there, as they are compared.

use domain::JobStatus;
use sqlx::types::Uuid;

use super::Real;
use crate::rows::{EventRow, JobRow, LaneRow, Rows};
use crate::subject::Slot;

#[derive(sqlx::FromRow)]
#[expect(clippy::struct_field_names, reason = "as the columns are named")]
struct Job {
    job_id: String,
    status: String,
    attempt_count: i32,
    redrive_generation: i32,
    dead_reason: Option<String>,
    due: i64,
    lease: Option<i64>,
    claimed_by: Option<Uuid>,
    requeue_count: i32,
    dismissed: bool,
    effects: i64,
}

#[derive(sqlx::FromRow)]
struct Event {
    job_id: String,
    redrive_generation: i32,
    status: String,
    ring: i32,
    attempt_count: i32,
    due: i64,
    published: Option<i64>,
    dead_reason: Option<String>,
}

impl Real {
    /// Every row of the protocol.
    pub async fn rows(&self) -> Rows {
        let mut rows = self.jobs().await;
        rows.extend(self.events().await);
        rows.extend(self.windows().await);
        rows.insert("lane".to_owned(), self.lane().await);
        rows
    }

    async fn jobs(&self) -> Rows {
        let jobs: Vec<Job> = sqlx::query_as(
            "select job_id, status, attempt_count, redrive_generation, dead_reason, claimed_by, requeue_count,
                    round(extract(epoch from next_attempt_at - now()) / 3600)::bigint as due,
                    round(extract(epoch from lease_until - now()) / 3600)::bigint as lease,
                    dismissed_at is not null as dismissed,
                    (select count(*) from effect where effect.job_id = job.job_id) as effects
               from job",
        )
        .fetch_all(&self.db)
        .await
        .unwrap();
        jobs.into_iter().map(|job| self.job(job)).collect()
    }

    fn job(&self, job: Job) -> (String, String) {
        let name_of = |held| self.claims.iter().position(|claim| claim.claimed_by() == held).unwrap();
        let row = JobRow {
            status: JobStatus::parse(&job.status).unwrap(),
            attempts: job.attempt_count,
            generation: job.redrive_generation,
            reason: job.dead_reason,
            due: job.due,
            lease: job.lease,
            holder: job.claimed_by.map(name_of),
            requeues: job.requeue_count,
            dismissed: job.dismissed,
            effects: job.effects,
        };
        (format!("job {:?}", Slot::of(&job.job_id)), format!("{row:?}"))
    }

    async fn events(&self) -> Rows {
        let events: Vec<Event> = sqlx::query_as(
            "select job_id, redrive_generation, status, ring, attempt_count, dead_reason,
                    round(extract(epoch from next_attempt_at - now()) / 3600)::bigint as due,
                    round(extract(epoch from published_at - now()) / 3600)::bigint as published
               from outbox_event",
        )
        .fetch_all(&self.db)
        .await
        .unwrap();
        events.into_iter().map(event).collect()
    }

    async fn windows(&self) -> Rows {
        let windows: Vec<(i64, i32, bool)> = sqlx::query_as(
            "select extract(epoch from window_start - $1)::bigint / 60, generation, backfilled
               from collection_window",
        )
        .bind(testkit::windows::first_minute())
        .fetch_all(&self.db)
        .await
        .unwrap();
        let words = |(minute, generation, backfilled)| {
            (format!("window {minute}"), format!("generation {generation}, backfilled {backfilled}"))
        };
        windows.into_iter().map(words).collect()
    }

    async fn lane(&self) -> String {
        let (failures, lease, retry): (i32, _, _) = sqlx::query_as(
            "select failure_count,
                    round(extract(epoch from lease_until - now()) / 3600)::bigint,
                    round(extract(epoch from retry_at - now()) / 3600)::bigint
               from lane",
        )
        .fetch_one(&self.db)
        .await
        .unwrap();
        format!("{:?}", LaneRow { lease, failures: failures.try_into().unwrap(), retry })
    }
}

fn event(event: Event) -> (String, String) {
    let known = ["NEW", "PUBLISHED", "DEAD"];
    let row = EventRow {
        status: known.into_iter().find(|status| *status == event.status).unwrap(),
        ring: event.ring,
        attempts: event.attempt_count,
        due: event.due,
        published: event.published,
        reason: event.dead_reason,
    };
    let name = format!("event {:?} of {}", Slot::of(&event.job_id), event.redrive_generation);
    (name, format!("{row:?}"))
}
