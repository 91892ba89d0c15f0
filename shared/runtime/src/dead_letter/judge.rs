//! A verdict, or a doubt, for each record of one queue.

use domain::{Message, message::Undecidable};
use sqlx::PgPool;
use store::{
    claim::Asked,
    dead_letter::{Verdict, decide},
};

use super::{Lane, Record};

/// Why a message can be neither run nor deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecided {
    /// One word in capitals.
    pub reason: &'static str,
    /// The same for people.
    pub detail: String,
}

/// Judges `records`, all from the queue of `lane`, in their order.
///
/// Those that can be read are decided in one statement.
///
/// # Errors
///
/// [`store::Error`]; nothing is known about any of them.
pub async fn judge(
    db: &PgPool,
    lane: Option<&Lane>,
    records: Vec<Record>,
) -> Result<Vec<(Record, Result<Verdict, Undecided>)>, store::Error> {
    let Some(lane) = lane else {
        return Ok(records.into_iter().map(unknown_queue).collect());
    };
    let messages: Vec<_> = records.iter().map(read).collect();
    let asked: Vec<_> = messages.iter().flatten().map(asked).collect();
    let mut verdicts = if asked.is_empty() {
        Vec::new().into_iter()
    } else {
        decide(db, &lane.destination, &asked, lane.policy).await?.into_iter()
    };
    // One verdict was asked for each readable message; a missing one would leave the message alone.
    let mut next = || verdicts.next().unwrap_or(Verdict::Held { wait: None });
    let judged = messages.into_iter().map(|message| message.and_then(|message| settle(&message, next())));
    Ok(records.into_iter().zip(judged).collect())
}

fn settle(message: &Message, verdict: Verdict) -> Result<Verdict, Undecided> {
    match verdict {
        Verdict::Undecidable(doubt) => {
            Err(Undecided { reason: doubt.as_str(), detail: format!("{doubt}: {}", message.event_id) })
        }
        verdict => Ok(verdict),
    }
}

fn read(record: &Record) -> Result<Message, Undecided> {
    let body = record.body.as_deref();
    let body = body.ok_or_else(|| Undecided { reason: "NO_BODY", detail: "there is no body".into() })?;
    Message::parse(body).map_err(|undecidable| {
        let reason = match undecidable {
            Undecidable::NotAMessage(_) => "NOT_A_MESSAGE",
            Undecidable::UnknownVersion(_) => "UNKNOWN_VERSION",
            Undecidable::Inconsistent(_) => "INCONSISTENT",
        };
        Undecided { reason, detail: undecidable.to_string() }
    })
}

fn asked(message: &Message) -> Asked {
    Asked { job_id: message.job_id.clone(), redrive_generation: message.redrive_generation }
}

fn unknown_queue(record: Record) -> (Record, Result<Verdict, Undecided>) {
    let detail = format!("no destination has the queue {:?}", record.queue_arn);
    (record, Err(Undecided { reason: "UNKNOWN_QUEUE", detail }))
}
