//! Requests to the collector.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| intraday::fuzzing::collector(bytes));
