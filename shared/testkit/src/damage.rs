//! Documents that are almost right, and bytes that are not.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, RngSeed, TestRunner};

/// Cases of a run that every test run can afford.
const CASES: u32 = 2_000;

/// What is pushed into a document: values of the wrong type, ends that come too early, odd characters.
const INTRUDERS: [&str; 16] = [
    "null",
    "{}",
    "[]",
    "\"\"",
    "-1",
    "1e999",
    "18446744073709551616",
    "\0",
    "\u{feff}",
    "\u{1f680}",
    "\"",
    "}",
    "]]>",
    "&#0;",
    "<!--",
    ",\n",
];

/// One thing that happens to a document.
#[derive(Clone, Debug)]
enum Damage {
    Byte(Index, u8),
    Cut(Index, usize),
    Repeat(Index, usize),
    Push(Index, &'static str),
}

/// Holds `property` to raw bytes, and to `documents` after some damage: always the same ones, unless
/// `PROPTEST_CASES` asks for more.
///
/// # Panics
///
/// When the property does, with the shortest bytes that make it.
pub fn withstand(documents: &'static [&'static str], property: fn(&[u8])) {
    let config = Config { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..Config::default() };
    let config = Config { cases: config.cases.max(CASES), ..config };
    let held = TestRunner::new(config).run(&damaged(documents), |bytes| {
        property(&bytes);
        Ok(())
    });
    if let Err(error) = held {
        panic!("{error}");
    }
}

fn damaged(documents: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let almost_right = (select(documents), vec(damage(), 0..6)).prop_map(|(document, damage)| {
        damage.into_iter().fold(document.as_bytes().to_vec(), |bytes, damage| damage.done_to(bytes))
    });
    prop_oneof![1 => vec(any::<u8>(), 0..300), 6 => almost_right]
}

fn damage() -> impl Strategy<Value = Damage> {
    let place = any::<Index>;
    prop_oneof![
        (place(), any::<u8>()).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        (place(), 1..20_usize).prop_map(|(at, length)| Damage::Cut(at, length)),
        (place(), 1..80_usize).prop_map(|(at, length)| Damage::Repeat(at, length)),
        (place(), select(&INTRUDERS[..])).prop_map(|(at, text)| Damage::Push(at, text)),
    ]
}

impl Damage {
    fn done_to(self, mut bytes: Vec<u8>) -> Vec<u8> {
        if bytes.is_empty() {
            return bytes;
        }
        let end = |at: usize, length: usize| (at + length).min(bytes.len());
        match self {
            Self::Byte(at, byte) => *at.get_mut(&mut bytes) = byte,
            Self::Cut(at, length) => {
                let at = at.index(bytes.len());
                bytes.drain(at..end(at, length));
            }
            Self::Repeat(at, length) => {
                let at = at.index(bytes.len());
                let again = bytes[at..end(at, length)].to_vec();
                bytes.splice(at..at, again);
            }
            Self::Push(at, text) => {
                let at = at.index(bytes.len());
                bytes.splice(at..at, text.bytes());
            }
        }
        bytes
    }
}
