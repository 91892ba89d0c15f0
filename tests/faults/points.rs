//! Strikes at every fault point that a component passes, before and after, and then lets the schedules
//! repair it.
//!
//! Nobody lists the points: a first run notes what the component passes, and each of those is struck N
//! times. What no component of this list passes although it is in the source is a violation too.

mod cases;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use system_tests::crew::Crew;
use system_tests::world::Stand;
use system_tests::{Result, invariants, points};

use crate::report::Finding;
use crate::{Extent, Scenario};
use cases::{Case, Subjects};

/// The passages that were struck so far, by all cases together.
type Struck = Rc<RefCell<BTreeSet<String>>>;

/// Points that no case passes, each with its reason.
const NOT_STRUCK: [(&str, &str); 0] = [];

/// One scenario for each case, and one for what none of them passes.
pub fn all(stand: &Stand, extent: Extent) -> Vec<(&'static str, Scenario<'_>)> {
    let struck = Struck::default();
    let cases = Case::ALL.into_iter().filter(|case| case.is_built(stand));
    let mut scenarios: Vec<(&'static str, Scenario<'_>)> = cases
        .map(|case| {
            (case.name(), Box::pin(strike_all(stand, case, extent.points, Rc::clone(&struck))) as Scenario)
        })
        .collect();
    scenarios.push(("points: every one was struck", Box::pin(nothing_left_out(struck))));
    scenarios
}

async fn strike_all(stand: &Stand, case: Case, times: u32, struck: Struck) -> Result<Finding> {
    let world = stand.world("points").await?;
    let mut subjects = Subjects::new(&world, case).await?;
    let mut crew = Crew::new(&world, case.consumers());
    let mut finding = Finding::default();
    let passages = discover(&mut subjects, &mut crew).await?;
    finding.note("passages", i64::try_from(passages.len())?);

    let mut deaths = 0;
    for passage in &passages {
        for _ in 0..times {
            subjects.arrange(&mut crew).await?;
            if subjects
                .strike(&mut crew, |environment| environment.with_fault(&format!("{passage}:kill:1")))
                .await?
            {
                deaths += 1;
            } else {
                finding.violate(format!("{passage}: nothing died"));
            }
            if let Err(error) = crew.settle().await {
                finding.violate(format!("{passage}: {error}"));
            }
            finding.violate_all(
                subjects.broken().await?.into_iter().map(|broken| format!("{passage}: {broken}")),
            );
        }
    }
    finding.expect("deaths", deaths, i64::try_from(passages.len())? * i64::from(times));
    finding.expect("bad_answers", i64::try_from(crew.counts().bad_answers)?, 0);
    struck.borrow_mut().extend(passages);
    drop((crew, subjects));
    world.end().await?;
    Ok(finding)
}

/// The points that the case passes, in the order in which it first does.
async fn discover(subjects: &mut Subjects<'_>, crew: &mut Crew<'_>) -> Result<Vec<String>> {
    let notes = subjects.notes();
    subjects.arrange(crew).await?;
    if subjects.strike(crew, |environment| environment.noting(&notes)).await? {
        return Err("it died although nobody struck".into());
    }
    crew.settle().await?;
    let broken = subjects.broken().await?;
    if !broken.is_empty() {
        return Err(format!("broken without a strike: {}", broken.join(", ")).into());
    }
    let mut seen = BTreeSet::new();
    let noted = std::fs::read_to_string(&notes)?;
    Ok(noted.lines().filter(|name| seen.insert((*name).to_owned())).map(str::to_owned).collect())
}

/// Runs last: compares what was struck with what is in the source.
async fn nothing_left_out(struck: Struck) -> Result<Finding> {
    let mut finding = Finding::default();
    let all = points::passages()?;
    let struck = struck.borrow();
    finding.note("in_source", i64::try_from(all.len())?);
    finding.note("struck", i64::try_from(struck.len())?);
    let excused = |name: &str| NOT_STRUCK.iter().any(|(point, _)| name.starts_with(point));
    let left_out: Vec<_> =
        all.iter().filter(|name| !struck.contains(*name) && !excused(name)).cloned().collect();
    if !left_out.is_empty() {
        finding.violate(format!("never struck: {}", left_out.join(", ")));
    }
    Ok(finding)
}

/// The invariants of a case's world.
async fn broken(db: &sqlx::PgPool, subject: bool) -> Result<Vec<String>> {
    if subject { invariants::broken_with_subject(db).await } else { invariants::broken(db).await }
}
