//! Extraction: what a news item says about which symbol.
//!
//! An [`Extractor`] reads an item's [`segments`] and answers findings. [`rules::RulesExtractor`] does it
//! with words alone, the same answer for the same text every time; [`rehearsal::Rehearsal`] makes any
//! extractor as slow and as unreliable as a real one might be.

use std::fmt;
use std::future::Future;

use domain::JobId;
use rust_decimal::Decimal;

mod kinds;
pub mod rehearsal;
pub mod rules;
pub mod segments;
mod symbols;
mod vocabulary;
mod words;

/// What kind of event a text is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// Results of a quarter or a year.
    Earnings,
    /// What a company expects of its own future.
    Guidance,
    /// Companies that become one, or will not after all.
    Merger,
    /// What analysts think.
    Rating,
    /// Courts, regulators, investigations.
    Legal,
    /// Something to buy: new, changed or recalled.
    Product,
    /// Anything else.
    Other,
}

impl EventKind {
    /// The kind as the `event_kind` column has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Earnings => "EARNINGS",
            Self::Guidance => "GUIDANCE",
            Self::Merger => "MERGER",
            Self::Rating => "RATING",
            Self::Legal => "LEGAL",
            Self::Product => "PRODUCT",
            Self::Other => "OTHER",
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What one segment says about one symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which segment, counted from 0.
    pub segment: usize,
    /// The ticker, as configured.
    pub symbol: String,
    /// What it is about.
    pub kind: EventKind,
    /// How sure the extractor is, from 0 to 1.
    pub confidence: Decimal,
    /// The words it rests on.
    pub matched: String,
}

/// A text to read, and which attempt of which job reads it.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    /// The job.
    pub job_id: &'a JobId,
    /// Its attempt, from 1.
    pub attempt: i32,
    /// The text in pieces, the title first.
    pub segments: &'a [String],
}

/// The extractor gave no answer; the same reading may succeed later.
#[derive(Debug, thiserror::Error)]
#[error("the extractor is not available: {0}")]
pub struct Unavailable(pub String);

/// Reads texts.
pub trait Extractor: Send + Sync {
    /// Everything the segments say about the symbols it knows.
    ///
    /// # Errors
    ///
    /// [`Unavailable`]: come back later.
    fn extract(&self, reading: Reading<'_>)
    -> impl Future<Output = Result<Vec<Finding>, Unavailable>> + Send;
}
