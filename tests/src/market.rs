//! A market for one world: a configuration, and files that bring two minutes a day and one headline.
//!
//! Each round has a trading day of its own, whose second minute jumps far enough to be a trigger for one
//! symbol. A correction takes the jump back for it, or makes it another; a revision edits the headline.

use std::path::PathBuf;

use chrono::{Datelike, Days, NaiveDate, NaiveTime, Weekday};
use serde_json::{Value, json};

use crate::Result;
use crate::components::workspace;
use crate::turns::News;
use crate::world::World;

/// A year without holidays in the bundled configuration.
const FIRST_DAY: (i32, u32, u32) = (2019, 1, 2);

/// The files that the collector of a world reads.
pub struct Market {
    folder: PathBuf,
    day: NaiveDate,
}

impl Market {
    /// Writes the configuration; `world` hands it to every function from now on.
    ///
    /// # Errors
    ///
    /// A file can not be written.
    pub fn open(world: &World) -> Result<Self> {
        let folder = world.folder.join("input");
        std::fs::create_dir_all(folder.join("bars"))?;
        std::fs::create_dir_all(folder.join("news"))?;
        let bundled = std::fs::read_to_string(workspace().join("tailcar.toml"))?;
        let own = bundled
            .replace("America/New_York", "UTC")
            .replace("input/bars", &folder.join("bars").display().to_string())
            .replace("input/news", &folder.join("news").display().to_string());
        std::fs::write(world.configuration(), own)?;
        let (year, month, day) = FIRST_DAY;
        let day = NaiveDate::from_ymd_opt(year, month, day).ok_or("no such day")?;
        Ok(Self { folder, day })
    }

    /// Begins the next trading day: a jump of the second minute, and a headline.
    ///
    /// # Errors
    ///
    /// A file can not be written.
    pub fn next_day(&mut self) -> Result<()> {
        self.day = self.day + Days::new(if self.day.weekday() == Weekday::Fri { 3 } else { 1 });
        self.write("110", "Apple rises on strong demand")
    }

    /// Corrects the second minute of the day, and edits the headline.
    ///
    /// # Errors
    ///
    /// A file can not be written.
    pub fn correct(&self, close: &str) -> Result<()> {
        self.write(close, "Apple rises on strong demand, analysts say")
    }

    /// What is new on the next look.
    ///
    /// # Errors
    ///
    /// A file can not be written.
    pub fn bring(&mut self, news: News) -> Result<()> {
        match news {
            News::Nothing => Ok(()),
            News::Correction(close) => self.correct(close),
            News::Day => self.next_day(),
        }
    }

    /// The request that collects both minutes of the day, again if need be.
    #[must_use]
    pub fn request(&self) -> Value {
        json!({ "dataset": "us8", "from": self.minute(30), "to": self.minute(31) })
    }

    /// The request that stands for the schedule right after both minutes.
    #[must_use]
    pub fn schedule(&self) -> Value {
        json!({ "dataset": "us8", "at": self.minute(32) })
    }

    fn minute(&self, minute: u32) -> String {
        let time = NaiveTime::from_hms_opt(9, minute, 0).unwrap_or_default();
        format!("{}Z", self.day.and_time(time).format("%Y-%m-%dT%H:%M:%S"))
    }

    fn write(&self, close: &str, headline: &str) -> Result<()> {
        let (first, second) = (self.minute(30), self.minute(31));
        let bars = format!(
            "timestamp,symbol,open,high,low,close,volume\n\
             {first},AAPL,100,100,100,100,1000\n{second},AAPL,100,200,50,{close},1000\n"
        );
        std::fs::write(self.folder.join("bars/bars.csv"), bars)?;
        let published = self.day.and_hms_opt(9, 30, 10).unwrap_or_default().and_utc().to_rfc2822();
        let feed = format!(
            "<rss version=\"2.0\"><channel><title>f</title><link>https://e.org/</link><description>d</description>\
             <item><title>{headline}</title><link>https://e.org/apple-{}</link><pubDate>{published}</pubDate></item>\
             </channel></rss>",
            self.day
        );
        std::fs::write(self.folder.join("news/feed.xml"), feed)?;
        Ok(())
    }
}
