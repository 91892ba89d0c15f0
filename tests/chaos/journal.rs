//! What was decided and what was done about it, in a file, line by line with its time.
//!
//! The decisions are the seed's and the same in every run; the times, and who is behind a number, are
//! this run's own.

use std::fmt::Display;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use system_tests::Result;
use system_tests::plan::Entry;

/// An open journal.
pub struct Journal {
    /// Where it is.
    pub path: PathBuf,
    file: Mutex<File>,
    started: Instant,
}

impl Journal {
    /// Begins with all that is decided beforehand.
    ///
    /// # Errors
    ///
    /// The file can not be written.
    pub fn open(path: PathBuf, seed: u64, plan: &[Entry]) -> Result<Self> {
        let mut file = File::create(&path)?;
        writeln!(file, "seed {seed} decides:")?;
        for entry in plan {
            writeln!(file, "{entry}")?;
        }
        writeln!(file, "\nand this came of it:")?;
        Ok(Self { path, file: Mutex::new(file), started: Instant::now() })
    }

    /// Takes down what happens to whom at this moment.
    pub fn note(&self, whom: impl Display, what: impl Display) {
        let at = self.started.elapsed().as_secs_f64();
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk must not be what a run is about.
        let _ = writeln!(file, "{at:8.3} s  {whom}  {what}");
    }
}
