//! A SAM template as text, held together with the destinations that code declares.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Holds `template` to exactly these destinations: each has a queue `…-NAME` and a dead-letter queue
/// `…-NAME-dead-letter`, and every `QUEUE_URLS` maps each of them once, and no other.
///
/// # Panics
///
/// When it does not; the message names the difference.
pub fn assert_destinations(template: &str, destinations: &[&str]) {
    let declared: BTreeSet<String> = destinations.iter().map(|name| (*name).to_owned()).collect();
    let dead = declared.iter().map(|name| format!("{name}-dead-letter"));
    let expected: BTreeSet<String> = declared.iter().cloned().chain(dead).collect();
    assert_eq!(queues(template), expected, "queues of the template, and what the code declares");

    let mappings = mappings(template);
    assert!(!mappings.is_empty(), "the template has no QUEUE_URLS");
    for mapping in mappings {
        let mapped: BTreeSet<String> = mapping.keys().cloned().collect();
        assert_eq!(mapped, declared, "a QUEUE_URLS of the template, and what the code declares");
    }
}

/// The names of the template's queues after the stack's.
fn queues(template: &str) -> BTreeSet<String> {
    let named =
        template.lines().filter_map(|line| line.trim().strip_prefix("QueueName: !Sub ${AWS::StackName}-"));
    named.map(|name| name.trim().to_owned()).collect()
}

/// Every JSON object that follows a `QUEUE_URLS`.
fn mappings(template: &str) -> Vec<Map<String, Value>> {
    let after = template.split("QUEUE_URLS:").skip(1);
    let texts = after.filter_map(|rest| rest.find('{').map(|start| &rest[start..]));
    texts
        .map(|text| {
            let first = serde_json::Deserializer::from_str(text).into_iter().next();
            first.expect("QUEUE_URLS is followed by an object").expect("QUEUE_URLS is a JSON object")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: &str = r#"
      QueueName: !Sub ${AWS::StackName}-mail
      QueueName: !Sub ${AWS::StackName}-mail-dead-letter
          QUEUE_URLS: !Sub '{"mail": "${MailQueue}"}'
          QUEUE_URLS: !Sub >-
            {"mail": "${MailDeadLetterQueue}"}
    "#;

    #[test]
    fn template_of_the_declared_destinations_passes() {
        assert_destinations(TEMPLATE, &["mail"]);
    }

    #[test]
    #[should_panic(expected = "queues of the template")]
    fn destination_without_a_queue_is_found() {
        assert_destinations(TEMPLATE, &["mail", "fax"]);
    }

    #[test]
    #[should_panic(expected = "a QUEUE_URLS of the template")]
    fn destination_that_one_mapping_leaves_out_is_found() {
        assert_destinations(&TEMPLATE.replacen("\"mail\"", "\"fax\"", 1), &["mail"]);
    }
}
