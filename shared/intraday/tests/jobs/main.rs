//! The jobs of the pipeline, run by the consumers' engine against PostgreSQL: whatever order they come
//! in, however often, and whatever is corrected meanwhile, the rows say what the input says.

#![allow(clippy::unwrap_used, reason = "a fixture that fails is a failed test")]

mod explain;
mod news;
mod pipeline;
mod price;
