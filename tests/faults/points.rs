//! Strikes at every fault point of every component.

use system_tests::world::Stand;

use crate::{Extent, Scenario};

/// One scenario for each component.
pub fn all(_stand: &Stand, _extent: Extent) -> Vec<(&'static str, Scenario<'_>)> {
    Vec::new()
}
