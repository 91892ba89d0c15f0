//! Repair: what finds half-finished work again, and what an operator can do about it.
//!
//! Each statement meets every state a job can be in. Time passes by moving the columns back, never by
//! sleeping.
#![expect(clippy::unwrap_used, reason = "a test that can not go on stops here")]

mod dead_letter;
mod fixtures;
mod operator;
mod quarantine;
mod reconcile;
mod redrive;
