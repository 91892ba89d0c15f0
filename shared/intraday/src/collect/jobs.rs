//! The jobs that collecting makes. Their identities are stated here and nowhere else.

use domain::{Identity, JobType};
use serde_json::json;
use store::enqueue::NewJob;
use store::window::WindowRef;

use crate::feeds::document::ItemDocument;
use crate::instant;
use crate::job_types::{NEWS, PRICE};

/// The job that computes what a window's bars trigger.
pub(super) fn price(window: WindowRef, job_type: &JobType, trace: Option<&str>) -> NewJob {
    let start = instant::text(window.start);
    let identity = price_identity(&window);
    let payload = json!({ "dataset": window.dataset, "window_start": start });
    NewJob { window: Some(window), ..job(job_type, identity, payload, trace) }
}

/// The job that reads one revision of a news item.
pub(super) fn news(
    document: &ItemDocument,
    artifact_key: &str,
    job_type: &JobType,
    trace: Option<&str>,
) -> NewJob {
    let identity = news_identity(&document.item_id, &document.revision);
    let payload = json!({ "item_id": document.item_id, "revision": document.revision });
    NewJob { artifact_key: Some(artifact_key.to_owned()), ..job(job_type, identity, payload, trace) }
}

/// Who the price job of a window is.
pub(crate) fn price_identity(window: &WindowRef) -> Identity {
    PRICE
        .identity()
        .text("dataset", &window.dataset)
        .text("window_start", &instant::text(window.start))
        .integer("window_generation", window.generation.into())
}

/// Who the job of one text of an item is.
pub(crate) fn news_identity(item_id: &str, revision: &str) -> Identity {
    NEWS.identity().text("item_id", item_id).text("revision", revision)
}

fn job(job_type: &JobType, identity: Identity, payload: serde_json::Value, trace: Option<&str>) -> NewJob {
    NewJob { trace_header: trace.map(str::to_owned), ..NewJob::new(job_type, identity, payload) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn price_job_of_a_known_window_never_changes() {
        let start = "2018-04-04T13:30:00Z".parse().unwrap();
        let window = WindowRef { dataset: "us8".to_owned(), start, generation: 1 };

        let job = price(window.clone(), &PRICE, None);

        assert_eq!(
            job.identity.canonical_json(),
            r#"{"job_type":"price","dataset":"us8","window_start":"2018-04-04T13:30:00Z","window_generation":1}"#
        );
        assert_eq!(job.payload, json!({ "dataset": "us8", "window_start": "2018-04-04T13:30:00Z" }));
        assert_eq!(job.window, Some(window));
    }
}
