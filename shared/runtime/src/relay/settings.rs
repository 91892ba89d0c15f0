//! What a relay is told: its routes and its pace, checked before the first event is read.
//!
//! A bad mapping is refused with every problem named at once, so that a deployment is corrected once.
//! No value of a variable is ever repeated in a problem, except destinations, which are no secrets.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use domain::Backoff;
use url::Url;

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

/// Everything that is wrong with the settings.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the relay can not start: {}", .0.join("; "))]
pub struct Faults(pub Vec<String>);

impl Settings {
    /// The defaults, for `routes`.
    #[must_use]
    pub fn new(routes: Vec<Route>) -> Self {
        Self {
            routes,
            linger: Duration::ZERO,
            backoff: Backoff::default(),
            jitter: 1.0,
            in_flight: 32,
            read_events: 500,
            send_timeout: Duration::from_secs(4),
            lease: Duration::from_secs(10),
            unknown_grace: Duration::from_mins(10),
        }
    }

    /// Reads the settings through `lookup`, a view of the environment, for the given destinations.
    ///
    /// # Errors
    ///
    /// [`Faults`] with every problem.
    pub fn read(destinations: &[String], lookup: impl Fn(&str) -> Option<String>) -> Result<Self, Faults> {
        let mut faults = Vec::new();
        let queue_urls = lookup("QUEUE_URLS").unwrap_or_default();
        let default = Self::new(routes(destinations, &queue_urls, &mut faults));
        let mut reader = Reader { lookup, faults };
        let settings = Self {
            linger: reader.seconds("RELAY_LINGER_SECONDS", default.linger),
            backoff: Backoff {
                base: reader.seconds("RELAY_BACKOFF_BASE_SECONDS", default.backoff.base),
                cap: reader.seconds("RELAY_BACKOFF_CAP_SECONDS", default.backoff.cap),
            },
            jitter: reader.number("RELAY_BACKOFF_JITTER", default.jitter),
            in_flight: reader.number("RELAY_IN_FLIGHT", default.in_flight),
            read_events: reader.number("RELAY_READ_EVENTS", default.read_events),
            send_timeout: reader.seconds("RELAY_SEND_TIMEOUT_SECONDS", default.send_timeout),
            lease: reader.seconds("RELAY_LEASE_SECONDS", default.lease),
            unknown_grace: reader.seconds("RELAY_UNKNOWN_GRACE_SECONDS", default.unknown_grace),
            routes: default.routes,
        };
        let mut faults = reader.faults;
        settings.check(&mut faults);
        if faults.is_empty() { Ok(settings) } else { Err(Faults(faults)) }
    }

    /// How much of an invocation's time is kept for the last calls and marks.
    #[must_use]
    pub fn margin(&self) -> Duration {
        self.send_timeout + Duration::from_secs(2)
    }

    fn check(&self, faults: &mut Vec<String>) {
        let rules = [
            (!(0.0..=1.0).contains(&self.jitter), "RELAY_BACKOFF_JITTER must lie between 0 and 1"),
            (!(1..=512).contains(&self.in_flight), "RELAY_IN_FLIGHT must lie between 1 and 512"),
            (!(1..=1_000).contains(&self.read_events), "RELAY_READ_EVENTS must lie between 1 and 1000"),
            (self.backoff.base.is_zero(), "RELAY_BACKOFF_BASE_SECONDS must be above 0"),
            (self.backoff.cap < self.backoff.base, "RELAY_BACKOFF_CAP_SECONDS must not be below the base"),
            (self.send_timeout.is_zero(), "RELAY_SEND_TIMEOUT_SECONDS must be above 0"),
            // A renewal is due after a third of the lease and may have to wait for one call.
            (
                self.lease < self.send_timeout * 2,
                "RELAY_LEASE_SECONDS must be twice RELAY_SEND_TIMEOUT_SECONDS",
            ),
        ];
        faults.extend(rules.into_iter().filter(|(broken, _)| *broken).map(|(_, rule)| rule.to_owned()));
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
    url.path().ends_with(".fifo").then_some("is a FIFO queue; the relay sends to standard queues")
}

/// Reads numbers and remembers which were none.
struct Reader<L> {
    lookup: L,
    faults: Vec<String>,
}

impl<L: Fn(&str) -> Option<String>> Reader<L> {
    fn number<T: FromStr>(&mut self, name: &str, default: T) -> T {
        let Some(text) = (self.lookup)(name) else {
            return default;
        };
        text.trim().parse().unwrap_or_else(|_| {
            self.faults.push(format!("{name} is not a number it can use"));
            default
        })
    }

    fn seconds(&mut self, name: &str, default: Duration) -> Duration {
        let seconds = self.number(name, default.as_secs_f64());
        Duration::try_from_secs_f64(seconds).unwrap_or_else(|_| {
            self.faults.push(format!("{name} is not a number of seconds"));
            default
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(destinations: &[&str], variables: &[(&str, &str)]) -> Result<Settings, Faults> {
        let destinations: Vec<_> = destinations.iter().map(ToString::to_string).collect();
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        Settings::read(&destinations, |name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn mapping_that_fits_is_accepted_with_the_defaults() {
        let urls = r#"{"news":"https://sqs.eu-west-1.amazonaws.com/1/news","price":"http://127.0.0.1:4566/1/price"}"#;
        let settings = read(&["news", "price"], &[("QUEUE_URLS", urls)]).unwrap();
        assert_eq!(settings.routes.len(), 2);
        assert_eq!(settings.linger, Duration::ZERO);
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
                "RELAY_LINGER_SECONDS is not a number it can use",
                "RELAY_IN_FLIGHT must lie between 1 and 512",
            ]
        );
    }

    #[test]
    fn mapping_that_is_missing_or_empty_is_refused() {
        assert!(read(&["news"], &[]).is_err());
        assert!(read(&["news"], &[("QUEUE_URLS", "[]")]).is_err());
        assert_eq!(
            read(&[], &[("QUEUE_URLS", "{}")]).unwrap_err(),
            Faults(vec!["no destination is declared".to_owned()])
        );
    }

    #[test]
    fn pace_is_read_from_the_environment() {
        let urls = r#"{"news":"https://sqs/1/news"}"#;
        let settings = read(
            &["news"],
            &[("QUEUE_URLS", urls), ("RELAY_LINGER_SECONDS", "75"), ("RELAY_BACKOFF_BASE_SECONDS", "0.5")],
        )
        .unwrap();
        assert_eq!(settings.linger, Duration::from_secs(75));
        assert_eq!(settings.backoff.base, Duration::from_millis(500));
    }

    #[test]
    fn lease_that_a_single_call_could_outlast_is_refused() {
        let urls = r#"{"news":"https://sqs/1/news"}"#;
        let faults = read(&["news"], &[("QUEUE_URLS", urls), ("RELAY_LEASE_SECONDS", "5")]).unwrap_err();
        assert_eq!(
            faults,
            Faults(vec!["RELAY_LEASE_SECONDS must be twice RELAY_SEND_TIMEOUT_SECONDS".to_owned()])
        );
    }
}
