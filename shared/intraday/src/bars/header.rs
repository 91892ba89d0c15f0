//! The header of a bars file: which column holds what, under any of its usual names.

/// What a bar needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// How many columns there are; every row has as many.
    pub width: usize,
    /// Where the time is.
    pub time: TimeColumns,
    /// Where the symbol is; `None`: the file's name has it.
    pub symbol: Option<usize>,
    /// Where open, high, low, close and volume are, in this order.
    pub numbers: [usize; 5],
}

/// Where the time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeColumns {
    /// Date and time in one column.
    One(usize),
    /// The date in the first, the time of day in the second.
    Two(usize, usize),
}

/// The names of the number columns, as faults call them.
pub(super) const NUMBERS: [&str; 5] = ["open", "high", "low", "close", "volume"];

const NUMBER_NAMES: [&[&str]; 5] =
    [&["open", "o"], &["high", "h"], &["low", "l"], &["close", "c"], &["volume", "vol", "v"]];
const SYMBOL_NAMES: &[&str] = &["symbol", "ticker"];
const WHOLE_TIME_NAMES: &[&str] = &["timestamp", "datetime"];
const DATE_NAMES: &[&str] = &["date"];
const TIME_OF_DAY_NAMES: &[&str] = &["time", "tod", "timeofday"];

impl Header {
    /// Finds the columns among `names`; white space, case and underscores do not count.
    ///
    /// # Errors
    ///
    /// The names of the columns that are missing.
    pub(super) fn find(names: &[String]) -> Result<Self, Vec<&'static str>> {
        let names: Vec<String> = names.iter().map(|name| plain(name)).collect();
        let find = |known: &[&str]| names.iter().position(|name| known.contains(&name.as_str()));

        let time = match (find(WHOLE_TIME_NAMES), find(DATE_NAMES), find(TIME_OF_DAY_NAMES)) {
            (Some(whole), _, _) => Some(TimeColumns::One(whole)),
            (None, Some(date), Some(time)) => Some(TimeColumns::Two(date, time)),
            (None, date, time) => date.or(time).map(TimeColumns::One),
        };
        let numbers = NUMBER_NAMES.map(find);

        let missing_time = time.is_none().then_some("timestamp");
        let missing_numbers =
            NUMBERS.into_iter().zip(numbers).filter(|(_, at)| at.is_none()).map(|(name, _)| name);
        let missing: Vec<&str> = missing_time.into_iter().chain(missing_numbers).collect();
        match (time, numbers) {
            (Some(time), [Some(open), Some(high), Some(low), Some(close), Some(volume)]) => {
                let numbers = [open, high, low, close, volume];
                Ok(Self { width: names.len(), time, symbol: find(SYMBOL_NAMES), numbers })
            }
            _ => Err(missing),
        }
    }
}

fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(line: &str) -> Result<Header, Vec<&'static str>> {
        Header::find(&line.split(',').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn names_in_any_case_and_order_are_found() {
        let found = header("Volume, CLOSE ,low,High,Open,Date_Time,extra,Ticker").unwrap();
        assert_eq!(found.numbers, [4, 3, 2, 1, 0]);
        assert_eq!(found.time, TimeColumns::One(5));
        assert_eq!(found.symbol, Some(7));
        assert_eq!(found.width, 8);
    }

    #[test]
    fn time_is_in_one_column_or_in_two() {
        let time = |names: &str| header(&format!("{names},open,high,low,close,volume")).unwrap().time;
        assert_eq!(time("date"), TimeColumns::One(0));
        assert_eq!(time("time"), TimeColumns::One(0));
        assert_eq!(time("ToD,date"), TimeColumns::Two(1, 0));
        assert_eq!(time("date,timestamp"), TimeColumns::One(1));
    }

    #[test]
    fn every_missing_column_is_named() {
        assert_eq!(header("symbol,open,high,close"), Err(vec!["timestamp", "low", "volume"]));
    }
}
