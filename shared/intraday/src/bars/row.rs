//! One row of a bars file, checked field by field. The first fault of a row names it; the row is left out.

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;

use super::header::{Header, NUMBERS, TimeColumns};
use super::{Bar, timestamp};
use crate::config::Dataset;

/// Longer is no ticker but a lost delimiter.
const SYMBOL_CHARACTERS_MAX: usize = 32;

/// What is wrong with a row.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RowFault {
    /// The column, if it is one column's fault.
    pub field: Option<&'static str>,
    /// What is wrong and what was expected.
    pub message: String,
}

fn fault(field: &'static str, message: String) -> RowFault {
    RowFault { field: Some(field), message }
}

/// Reads `fields` as `header` says; `file_symbol` is the symbol where no column has it.
pub(super) fn read(
    fields: &[String],
    header: &Header,
    file_symbol: &str,
    dataset: &Dataset,
) -> Result<(DateTime<Utc>, Bar), RowFault> {
    if fields.len() != header.width {
        let message =
            format!("the row has {} fields; {} are expected, as in the header", fields.len(), header.width);
        return Err(RowFault { field: None, message });
    }
    let start = time(fields, header.time, dataset)?;
    let symbol = symbol(header.symbol.map_or(file_symbol, |at| &fields[at]), dataset)?;
    let number = |index: usize| decimal(NUMBERS[index], &fields[header.numbers[index]]);
    let bar = Bar {
        symbol,
        open: number(0)?,
        high: number(1)?,
        low: number(2)?,
        close: number(3)?,
        volume: number(4)?,
    };
    check(&bar)?;
    Ok((start, bar))
}

fn time(fields: &[String], columns: TimeColumns, dataset: &Dataset) -> Result<DateTime<Utc>, RowFault> {
    let text = match columns {
        TimeColumns::One(at) => fields[at].clone(),
        TimeColumns::Two(date, time) => format!("{} {}", fields[date], fields[time]),
    };
    timestamp::parse(&text, dataset).map_err(|error| fault("timestamp", format!("\"{text}\" {error}")))
}

fn symbol(text: &str, dataset: &Dataset) -> Result<String, RowFault> {
    let known = dataset.symbol(text);
    let odd = text.chars().any(|c| c.is_whitespace() || c.is_control());
    if text.is_empty() || odd || text.chars().count() > SYMBOL_CHARACTERS_MAX {
        return Err(fault("symbol", format!("\"{text}\" is not a symbol")));
    }
    Ok(known.unwrap_or(text).to_owned())
}

/// Digits, a point, a sign: what is not written so is no number here, although a parser may take it.
fn decimal(field: &'static str, text: &str) -> Result<Decimal, RowFault> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || b".-+".contains(&byte));
    let number = Decimal::from_str_exact(text).ok().filter(|_| plain);
    number.ok_or_else(|| {
        fault(field, format!("\"{text}\" is not a number; a decimal such as 164.935 is expected"))
    })
}

fn check(bar: &Bar) -> Result<(), RowFault> {
    for (field, price) in NUMBERS.into_iter().zip([bar.open, bar.high, bar.low, bar.close]) {
        if price <= Decimal::ZERO {
            return Err(fault(field, format!("{price} is not a price; a number above 0 is expected")));
        }
    }
    if bar.high < bar.low {
        return Err(fault("high", format!("{} lies below low {}", bar.high, bar.low)));
    }
    for (field, price) in [("open", bar.open), ("close", bar.close)] {
        if price < bar.low || price > bar.high {
            let (low, high) = (bar.low, bar.high);
            return Err(fault(field, format!("{price} lies outside low {low} to high {high}")));
        }
    }
    if bar.volume < Decimal::ZERO {
        return Err(fault("volume", format!("{} is negative", bar.volume)));
    }
    Ok(())
}
