//! The collector against a real database, folders of input, and artifacts in memory.
//!
//! Each suite states properties that hold however often and in whatever company a run is made.

mod bench;
mod news;
mod windows;
