//! Intraday market data: bars and news in, triggers and their explanations out.
//!
//! The first tenant of the protocol (`domain`, `store`, `runtime`), and it knows nothing those do not
//! offer to everybody. It owns the SQL of its own tables and no other.

pub mod audit;
pub mod bars;
pub mod calendar;
pub mod collect;
pub mod config;
pub mod explain;
pub mod explanation;
pub mod extraction;
pub mod feeds;
#[cfg(test)]
mod fixture;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod input_fault;
pub mod instant;
pub mod job_types;
pub mod news;
pub mod news_revision;
pub mod price;
pub mod price_bar;
pub mod sources;
pub mod trading_session;
pub mod triggers;
