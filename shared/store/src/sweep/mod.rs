//! The sweeper's statements: whose bucket it is, how far it was swept, what is reclaimed, what is damaged.
//!
//! An object is an *orphan* if and only if no committed row has its key. [`objects::reclaim`] is the only
//! statement that decides, on the primary key of `artifact`: after it the writer can not commit any more,
//! and only then may the object be deleted. Everything else here is bookkeeping. Nothing here knows S3.

pub mod damage;
pub mod installation;
pub mod laps;
pub mod objects;
pub mod runs;

pub use damage::{Damage, Endangered, Kind};
pub use installation::Standing;
pub use laps::{Lap, Position};
pub use objects::{Doomed, Row};
pub use runs::{Gauges, NewRun, gauges};
