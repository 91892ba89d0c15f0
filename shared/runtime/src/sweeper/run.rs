//! One run: guards first, then what was left to delete, then the laps, each within the run's bounds.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use store::sweep::laps::{self, AuditWish, Moved};
use store::sweep::{Doomed, Lap, NewRun, Position, Standing, installation, objects, runs};
use tracing::{error, info};

use super::Error;
use super::adoption::adopt;
use super::bucket::{Bucket, DELETE_KEYS_MAX};
use super::guard::{self, Refusal};
use super::page::{self, Page};
use super::policy::Policy;
use super::report::{Refused, Report, Stopped};
use super::request::Order;
use crate::time_left::TimeLeft;

/// What a run works with.
pub(super) struct Run<'a, B> {
    pub db: &'a PgPool,
    pub bucket: &'a B,
    pub policy: &'a Policy,
    pub time: TimeLeft,
    /// What a page takes at most; with less time left none is begun.
    pub page_time: Duration,
    pub report: Report,
}

/// What the guards left of a page to delete.
enum Verdict {
    /// All of these.
    Go(Vec<Doomed>),
    /// Only these; then the run is over.
    GoAndStop(Vec<Doomed>),
    /// Nothing; the page is passed over.
    Skip,
}

impl<B: Bucket> Run<'_, B> {
    /// Does everything, and keeps the result where the database takes it.
    pub async fn all(mut self, order: &Order) -> Result<Report, Error> {
        let standing = installation::standing(self.db).await?;
        match self.guards(&standing, order).await? {
            Ok(()) => self.work(order, &standing).await?,
            Err(refusal) => self.report.refuse_run(refusal),
        }
        if !standing.read_only && !standing.replica {
            self.record().await?;
        }
        self.log();
        Ok(self.report)
    }

    async fn guards(&mut self, standing: &Standing, order: &Order) -> Result<Result<(), Refusal>, Error> {
        if let Err(refusal) = guard::database(self.policy, standing) {
            return Ok(Err(refusal));
        }
        let answer = self.bucket.marker().await?;
        if let Err(refusal) = guard::clocks(standing.now, answer.answered_at) {
            return Ok(Err(refusal));
        }
        if adopt(self.db, self.bucket, standing, &answer, order).await? {
            self.report.adopted = true;
            return Ok(Ok(()));
        }
        Ok(guard::marker(standing, self.bucket.name(), &answer))
    }

    async fn work(&mut self, order: &Order, standing: &Standing) -> Result<(), Error> {
        if let Order::Audit { checksums, person } = order {
            let until_key = &self.policy.until_key(Lap::Audit, standing.now);
            let wish = AuditWish { until_key, checksums: *checksums, who: &person.who, why: &person.why };
            self.report.audit_started = Some(laps::start_audit(self.db, self.report.dry_run, &wish).await?);
        }
        self.delete_pending().await?;
        for lap in [Lap::Fresh, Lap::Late, Lap::Audit] {
            if self.report.stopped.is_none() {
                self.walk(lap, standing).await?;
            }
        }
        Ok(())
    }

    /// Deletions of earlier runs that S3 has not confirmed.
    async fn delete_pending(&mut self) -> Result<(), Error> {
        let limit = self.deletes_left().min(DELETE_KEYS_MAX);
        if self.report.dry_run || limit == 0 {
            return Ok(());
        }
        let pending = objects::pending(self.db, i64::try_from(limit).unwrap_or(i64::MAX)).await?;
        self.delete(&pending).await
    }

    async fn walk(&mut self, lap: Lap, standing: &Standing) -> Result<(), Error> {
        let Some(mut position) = self.open(lap, standing.now).await? else { return Ok(()) };
        while self.report.stopped.is_none() {
            self.report.stopped = self.bound();
            if self.report.stopped.is_some() || self.turn(lap, &mut position, standing).await? {
                break;
            }
        }
        Ok(())
    }

    /// Where `lap` is, started if it has to be.
    async fn open(&self, lap: Lap, now: DateTime<Utc>) -> Result<Option<Position>, Error> {
        let dry_run = self.report.dry_run;
        match laps::position(self.db, lap, dry_run).await? {
            Some(position) if position.until_key.is_some() => Ok(Some(position)),
            _ if lap == Lap::Audit => Ok(None),
            _ => Ok(laps::start(self.db, lap, dry_run, &self.policy.until_key(lap, now)).await?),
        }
    }

    fn bound(&self) -> Option<Stopped> {
        if self.report.pages >= self.policy.max_pages {
            return Some(Stopped::Pages);
        }
        (!self.time.allows(self.page_time)).then_some(Stopped::Time)
    }

    /// One page; whether it was the lap's last.
    async fn turn(&mut self, lap: Lap, position: &mut Position, standing: &Standing) -> Result<bool, Error> {
        let page = page::look(self.db, self.bucket, self.policy, position, standing.now).await?;
        self.report.count(&page.found);
        if !standing.holds_artifacts && page.found.listed > 0 {
            self.report.refuse_run(Refusal::DatabaseHoldsNoArtifacts);
            return Ok(true);
        }
        let endangered = page::note_damages(self.db, &page, position.checksums).await?;
        self.report.count_damages(&page.found.damages, endangered);
        match self.judge(&page) {
            Verdict::Skip => {}
            Verdict::Go(doomed) => self.take(&doomed).await?,
            Verdict::GoAndStop(doomed) => {
                self.take(&doomed).await?;
                let Some(last) = doomed.last() else { return Ok(true) };
                self.advance(lap, position, &last.key).await?;
                return Ok(true);
            }
        }
        self.pass(lap, position, &page).await
    }

    /// What the guards allow of `page`.
    fn judge(&mut self, page: &Page) -> Verdict {
        let found = &page.found;
        let orphans = u32::try_from(found.orphans.len()).unwrap_or(u32::MAX);
        let refused = |reason| Refused {
            reason,
            after: Some(page.after.clone()),
            through: Some(page.through.clone()),
            orphans,
            listed: found.listed,
        };
        if !self.policy.allows(orphans, found.listed) {
            self.report.refuse(refused(Refusal::TooManyOrphans));
            return Verdict::Skip;
        }
        let mut doomed: Vec<Doomed> = found.orphans.iter().chain(&found.leftovers).cloned().collect();
        doomed.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        let left = self.deletes_left();
        if doomed.len() <= left {
            return Verdict::Go(doomed);
        }
        self.report.refuse(refused(Refusal::TooManyDeletes));
        self.report.stopped = Some(Stopped::Deletes);
        doomed.truncate(left);
        Verdict::GoAndStop(doomed)
    }

    fn deletes_left(&self) -> usize {
        self.policy.max_deletes.saturating_sub(usize::try_from(self.report.doomed).unwrap_or(usize::MAX))
    }

    async fn take(&mut self, doomed: &[Doomed]) -> Result<(), Error> {
        if self.report.dry_run {
            self.report.doomed += doomed.len() as u64;
            return Ok(());
        }
        let claimed = page::claim(self.db, doomed).await?;
        self.report.overtaken_by_writers += (doomed.len() - claimed.len()) as u64;
        self.delete(&claimed).await
    }

    async fn delete(&mut self, claimed: &[Doomed]) -> Result<(), Error> {
        let undeleted = page::delete(self.db, self.bucket, claimed).await?;
        for failure in &undeleted {
            error!(key = failure.key, reason = failure.reason, "an orphan could not be deleted");
        }
        self.report.doomed += claimed.len() as u64;
        self.report.failed += undeleted.len() as u64;
        self.report.reclaimed += (claimed.len() - undeleted.len()) as u64;
        Ok(())
    }

    /// Moves past `page`; whether the lap is over, for us or altogether.
    async fn pass(&mut self, lap: Lap, position: &mut Position, page: &Page) -> Result<bool, Error> {
        if !page.last {
            return self.advance(lap, position, &page.through).await;
        }
        let started_at = position.started_at.unwrap_or_default();
        let mark = self.policy.mark(lap, started_at);
        match laps::finish(self.db, lap, self.report.dry_run, position.step, &mark).await? {
            Moved::Done => self.report.finish_lap(lap),
            Moved::Overtaken => self.report.stopped = Some(Stopped::Overtaken),
        }
        Ok(true)
    }

    async fn advance(&mut self, lap: Lap, position: &mut Position, key: &str) -> Result<bool, Error> {
        match laps::advance(self.db, lap, self.report.dry_run, position.step, key).await? {
            Moved::Done => {
                position.step += 1;
                key.clone_into(&mut position.cursor_key);
                Ok(false)
            }
            Moved::Overtaken => {
                self.report.stopped = Some(Stopped::Overtaken);
                Ok(true)
            }
        }
    }

    async fn record(&self) -> Result<(), Error> {
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let report = &self.report;
        let whole = serde_json::to_value(report).unwrap_or_default();
        let run = NewRun {
            dry_run: report.dry_run,
            listed: count(report.listed),
            orphans: count(report.orphans),
            reclaimed: count(report.reclaimed),
            refused: count(report.refused),
            missing: count(report.missing),
            report: &whole,
        };
        Ok(runs::record(self.db, &run).await?)
    }

    fn log(&self) {
        let Report {
            dry_run, listed, orphans, reclaimed, failed, refused, missing, differing, pages, ..
        } = self.report;
        for refused in &self.report.refusals {
            error!(reason = ?refused.reason, after = refused.after, through = refused.through, "the sweeper refused");
        }
        if missing + differing > 0 {
            error!(missing, differing, "rows refer to objects that are not there as written");
        }
        info!(dry_run, listed, orphans, reclaimed, failed, refused, missing, differing, pages, "swept");
    }
}
