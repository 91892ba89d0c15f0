//! Lanes: who drains a destination now, and how healthy it is.
//!
//! A lane is held by a lease on the database's clock. Every write by its holder compares the lease's
//! token, so a relay that was frozen past its lease can not touch a lane that somebody else holds. A
//! lane in trouble backs off as one unit; its events keep their attempts. Nothing here reads events.

use std::time::Duration;

use fault::FaultPoint;
use sqlx::PgExecutor;
use uuid::Uuid;

use crate::Error;
use crate::values::{error_text, interval, milliseconds};

/// Proof that this process drains a lane, until the lease ends or somebody takes the lane after that.
#[derive(Debug)]
#[must_use = "a lease that is dropped keeps its lane from others until it expires"]
pub struct Lease {
    destination: String,
    token: Uuid,
    failures: u32,
}

impl Lease {
    /// The lane.
    #[must_use]
    pub fn destination(&self) -> &str {
        &self.destination
    }

    /// How often in a row the lane was in trouble before it was taken. Above 0 the next send is a probe.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }
}

/// What came of trying to take a lane.
#[derive(Debug)]
pub enum Taken {
    /// The lane is ours.
    Ours(Lease),
    /// Somebody drains it.
    Held,
    /// It is in trouble and nobody may try it yet.
    BackingOff {
        /// Until the next probe.
        wait: Duration,
        /// What the last probe met.
        last_error: String,
    },
}

/// What became of a write to a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The lane was ours, and the write is done.
    Kept,
    /// Somebody took the lane after our lease ended; nothing was written.
    Lost,
}

impl Kept {
    fn from_rows(rows: u64) -> Self {
        if rows == 0 { Self::Lost } else { Self::Kept }
    }
}

/// Makes sure that each of `destinations` has its lane. Writes only what is missing.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn declare(db: impl PgExecutor<'_>, destinations: &[String]) -> Result<(), Error> {
    sqlx::query!(
        r#"
        -- lane::declare
        insert into lane (destination)
        select destination
          from unnest($1::text[]) as declared (destination)
         where not exists (select from lane where lane.destination = declared.destination)
         order by destination
            on conflict do nothing
        "#,
        destinations,
    )
    .execute(db)
    .fault_point("lane::declare")
    .await?;
    Ok(())
}

/// Takes the lane of `destination` for `lease`, unless it is held or backing off.
///
/// One statement decides: of any number of relays that run it at the same moment, one gets the lane.
/// The reason for a refusal is read afterwards and may be newer than the refusal.
///
/// # Errors
///
/// [`Error::Database`]. The lane may be taken even so; it frees itself when the lease ends.
pub async fn take(
    db: impl PgExecutor<'_> + Copy,
    destination: &str,
    lease: Duration,
) -> Result<Taken, Error> {
    let token = Uuid::new_v4();
    let failures = sqlx::query_scalar!(
        r#"
        -- lane::take
        update lane
           set lease_token = $2,
               lease_until = now() + $3
         where destination = $1
           and (lease_until is null or lease_until <= now())
           and (retry_at is null or retry_at <= now())
        returning failure_count
        "#,
        destination,
        token,
        interval(lease),
    )
    .fetch_optional(db)
    .fault_point("lane::take")
    .await?;
    match failures {
        Some(failures) => {
            let failures = u32::try_from(failures).unwrap_or(0);
            Ok(Taken::Ours(Lease { destination: destination.to_owned(), token, failures }))
        }
        None => why_refused(db, destination).await,
    }
}

async fn why_refused(db: impl PgExecutor<'_>, destination: &str) -> Result<Taken, Error> {
    let lane = sqlx::query!(
        r#"
        -- lane::why_refused
        select (extract(epoch from retry_at - now()) * 1000)::bigint as wait, last_error
          from lane
         where destination = $1
           and retry_at > now()
        "#,
        destination,
    )
    .fetch_optional(db)
    .fault_point("lane::why_refused")
    .await?;
    Ok(match lane {
        Some(lane) => Taken::BackingOff {
            wait: milliseconds(lane.wait.unwrap_or(0)),
            last_error: lane.last_error.unwrap_or_default(),
        },
        None => Taken::Held,
    })
}

/// Keeps the lane for another `lease`, counted from now.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn renew(db: impl PgExecutor<'_>, held: &Lease, lease: Duration) -> Result<Kept, Error> {
    let done = sqlx::query!(
        r#"
        -- lane::renew
        update lane
           set lease_until = now() + $3
         where destination = $1
           and lease_token = $2
        "#,
        held.destination,
        held.token,
        interval(lease),
    )
    .execute(db)
    .fault_point("lane::renew")
    .await?;
    Ok(Kept::from_rows(done.rows_affected()))
}

/// Gives the lane back, so that the next relay can take it at once.
///
/// # Errors
///
/// [`Error::Database`]. The lane frees itself when the lease ends.
pub async fn release(db: impl PgExecutor<'_>, held: Lease) -> Result<Kept, Error> {
    let done = sqlx::query!(
        r#"
        -- lane::release
        update lane
           set lease_token = null,
               lease_until = null
         where destination = $1
           and lease_token = $2
        "#,
        held.destination,
        held.token,
    )
    .execute(db)
    .fault_point("lane::release")
    .await?;
    Ok(Kept::from_rows(done.rows_affected()))
}

/// Gives the lane back in trouble: nobody takes it for `delay`, and then one probe tries it.
///
/// # Errors
///
/// [`Error::Database`]. The next relay finds the trouble again.
pub async fn back_off(
    db: impl PgExecutor<'_>,
    held: Lease,
    delay: Duration,
    error: &str,
) -> Result<Kept, Error> {
    let done = sqlx::query!(
        r#"
        -- lane::back_off
        update lane
           set lease_token = null,
               lease_until = null,
               failure_count = failure_count + 1,
               retry_at = now() + $3,
               last_error = $4
         where destination = $1
           and lease_token = $2
        "#,
        held.destination,
        held.token,
        interval(delay),
        error_text(error),
    )
    .execute(db)
    .fault_point("lane::back_off")
    .await?;
    Ok(Kept::from_rows(done.rows_affected()))
}

/// Notes that a probe went through. The lane stays ours, and everything due may flow.
///
/// # Errors
///
/// [`Error::Database`].
pub async fn recover(db: impl PgExecutor<'_>, held: &mut Lease) -> Result<Kept, Error> {
    let done = sqlx::query!(
        r#"
        -- lane::recover
        update lane
           set failure_count = 0,
               retry_at = null,
               last_error = null
         where destination = $1
           and lease_token = $2
        "#,
        held.destination,
        held.token,
    )
    .execute(db)
    .fault_point("lane::recover")
    .await?;
    held.failures = 0;
    Ok(Kept::from_rows(done.rows_affected()))
}
