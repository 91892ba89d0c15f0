//! Events of queues, and the evidence that dead-letter keeps of their records.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| runtime::fuzzing::records(bytes));
