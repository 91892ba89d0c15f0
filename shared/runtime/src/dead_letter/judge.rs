//! A verdict, or a doubt, for each record of one queue.

use std::error::Error as _;

use domain::{Message, message::Undecidable};
use sqlx::PgPool;
use store::{
    claim::Asked,
    dead_letter::{Verdict, decide},
};

use super::{Delivered, Lane};

/// Why a message can be neither run nor deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Undecided {
    /// One word in capitals.
    pub reason: &'static str,
    /// The same for people.
    pub detail: String,
}

/// Judges `delivered`, all from the queue of `lane`, in their order; what can be read is decided in one
/// statement.
///
/// # Errors
///
/// [`store::Error`]; nothing is known about any of them.
pub(super) async fn judge<Q>(
    db: &PgPool,
    lane: Option<&Lane<Q>>,
    delivered: &[Delivered<'_>],
) -> Result<Vec<Result<Verdict, Undecided>>, store::Error> {
    let Some(lane) = lane else {
        return Ok(delivered.iter().map(|_| Err(unknown_queue())).collect());
    };
    let asked: Vec<_> = delivered.iter().flat_map(|one| &one.record.message).map(asked).collect();
    let mut verdicts = if asked.is_empty() {
        Vec::new().into_iter()
    } else {
        decide(db, &lane.destination, &asked, lane.policy).await?.into_iter()
    };
    // There is a verdict for each readable message; a missing one would leave the message alone.
    let mut next = || verdicts.next().unwrap_or(Verdict::Held { wait: None });
    let judged = delivered.iter().map(|one| match &one.record.message {
        Ok(message) => settled(message, next()),
        Err(undecidable) => Err(unreadable(undecidable)),
    });
    Ok(judged.collect())
}

fn asked(message: &Message) -> Asked {
    Asked { job_id: message.job_id.clone(), redrive_generation: message.redrive_generation }
}

fn settled(message: &Message, verdict: Verdict) -> Result<Verdict, Undecided> {
    match verdict {
        Verdict::Undecidable(doubt) => {
            Err(Undecided { reason: doubt.as_str(), detail: format!("{doubt}: {}", message.event_id) })
        }
        verdict => Ok(verdict),
    }
}

fn unreadable(undecidable: &Undecidable) -> Undecided {
    let reason = match undecidable {
        Undecidable::NotAMessage(_) => "NOT_A_MESSAGE",
        Undecidable::UnknownVersion(_) => "UNKNOWN_VERSION",
        Undecidable::Inconsistent(_) => "INCONSISTENT",
    };
    let cause = undecidable.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    Undecided { reason, detail: format!("{undecidable}{cause}") }
}

fn unknown_queue() -> Undecided {
    Undecided { reason: "UNKNOWN_QUEUE", detail: "no destination has this dead-letter queue".to_owned() }
}
