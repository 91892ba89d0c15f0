//! What is made of a person's files.

use clap::Parser;

use super::*;

/// Two symbols on a Tuesday and a Wednesday in winter; the Wednesday begins a minute later.
const BARS: &str = "timestamp,symbol,open,high,low,close,volume
2026-01-06 09:30:00,AAPL,10,11,9,10,100
2026-01-06 09:32:00,ABC,20,21,19,20,100
2026-01-07 09:31:00,AAPL,10,11,9,10,100
2026-01-07 09:32:00,ABC,20,21,19,20,100
2026-01-07 09:32:00,AAPL,10,11,9,10,100
";

/// A folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("demo-{name}-{}", std::process::id()));
        empty(&path).unwrap();
        Self(path)
    }

    fn write(&self, file: &str, text: &str) -> PathBuf {
        let path = self.0.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn own_folders(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.write("bars/b.csv", BARS);
    folder.write("news/n.xml", "<rss/>");
    folder
}

fn arguments(more: &[&str]) -> Arguments {
    Arguments::parse_from(["demo"].iter().chain(more))
}

fn replay(folder: &Folder, more: &[&str]) -> Result<Rehearsal, Error> {
    rehearsal(&folder.0, &arguments(more))
}

#[test]
fn latest_session_is_replayed_from_its_first_minute_to_its_last() {
    let folder = own_folders("latest");

    let rehearsal = replay(&folder, &["--sessions", "1"]).unwrap();

    let starts: Vec<String> =
        rehearsal.windows.iter().map(|start| start.format("%F %R").to_string()).collect();
    assert_eq!(starts, ["2026-01-07 14:31", "2026-01-07 14:32"]);
    assert_eq!(rehearsal.expected.bars, 3);
}

#[test]
fn several_sessions_share_one_span_of_the_day() {
    let folder = own_folders("several");

    let rehearsal = replay(&folder, &["--sessions", "2"]).unwrap();

    assert_eq!(rehearsal.windows.len(), 2 * 3);
    assert_eq!(rehearsal.expected.bars, 5);
}

#[test]
fn configuration_that_is_derived_is_one_the_product_accepts() {
    let folder = own_folders("derived");
    let rehearsal = replay(&folder, &["--sessions", "2"]).unwrap();

    let config = Config::load(&rehearsal.config).unwrap();

    let dataset = config.dataset(&rehearsal.dataset).unwrap();
    assert_eq!(
        dataset.windows_between(rehearsal.windows[0], rehearsal.windows[5]).collect::<Vec<_>>(),
        rehearsal.windows
    );
    let named: Vec<_> =
        dataset.instruments.iter().map(|one| (one.symbol.as_str(), one.names.is_empty())).collect();
    assert_eq!(named, [("AAPL", false), ("ABC", true)]);
}

#[test]
fn news_of_other_days_is_collected_while_nothing_is_traded() {
    let folder = own_folders("quiet");
    let config = replay(&folder, &[]).unwrap().config;
    let instant = |text: &str| text.parse::<DateTime<Utc>>().unwrap();

    // The session of Wednesdays is 09:31 to 09:32 in New York; its look-back ends an hour later.
    assert_eq!(quiet(&config, instant("2026-01-07T14:32:30Z")), Some(instant("2026-01-07T16:32:30Z")));
    assert_eq!(quiet(&config, instant("2026-01-08T14:32:30Z")), Some(instant("2026-01-08T14:32:30Z")));
}

#[test]
fn zone_decides_when_a_naive_time_was() {
    let folder = own_folders("zone");

    let rehearsal = replay(&folder, &["--zone", "Asia/Seoul"]).unwrap();

    assert_eq!(rehearsal.windows[0].format("%F %R").to_string(), "2026-01-07 00:31");
}

#[test]
fn folder_without_bars_says_what_was_expected() {
    let folder = Folder::new("empty");
    folder.write("bars/b.csv", "a,b\n1,2\n");
    folder.write("news/n.xml", "<rss/>");

    let refused = replay(&folder, &["--sessions", "1"]).unwrap_err().to_string();

    assert!(refused.contains("CSV files with a header are expected"), "{refused}");
    assert!(refused.contains("b.csv"), "{refused}");
}

#[test]
fn dataset_is_named_after_its_folder_and_the_way_it_is_read() {
    let name = |data: &str, more: &[&str]| dataset_name(Path::new(data), &arguments(more));
    assert_eq!(name("/a/US 8.csv", &[]), name("/a/US 8.csv", &["--no-chaos"]));
    assert_ne!(name("/a/us8.csv", &[]), name("/b/us8.csv", &[]));
    assert_ne!(name("/a/us8.csv", &[]), name("/a/us8.csv", &["--zone", "UTC"]));
    assert!(name("/a/US 8.csv", &[]).starts_with("rehearsal-us-8-"));
}
