//! The command line.

use std::path::PathBuf;

use chrono_tz::Tz;
use clap::Parser;

/// Plays a trading session through the deployed functions, kills what it can, and counts.
///
/// Without --data the session is made up from --seed and starts from an empty database. With --data it
/// is your own and the state is kept, so that the same command again shows that nothing changes.
///
/// Exits with 1 if a job was lost, was applied twice, or did not end in time; with 2 if it could not be
/// tried.
#[derive(Clone, Debug, Parser)]
#[command(name = "demo", verbatim_doc_comment)]
pub struct Arguments {
    /// Your files: a folder with bars/ and news/, a folder with everything in it, or one file of bars.
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,

    /// The zone of times that do not say.
    #[arg(long, value_name = "TZ", default_value = "America/New_York")]
    pub zone: Tz,

    /// Which session to make up.
    #[arg(long, default_value_t = 1, conflicts_with = "data")]
    pub seed: u64,

    /// Replay only the first so many minutes.
    #[arg(long, value_name = "N")]
    pub minutes: Option<usize>,

    /// Replay at most so many trading days, the latest ones.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub sessions: usize,

    /// Kill nothing and deliver nothing twice.
    #[arg(long)]
    pub no_chaos: bool,

    /// Fail if the run changes a row or leaves an object: what a second run must not do.
    #[arg(long)]
    pub expect_no_change: bool,

    /// How long to wait after the last minute until every job has ended, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 180)]
    pub settle: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_without_a_zone_are_new_york_unless_told_otherwise() {
        assert_eq!(Arguments::parse_from(["demo"]).zone, chrono_tz::America::New_York);
        assert_eq!(Arguments::parse_from(["demo", "--zone", "Asia/Seoul"]).zone, chrono_tz::Asia::Seoul);
    }

    #[test]
    fn zone_that_does_not_exist_is_refused() {
        assert!(Arguments::try_parse_from(["demo", "--zone", "Mars/Olympus"]).is_err());
    }
}
