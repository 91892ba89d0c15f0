//! Each way a source can fail, and that it costs only itself.

use std::io::{Read, Write};
use std::net::TcpListener;

use super::*;
use crate::fixture::Folder;

/// Longer than any source of these tests may take.
const MOST: Duration = Duration::from_secs(30);

fn source(location: Location) -> Source {
    Source { name: "s".to_owned(), location, timeout: Duration::from_secs(5), max_bytes: 100 }
}

fn fetcher() -> Fetcher {
    let config = aws_sdk_s3::Config::builder().behavior_version_latest().build();
    Fetcher::new(aws_sdk_s3::Client::from_conf(config)).unwrap()
}

async fn fetch(location: Location, kind: Kind) -> Fetched {
    fetcher().fetch(&source(location), kind, MOST).await
}

fn messages(fetched: &Fetched) -> Vec<String> {
    fetched.faults.iter().map(ToString::to_string).collect()
}

fn names(fetched: &Fetched) -> Vec<&str> {
    fetched.documents.iter().map(|document| document.name.as_str()).collect()
}

/// The address of a server that gives `answer` to every caller until the test ends.
fn server(answer: impl Into<Vec<u8>>) -> String {
    let answer = answer.into();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/AAPL.csv", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(&answer);
        }
    });
    address
}

async fn fetch_answer(answer: &str) -> Fetched {
    fetch(Location::Http(server(answer).parse().unwrap()), Kind::Bars).await
}

#[tokio::test]
async fn folder_brings_the_files_of_the_kind_asked_for_by_name() {
    let folder =
        Folder::with(&[("b.csv", "2"), ("A.CSV", "1"), ("feed.xml", "3"), (".x.csv", "4"), ("n.txt", "5")]);
    let location = Location::Folder(folder.path());

    let bars = fetch(location.clone(), Kind::Bars).await;
    let news = fetch(location, Kind::News).await;

    assert_eq!(names(&bars), ["A.CSV", "b.csv"]);
    assert_eq!(messages(&bars), ["s/n.txt: is not read; files end in .csv"]);
    assert_eq!(names(&news), ["feed.xml"]);
}

#[tokio::test]
async fn file_that_is_too_large_costs_only_itself() {
    let folder = Folder::with(&[("a.csv", &"x".repeat(101)), ("b.csv", "ok")]);

    let fetched = fetch(Location::Folder(folder.path()), Kind::Bars).await;

    assert_eq!(names(&fetched), ["b.csv"]);
    assert_eq!(messages(&fetched), ["s/a.csv: has 101 bytes, more than is left of the source's 100"]);
    assert!(!fetched.failed);
}

#[tokio::test]
async fn folder_that_is_not_there_fails_alone() {
    let folder = Folder::with(&[("a.csv", "ok")]);
    let sources =
        [source(Location::Folder("/no/such/folder".into())), source(Location::Folder(folder.path()))];

    let fetched = fetcher().fetch_all(&sources, Kind::Bars, MOST).await;

    assert!(fetched[0].failed);
    assert!(messages(&fetched[0])[0].starts_with("s: can not be read: "), "{:?}", fetched[0]);
    assert_eq!(names(&fetched[1]), ["a.csv"]);
}

#[tokio::test]
async fn web_address_brings_one_document() {
    let fetched = fetch_answer("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    assert_eq!(fetched.documents, [Document { name: "AAPL.csv".to_owned(), bytes: b"ok".to_vec() }]);
}

#[tokio::test]
async fn status_of_an_error_is_named() {
    let fetched = fetch_answer("HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n").await;
    assert_eq!(messages(&fetched), ["s: answered with status 503"]);
    assert!(fetched.failed);
}

#[tokio::test]
async fn body_that_grows_too_large_is_refused_whatever_its_length_was_said_to_be() {
    let fetched =
        fetch_answer(&format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{}", "x".repeat(101))).await;
    assert_eq!(messages(&fetched), ["s: is larger than 100 bytes"]);
}

#[tokio::test]
async fn body_that_ends_early_is_no_document() {
    let fetched = fetch_answer("HTTP/1.1 200 OK\r\ncontent-length: 9\r\nconnection: close\r\n\r\nok").await;
    assert!(fetched.failed && fetched.documents.is_empty());
}

#[tokio::test]
async fn redirect_to_another_scheme_is_not_followed() {
    let fetched =
        fetch_answer("HTTP/1.1 302 Found\r\nlocation: ftp://127.0.0.1/x\r\ncontent-length: 0\r\n\r\n").await;
    assert!(fetched.failed && fetched.documents.is_empty(), "{fetched:?}");
}

#[tokio::test]
async fn server_that_never_answers_is_late_and_holds_up_nobody() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap()).parse().unwrap();
    let late = Source { timeout: Duration::from_millis(50), ..source(Location::Http(url)) };
    let folder = Folder::with(&[("a.csv", "ok")]);

    let fetched =
        fetcher().fetch_all(&[late, source(Location::Folder(folder.path()))], Kind::Bars, MOST).await;

    assert!(messages(&fetched[0])[0].starts_with("s: took longer than"), "{:?}", fetched[0]);
    assert_eq!(names(&fetched[1]), ["a.csv"]);
}
