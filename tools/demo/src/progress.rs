//! Progress somebody can watch: a bar on a terminal, a line at each quarter in a pipe.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How far something of known length has come. Written to standard error; the report is the output.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    label: &'static str,
    total: u64,
    done: u64,
}

impl Progress {
    /// Starts at 0 of `total`.
    #[must_use]
    pub fn new(label: &'static str, total: usize) -> Self {
        let total = total as u64;
        let bar = std::io::stderr().is_terminal().then(|| bar(label, total));
        Self { bar, label, total, done: 0 }
    }

    /// Moves to `done`, never backwards.
    pub fn reach(&mut self, done: usize) {
        let before = self.done;
        self.done = before.max(done as u64);
        match &self.bar {
            Some(bar) => bar.set_position(self.done),
            None => {
                if let Some(percent) = quarter(before, self.done, self.total) {
                    eprintln!("{}: {percent} % ({} of {})", self.label, self.done, self.total);
                }
            }
        }
    }

    /// Something the audience should see, without losing the bar.
    pub fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.abandon();
        }
    }
}

fn bar(label: &'static str, total: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{prefix:>8} [{bar:40}] {pos}/{len} {elapsed} {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
    bar.with_prefix(label)
}

/// The last quarter, in percent, that lies after `before` and not after `done`.
fn quarter(before: u64, done: u64, total: u64) -> Option<u64> {
    let quarters = |count: u64| (count * 4).checked_div(total).unwrap_or(4);
    (quarters(done) > quarters(before)).then(|| quarters(done) * 25)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_quarter_is_told_once() {
        let told: Vec<u64> = (1..=390).filter_map(|done| quarter(done - 1, done, 390)).collect();
        assert_eq!(told, [25, 50, 75, 100]);
    }

    #[test]
    fn leap_over_several_quarters_tells_the_last() {
        assert_eq!(quarter(0, 3, 4), Some(75));
    }
}
