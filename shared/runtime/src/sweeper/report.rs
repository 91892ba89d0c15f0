//! What a run found and did: the function's answer, a row in `sweep_run`, a log line.

use serde::Serialize;
use store::sweep::{Damage, Doomed, Endangered, Kind, Lap};

use crate::metrics::Line;

use super::compare::Comparison;
use super::guard::Refusal;

/// Examples of each kind in a report, at most.
const EXAMPLES_MAX: usize = 20;

/// The result of a run. Counts are objects unless they say otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Nothing was deleted, on purpose: `orphans` less what was refused is what would have been.
    pub dry_run: bool,
    /// Looked at.
    pub listed: u64,
    /// Without a row and old enough.
    pub orphans: u64,
    /// Reclaimed earlier, and still there.
    pub leftovers: u64,
    /// Deleted; in a dry run none.
    pub reclaimed: u64,
    /// What a real run would have tried to delete; in a real run what it did try.
    pub doomed: u64,
    /// Of these, those that S3 did not delete; the next run tries again.
    pub failed: u64,
    /// Of these, those whose writer was faster.
    pub overtaken_by_writers: u64,
    /// Without a row and too young to tell.
    pub young: u64,
    /// Placeholders and what is not the product's.
    pub left_alone: u64,
    /// Rows without an object.
    pub missing: u64,
    /// Objects of another size or checksum than was written.
    pub differing: u64,
    /// Guards that refused: pages skipped, or the whole run.
    pub refused: u64,
    /// Listings.
    pub pages: u32,
    /// The first refusals.
    pub refusals: Vec<Refused>,
    /// The first orphans.
    pub orphan_keys: Vec<String>,
    /// The first damages.
    pub damages: Vec<Reported>,
    /// The first jobs that need a damaged artifact.
    pub endangered_jobs: Vec<Endangered>,
    /// Laps that ended in this run.
    pub laps_finished: Vec<&'static str>,
    /// Why the run ended before it was through.
    pub stopped: Option<Stopped>,
    /// An audit that was asked for: whether it was started, or one runs already.
    pub audit_started: Option<bool>,
    /// The bucket's marker was written by this run.
    pub adopted: bool,
}

impl Report {
    /// Writes what the run did as metrics.
    pub fn emit(&self) {
        Line::stack()
            .count("SweepListed", self.listed)
            .count("SweepOrphans", self.orphans)
            .count("SweepReclaimed", self.reclaimed)
            .count("SweepRefused", self.refused)
            .emit();
    }
}

/// A refusal and what it was about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// Why.
    pub reason: Refusal,
    /// The keys after this one …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// … up to this one; neither when it was the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub through: Option<String>,
    /// Orphans among them.
    pub orphans: u32,
    /// Objects among them.
    pub listed: u32,
}

/// A damage, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reported {
    /// The artifact.
    pub key: String,
    /// What is wrong with it.
    pub kind: Kind,
    /// The same in words.
    pub detail: String,
}

/// Why a run ended before it was through. The next one goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    /// A guard refused.
    Refused,
    /// As many listings as a run may make.
    Pages,
    /// As many deletions as a run may make.
    Deletes,
    /// The invocation's time is over.
    Time,
    /// Another sweeper was faster.
    Overtaken,
}

impl Report {
    pub(super) fn count(&mut self, found: &Comparison) {
        self.pages += 1;
        self.listed += u64::from(found.listed);
        self.young += u64::from(found.young);
        self.left_alone += u64::from(found.left_alone);
        self.orphans += found.orphans.len() as u64;
        self.leftovers += found.leftovers.len() as u64;
        self.show(&found.orphans);
    }

    pub(super) fn count_damages(&mut self, damages: &[Damage], endangered: Vec<Endangered>) {
        let missing = damages.iter().filter(|damage| damage.kind == Kind::Missing).count();
        self.missing += missing as u64;
        self.differing += (damages.len() - missing) as u64;
        let room = EXAMPLES_MAX.saturating_sub(self.damages.len());
        self.damages.extend(damages.iter().take(room).map(|damage| Reported {
            key: damage.key.clone(),
            kind: damage.kind,
            detail: damage.detail.clone(),
        }));
        let room = EXAMPLES_MAX.saturating_sub(self.endangered_jobs.len());
        self.endangered_jobs.extend(endangered.into_iter().take(room));
    }

    pub(super) fn refuse(&mut self, refused: Refused) {
        self.refused += 1;
        if self.refusals.len() < EXAMPLES_MAX {
            self.refusals.push(refused);
        }
    }

    pub(super) fn refuse_run(&mut self, reason: Refusal) {
        self.refuse(Refused { reason, after: None, through: None, orphans: 0, listed: 0 });
        self.stopped = Some(Stopped::Refused);
    }

    pub(super) fn finish_lap(&mut self, lap: Lap) {
        self.laps_finished.push(lap.as_str());
    }

    fn show(&mut self, orphans: &[Doomed]) {
        let room = EXAMPLES_MAX.saturating_sub(self.orphan_keys.len());
        self.orphan_keys.extend(orphans.iter().take(room).map(|orphan| orphan.key.clone()));
    }
}
