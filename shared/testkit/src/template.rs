//! A SAM template as text, held together with the job types that code declares.

use std::collections::{BTreeMap, BTreeSet};

use domain::JobType;
use serde_json::{Map, Value};

/// Holds `template` to exactly the destinations of `job_types`, each of which has one of its own.
///
/// A destination has a queue `…-NAME` and a dead-letter queue `…-NAME-dead-letter`; every `QUEUE_URLS` maps each of
/// them, and no other; and a queue delivers a message more often than any of its jobs is tried, with two
/// deliveries to spare, so that a job which is merely waiting never reaches the dead-letter queue.
///
/// # Panics
///
/// When it does not; the message names the difference.
pub fn assert_job_types(template: &str, job_types: &[JobType]) {
    let declared: BTreeSet<&str> = job_types.iter().map(|job_type| job_type.destination).collect();
    assert_eq!(
        declared.len(),
        job_types.len(),
        "two job types have one destination, whose consumer does one"
    );
    let queues = queues(template);
    let dead = declared.iter().map(|name| format!("{name}-dead-letter"));
    let expected: BTreeSet<String> = declared.iter().map(ToString::to_string).chain(dead).collect();
    let found: BTreeSet<String> = queues.keys().map(ToString::to_string).collect();
    assert_eq!(found, expected, "queues of the template, and what the code declares");

    for job_type in job_types {
        let receives = queues[job_type.destination].unwrap_or_default();
        let (name, attempts) = (job_type.name, job_type.max_attempts);
        assert!(
            receives > attempts + 2,
            "{name} jobs are tried {attempts} times, maxReceiveCount is {receives}"
        );
    }

    let mappings = mappings(template);
    assert!(!mappings.is_empty(), "the template has no QUEUE_URLS");
    for mapping in &mappings {
        let mapped: BTreeSet<&str> = mapping.keys().map(String::as_str).collect();
        assert_eq!(mapped, declared, "a QUEUE_URLS of the template, and what the code declares");
    }
}

/// The template's queues by their names after the stack's, each with its `maxReceiveCount`.
fn queues(template: &str) -> BTreeMap<&str, Option<i32>> {
    let blocks = template.split("QueueName: !Sub ${AWS::StackName}-").skip(1);
    let queues = blocks.filter_map(|block| {
        let name = block.split_whitespace().next()?;
        let (_, count) = block.split_once("maxReceiveCount: ").unzip();
        let digits = count.map(|text| text.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default());
        Some((name, digits.and_then(|digits| digits.parse().ok())))
    });
    queues.collect()
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

    const MAIL: JobType = JobType::new("mail");
    const TEMPLATE: &str = r#"
      QueueName: !Sub ${AWS::StackName}-mail
      RedrivePolicy: { deadLetterTargetArn: !GetAtt Dead.Arn, maxReceiveCount: 20 }
      QueueName: !Sub ${AWS::StackName}-mail-dead-letter
          QUEUE_URLS: !Sub '{"mail": "${MailQueue}"}'
          QUEUE_URLS: !Sub >-
            {"mail": "${MailDeadLetterQueue}"}
    "#;

    #[test]
    fn template_of_the_declared_job_types_passes() {
        assert_job_types(TEMPLATE, &[JobType::new("reminder").sent_to("mail")]);
    }

    #[test]
    #[should_panic(expected = "queues of the template")]
    fn destination_without_a_queue_is_found() {
        assert_job_types(TEMPLATE, &[MAIL, JobType::new("fax")]);
    }

    #[test]
    #[should_panic(expected = "two job types have one destination")]
    fn destination_of_two_job_types_is_found() {
        assert_job_types(TEMPLATE, &[MAIL, JobType::new("reminder").sent_to("mail")]);
    }

    #[test]
    #[should_panic(expected = "a QUEUE_URLS of the template")]
    fn destination_that_one_mapping_leaves_out_is_found() {
        assert_job_types(&TEMPLATE.replacen("\"mail\"", "\"fax\"", 1), &[MAIL]);
    }

    #[test]
    #[should_panic(expected = "mail jobs are tried 18 times, maxReceiveCount is 20")]
    fn queue_that_gives_up_before_its_jobs_do_is_found() {
        assert_job_types(TEMPLATE, &[MAIL.tried(18)]);
    }
}
