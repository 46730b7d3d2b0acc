//! The tables of the profiles, each as its original has it, and AS SSD's scores.
#![forbid(unsafe_code)]

use std::fmt::Write;

use serde::Serialize;

use crate::check::evidence::Written;
use crate::command::bench::profile::{Figures, Name, Outcome, Report};
use crate::output::{DIM, YELLOW, bold, styled, wrap};
use crate::units::{grouped, nanoseconds};

/// AS SSD's three scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Scores {
    /// Of the reads.
    pub read: u64,
    /// Of the writes.
    pub write: u64,
    /// Of both; it weighs them again, and is not their sum.
    pub total: u64,
}

/// What AS SSD measures, in its MB/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AsSsd {
    /// Sequential: read, write.
    pub seq: [f64; 2],
    /// 4 KiB, one at a time: read, write.
    pub one: [f64; 2],
    /// 4 KiB, 64 at a time: read, write.
    pub many: [f64; 2],
}

impl AsSsd {
    /// The scores, by the original's formulas.
    pub fn scores(&self) -> Scores {
        let Self { seq: [seq_r, seq_w], one: [one_r, one_w], many: [many_r, many_w] } = *self;
        Scores {
            read: (0.1 * seq_r + one_r + many_r).round() as u64,
            write: (0.1 * seq_w + one_w + many_w).round() as u64,
            total: (0.15 * seq_w + 0.1 * seq_r + 2.0 * one_r + one_w + many_w + 1.5 * many_r).round() as u64,
        }
    }
}

/// The scores of a profile that has some, where all of its rows were run.
pub fn scores(report: &Report) -> Option<Scores> {
    if report.name != Name::AsSsd {
        return None;
    }
    let mega = |label: &str| {
        let row = report.rows.iter().find(|row| row.label == label)?;
        row.figures.map(|figures| figures.bytes_per_second / 1e6)
    };
    let both = |label: &str| Some([mega(&format!("Read {label}"))?, mega(&format!("Write {label}"))?]);
    Some(AsSsd { seq: both("Seq")?, one: both("4K")?, many: both("4K-64Thrd")? }.scores())
}

/// The whole report.
pub fn human(report: &Report) -> String {
    let device = &report.device;
    let emulated = if report.emulated { "EMULATED  " } else { "" };
    let headline = format!("{emulated}{}, serial {}, {}", device.model, device.serial, device.address);
    let mut text = format!("{}\n{}\n", bold(&headline), bold(&title(report)));
    match report.name {
        Name::FioSeq => fio_lines(&mut text, report),
        Name::Cdm6 | Name::Cdm8 | Name::Cdm8Nvme => paired(&mut text, report, "MB/s", |label, figures| {
            let _ = label;
            format!("{:.1}", figures.bytes_per_second / 1e6)
        }),
        Name::AsSsd => {
            paired(&mut text, report, "MB/s, ms", |label, figures| match label {
                "Acc.time" => format!("{:.3} ms", figures.mean_ns / 1e6),
                _ => format!("{:.2}", figures.bytes_per_second / 1e6),
            });
            let [read, write, total] = match scores(report) {
                Some(scores) => [scores.read, scores.write, scores.total].map(|score| score.to_string()),
                None => ["n/a"; 3].map(str::to_owned),
            };
            let _ = writeln!(text, "  {:<14} {read:>14} {write:>14}", "Score");
            let _ = writeln!(text, "  {:<14} {total:>14}", "Score, both");
        }
        Name::QdSweep | Name::BsSweep => swept(&mut text, report),
    }
    for row in report.rows.iter().filter(|row| row.skipped.is_some()) {
        let why = row.skipped.as_deref().unwrap_or_default();
        let line = format!("skipped {}: {why}", row.label);
        let _ = writeln!(text, "{}", wrap(&line, 8));
    }
    if let Written::Never(why) = &report.written {
        let line = format!("note: never written ({why}): the speed of link and controller, not of the flash");
        let _ = writeln!(text, "{}", styled(YELLOW, &wrap(&line, 6)));
    }
    if let Some(gate) = report.gate.as_ref().filter(|gate| !gate.destroyed.is_empty()) {
        let _ = writeln!(text, "{}", wrap(&format!("destroyed: {}", gate.text()), 11));
    }
    for what in &report.differs {
        let _ = writeln!(text, "{}", styled(DIM, &wrap(&format!("differs: {what}"), 9)));
    }
    text
}

fn title(report: &Report) -> String {
    let emulated = if report.emulated { "EMULATED  " } else { "" };
    let name = match report.name {
        Name::FioSeq => "fio: 1 MiB sequential, 32 in flight, 10 jobs",
        Name::Cdm6 => "CrystalDiskMark 6: 1 GiB x 5",
        Name::Cdm8 => "CrystalDiskMark 8: 1 GiB x 5",
        Name::Cdm8Nvme => "CrystalDiskMark 8, NVMe: 1 GiB x 5",
        Name::AsSsd => "AS SSD: 1 GB",
        Name::QdSweep => "4 KiB random reads by depth",
        Name::BsSweep => "random reads by block size, 32 in flight",
    };
    format!("{emulated}{name}")
}

/// Rows with a column for reads and one for writes.
fn paired(text: &mut String, report: &Report, unit: &str, shown: impl Fn(&str, &Figures) -> String) {
    let _ = writeln!(text, "  {:<14} {:>14} {:>14}", unit, "Read", "Write");
    let cell = |way: &str, label: &str| {
        let name = format!("{way} {label}");
        let row = report.rows.iter().find(|row| row.label == name);
        row.and_then(|row| row.figures.as_ref()).map_or("n/a".to_owned(), |figures| shown(label, figures))
    };
    for label in report.rows.iter().filter_map(|row| row.label.strip_prefix("Read ")) {
        let _ = writeln!(text, "  {label:<14} {:>14} {:>14}", cell("Read", label), cell("Write", label));
    }
}

/// A line for each row, as fio sums a run up.
fn fio_lines(text: &mut String, report: &Report) {
    for Outcome { label, figures, .. } in &report.rows {
        let Some(figures) = figures else { continue };
        let way = label.split(' ').next().unwrap_or_default().to_uppercase();
        let (mebi, mega) = (figures.bytes_per_second / f64::from(1 << 20), figures.bytes_per_second / 1e6);
        let _ = writeln!(
            text,
            "  {way:>6}: bw={mebi:.0}MiB/s ({mega:.0}MB/s), IOPS={:.0}, run={}msec",
            figures.iops,
            figures.elapsed_ns / 1_000_000
        );
        let _ = writeln!(
            text,
            "          lat avg {}, p50 {}, p99 {}",
            nanoseconds(figures.mean_ns as u64),
            nanoseconds(figures.p50_ns),
            nanoseconds(figures.p99_ns)
        );
    }
}

fn swept(text: &mut String, report: &Report) {
    let _ = writeln!(text, "  {:<10} {:>12} {:>10} {:>10} {:>10} {:>10}", "", "IOPS", "MB/s", "mean", "p50", "p99");
    for row in &report.rows {
        let Some(figures) = &row.figures else { continue };
        let _ = writeln!(
            text,
            "  {:<10} {:>12} {:>10.1} {:>10} {:>10} {:>10}",
            row.label,
            grouped(figures.iops as u128),
            figures.bytes_per_second / 1e6,
            nanoseconds(figures.mean_ns as u64),
            nanoseconds(figures.p50_ns),
            nanoseconds(figures.p99_ns)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The third article's rows of AS SSD, drive by drive, and the nine scores that it printed for them.
    #[test]
    fn the_nine_scores_of_the_third_article_follow_from_its_rows() {
        let drives = [
            ([387.89, 113.66], [14.37, 68.77], [191.99, 157.87], [245, 238, 599]),
            ([1407.78, 1378.28], [27.47, 108.72], [998.92, 872.27], [1167, 1119, 2882]),
            ([2560.82, 1865.36], [27.58, 107.22], [966.19, 851.35], [1250, 1145, 2999]),
        ];
        for (seq, one, many, [read, write, total]) in drives {
            assert_eq!(AsSsd { seq, one, many }.scores(), Scores { read, write, total });
        }
    }
}
