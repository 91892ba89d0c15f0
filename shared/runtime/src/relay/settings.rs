//! What a relay is told: its routes and its pace, checked before the first event is read.
//!
//! A bad mapping is refused with every problem named at once, so that a deployment is corrected once.
//! No value of a variable is ever repeated in a problem, except destinations, which are no secrets.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::Backoff;
use url::Url;

use crate::settings::{Faults, Reader, environment};

/// The longest lease of a lane.
const LEASE_MAX: Duration = Duration::from_mins(1);

/// One destination and its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The lane.
    pub destination: String,
    /// Where its messages go.
    pub queue_url: String,
}

/// What a relay is told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Every destination it drains.
    pub routes: Vec<Route>,
    /// How long an invocation keeps looking, from its start. Zero: until nothing is due.
    pub linger: Duration,
    /// Pauses after trouble, of a lane and of an entry.
    pub backoff: Backoff,
    /// How much of a pause is left to chance: 0 none of it, 1 half.
    pub jitter: f64,
    /// Calls in flight, per lane.
    pub in_flight: usize,
    /// Events in a read.
    pub read_events: usize,
    /// How long one call may take.
    pub send_timeout: Duration,
    /// How long a lane is taken for. A dead holder's lane is free after that.
    pub lease: Duration,
    /// How long an event of an unknown destination waits for a relay that knows it.
    pub unknown_grace: Duration,
}

impl Settings {
    /// The defaults, for `routes`.
    #[must_use]
    pub fn new(routes: Vec<Route>) -> Self {
        Self {
            routes,
            linger: Duration::from_secs(75),
            backoff: Backoff::default(),
            jitter: 1.0,
            in_flight: 32,
            read_events: 500,
            send_timeout: Duration::from_secs(4),
            lease: Duration::from_secs(10),
            unknown_grace: Duration::from_mins(10),
        }
    }

    /// Reads the environment, for the given destinations and the function's own timeout.
    ///
    /// # Errors
    ///
    /// [`Faults`] with every problem: the function must not start.
    pub fn from_env(destinations: &[String], function_timeout: Duration) -> Result<Self, Faults> {
        Self::read(destinations, function_timeout, environment)
    }

    fn read(
        destinations: &[String],
        function_timeout: Duration,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Faults> {
        let mut reader = Reader::new(lookup);
        let queue_urls = reader.text("QUEUE_URLS");
        let routes = queue_urls.map(|urls| routes(destinations, &urls, &mut reader.faults));
        let default = Self::new(routes.unwrap_or_default());
        let linger = reader.seconds_or("RELAY_LINGER_SECONDS", default.linger);
        let base = reader.seconds_or("RELAY_BACKOFF_BASE_SECONDS", default.backoff.base);
        let cap = reader.seconds_or("RELAY_BACKOFF_CAP_SECONDS", default.backoff.cap);
        let jitter = reader.parsed_or("RELAY_BACKOFF_JITTER", default.jitter);
        let in_flight = reader.parsed_or("RELAY_IN_FLIGHT", default.in_flight);
        let read_events = reader.parsed_or("RELAY_READ_EVENTS", default.read_events);
        let send_timeout = reader.seconds_or("RELAY_SEND_TIMEOUT_SECONDS", default.send_timeout);
        let lease = reader.seconds_or("RELAY_LEASE_SECONDS", default.lease);
        let unknown_grace = reader.seconds_or("RELAY_UNKNOWN_GRACE_SECONDS", default.unknown_grace);
        // What can not be read counts as its default, so that the rules are held to the rest at once.
        let settings = Self {
            linger: linger.unwrap_or(default.linger),
            backoff: Backoff {
                base: base.unwrap_or(default.backoff.base),
                cap: cap.unwrap_or(default.backoff.cap),
            },
            jitter: jitter.unwrap_or(default.jitter),
            in_flight: in_flight.unwrap_or(default.in_flight),
            read_events: read_events.unwrap_or(default.read_events),
            send_timeout: send_timeout.unwrap_or(default.send_timeout),
            lease: lease.unwrap_or(default.lease),
            unknown_grace: unknown_grace.unwrap_or(default.unknown_grace),
            routes: default.routes,
        };
        settings.check(function_timeout, &mut reader);
        reader.finish(Some(settings))
    }

    /// How much of an invocation's time is kept for the last calls and marks.
    #[must_use]
    pub fn margin(&self) -> Duration {
        self.send_timeout + Duration::from_secs(2)
    }

    fn check<L: Fn(&str) -> Option<String>>(&self, function_timeout: Duration, reader: &mut Reader<L>) {
        let rules = [
            ((0.0..=1.0).contains(&self.jitter), "RELAY_BACKOFF_JITTER must lie between 0 and 1"),
            ((1..=512).contains(&self.in_flight), "RELAY_IN_FLIGHT must lie between 1 and 512"),
            ((1..=1_000).contains(&self.read_events), "RELAY_READ_EVENTS must lie between 1 and 1000"),
            (!self.backoff.base.is_zero(), "RELAY_BACKOFF_BASE_SECONDS must be above 0"),
            (self.backoff.cap >= self.backoff.base, "RELAY_BACKOFF_CAP_SECONDS must not be below the base"),
            (!self.send_timeout.is_zero(), "RELAY_SEND_TIMEOUT_SECONDS must be above 0"),
            // A renewal is due after a third of the lease and is looked at before each call.
            (
                self.lease >= self.send_timeout * 2,
                "RELAY_LEASE_SECONDS must be twice RELAY_SEND_TIMEOUT_SECONDS",
            ),
            // A dead holder keeps its lane for that long.
            (self.lease <= LEASE_MAX, "RELAY_LEASE_SECONDS must be at most 60"),
            (
                function_timeout > self.margin(),
                "FUNCTION_TIMEOUT_SECONDS leaves no time for a call and its mark",
            ),
        ];
        for (holds, rule) in rules {
            reader.require(holds, rule);
        }
    }
}

/// Joins destinations and queues, and names whatever does not fit.
fn routes(destinations: &[String], queue_urls: &str, faults: &mut Vec<String>) -> Vec<Route> {
    let Ok(mut urls) = serde_json::from_str::<BTreeMap<String, String>>(queue_urls) else {
        faults.push("QUEUE_URLS must be a JSON object of destinations and queue URLs".to_owned());
        return Vec::new();
    };
    if destinations.is_empty() {
        faults.push("no destination is declared".to_owned());
    }
    let mut routes: Vec<Route> = Vec::new();
    for destination in destinations {
        let Some(queue_url) = urls.remove(destination) else {
            faults.push(format!("destination {destination} has no queue in QUEUE_URLS"));
            continue;
        };
        if let Some(fault) = url_fault(&queue_url) {
            faults.push(format!("the queue of destination {destination} {fault}"));
        }
        if let Some(other) = routes.iter().find(|route| route.queue_url == queue_url) {
            faults.push(format!("destinations {} and {destination} share a queue", other.destination));
        }
        routes.push(Route { destination: destination.clone(), queue_url });
    }
    faults.extend(urls.keys().map(|name| format!("the queue {name} in QUEUE_URLS has no such destination")));
    routes
}

fn url_fault(queue_url: &str) -> Option<&'static str> {
    let Ok(url) = Url::parse(queue_url) else {
        return Some("is not a URL");
    };
    if !matches!(url.scheme(), "http" | "https") || url.path().trim_matches('/').is_empty() {
        return Some("is not a queue's URL");
    }
    let is_fifo = url.path().rsplit_once('.').is_some_and(|(_, suffix)| suffix == "fifo");
    is_fifo.then_some("is a FIFO queue; the relay sends to standard queues")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(destinations: &[&str], variables: &[(&str, &str)]) -> Result<Settings, Faults> {
        let destinations: Vec<_> = destinations.iter().map(ToString::to_string).collect();
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        let lookup = |name: &str| find(name).map(|(_, value)| (*value).to_owned());
        Settings::read(&destinations, Duration::from_secs(90), lookup)
    }

    #[test]
    fn mapping_that_fits_is_accepted_with_the_defaults() {
        let urls = r#"{"news":"https://sqs.eu-west-1.amazonaws.com/1/news","price":"http://127.0.0.1:4566/1/price"}"#;
        let settings = read(&["news", "price"], &[("QUEUE_URLS", urls)]).unwrap();
        assert_eq!(settings.routes.len(), 2);
        assert_eq!(settings.linger, Duration::from_secs(75));
        assert_eq!(settings.backoff, Backoff::default());
    }

    #[test]
    fn bad_mapping_is_refused_with_every_problem_named_at_once() {
        let urls = r#"{"news":"https://sqs/1/news","price":"https://sqs/1/news","mail":"nonsense","fax":"https://sqs/1/fax","wire":"https://sqs/1/wire.fifo"}"#;
        let variables = [("QUEUE_URLS", urls), ("RELAY_LINGER_SECONDS", "soon"), ("RELAY_IN_FLIGHT", "0")];
        let Faults(faults) = read(&["news", "price", "explain", "mail", "wire"], &variables).unwrap_err();
        assert_eq!(
            faults,
            [
                "destinations news and price share a queue",
                "destination explain has no queue in QUEUE_URLS",
                "the queue of destination mail is not a URL",
                "the queue of destination wire is a FIFO queue; the relay sends to standard queues",
                "the queue fax in QUEUE_URLS has no such destination",
                "RELAY_LINGER_SECONDS is not a number of seconds",
                "RELAY_IN_FLIGHT must lie between 1 and 512",
            ]
        );
    }

    #[test]
    fn mapping_that_is_missing_or_empty_is_refused() {
        assert!(read(&["news"], &[]).is_err());
        assert!(read(&["news"], &[("QUEUE_URLS", "[]")]).is_err());
        let nothing = read(&[], &[("QUEUE_URLS", "{}")]).unwrap_err();
        assert_eq!(nothing, Faults(vec!["no destination is declared".to_owned()]));
    }

    #[test]
    fn pace_is_read_from_the_environment() {
        let urls = r#"{"news":"https://sqs/1/news"}"#;
        let settings = read(
            &["news"],
            &[("QUEUE_URLS", urls), ("RELAY_LINGER_SECONDS", "0"), ("RELAY_BACKOFF_BASE_SECONDS", "0.5")],
        )
        .unwrap();
        assert_eq!(settings.linger, Duration::ZERO, "drain once");
        assert_eq!(settings.backoff.base, Duration::from_millis(500));
    }

    #[test]
    fn pace_that_can_not_work_is_refused() {
        let urls = r#"{"news":"https://sqs/1/news"}"#;
        let variables = [
            ("QUEUE_URLS", urls),
            ("RELAY_LEASE_SECONDS", "5"),
            ("RELAY_IN_FLIGHT", "0"),
            ("RELAY_BACKOFF_CAP_SECONDS", "1"),
        ];
        let Faults(faults) = read(&["news"], &variables).unwrap_err();
        assert_eq!(
            faults,
            [
                "RELAY_IN_FLIGHT must lie between 1 and 512",
                "RELAY_BACKOFF_CAP_SECONDS must not be below the base",
                "RELAY_LEASE_SECONDS must be twice RELAY_SEND_TIMEOUT_SECONDS",
            ]
        );
    }
}
