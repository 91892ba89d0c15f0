//! What an operator can ask for, and every way to ask for it wrongly.

use std::{fmt, time::Duration};

use domain::JobId;
use serde_json::Value;
use store::operator_action::{Filter, JOBS_MAX, Order, Selection};

use super::fields::Fields;

/// Jobs one inspection may show.
const INSPECTED_MAX: usize = 100;

/// Jobs a filter finds if the request sets no limit.
const LIMIT_DEFAULT: i64 = 100;

/// Ten years; no job is dead for longer.
const AGE_MAX_SECONDS: i64 = 10 * 366 * 86_400;

/// A request that is clear.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Show jobs with their windows and events.
    Inspect {
        /// At most 100.
        job_ids: Vec<JobId>,
    },
    /// Run DEAD jobs again.
    Redrive {
        /// Which, who, why.
        order: Order,
        /// Messages a second at most; `None`: all at once.
        rate: Option<f64>,
    },
    /// Accept DEAD jobs as dead.
    Dismiss {
        /// Which, who, why.
        order: Order,
    },
}

/// Everything that is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRequest {
    /// One clause each; never empty.
    pub faults: Vec<String>,
}

impl fmt::Display for BadRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bad request: {}", self.faults.join("; "))
    }
}

impl std::error::Error for BadRequest {}

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    ///
    /// [`BadRequest`] with every fault at once, unknown fields among them.
    pub fn parse(request: &Value) -> Result<Self, BadRequest> {
        let Some(object) = request.as_object() else {
            return Err(BadRequest { faults: vec!["the request must be a JSON object".into()] });
        };
        let mut fields = Fields::new(object, "");
        let action = fields.required_text("action");
        let request = match action.as_str() {
            "inspect" => {
                let job_ids = job_ids(&mut fields, INSPECTED_MAX).unwrap_or_else(|| missing_ids(&mut fields));
                Self::Inspect { job_ids }
            }
            "redrive" => {
                let rate = fields.number("rate_per_second", 0.01..=1_000.0);
                Self::Redrive { order: order(&mut fields), rate }
            }
            "dismiss" => Self::Dismiss { order: order(&mut fields) },
            _ => {
                // What else is wrong depends on the action, so there is nothing more to say.
                let faults = fields.faults.pop().filter(|_| action.is_empty());
                let fault = faults.unwrap_or_else(|| format!("action {action:?} is unknown"));
                return Err(BadRequest { faults: vec![format!("{fault}: inspect, redrive or dismiss")] });
            }
        };
        let faults = fields.finish();
        if faults.is_empty() { Ok(request) } else { Err(BadRequest { faults }) }
    }
}

fn order(fields: &mut Fields<'_>) -> Order {
    Order {
        selection: selection(fields),
        dry_run: fields.flag("dry_run"),
        who: fields.required_text("who"),
        why: fields.required_text("why"),
    }
}

fn selection(fields: &mut Fields<'_>) -> Selection {
    let ids = job_ids(fields, JOBS_MAX);
    let limit = fields.whole("limit", 1..=JOBS_MAX.try_into().unwrap_or(i64::MAX));
    let filter = filter(fields);
    match (ids, filter) {
        (Some(_), Some(_)) => {
            fields.fault("job_ids", "and filter exclude each other");
            Selection::Ids(Vec::new())
        }
        (Some(ids), None) => {
            if limit.is_some() {
                fields.fault("limit", "belongs to a filter; the ids are their own limit");
            }
            Selection::Ids(ids)
        }
        (None, Some(filter)) => Selection::Filter { filter, limit: limit.unwrap_or(LIMIT_DEFAULT) },
        (None, None) => {
            fields.fault("job_ids", "or filter is missing");
            Selection::Ids(Vec::new())
        }
    }
}

/// The ids; `None` if there is no such field. What is wrong with them is noted, each id by itself.
fn job_ids(fields: &mut Fields<'_>, max: usize) -> Option<Vec<JobId>> {
    let value = fields.value("job_ids")?;
    let Some(ids) = value.as_array().filter(|ids| (1..=max).contains(&ids.len())) else {
        fields.fault("job_ids", &format!("must be a list of 1 to {max} job ids"));
        return Some(Vec::new());
    };
    let mut good = Vec::with_capacity(ids.len());
    for (nth, id) in ids.iter().enumerate() {
        match id.as_str().and_then(|id| JobId::try_from(id.to_owned()).ok()) {
            Some(id) => good.push(id),
            None => {
                fields.fault(
                    &format!("job_ids[{nth}]"),
                    "is no job id, which is 64 lower-case hexadecimal digits",
                );
            }
        }
    }
    Some(good)
}

fn missing_ids(fields: &mut Fields<'_>) -> Vec<JobId> {
    fields.fault("job_ids", "is missing");
    Vec::new()
}

/// The filter; `None` if there is no such field. `{}` means all.
fn filter(fields: &mut Fields<'_>) -> Option<Filter> {
    let value = fields.value("filter")?;
    let Some(object) = value.as_object() else {
        fields.fault("filter", "must be an object; {} means every dead job");
        return Some(Filter::default());
    };
    let mut inner = Fields::new(object, "filter.");
    let mut age = |name| {
        let seconds = inner.whole(name, 0..=AGE_MAX_SECONDS)?;
        u64::try_from(seconds).ok().map(Duration::from_secs)
    };
    let (dead_at_least, dead_at_most) = (age("dead_at_least_seconds"), age("dead_at_most_seconds"));
    let filter = Filter {
        reason: inner.text("reason"),
        job_type: inner.text("job_type"),
        destination: inner.text("destination"),
        dead_at_least,
        dead_at_most,
    };
    fields.faults.extend(inner.finish());
    Some(filter)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn faults(request: &Value) -> Vec<String> {
        Request::parse(request).unwrap_err().faults
    }

    #[test]
    fn redrive_by_id_reads_as_it_is_written() {
        let id = "a".repeat(64);
        let request = json!({ "action": "redrive", "job_ids": [id], "dry_run": true, "rate_per_second": 5,
                              "who": " ada ", "why": "the feed is back" });

        let order = Order {
            selection: Selection::Ids(vec![JobId::try_from(id).unwrap()]),
            dry_run: true,
            who: "ada".into(),
            why: "the feed is back".into(),
        };
        assert_eq!(Request::parse(&request), Ok(Request::Redrive { order, rate: Some(5.0) }));
    }

    #[test]
    fn dismissal_by_filter_has_a_limit_even_if_it_names_none() {
        let request = json!({ "action": "dismiss", "who": "ada", "why": "too old",
                              "filter": { "reason": "DLQ", "dead_at_least_seconds": 3600 } });

        let Ok(Request::Dismiss { order }) = Request::parse(&request) else { panic!() };

        let reason = Some("DLQ".into());
        let filter = Filter { reason, dead_at_least: Some(Duration::from_hours(1)), ..Filter::default() };
        assert_eq!(order.selection, Selection::Filter { filter, limit: 100 });
        assert!(!order.dry_run);
    }

    #[test]
    fn every_fault_is_named_at_once() {
        let request = json!({ "action": "redrive", "job_ids": ["x", 7], "limit": 0, "dry_run": "yes",
                              "rate_per_second": 0, "why": "", "jobs": [] });

        assert_eq!(
            faults(&request),
            [
                "rate_per_second must be a number from 0.01 to 1000",
                "job_ids[0] is no job id, which is 64 lower-case hexadecimal digits",
                "job_ids[1] is no job id, which is 64 lower-case hexadecimal digits",
                "limit must be a whole number from 1 to 1000",
                "dry_run must be true or false",
                "who is missing",
                "why must be a text that is not empty, on one line",
                "jobs is no field here",
            ]
        );
    }

    #[test]
    fn faults_of_a_filter_say_that_they_are_its_own() {
        let request = json!({ "action": "dismiss", "who": "ada", "why": "old",
                              "filter": { "reason": 1, "dead_at_most_seconds": -1, "age": 3 } });

        assert_eq!(
            faults(&request),
            [
                "filter.dead_at_most_seconds must be a whole number from 0 to 316224000",
                "filter.reason must be a text that is not empty, on one line",
                "filter.age is no field here",
            ]
        );
    }

    #[test]
    fn what_to_do_and_to_which_jobs_must_be_said_once() {
        for request in [json!(null), json!("redrive"), json!([])] {
            assert_eq!(faults(&request), ["the request must be a JSON object"], "{request}");
        }
        assert_eq!(faults(&json!({})), ["action is missing: inspect, redrive or dismiss"]);
        assert_eq!(
            faults(&json!({ "action": "delete" })),
            ["action \"delete\" is unknown: inspect, redrive or dismiss"]
        );
        assert_eq!(faults(&json!({ "action": "inspect" })), ["job_ids is missing"]);
        let signed = json!({ "action": "redrive", "who": "ada", "why": "fixed" });
        assert_eq!(faults(&signed), ["job_ids or filter is missing"]);
        let mut both = signed;
        both["job_ids"] = json!(["a".repeat(64)]);
        both["filter"] = json!({});
        assert_eq!(faults(&both), ["job_ids and filter exclude each other"]);
    }
}
