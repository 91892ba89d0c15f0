//! Strikes at every fault point that a component passes, before and after, and then lets the schedules
//! repair it.
//!
//! Nobody lists the points: a first run notes what the component passes, and each of those is struck N
//! times. What no component of this list passes although it is in the source is a violation too.

mod case;
mod subjects;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use system_tests::crew::Crew;
use system_tests::world::Stand;
use system_tests::{Result, points};

use crate::report::Finding;
use crate::{Extent, Scenario};
use case::Case;
use subjects::{Blow, Subjects};

/// What was passed so far, by all cases together.
pub type Passed = Rc<RefCell<BTreeSet<String>>>;

/// Points that no case passes, each with its reason.
const NOT_PASSED: [(&str, &str); 7] = [
    ("source::", "only reads: nothing is held and nothing was changed while a source is fetched"),
    ("gauges::", "the monitor only reads"),
    ("sqs::queue_depth.", "the monitor only reads"),
    ("sweep::gauges.", "the monitor only reads"),
    ("secretsmanager::", "a test server has no secret; nothing is held while one is read"),
    ("roles::create_logins.", "one statement of the migrator, repeated by its next call"),
    (
        "sweep::advance.",
        "a lap of more objects than one page: `shared/runtime/tests/sweep/laps.rs` bounds it",
    ),
];

/// One scenario for each case.
pub fn all<'a>(stand: &'a Stand, extent: Extent, passed: &Passed) -> Vec<(&'static str, Scenario<'a>)> {
    Case::ALL
        .into_iter()
        .map(|case| (case.name(), Box::pin(strike_all(stand, case, extent, Rc::clone(passed))) as Scenario))
        .collect()
}

async fn strike_all(stand: &Stand, case: Case, extent: Extent, passed: Passed) -> Result<Finding> {
    let world = stand.world("points").await?;
    let mut subjects = Subjects::new(&world, case).await?;
    let mut crew = Crew::new(&world, case.consumers());
    let mut finding = Finding::default();
    let passages = discover(&mut subjects, &mut crew).await?;
    finding.note("passages", i64::try_from(passages.len())?);

    let blows = blows(case, &passages, extent);
    let (mut landed, asked) = (0, blows.len());
    for (name, blow) in blows {
        match strike(&mut subjects, &mut crew, &blow).await {
            Ok(true) => landed += 1,
            Ok(false) => finding.violate(format!("{name}: the blow did not land")),
            Err(error) => finding.violate(format!("{name}: {error}")),
        }
        finding.violate_all(subjects.broken().await?.into_iter().map(|broken| format!("{name}: {broken}")));
    }
    finding.expect("blows", landed, i64::try_from(asked)?);
    finding.expect("bad_answers", i64::try_from(crew.counts().bad_answers)?, 0);
    passed.borrow_mut().extend(passages);
    drop((crew, subjects));
    world.end().await?;
    Ok(finding)
}

async fn strike(subjects: &mut Subjects<'_>, crew: &mut Crew<'_>, blow: &Blow) -> Result<bool> {
    subjects.arrange(crew).await?;
    let landed = subjects.strike(crew, blow).await?;
    crew.settle().await?;
    Ok(landed)
}

/// Every blow for every passage, N times. In the small run one blow for each point, before or after it
/// and of one kind, in turns.
fn blows(case: Case, passages: &[String], extent: Extent) -> Vec<(String, Blow)> {
    let mut blows = Vec::new();
    for (position, passage) in passages.iter().enumerate() {
        let mut kinds = vec![(format!("kill at {passage}"), Blow::Kill(passage.clone()))];
        if case.can_freeze() {
            kinds.push((format!("freeze at {passage}"), Blow::Freeze(passage.clone())));
        }
        if let Some(text) = statement(passage) {
            kinds.push((format!("lose the answer of {passage}"), Blow::LoseAnswer(text)));
        }
        if extent.points == 0 {
            if position % 2 == position / 2 % 2 {
                blows.push(kinds.swap_remove(position / 2 % kinds.len()));
            }
        } else {
            for _ in 0..extent.points {
                blows.extend(kinds.iter().cloned());
            }
        }
    }
    blows
}

/// The text by which the proxy knows the statement of a passage; each statement once.
fn statement(passage: &str) -> Option<String> {
    let name = passage.strip_suffix(".after")?;
    let (module, last) = name.rsplit_once("::")?;
    match module {
        "s3" | "sqs" | "source" => None,
        _ if last.starts_with("commit") => Some("COMMIT".to_owned()),
        _ => Some(format!("-- {name}\n")),
    }
}

/// The points that the case passes, in the order in which it first does.
async fn discover(subjects: &mut Subjects<'_>, crew: &mut Crew<'_>) -> Result<Vec<String>> {
    subjects.arrange(crew).await?;
    subjects.strike(crew, &Blow::Watch).await?;
    crew.settle().await?;
    let broken = subjects.broken().await?;
    if !broken.is_empty() {
        return Err(format!("broken without a blow: {}", broken.join(", ")).into());
    }
    let mut seen = BTreeSet::new();
    let noted = std::fs::read_to_string(subjects.notes())?;
    Ok(noted.lines().filter(|name| seen.insert((*name).to_owned())).map(str::to_owned).collect())
}

/// Compares what was passed with what is in the source.
///
/// # Errors
///
/// The source can not be read.
pub fn left_out(passed: &Passed) -> Result<Finding> {
    let mut finding = Finding::default();
    let all = points::passages()?;
    let passed = passed.borrow();
    finding.note("in_source", i64::try_from(all.len())?);
    finding.note("passed", i64::try_from(passed.len())?);
    for (point, _) in NOT_PASSED {
        if !all.iter().any(|name| name.starts_with(point)) {
            finding.violate(format!("{point} is excused and not in the source"));
        }
    }
    let excused = |name: &str| NOT_PASSED.iter().any(|(point, _)| name.starts_with(point));
    let left_out: Vec<_> =
        all.iter().filter(|name| !passed.contains(*name) && !excused(name)).cloned().collect();
    if !left_out.is_empty() {
        finding.violate(format!("never passed: {}", left_out.join(", ")));
    }
    Ok(finding)
}
