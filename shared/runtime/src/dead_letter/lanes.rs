//! Which dead-letter queue belongs to which destination.

use std::collections::BTreeMap;

use store::dead_letter::Policy;

/// The dead-letter queue of one destination.
#[derive(Clone, Debug)]
pub struct Lane<Q> {
    /// The destination whose consumers gave up.
    pub destination: String,
    /// What becomes of its jobs.
    pub policy: Policy,
    /// Where its messages ended.
    pub queue: Q,
    queue_name: String,
}

/// All dead-letter queues, found by the ARN a record names.
#[derive(Clone, Debug)]
pub struct Lanes<Q>(Vec<Lane<Q>>);

/// Settings that do not say which queue is whose. The function must not start.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum LanesError {
    /// Its messages would never be decided.
    #[error("the destination {0} has no dead-letter queue")]
    NoQueue(String),
    /// Nobody knows what to do with its messages.
    #[error("the dead-letter queue of {0} has no such destination")]
    NoDestination(String),
    /// The text after the last `/` names the queue, and there is none.
    #[error("the dead-letter queue of {0} has no URL that ends in a queue's name")]
    NoName(String),
    /// A record could not be traced to one destination.
    #[error("two destinations share the dead-letter queue {0}")]
    Shared(String),
}

impl<Q> Lanes<Q> {
    /// The lanes of `policies`, whose keys are all destinations, each with its queue of `queue_urls`.
    ///
    /// # Errors
    ///
    /// [`LanesError`]; refuse to start.
    pub fn new(
        policies: &BTreeMap<String, Policy>,
        queue_urls: &BTreeMap<String, String>,
        connect: impl Fn(&str) -> Q,
    ) -> Result<Self, LanesError> {
        if let Some(stranger) = queue_urls.keys().find(|destination| !policies.contains_key(*destination)) {
            return Err(LanesError::NoDestination(stranger.clone()));
        }
        let mut lanes: Vec<Lane<Q>> = Vec::with_capacity(policies.len());
        for (destination, policy) in policies {
            let url = queue_urls.get(destination).ok_or_else(|| LanesError::NoQueue(destination.clone()))?;
            let name = name_in(url, '/').ok_or_else(|| LanesError::NoName(destination.clone()))?;
            if lanes.iter().any(|lane| lane.queue_name == name) {
                return Err(LanesError::Shared(name.to_owned()));
            }
            lanes.push(Lane {
                destination: destination.clone(),
                policy: *policy,
                queue: connect(url),
                queue_name: name.to_owned(),
            });
        }
        Ok(Self(lanes))
    }

    /// The lane whose queue `queue_arn` names.
    #[must_use]
    pub fn of(&self, queue_arn: &str) -> Option<&Lane<Q>> {
        let name = name_in(queue_arn, ':')?;
        self.0.iter().find(|lane| lane.queue_name == name)
    }
}

/// A queue's name: the last part of its URL and of its ARN alike.
fn name_in(address: &str, separator: char) -> Option<&str> {
    address.rsplit_once(separator).map(|(_, name)| name).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(urls: &[(&str, &str)]) -> Result<Lanes<String>, LanesError> {
        let policies = [("news", Policy::Return), ("price", Policy::Dead)];
        let policies = policies.map(|(name, policy)| (name.to_owned(), policy)).into();
        let urls = urls.iter().map(|(name, url)| ((*name).to_owned(), (*url).to_owned())).collect();
        Lanes::new(&policies, &urls, str::to_owned)
    }

    #[test]
    fn record_is_traced_to_its_destination_by_the_name_of_its_queue() {
        let lanes =
            lanes(&[("news", "http://localhost/0/news-dlq"), ("price", "https://q/1/price-dlq")]).unwrap();

        let news = lanes.of("arn:aws:sqs:eu-central-1:000000000000:news-dlq").unwrap();
        assert_eq!((news.destination.as_str(), news.policy), ("news", Policy::Return));
        assert_eq!(news.queue, "http://localhost/0/news-dlq");
        assert_eq!(lanes.of("arn:aws:sqs:eu-central-1:1:price-dlq").unwrap().policy, Policy::Dead);
        for stranger in ["arn:aws:sqs:eu-central-1:1:news", "news-dlq", "", ":"] {
            assert!(lanes.of(stranger).is_none(), "{stranger}");
        }
    }

    #[test]
    fn settings_that_leave_a_doubt_refuse_to_start() {
        let error = |urls: &[_]| lanes(urls).unwrap_err();

        assert_eq!(error(&[("news", "http://q/n")]), LanesError::NoQueue("price".into()));
        assert_eq!(
            error(&[("news", "http://q/"), ("price", "http://q/p")]),
            LanesError::NoName("news".into())
        );
        assert_eq!(error(&[("news", "http://q/x"), ("price", "http://p/x")]), LanesError::Shared("x".into()));
        let stranger = [("news", "http://q/n"), ("price", "http://q/p"), ("explain", "http://q/e")];
        assert_eq!(error(&stranger), LanesError::NoDestination("explain".into()));
    }
}
