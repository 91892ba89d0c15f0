//! What was sent and what arrived, as the functions counted it.
//!
//! The relay's numbers are its answers, the consumers' are in their logs: one line a batch. Whoever was
//! killed has counted nothing, so all of them are lower bounds. No promise is judged by them.

use std::fmt::{self, Display};

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::logs::{self, Error};
use crate::relay::Runs;
use crate::stack::Stack;

/// The consumers, by package.
const CONSUMERS: [&str; 3] = ["news-consumer", "price-consumer", "explain-consumer"];

/// What was sent and what arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deliveries {
    /// Messages the relay sent and marked.
    sent: u64,
    /// Messages the relay sent although another had sent them already.
    repeated: u64,
    /// Messages sent again by hand.
    by_hand: u64,
    /// Relay runs that were killed: nobody counted what they sent.
    killed: u32,
    /// Messages the consumers received.
    received: u64,
    /// Of these, acknowledged without running anything: their job was done.
    duplicates: u64,
    /// Of these, put back because their job was held or not due.
    put_back: u64,
    /// Attempts that failed and will be made again.
    retried: u64,
}

impl Deliveries {
    /// Reads what there is since `since`.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub async fn count(
        stack: &Stack,
        runs: &Runs,
        by_hand: usize,
        since: DateTime<Utc>,
    ) -> Result<Self, Error> {
        let mut counted = Self { by_hand: by_hand as u64, killed: runs.failed, ..Self::default() };
        runs.answers.iter().for_each(|answer| counted.add_relay(answer));
        for function in CONSUMERS.iter().filter_map(|package| stack.function(package).ok()) {
            for line in logs::lines(&stack.aws, function, since).await? {
                counted.add_batch(&line);
            }
        }
        Ok(counted)
    }

    fn add_relay(&mut self, answer: &Value) {
        for lane in answer["destinations"].as_object().into_iter().flat_map(|lanes| lanes.values()) {
            self.sent += number(lane, "published");
            self.repeated += number(lane, "repeated");
        }
    }

    fn add_batch(&mut self, line: &Value) {
        let fields = &line["fields"];
        if fields.get("answers.won").is_none() {
            return;
        }
        self.received += number(fields, "records");
        self.duplicates += number(fields, "answers.duplicate") + number(fields, "answers.superseded");
        self.put_back += number(fields, "answers.held") + number(fields, "answers.early");
        self.retried += number(fields, "jobs.retried");
    }
}

fn number(object: &Value, key: &str) -> u64 {
    object[key].as_u64().unwrap_or(0)
}

impl Display for Deliveries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sent, repeated, by_hand, killed, received, duplicates, put_back, retried } = *self;
        write!(f, "Messages: {sent} sent by the relay")?;
        if repeated > 0 {
            write!(f, ", {repeated} of them again")?;
        }
        if killed > 0 {
            write!(f, " (and whatever {killed} killed runs had sent)")?;
        }
        writeln!(f, ", {by_hand} again by hand")?;
        writeln!(
            f,
            "{received} deliveries: {duplicates} duplicates absorbed, {put_back} put back (job held or not due), \
             {retried} attempts to be repeated"
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn batches_are_told_from_other_lines() {
        let mut counted = Deliveries::default();
        counted.add_batch(&json!({"level": "INFO", "fields": {"message": "hello", "records": 99}}));
        counted.add_batch(&json!({"level": "INFO", "fields": {
            "message": "batch of 4 done", "records": 4, "answers.won": 1, "answers.duplicate": 2,
            "answers.held": 1, "jobs.done": 1, "jobs.retried": 0,
        }}));
        assert_eq!(counted, Deliveries { received: 4, duplicates: 2, put_back: 1, ..Deliveries::default() });
    }

    #[test]
    fn relay_counts_over_all_its_lanes() {
        let mut counted = Deliveries::default();
        counted.add_relay(
            &json!({"destinations": {"news": {"published": 3, "repeated": 1}, "price": {"published": 5}}}),
        );
        assert_eq!(counted, Deliveries { sent: 8, repeated: 1, ..Deliveries::default() });
    }
}
