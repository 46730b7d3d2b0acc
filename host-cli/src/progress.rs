//! How far a run is, while it runs: a line that renews itself on a terminal, else a line now and then.
//!
//! It goes to standard error, so that a result can be piped while a person watches.
#![forbid(unsafe_code)]

use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::units::{grouped, megabytes};

/// Where there is no terminal, a line is written each time that so much of the run's time has passed.
const LINE_EVERY_NS: u64 = 10_000_000_000;

/// A run's progress.
pub struct Progress {
    label: String,
    total_ns: Option<u64>,
    bar: Option<ProgressBar>,
    line_every_ns: u64,
    next_line_ns: u64,
    /// The next standing is told in a line of its own, whatever else is shown.
    told: bool,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, Default)]
pub struct Standing {
    /// Of the run's time.
    pub elapsed_ns: u64,
    /// Over the last interval.
    pub iops: f64,
    /// Over the last interval.
    pub bytes_per_second: f64,
    /// Composite temperature in Celsius.
    pub celsius: Option<i32>,
}

impl Progress {
    /// The progress of something that takes `total_ns`, or nobody knows how long.
    pub fn new(label: impl Into<String>, total_ns: Option<u64>) -> Self {
        let label = label.into();
        let bar = std::io::stderr().is_terminal().then(|| {
            let length = total_ns.map(|total| total / 1_000_000);
            let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
            let template =
                if length.is_some() { "{prefix:<16} {bar:20} {msg}" } else { "{prefix:<16} {spinner} {msg}" };
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.set_prefix(label.clone());
            bar
        });
        Self { label, total_ns, bar, line_every_ns: LINE_EVERY_NS, next_line_ns: LINE_EVERY_NS, told: false }
    }

    /// The same, with a line after each `interval` instead, on a terminal too.
    pub fn every(mut self, interval: Option<Duration>) -> Self {
        if let Some(interval) = interval {
            self.bar = None;
            self.line_every_ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
            self.next_line_ns = self.line_every_ns;
        }
        self
    }

    /// The next standing is told in a line of its own.
    pub fn tell(&mut self) {
        self.told = true;
    }

    /// Shows where the run stands.
    pub fn update(&mut self, standing: Standing) {
        let text = self.text(standing);
        if std::mem::take(&mut self.told) {
            let line = format!("{}: {} s, {text}", self.label, standing.elapsed_ns / 1_000_000_000);
            match &self.bar {
                Some(bar) => bar.println(line),
                None => drop(writeln!(std::io::stderr(), "{line}")),
            }
        }
        if let Some(bar) = &self.bar {
            bar.set_position(standing.elapsed_ns / 1_000_000);
            bar.set_message(text);
        } else if standing.elapsed_ns >= self.next_line_ns {
            self.next_line_ns = standing.elapsed_ns + self.line_every_ns;
            let seconds = standing.elapsed_ns / 1_000_000_000;
            // A closed standard error leaves nobody to tell.
            let _ = writeln!(std::io::stderr(), "{}: {seconds} s, {text}", self.label);
        }
    }

    fn text(&self, standing: Standing) -> String {
        let mut text = format!("{}, {} IOPS", megabytes(standing.bytes_per_second), grouped(standing.iops as u128));
        if let Some(celsius) = standing.celsius {
            text += &format!(", {celsius} C");
        }
        if let Some(left) = self.total_ns.map(|total| total.saturating_sub(standing.elapsed_ns)) {
            text += &format!(", {} s left", left.div_ceil(1_000_000_000));
        }
        text
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_speed_temperature_and_what_is_left() {
        let progress = Progress {
            label: "seq".into(),
            total_ns: Some(8_500_000_000),
            bar: None,
            line_every_ns: 0,
            next_line_ns: 0,
            told: false,
        };
        let standing =
            Standing { elapsed_ns: 2_000_000_000, iops: 26712.3, bytes_per_second: 3.5e9, celsius: Some(41) };
        assert_eq!(progress.text(standing), "3500 MB/s, 26 712 IOPS, 41 C, 7 s left");
    }
}
