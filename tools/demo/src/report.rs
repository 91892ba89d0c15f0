//! What came out, as tables a person can read on a terminal.

use std::fmt::{self, Display};
use std::time::Duration;

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use intraday::audit::{self as subject, Explained, Findings, News, Symbol};
use store::audit::{self, Events, Jobs, Latency, Windows};

use crate::stack::Stack;

/// How many explanations are shown in full.
const SHOWN_IN_FULL: usize = 4;

/// Everything the database says about one rehearsal.
#[derive(Debug)]
pub struct Report {
    windows: Vec<Windows>,
    symbols: Vec<Symbol>,
    jobs: Vec<Jobs>,
    events: Vec<Events>,
    news: News,
    findings: Vec<Findings>,
    explanations: Vec<Explained>,
    latencies: Vec<Latency>,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The protocol's tables could not be read.
    #[error("the protocol's tables can not be read")]
    Protocol(#[from] store::Error),
    /// The pipeline's tables could not be read.
    #[error("the pipeline's tables can not be read")]
    Subject(#[from] sqlx::Error),
}

impl Report {
    /// Reads what there is about `dataset`.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub async fn read(stack: &Stack, dataset: &str) -> Result<Self, Error> {
        let db = &stack.db;
        Ok(Self {
            windows: audit::windows(db).await?,
            symbols: subject::symbols(db, dataset).await?,
            jobs: audit::jobs(db).await?,
            events: audit::events(db).await?,
            news: subject::news(db).await?,
            findings: subject::findings(db).await?,
            explanations: subject::explanations(db, dataset).await?,
            latencies: audit::latencies(db).await?,
        })
    }

    fn windows(&self) -> Table {
        let mut table =
            table(["dataset", "windows", "with bars", "bars", "corrected", "first (UTC)", "last (UTC)"]);
        for windows in &self.windows {
            table.add_row([
                windows.dataset.clone(),
                windows.windows.to_string(),
                windows.with_bars.to_string(),
                windows.bars.to_string(),
                windows.corrected.to_string(),
                windows.first.format("%F %R").to_string(),
                windows.last.format("%F %R").to_string(),
            ]);
        }
        table
    }

    fn symbols(&self) -> Table {
        let mut table = table(["symbol", "bars", "triggers 30 min", "triggers from open"]);
        for symbol in &self.symbols {
            table.add_row([
                symbol.symbol.clone(),
                symbol.bars.to_string(),
                symbol.thirty_minutes.to_string(),
                symbol.session_open.to_string(),
            ]);
        }
        let sum = |of: fn(&Symbol) -> i64| self.symbols.iter().map(of).sum::<i64>().to_string();
        table.add_row([
            "all".to_owned(),
            sum(|symbol| symbol.bars),
            sum(|symbol| symbol.thirty_minutes),
            sum(|symbol| symbol.session_open),
        ]);
        table
    }

    fn jobs(&self) -> Table {
        let mut table = table(["job type", "state", "reason", "jobs", "attempts"]);
        for jobs in &self.jobs {
            table.add_row([
                jobs.job_type.clone(),
                jobs.status.clone(),
                jobs.dead_reason.clone().unwrap_or_default(),
                jobs.jobs.to_string(),
                jobs.attempts.to_string(),
            ]);
        }
        table
    }

    fn events(&self) -> Table {
        let mut table = table(["destination", "state", "events"]);
        for events in &self.events {
            table.add_row([events.destination.clone(), events.status.clone(), events.events.to_string()]);
        }
        table
    }

    fn findings(&self) -> Table {
        let mut table = table(["event kind", "findings", "symbols"]);
        for findings in &self.findings {
            table.add_row([
                findings.event_kind.clone(),
                findings.findings.to_string(),
                findings.symbols.to_string(),
            ]);
        }
        table
    }

    fn latencies(&self) -> Table {
        let mut table = table(["job type", "jobs", "p50", "p95", "max"]);
        for latency in &self.latencies {
            table.add_row([
                latency.job_type.clone(),
                latency.jobs.to_string(),
                seconds(latency.p50),
                seconds(latency.p95),
                seconds(latency.max),
            ]);
        }
        table
    }

    fn verdicts(&self) -> String {
        let mut verdicts: Vec<&str> = self.explanations.iter().map(|one| one.verdict.as_str()).collect();
        verdicts.sort_unstable();
        let counted = verdicts.chunk_by(|one, other| one == other);
        counted.map(|same| format!("{} {}", same.len(), same[0])).collect::<Vec<_>>().join(", ")
    }

    /// A few explanations, a different verdict first wherever there is one.
    fn shown(&self) -> Vec<&Explained> {
        let mut seen = Vec::new();
        let (first, more): (Vec<&Explained>, Vec<&Explained>) = self.explanations.iter().partition(|one| {
            let new = !seen.contains(&&one.verdict);
            seen.push(&one.verdict);
            new
        });
        first.into_iter().chain(more).take(SHOWN_IN_FULL).collect()
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nWindows\n{}", self.windows())?;
        writeln!(f, "\nBars and triggers\n{}", self.symbols())?;
        writeln!(f, "\nJobs\n{}", self.jobs())?;
        writeln!(f, "\nOutbox events\n{}", self.events())?;
        let News { revisions, items, segments, findings } = self.news;
        writeln!(f, "\nNews: {revisions} texts of {items} items, {segments} segments, {findings} findings")?;
        if !self.findings.is_empty() {
            writeln!(f, "{}", self.findings())?;
        }
        writeln!(f, "\nExplanations: {} ({})", self.explanations.len(), self.verdicts())?;
        for explained in self.shown() {
            explanation(f, explained)?;
        }
        writeln!(f, "\nFrom commit to done\n{}", self.latencies())
    }
}

fn explanation(f: &mut fmt::Formatter<'_>, explained: &Explained) -> fmt::Result {
    let Explained { symbol, rule, window_start, movement, verdict, body } = explained;
    let percent = (movement * rust_decimal::Decimal::ONE_HUNDRED).round_dp(2);
    writeln!(f, "\n  {symbol} {percent:+} % at {} UTC ({rule}): {verdict}", window_start.format("%F %R"))?;
    body.lines().try_for_each(|line| writeln!(f, "    {line}"))
}

/// A duration a person can compare: seconds with milliseconds.
#[must_use]
pub fn seconds(duration: Duration) -> String {
    format!("{:.3} s", duration.as_secs_f64())
}

/// A table whose columns after the first are numbers or short words.
#[must_use]
pub fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    let rule = LineStyle::new('─', '─', '─', '─');
    table.load_style(TableStyle::new().header_separator(rule)).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
