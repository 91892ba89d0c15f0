//! Who writes objects: everybody through `Artifacts`, and each of them refers to what it wrote.

use std::path::{Path, PathBuf};

/// The only places that ask S3 to write: artifacts, and the sweeper's marker.
const PUTS: [&str; 2] = ["shared/runtime/src/artifacts.rs", "shared/runtime/src/sweeper/s3.rs"];
/// The only places that write an artifact. A new one is added here, when it refers to what it writes.
const WRITERS: [&str; 2] = ["shared/intraday/src/collect/news.rs", "shared/intraday/src/collect/window.rs"];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The product's sources, each with its text; tests and what only tests use are no part of it.
fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_test = ["tests", "benches", "testkit", "tests.rs"].contains(&name.as_str());
        if path.is_dir() && !is_test {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !is_test {
            let text = std::fs::read_to_string(&path).unwrap();
            found.push((path.strip_prefix(workspace()).unwrap().display().to_string(), text));
        }
    }
}

fn product() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in ["functions", "shared"] {
        sources(&workspace().join(folder), &mut found);
    }
    found.sort();
    found
}

fn those_that_say<'a>(sources: &'a [(String, String)], words: &[&str]) -> Vec<&'a str> {
    let says = |text: &str| words.iter().any(|word| text.contains(word));
    sources.iter().filter(|(_, text)| says(text)).map(|(path, _)| path.as_str()).collect()
}

#[test]
fn nobody_else_asks_s3_to_write() {
    let writes = [".put_object()", ".copy_object()", ".create_multipart_upload()", ".upload_part()"];
    assert_eq!(those_that_say(&product(), &writes), PUTS);
}

#[test]
fn whoever_writes_an_artifact_refers_to_it() {
    let sources = product();
    assert_eq!(those_that_say(&sources, &["artifacts.put("]), WRITERS);
    let refers = those_that_say(&sources, &["artifact::refer("]);
    assert!(WRITERS.iter().all(|writer| refers.contains(writer)), "{refers:?}");
}
