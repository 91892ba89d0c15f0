//! Which dead-letter queue belongs to which destination.

use std::collections::{BTreeMap, BTreeSet};

use store::dead_letter::Policy;

/// The dead-letter queue of one destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// The destination whose consumers gave up.
    pub destination: String,
    /// Where its messages ended.
    pub queue_url: String,
    /// What becomes of its jobs.
    pub policy: Policy,
}

/// All dead-letter queues, found by the ARN a record names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lanes(Vec<Lane>);

/// Settings that do not say which queue is whose. The function must not start.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum LanesError {
    /// The queues can not be read.
    #[error("DEAD_LETTER_QUEUE_URLS is not a JSON object of destination and queue URL")]
    Urls,
    /// The policies can not be read.
    #[error("DEAD_LETTER_POLICIES is not a JSON object of destination and \"return\" or \"dead\"")]
    Policies,
    /// A policy that would never be used.
    #[error("DEAD_LETTER_POLICIES names {0}, which has no dead-letter queue")]
    Stranger(String),
    /// The text after the last `/` names the queue, and there is none.
    #[error("the dead-letter queue of {0} has no URL that ends in a queue's name")]
    NoName(String),
    /// A record could not be traced to one destination.
    #[error("two destinations share the dead-letter queue {0}")]
    Shared(String),
    /// There is nothing to do.
    #[error("there is no dead-letter queue")]
    Empty,
}

impl Lanes {
    /// The queues of `urls`, a JSON object of destination and queue URL, with the policies of
    /// `policies`, a JSON object of destination and `"return"` or `"dead"`; what it does not name
    /// returns its jobs.
    ///
    /// # Errors
    ///
    /// [`LanesError`]; refuse to start.
    pub fn parse(urls: &str, policies: &str) -> Result<Self, LanesError> {
        let urls: BTreeMap<String, String> = serde_json::from_str(urls).map_err(|_| LanesError::Urls)?;
        let mut policies = read_policies(policies)?;
        let mut names = BTreeSet::new();
        let mut lanes = Vec::with_capacity(urls.len());
        for (destination, queue_url) in urls {
            let name = name_in(&queue_url, '/').ok_or_else(|| LanesError::NoName(destination.clone()))?;
            if !names.insert(name.to_owned()) {
                return Err(LanesError::Shared(name.to_owned()));
            }
            let policy = policies.remove(&destination).unwrap_or_default();
            lanes.push(Lane { destination, queue_url, policy });
        }
        match policies.into_keys().next() {
            Some(stranger) => Err(LanesError::Stranger(stranger)),
            None if lanes.is_empty() => Err(LanesError::Empty),
            None => Ok(Self(lanes)),
        }
    }

    /// The lane whose queue `queue_arn` names.
    #[must_use]
    pub fn of(&self, queue_arn: &str) -> Option<&Lane> {
        let name = name_in(queue_arn, ':')?;
        self.0.iter().find(|lane| name_in(&lane.queue_url, '/') == Some(name))
    }
}

fn read_policies(policies: &str) -> Result<BTreeMap<String, Policy>, LanesError> {
    let words: BTreeMap<String, String> = serde_json::from_str(policies).map_err(|_| LanesError::Policies)?;
    let policy = |word: &str| match word {
        "return" => Ok(Policy::Return),
        "dead" => Ok(Policy::Dead),
        _ => Err(LanesError::Policies),
    };
    words.into_iter().map(|(destination, word)| Ok((destination, policy(&word)?))).collect()
}

/// A queue's name: the last part of its URL and of its ARN alike.
fn name_in(address: &str, separator: char) -> Option<&str> {
    address.rsplit_once(separator).map(|(_, name)| name).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const URLS: &str =
        r#"{"news":"http://localhost:9324/000000000000/news-dlq","price":"https://q/1/price-dlq"}"#;

    #[test]
    fn record_is_traced_to_its_destination_by_the_name_of_its_queue() {
        let lanes = Lanes::parse(URLS, r#"{"price":"dead"}"#).unwrap();

        let news = lanes.of("arn:aws:sqs:eu-central-1:000000000000:news-dlq").unwrap();
        assert_eq!((news.destination.as_str(), news.policy), ("news", Policy::Return));
        assert_eq!(lanes.of("arn:aws:sqs:eu-central-1:1:price-dlq").unwrap().policy, Policy::Dead);
        for stranger in ["arn:aws:sqs:eu-central-1:1:news", "news-dlq", "", ":"] {
            assert_eq!(lanes.of(stranger), None, "{stranger}");
        }
    }

    #[test]
    fn settings_that_leave_a_doubt_refuse_to_start() {
        let error = |urls, policies| Lanes::parse(urls, policies).unwrap_err();

        assert_eq!(error(r#"["a"]"#, "{}"), LanesError::Urls);
        assert_eq!(error("{}", "{}"), LanesError::Empty);
        assert_eq!(error(r#"{"news":"http://q/"}"#, "{}"), LanesError::NoName("news".into()));
        assert_eq!(error(r#"{"a":"http://q/1/x","b":"http://p/2/x"}"#, "{}"), LanesError::Shared("x".into()));
        assert_eq!(error(URLS, r#"{"news":"drop"}"#), LanesError::Policies);
        assert_eq!(error(URLS, r#"{"explain":"dead"}"#), LanesError::Stranger("explain".into()));
    }
}
