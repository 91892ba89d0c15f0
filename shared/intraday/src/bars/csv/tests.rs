//! Each kind of bad input, between good neighbours that must survive it.

use chrono::{DateTime, Utc};

use super::*;
use crate::config::{Config, location};

const HEADER: &str = "timestamp,symbol,open,high,low,close,volume";
const GOOD: &str = "2018-04-04 09:30:00,AAPL,10.0,11,9.50,10.5,100.0";
const ALSO_GOOD: &str = "2018-04-04 09:32:00,AAPL,10,11,9,10,100";

fn parse_as(file: &str, text: &str) -> Parsed {
    let config = Config::load(location::BUNDLED).unwrap();
    let origin = Origin { source: "bars".to_owned(), file: file.to_owned() };
    parse(text.as_bytes(), &origin, config.dataset("us8").unwrap())
}

fn minute(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// The faults of a file of two good rows with `row` between them; the good rows must be kept.
fn faults_of(row: &str) -> Vec<String> {
    let parsed = parse_as("a.csv", &format!("{HEADER}\n{GOOD}\n{row}\n{ALSO_GOOD}\n"));
    for kept in ["2018-04-04T13:30:00Z", "2018-04-04T13:32:00Z"] {
        assert!(parsed.bars.contains_key(&minute(kept)), "{row} cost its neighbour at {kept}");
    }
    parsed.faults.iter().map(ToString::to_string).collect()
}

#[test]
fn numbers_are_kept_exactly_as_written() {
    let parsed = parse_as("a.csv", &format!("{HEADER}\n{GOOD}\n"));

    let bar = &parsed.bars[&minute("2018-04-04T13:30:00Z")]["AAPL"];
    let written = [bar.open, bar.high, bar.low, bar.close, bar.volume].map(|number| number.to_string());
    assert_eq!(written, ["10.0", "11", "9.50", "10.5", "100.0"]);
    assert_eq!(parsed.faults, []);
}

#[test]
fn newest_first_and_extra_columns_and_quotes_are_read() {
    let text = "\u{feff}\"Date\",Open,High,Low,Close,Volume,average\r\n\
                2018-04-04 09:31:00,10,11,9,10,100,10.1\r\n\
                \"2018-04-04 09:30:00\",10,11,9,10,100,10.1\r\n";
    let parsed = parse_as("AMZN_1min.csv", text);

    assert_eq!(parsed.bars.len(), 2);
    assert!(parsed.bars.values().all(|minute| minute.contains_key("AMZN")));
    assert_eq!(parsed.faults, []);
}

#[test]
fn date_and_time_of_day_may_be_two_columns() {
    let parsed = parse_as("AAPL.csv", "date,ToD,open,high,low,close,volume\n2018-04-04,09:30:00,1,1,1,1,0\n");
    assert!(parsed.bars.contains_key(&minute("2018-04-04T13:30:00Z")));
}

#[test]
fn symbol_comes_from_the_name_of_the_file() {
    let dataset = Config::load(location::BUNDLED).unwrap().dataset("us8").unwrap().clone();
    for (file, symbol) in [
        ("AAPL.csv", "AAPL"),
        ("amzn_1min.csv", "AMZN"),
        ("ibkr_AAPL_2025-09-26.csv", "AAPL"),
        ("us/MU_1min.csv", "MU"),
        ("BRK.B.csv", "BRK.B"),
    ] {
        assert_eq!(symbol_of_file(file, &dataset), symbol, "{file}");
    }
}

#[test]
fn empty_file_is_named() {
    assert_eq!(
        parse_as("a.csv", "").faults[0].to_string(),
        "bars/a.csv: the file is empty; a header and rows are expected"
    );
    assert_eq!(
        parse_as("a.csv", HEADER).faults[0].to_string(),
        "bars/a.csv: the file has a header and no rows"
    );
}

#[test]
fn truncated_row_is_named() {
    assert_eq!(
        faults_of("2018-04-04 09:31:00,AAPL,10,11"),
        ["bars/a.csv, line 3: the row has 4 fields; 7 are expected, as in the header"]
    );
}

#[test]
fn header_without_a_needed_column_is_named() {
    assert_eq!(
        parse_as("a.csv", "timestamp,symbol,open,high,close,volume\n").faults[0].to_string(),
        "bars/a.csv, line 1, header: the header lacks low; it has timestamp, symbol, open, high, close, volume"
    );
}

#[test]
fn text_for_a_price_is_named() {
    for text in ["n/a", "", "1_0", "1e1", "NaN", "\"10"] {
        let faults = faults_of(&format!("2018-04-04 09:31:00,AAPL,{text},11,9,10,100"));
        assert_eq!(
            faults,
            [format!(
                "bars/a.csv, line 3, open: \"{text}\" is not a number; a decimal such as 164.935 is expected"
            )]
        );
    }
}

#[test]
fn price_that_is_not_positive_is_named() {
    for price in ["0", "-1"] {
        assert_eq!(
            faults_of(&format!("2018-04-04 09:31:00,AAPL,10,11,{price},10,100")),
            [format!("bars/a.csv, line 3, low: {price} is not a price; a number above 0 is expected")]
        );
    }
}

#[test]
fn high_below_low_is_named() {
    assert_eq!(
        faults_of("2018-04-04 09:31:00,AAPL,10,9,11,10,100"),
        ["bars/a.csv, line 3, high: 9 lies below low 11"]
    );
}

#[test]
fn close_outside_low_and_high_is_named() {
    assert_eq!(
        faults_of("2018-04-04 09:31:00,AAPL,10,11,9,12,100"),
        ["bars/a.csv, line 3, close: 12 lies outside low 9 to high 11"]
    );
}

#[test]
fn negative_volume_is_named() {
    assert_eq!(
        faults_of("2018-04-04 09:31:00,AAPL,10,11,9,10,-100"),
        ["bars/a.csv, line 3, volume: -100 is negative"]
    );
}

#[test]
fn timestamp_that_does_not_parse_is_named() {
    assert_eq!(
        faults_of("04/04/18,AAPL,10,11,9,10,100"),
        ["bars/a.csv, line 3, timestamp: \"04/04/18\" is not a timestamp; \
          a date and a time such as 2018-04-04 09:30:00 or 2018-04-04T13:30:00Z is expected"]
    );
}

#[test]
fn timestamp_in_a_daylight_saving_gap_is_named() {
    assert_eq!(
        faults_of("2018-03-11 02:30:00,AAPL,10,11,9,10,100"),
        ["bars/a.csv, line 3, timestamp: \"2018-03-11 02:30:00\" lies in a daylight-saving gap: \
          the clock of America/New_York never showed 2018-03-11 02:30:00"]
    );
}

#[test]
fn minute_with_the_same_values_twice_is_there_once() {
    assert_eq!(faults_of("2018-04-04 09:30:00,AAPL,10,11.0,9.5,10.50,100"), Vec::<String>::new());
}

#[test]
fn minute_with_other_values_is_corrected_by_the_later_row() {
    let parsed = parse_as("a.csv", &format!("{HEADER}\n{GOOD}\n2018-04-04 09:30:00,AAPL,10,11,9,9.75,100\n"));

    assert_eq!(parsed.bars[&minute("2018-04-04T13:30:00Z")]["AAPL"].close.to_string(), "9.75");
    assert_eq!(
        parsed.faults[0].to_string(),
        "bars/a.csv, line 3: AAPL 2018-04-04T13:30Z was there with other values; these, the later ones, correct them"
    );
}

#[test]
fn unknown_symbol_is_kept_and_named_once() {
    let row = "2018-04-04 09:31:00,ZZZ,10,11,9,10,100";
    assert_eq!(
        faults_of(&format!("{row}\n2018-04-04 09:33:00,ZZZ,10,11,9,10,100")),
        ["bars/a.csv, line 3, symbol: \"ZZZ\" is not among the dataset's instruments; kept"]
    );
    let parsed = parse_as("a.csv", &format!("{HEADER}\n{row}\n"));
    assert!(parsed.bars[&minute("2018-04-04T13:31:00Z")].contains_key("ZZZ"));
}

#[test]
fn stray_quote_costs_one_row_only() {
    assert_eq!(faults_of("2018-04-04 09:31:00,AAPL,\"10,11,9,10,100").len(), 1);
}

#[test]
fn bytes_that_are_no_text_cost_one_row_only() {
    let mut bytes = format!("{HEADER}\n{GOOD}\n").into_bytes();
    bytes.extend(b"\xff\xfe\x00,AAPL,10,11,9,10,100\n");
    bytes.extend(ALSO_GOOD.as_bytes());
    let config = Config::load(location::BUNDLED).unwrap();
    let origin = Origin { source: "bars".to_owned(), file: "a.csv".to_owned() };

    let parsed = parse(&bytes, &origin, config.dataset("us8").unwrap());

    assert_eq!(parsed.bars.len(), 2);
    assert_eq!(parsed.faults.len(), 1);
}
