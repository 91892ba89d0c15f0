//! What fits into a call, and what fits into none. Pure.
//!
//! A call carries at most 10 entries and at most 1 MiB in sum, a message at most what its queue takes.
//! Splitting is the relay's work: an event is only at fault for what is wrong with itself.

use std::time::{Duration, Instant};

use domain::identity::sha256_hex;
use store::outbox::{Event, Key};

use super::classify::{EMPTY_BODY, INVALID_CHARACTERS, MESSAGE_TOO_LARGE};
use super::sender::Entry;

/// Entries in a call (SQS `SendMessageBatch`).
pub const CALL_ENTRIES_MAX: usize = 10;
/// Bytes in a call, all entries together; also the most any queue takes in one message.
pub const CALL_BYTES_MAX: usize = 1_048_576;
/// Characters of a message group id.
const GROUP_ID_MAX: usize = 128;
/// Characters of a trace header that anything reads.
const TRACE_HEADER_MAX: usize = 500;

/// An event as it is sent.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// What to move when the answer is there.
    pub key: Key,
    /// Failures of its own so far.
    pub attempt_count: u32,
    /// The message. Its id is set by [`pack`].
    pub entry: Entry,
    /// How old the event was then.
    age: Duration,
    prepared_at: Instant,
}

impl Outgoing {
    /// How long ago the event was created.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.age + self.prepared_at.elapsed()
    }
}

/// Why an event can never be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// As a word in capitals.
    pub reason: &'static str,
    /// For people.
    pub error: String,
}

/// Turns an event into what is sent.
///
/// # Errors
///
/// [`Flaw`], when a queue that takes messages of `message_bytes_max` can never take it.
pub fn prepare(event: Event, message_bytes_max: usize) -> Result<Outgoing, (Key, Flaw)> {
    let Event { key, body, ordering_key, trace_header, attempt_count, age } = event;
    let flaw = |reason, error| Flaw { reason, error };
    let Some(body) = body else {
        return Err((
            key,
            flaw(MESSAGE_TOO_LARGE, format!("the body is longer than {CALL_BYTES_MAX} bytes")),
        ));
    };
    let entry = Entry {
        id: String::new(),
        body,
        attributes: Vec::new(),
        group_id: ordering_key.map(group_id),
        trace_header: trace_header.filter(|header| is_readable(header)),
    };
    if entry.body.is_empty() {
        return Err((key, flaw(EMPTY_BODY, "the body is empty".to_owned())));
    }
    if let Some(character) = entry.body.chars().find(|&character| !is_allowed(character)) {
        let error = format!("the body holds {}", character.escape_unicode());
        return Err((key, flaw(INVALID_CHARACTERS, error)));
    }
    let (size, max) = (entry.size(), message_bytes_max.min(CALL_BYTES_MAX));
    if size > max {
        return Err((key, flaw(MESSAGE_TOO_LARGE, format!("{size} bytes are more than the queue's {max}"))));
    }
    Ok(Outgoing { key, attempt_count, entry, age, prepared_at: Instant::now() })
}

/// Cuts what is to be sent into calls, in order, and numbers the entries of each.
#[must_use]
pub fn pack(outgoing: Vec<Outgoing>) -> Vec<Vec<Outgoing>> {
    let mut calls: Vec<Vec<Outgoing>> = Vec::new();
    let mut bytes = 0;
    for mut next in outgoing {
        let size = next.entry.size();
        match calls.last_mut() {
            Some(call) if call.len() < CALL_ENTRIES_MAX && bytes + size <= CALL_BYTES_MAX => {
                next.entry.id = call.len().to_string();
                bytes += size;
                call.push(next);
            }
            _ => {
                next.entry.id = 0.to_string();
                bytes = size;
                calls.push(vec![next]);
            }
        }
    }
    calls
}

/// Whether SQS takes the character in a body.
fn is_allowed(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

/// The key itself where SQS takes it as a group; else its digest, which keeps equal keys together.
fn group_id(ordering_key: String) -> String {
    let fits = (1..=GROUP_ID_MAX).contains(&ordering_key.len());
    if fits && ordering_key.bytes().all(|byte| byte.is_ascii_graphic()) {
        ordering_key
    } else {
        sha256_hex(ordering_key.as_bytes())
    }
}

/// A header that could not be sent is left out: a trace is no reason to lose a message.
fn is_readable(trace_header: &str) -> bool {
    (1..=TRACE_HEADER_MAX).contains(&trace_header.len())
        && trace_header.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::super::sender::Attribute;
    use super::*;

    fn event(body: impl Into<String>) -> Event {
        Event {
            key: Key { event_id: "news:0:0".to_owned(), ring: 0 },
            body: Some(body.into()),
            ordering_key: None,
            trace_header: None,
            attempt_count: 0,
            age: Duration::ZERO,
        }
    }

    fn outgoing(bytes: usize) -> Outgoing {
        prepare(event("x".repeat(bytes)), CALL_BYTES_MAX).unwrap()
    }

    fn reason(event: Event, message_bytes_max: usize) -> &'static str {
        prepare(event, message_bytes_max).unwrap_err().1.reason
    }

    #[test]
    fn body_of_one_mebibyte_fits_and_one_byte_more_does_not() {
        assert_eq!(outgoing(CALL_BYTES_MAX).entry.size(), CALL_BYTES_MAX);
        assert_eq!(reason(event("x".repeat(CALL_BYTES_MAX + 1)), usize::MAX), MESSAGE_TOO_LARGE);
        assert_eq!(reason(Event { body: None, ..event("") }, usize::MAX), MESSAGE_TOO_LARGE);
    }

    #[test]
    fn maximum_of_the_queue_itself_is_respected() {
        assert!(prepare(event("x".repeat(1_024)), 1_024).is_ok());
        assert_eq!(reason(event("x".repeat(1_025)), 1_024), MESSAGE_TOO_LARGE);
    }

    #[test]
    fn size_counts_bytes_of_the_body_and_of_each_attribute() {
        let attributes = vec![Attribute { name: "kind".to_owned(), value: "ü".to_owned() }];
        let entry = Entry { attributes, ..outgoing(5).entry };
        assert_eq!(entry.size(), 5 + 4 + 6 + 2);
    }

    #[test]
    fn characters_outside_the_queues_set_and_an_empty_body_are_flaws() {
        for character in ['\0', '\u{1}', '\u{b}', '\u{1f}', '\u{fffe}', '\u{ffff}'] {
            assert_eq!(reason(event(format!("a{character}b")), CALL_BYTES_MAX), INVALID_CHARACTERS);
        }
        assert_eq!(reason(event(""), CALL_BYTES_MAX), EMPTY_BODY);
        assert!(prepare(event("\t\r\n \u{7f}ü\u{fffd}😀"), CALL_BYTES_MAX).is_ok());
    }

    #[test]
    fn call_holds_ten_entries_and_one_mebibyte_at_most() {
        let lengths = |calls: Vec<Vec<Outgoing>>| calls.iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lengths(pack((0..25).map(|_| outgoing(100)).collect())), [10, 10, 5]);
        assert_eq!(lengths(pack((0..10).map(|_| outgoing(200 * 1024)).collect())), [5, 5]);
        assert_eq!(lengths(pack([1, CALL_BYTES_MAX, 1, 1].map(outgoing).into())), [1, 1, 2]);
        assert_eq!(lengths(pack([CALL_BYTES_MAX - 1, 1].map(outgoing).into())), [2]);
        assert_eq!(lengths(pack(Vec::new())), [0; 0]);
    }

    #[test]
    fn entry_ids_are_positions_and_safe_whatever_the_event_is_called() {
        let calls = pack((0..12).map(|_| outgoing(1)).collect());
        for call in calls {
            let ids: Vec<_> = call.iter().map(|outgoing| outgoing.entry.id.clone()).collect();
            assert_eq!(ids, (0..call.len()).map(|position| position.to_string()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn ordering_key_is_the_group_where_sqs_takes_it_and_else_its_digest() {
        let group = |key: &str| {
            let event = Event { ordering_key: Some(key.to_owned()), ..event("x") };
            prepare(event, CALL_BYTES_MAX).unwrap().entry.group_id.unwrap()
        };
        assert_eq!(group("us8:AAPL"), "us8:AAPL");
        assert_eq!(group("two words"), sha256_hex(b"two words"));
        assert_eq!(group(&"x".repeat(129)).len(), 64);
    }

    #[test]
    fn trace_header_that_can_not_be_sent_is_left_out() {
        let header = |text: &str| {
            let event = Event { trace_header: Some(text.to_owned()), ..event("x") };
            prepare(event, CALL_BYTES_MAX).unwrap().entry.trace_header
        };
        assert_eq!(
            header("Root=1-5759e988-bd862e3fe1be46a994272793").as_deref(),
            Some("Root=1-5759e988-bd862e3fe1be46a994272793")
        );
        assert_eq!(header("a\nb"), None);
        assert_eq!(header(""), None);
    }
}
