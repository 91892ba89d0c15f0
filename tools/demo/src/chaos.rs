//! What goes wrong on purpose: processes killed at work, and messages delivered twice.
//!
//! A strike waits for the moment in which consumers hold jobs, so that it really interrupts something;
//! if that moment does not come, it strikes anyway.

use std::io;

use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use store::audit::{self, Published};

use crate::sandbox::{Sandbox, Sandboxes};
use crate::stack::Stack;

/// How many events are delivered again at each strike, each of them twice at the same moment.
const DELIVERED_AGAIN: i64 = 10;

/// Entries of one `SendMessageBatch` call, the service's limit.
const BATCH_MAX: usize = 10;

/// The packages whose sandboxes are killed.
const VICTIMS: [&str; 4] = ["news-consumer", "price-consumer", "explain-consumer", "relay"];

/// What was done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Toll {
    /// Sandboxes killed.
    pub killed: usize,
    /// Jobs that were under a live lease when they were.
    pub jobs_held: i64,
    /// Messages sent again by hand.
    pub duplicates: usize,
}

impl std::fmt::Display for Toll {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { killed, jobs_held, duplicates } = self;
        writeln!(
            f,
            "On purpose: {killed} processes killed while {jobs_held} jobs were held, {duplicates} messages delivered again"
        )
    }
}

/// Why a strike failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database could not be asked what to strike.
    #[error("the database did not say what is running")]
    Database(#[from] store::Error),
    /// No processes to be seen, or `kill` not to be run.
    #[error("sandboxes can not be killed here")]
    Kill(#[from] io::Error),
    /// A message could not be sent again.
    #[error("a message could not be sent again")]
    Send(#[source] Box<aws_sdk_sqs::Error>),
}

/// The strikes of one replay.
#[derive(Debug)]
pub struct Chaos<'a> {
    stack: &'a Stack,
    /// For each strike still to come, the first minute it may happen in and the last.
    moments: Vec<(usize, usize)>,
    toll: Toll,
}

impl<'a> Chaos<'a> {
    /// Two strikes in a replay of `minutes`: after a third of it and after two thirds.
    #[must_use]
    pub fn in_the_middle(stack: &'a Stack, minutes: usize) -> Self {
        let moment = |sixth: usize| (minutes * sixth / 6, minutes * (sixth + 1) / 6);
        Self { stack, moments: vec![moment(4), moment(2)], toll: Toll::default() }
    }

    /// No strikes at all.
    #[must_use]
    pub fn none(stack: &'a Stack) -> Self {
        Self { stack, moments: Vec::new(), toll: Toll::default() }
    }

    /// What was done so far.
    #[must_use]
    pub fn toll(&self) -> Toll {
        self.toll
    }

    /// Strikes if it is time; says what it did.
    ///
    /// # Errors
    ///
    /// [`Error`]; some of the strike may have happened.
    pub async fn pass(&mut self, minute: usize) -> Result<Option<String>, Error> {
        let Some(&(first, last)) = self.moments.last() else { return Ok(None) };
        if minute < first {
            return Ok(None);
        }
        let held = audit::balance(&self.stack.db).await?.held;
        if held == 0 && minute < last {
            return Ok(None);
        }
        self.moments.pop();
        self.strike(minute, held).await.map(Some)
    }

    async fn strike(&mut self, minute: usize, held: i64) -> Result<String, Error> {
        let killed = self.kill()?;
        let again = self.deliver_again().await?;
        let names: Vec<String> =
            killed.iter().map(|sandbox| format!("{} ({})", sandbox.function, sandbox.pid)).collect();
        self.toll.killed += killed.len();
        self.toll.jobs_held += held;
        self.toll.duplicates += again;
        Ok(format!(
            "minute {minute}: SIGKILL to {} while {held} jobs were held; {again} messages delivered again",
            if names.is_empty() { "nobody".to_owned() } else { names.join(", ") }
        ))
    }

    /// Kills every sandbox of the consumers and of the relay.
    fn kill(&self) -> io::Result<Vec<Sandbox>> {
        let victims: Vec<&str> =
            VICTIMS.iter().filter_map(|package| self.stack.function(package).ok()).collect();
        let sandboxes = Sandboxes::of(self.stack.deployed.emulator_pid);
        let mut killed = Vec::new();
        for sandbox in sandboxes.all()? {
            if victims.contains(&sandbox.function.as_str()) && sandboxes.kill(&sandbox)? {
                killed.push(sandbox);
            }
        }
        Ok(killed)
    }

    /// Sends the bodies of the newest events again, two of each side by side.
    async fn deliver_again(&self) -> Result<usize, Error> {
        let events = audit::published(&self.stack.db, DELIVERED_AGAIN).await?;
        let mut sent = 0;
        for (destination, queue) in &self.stack.deployed.queues {
            let twice: Vec<&Published> = events
                .iter()
                .filter(|event| event.destination == *destination)
                .flat_map(|event| [event, event])
                .collect();
            for batch in twice.chunks(BATCH_MAX) {
                sent += self.send(queue, batch).await?;
            }
        }
        Ok(sent)
    }

    async fn send(&self, queue: &str, events: &[&Published]) -> Result<usize, Error> {
        let entry = |(index, event): (usize, &&Published)| {
            SendMessageBatchRequestEntry::builder().id(index.to_string()).message_body(&event.body).build()
        };
        let entries: Result<Vec<_>, _> = events.iter().enumerate().map(entry).collect();
        let request = self.stack.sqs.send_message_batch().queue_url(queue);
        let answer = match entries {
            Ok(entries) => request.set_entries(Some(entries)).send().await.map_err(aws_sdk_sqs::Error::from),
            Err(err) => Err(err.into()),
        };
        Ok(answer.map_err(|err| Error::Send(Box::new(err)))?.successful.len())
    }
}
