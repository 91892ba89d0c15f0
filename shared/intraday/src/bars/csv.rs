//! Bars from a CSV file with a header.
//!
//! Rows may be in any order. A bad row is left out and named by its line and field; it never costs its
//! neighbours. Of two different rows for one symbol and minute the later in the file stands, and is
//! reported as a correction.

use std::collections::BTreeSet;

use csv::{ByteRecord, ReaderBuilder, Trim};

use super::header::Header;
use super::{Bars, insert, row};
use crate::config::Dataset;
use crate::input_fault::{Fault, Origin};

/// What a file holds.
#[derive(Debug, Default)]
pub struct Parsed {
    /// Its bars, sessions or not.
    pub bars: Bars,
    /// What was wrong with it, in the order of its lines.
    pub faults: Vec<Fault>,
}

/// Reads `bytes`, the file that `origin` names.
#[must_use]
pub fn parse(bytes: &[u8], origin: &Origin, dataset: &Dataset) -> Parsed {
    let mut parsed = Parsed::default();
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut records = records(bytes);
    let header = match header(records.next(), origin) {
        Ok(header) => header,
        Err(fault) => {
            parsed.faults.push(fault);
            return parsed;
        }
    };

    let file_symbol = symbol_of_file(&origin.file, dataset);
    let mut unknown = BTreeSet::new();
    let mut rows = 0_u64;
    for (line, fields) in records {
        rows += 1;
        match row::read(&fields, &header, &file_symbol, dataset) {
            Ok((start, bar)) => {
                if dataset.symbol(&bar.symbol).is_none() && unknown.insert(bar.symbol.clone()) {
                    let message = format!("\"{}\" is not among the dataset's instruments; kept", bar.symbol);
                    parsed.faults.push(origin.noted(Some(line), Some("symbol"), message));
                }
                parsed.faults.extend(insert(&mut parsed.bars, start, bar, origin, Some(line)));
            }
            Err(fault) => parsed.faults.push(origin.left_out(Some(line), fault.field, fault.message)),
        }
    }
    if rows == 0 {
        parsed.faults.push(origin.left_out(None, None, "the file has a header and no rows"));
    }
    parsed
}

/// Lines and their fields. Quotes are taken off a field, never joined over lines: one stray quote would
/// swallow every row behind it.
fn records(bytes: &[u8]) -> impl Iterator<Item = (u64, Vec<String>)> {
    let reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .quoting(false)
        .trim(Trim::All)
        .from_reader(bytes);
    // Bytes and a slice: no error is left that could occur.
    reader.into_byte_records().filter_map(Result::ok).map(|record| {
        let line = record.position().map_or(0, csv::Position::line);
        (line, fields(&record))
    })
}

fn fields(record: &ByteRecord) -> Vec<String> {
    let unquoted = |text: &str| {
        let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        inner.unwrap_or(text).trim().to_owned()
    };
    record.iter().map(|field| unquoted(&String::from_utf8_lossy(field))).collect()
}

fn header(first: Option<(u64, Vec<String>)>, origin: &Origin) -> Result<Header, Fault> {
    let Some((line, names)) = first else {
        return Err(origin.left_out(None, None, "the file is empty; a header and rows are expected"));
    };
    Header::find(&names).map_err(|missing| {
        let message = format!("the header lacks {}; it has {}", missing.join(", "), names.join(", "));
        origin.left_out(Some(line), Some("header"), message)
    })
}

/// The symbol a file's name holds: a configured one among its parts (`ibkr_AAPL_2025.csv`), else what
/// stands before the first underscore (`MU_1min.csv`).
fn symbol_of_file(file: &str, dataset: &Dataset) -> String {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let mut parts = stem.split(['_', '-', ' ']);
    let known = parts.clone().find_map(|part| dataset.symbol(part));
    known.or_else(|| parts.next()).unwrap_or(stem).to_owned()
}

#[cfg(test)]
mod tests;
