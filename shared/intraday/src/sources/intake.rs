//! Which documents of a folder or prefix are taken in: by their names, and as long as there is room.

use super::{Fetched, Kind};
use crate::config::Source;
use crate::input_fault::Origin;

/// What to do with a file of a folder or prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listed {
    /// It may be what is asked for.
    Wanted,
    /// It is of the other kind, or hidden.
    Passed,
    /// Nothing reads such files.
    Unknown,
}

impl Kind {
    fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Bars => &["csv"],
            Self::News => &["xml", "rss", "atom", "rdf", "json"],
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Bars => Self::News,
            Self::News => Self::Bars,
        }
    }

    /// Bars and news may lie in one folder: a file's extension tells them apart.
    fn look_at(self, name: &str) -> Listed {
        let extension =
            name.rsplit_once('.').map(|(_, extension)| extension.to_lowercase()).unwrap_or_default();
        if self.extensions().contains(&extension.as_str()) && !name.starts_with('.') {
            Listed::Wanted
        } else if self.other().extensions().contains(&extension.as_str()) || name.starts_with('.') {
            Listed::Passed
        } else {
            Listed::Unknown
        }
    }
}

/// The documents of one source, held to its limits.
pub(super) struct Intake<'s> {
    source: &'s Source,
    kind: Kind,
    bytes_left: u64,
    /// What was taken in so far.
    pub fetched: Fetched,
}

impl<'s> Intake<'s> {
    /// Nothing taken in yet.
    pub(super) fn new(source: &'s Source, kind: Kind) -> Self {
        Self { source, kind, bytes_left: source.max_bytes, fetched: Fetched::default() }
    }

    /// Whether a document of `size` bytes is to be read; the room it takes is taken.
    pub(super) fn admits(&mut self, name: &str, size: u64) -> bool {
        match self.kind.look_at(name) {
            Listed::Passed => return false,
            Listed::Unknown => {
                let message = format!("is not read; files end in .{}", self.kind.extensions().join(", ."));
                self.fetched.faults.push(self.origin(name).noted(None, None, message));
                return false;
            }
            Listed::Wanted => {}
        }
        if size > self.bytes_left {
            let most = self.source.max_bytes;
            self.leave_out(name, format!("has {size} bytes, more than is left of the source's {most}"));
            return false;
        }
        self.bytes_left -= size;
        true
    }

    /// Reports a document that could not be read after all.
    pub(super) fn leave_out(&mut self, name: &str, message: String) {
        self.fetched.faults.push(self.origin(name).left_out(None, None, message));
    }

    fn origin(&self, name: &str) -> Origin {
        Origin { source: self.source.name.clone(), file: name.to_owned() }
    }
}
