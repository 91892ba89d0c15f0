//! Every fault point in the source, found by reading it: a point that is added is tested by that alone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::components::workspace;

/// Where code with fault points may lie.
const ROOTS: [&str; 2] = ["shared", "functions"];

/// The names of all passages, `….before` and `….after` of each point.
///
/// # Errors
///
/// The source can not be read.
pub fn passages() -> Result<BTreeSet<String>> {
    let mut passages = BTreeSet::new();
    for file in sources()? {
        let text = std::fs::read_to_string(&file)?;
        for name in arguments(&text, ".fault_point(\"") {
            passages.insert(format!("{name}.before"));
            passages.insert(format!("{name}.after"));
        }
        passages.extend(arguments(&text, "fault::point(\"").map(str::to_owned));
    }
    Ok(passages)
}

/// Every source file of the product, the fault crate itself left out.
///
/// # Errors
///
/// A folder can not be read.
pub fn sources() -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for root in ROOTS {
        for package in std::fs::read_dir(workspace().join(root))? {
            let source = package?.path().join("src");
            if source.is_dir() && !source.starts_with(workspace().join("shared/fault")) {
                walk(&source, &mut found)?;
            }
        }
    }
    found.sort();
    Ok(found)
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            walk(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

/// The texts that stand between `opening` and the next quotation mark.
fn arguments<'a>(text: &'a str, opening: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(opening).skip(1).filter_map(|rest| rest.split('"').next())
}
