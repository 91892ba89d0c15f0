//! The pipeline's job types, and so its destinations: the one table of them in the code.
//!
//! Enqueuing, the consumers, the relay's start check and the configuration's `[destinations.…]` all take
//! their names from here; a test holds it together with `template.yaml`.

use domain::JobType;

/// Reads one text of one news item.
pub const NEWS: JobType = JobType::new("news");
/// Computes what the bars of a window trigger.
pub const PRICE: JobType = JobType::new("price");
/// Explains one revision of one trigger.
pub const EXPLAIN: JobType = JobType::new("explain");

/// All of them, in the order in which data flow through them.
pub const ALL: [JobType; 3] = [NEWS, PRICE, EXPLAIN];

/// Where they are sent.
pub const DESTINATIONS: [&str; ALL.len()] = [NEWS.destination, PRICE.destination, EXPLAIN.destination];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn template_has_one_queue_for_each_destination_and_maps_it_everywhere() {
        let template = include_str!("../../../template.yaml");
        testkit::template::assert_job_types(template, &ALL);
    }
}
