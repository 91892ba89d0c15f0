//! Whose trouble a refusal is: by error code first, by the sender's-fault flag only for unknown codes.
//!
//! The flag is no proof that a message is bad: a missing permission or a disabled key is "the sender's
//! fault" as well, and must not kill an event. The table is in `docs/relay.md`; a test holds it to name
//! every code here.

/// Whose trouble it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The event's, for ever: DEAD with this reason. Of a call with several entries: each on its own.
    Event(&'static str),
    /// The event's, for now: tried again later, and it counts.
    Moment,
    /// The lane's: every event waits, and none of them counts it.
    Lane,
    /// The relay's own: an error for its developers. The lane waits meanwhile.
    Bug,
}

/// Longer than the queue takes.
pub const MESSAGE_TOO_LARGE: &str = "MESSAGE_TOO_LARGE";
/// Characters that no queue takes.
pub const INVALID_CHARACTERS: &str = "INVALID_CHARACTERS";
/// No body at all.
pub const EMPTY_BODY: &str = "EMPTY_BODY";
/// The queue does not accept something else about the message.
pub const INVALID_MESSAGE: &str = "INVALID_MESSAGE";
/// The queue blames the sender with a code this release does not know.
pub const REJECTED: &str = "REJECTED";
/// No relay drains its destination.
pub const UNKNOWN_DESTINATION: &str = "UNKNOWN_DESTINATION";

/// The codes with a meaning of their own.
const BY_CODE: [(&str, Trouble); 12] = [
    ("BatchRequestTooLong", Trouble::Event(MESSAGE_TOO_LARGE)),
    ("InvalidMessageContents", Trouble::Event(INVALID_CHARACTERS)),
    ("InvalidParameterValue", Trouble::Event(INVALID_MESSAGE)),
    ("InvalidAttributeValue", Trouble::Event(INVALID_MESSAGE)),
    ("InternalError", Trouble::Moment),
    ("InternalFailure", Trouble::Moment),
    ("ServiceUnavailable", Trouble::Moment),
    ("BatchEntryIdsNotDistinct", Trouble::Bug),
    ("EmptyBatchRequest", Trouble::Bug),
    ("InvalidBatchEntryId", Trouble::Bug),
    ("MissingParameter", Trouble::Bug),
    ("TooManyEntriesInBatchRequest", Trouble::Bug),
];

/// What the codes of a lane's trouble begin with: permissions, keys, throttling, a queue that is gone.
const LANE_PREFIXES: [&str; 17] = [
    "AccessDenied",
    "ExpiredToken",
    "IncompleteSignature",
    "InvalidAccessKeyId",
    "InvalidAddress",
    "InvalidClientTokenId",
    "InvalidSecurity",
    "Kms",
    "MissingAuthenticationToken",
    "NonExistentQueue",
    "OptInRequired",
    "OverLimit",
    "QueueDoesNotExist",
    "RequestThrottled",
    "SignatureDoesNotMatch",
    "Throttl",
    "UnrecognizedClient",
];

/// Whose trouble one refused entry is.
#[must_use]
pub fn entry(code: &str, sender_fault: bool) -> Trouble {
    known(code).unwrap_or(if sender_fault { Trouble::Event(REJECTED) } else { Trouble::Moment })
}

/// Whose trouble a call is that failed as a whole; `None` is a call without an answer.
///
/// What is only a moment's trouble for an entry is the lane's when nothing went through. A parameter the
/// queue does not accept may be the call's own, so it kills no event here.
#[must_use]
pub fn call(code: Option<&str>) -> Trouble {
    match code.and_then(known) {
        Some(trouble @ (Trouble::Event(MESSAGE_TOO_LARGE | INVALID_CHARACTERS) | Trouble::Bug)) => trouble,
        Some(Trouble::Event(_) | Trouble::Moment | Trouble::Lane) | None => Trouble::Lane,
    }
}

fn known(code: &str) -> Option<Trouble> {
    let code = code.strip_prefix("AWS.SimpleQueueService.").unwrap_or(code);
    let exact = BY_CODE.iter().find(|(known, _)| *known == code).map(|(_, trouble)| *trouble);
    let lane = || LANE_PREFIXES.iter().any(|prefix| code.starts_with(prefix)).then_some(Trouble::Lane);
    exact.or_else(lane)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every error of `SendMessageBatch` in the API's model, and what is known to come in entries.
    #[test]
    fn every_code_of_the_api_is_classified_by_itself() {
        for code in [
            "InvalidAddress",
            "InvalidSecurity",
            "KmsAccessDenied",
            "KmsDisabled",
            "KmsInvalidKeyUsage",
            "KmsInvalidState",
            "KmsNotFound",
            "KmsOptInRequired",
            "KmsThrottled",
            "QueueDoesNotExist",
            "AWS.SimpleQueueService.NonExistentQueue",
            "RequestThrottled",
            "ThrottlingException",
            "AccessDenied",
            "AccessDeniedException",
            "UnrecognizedClientException",
        ] {
            assert_eq!(entry(code, true), Trouble::Lane, "{code}");
            assert_eq!(call(Some(code)), Trouble::Lane, "{code}");
        }
        for code in [
            "BatchEntryIdsNotDistinct",
            "EmptyBatchRequest",
            "InvalidBatchEntryId",
            "TooManyEntriesInBatchRequest",
        ] {
            assert_eq!(call(Some(code)), Trouble::Bug, "{code}");
        }
    }

    #[test]
    fn every_code_stands_in_the_operators_table() {
        let table = include_str!("../../../../docs/relay.md");
        for code in BY_CODE.iter().map(|(code, _)| code).chain(&LANE_PREFIXES) {
            assert!(table.contains(&format!("`{code}")), "{code}");
        }
    }

    #[test]
    fn bad_message_is_the_events_trouble_whoever_is_blamed() {
        for sender_fault in [true, false] {
            assert_eq!(entry("InvalidMessageContents", sender_fault), Trouble::Event(INVALID_CHARACTERS));
            assert_eq!(entry("InvalidParameterValue", sender_fault), Trouble::Event(INVALID_MESSAGE));
        }
        assert_eq!(call(Some("BatchRequestTooLong")), Trouble::Event(MESSAGE_TOO_LARGE));
        assert_eq!(call(Some("InvalidParameterValue")), Trouble::Lane);
    }

    #[test]
    fn unknown_code_of_an_entry_is_decided_by_the_flag() {
        assert_eq!(entry("Surprise", true), Trouble::Event(REJECTED));
        assert_eq!(entry("Surprise", false), Trouble::Moment);
        assert_eq!(entry("InternalError", true), Trouble::Moment);
    }

    #[test]
    fn call_without_an_answer_or_with_an_unknown_one_is_the_lanes_trouble() {
        assert_eq!(call(None), Trouble::Lane);
        assert_eq!(call(Some("Surprise")), Trouble::Lane);
        assert_eq!(call(Some("ServiceUnavailable")), Trouble::Lane);
    }
}
