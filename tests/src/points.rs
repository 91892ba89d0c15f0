//! Every fault point in the source, found by reading it: a point that is added is tested by that alone,
//! and a statement or an AWS call without one is found as well.

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

/// How a statement, a COMMIT or an AWS call begins in the source.
const CALLS: [&str; 14] = [
    ".execute(db",
    ".execute(tx",
    ".execute(&mut",
    ".fetch_one(db",
    ".fetch_one(tx",
    ".fetch_one(&mut",
    ".fetch_optional(db",
    ".fetch_optional(tx",
    ".fetch_optional(&mut",
    ".fetch_all(db",
    ".fetch_all(tx",
    ".fetch_all(&mut",
    ".commit()",
    ".send()",
];

/// The statements and AWS calls that no fault point guards, as `path:line`; the tests in a file left out.
///
/// # Errors
///
/// The source can not be read.
pub fn unguarded() -> Result<Vec<String>> {
    let mut found = Vec::new();
    for file in sources()? {
        let text = std::fs::read_to_string(&file)?;
        let path = file.strip_prefix(workspace()).unwrap_or(&file).display().to_string();
        found.extend(bare_calls(&text).map(|line| format!("{path}:{line}")));
    }
    Ok(found)
}

/// The lines of calls in `text` that are awaited without having passed a fault point; examples in comments
/// are none.
fn bare_calls(text: &str) -> impl Iterator<Item = usize> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let calls = CALLS.iter().flat_map(|call| code.match_indices(call));
    let bare = calls.filter(|(start, _)| {
        let line = code[..*start].rsplit('\n').next().unwrap_or_default();
        let (passed, _) = code[*start..].split_once(".await").unwrap_or((&code[*start..], ""));
        !line.trim_start().starts_with("//") && !passed.contains(".fault_point(\"")
    });
    bare.map(|(start, _)| code[..start].lines().count().max(1))
}

/// Every source file of the product; the fault crate itself and files of tests are left out.
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
        if path.file_stem().is_some_and(|stem| stem == "tests") {
            continue;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Code whose calls need no point, each with its reason.
    const EXCUSED: [(&str, &str); 6] = [
        ("shared/testkit/", "never part of a function"),
        ("shared/store/src/audit/", "reads for a person; nothing is done with what it reads"),
        ("shared/intraday/src/audit/", "reads for a person; nothing is done with what it reads"),
        ("shared/store/src/inspect.rs", "reads for a person; nothing is done with what it reads"),
        ("shared/store/src/migrate.rs", "one transaction a migration, before any component starts"),
        ("shared/intraday/src/config/location.rs", "reads the configuration before the first invocation"),
    ];

    #[test]
    fn every_statement_and_every_aws_call_has_a_fault_point() {
        let bare = unguarded().unwrap();
        let left: Vec<_> =
            bare.iter().filter(|place| !EXCUSED.iter().any(|(path, _)| place.starts_with(path))).collect();
        assert!(left.is_empty(), "without a fault point: {left:#?}");
    }

    #[test]
    fn every_excuse_is_still_needed() {
        let bare = unguarded().unwrap();
        for (path, _) in EXCUSED {
            assert!(bare.iter().any(|place| place.starts_with(path)), "{path} needs no excuse any more");
        }
    }

    #[test]
    fn call_without_a_point_is_found_and_one_with_a_point_is_not() {
        let guarded = "query!()\n    .execute(tx)\n    .fault_point(\"a::b\")\n    .await?;\n";
        let bare = "let a = 1;\nquery!()\n    .execute(tx)\n    .await?;\ntx.commit().await?;\n";
        let apart = "let call = s3.head_object().send();\nmatch call.fault_point(\"a::b\").await {";
        let comment = "/// tx.commit().await?;\n";
        let tests = "#[cfg(test)]\nmod tests { fn a() { s3.send().await } }";
        assert_eq!(bare_calls(guarded).count(), 0);
        assert_eq!(bare_calls(bare).collect::<Vec<_>>(), [3, 5]);
        for fine in [apart, comment, tests] {
            assert_eq!(bare_calls(fine).count(), 0, "{fine}");
        }
    }
}
