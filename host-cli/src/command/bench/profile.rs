//! Profiles: the runs of a known test as a list of jobs, and its table.
//!
//! A profile is its rows, the table that its original prints, and sentences on what differs from the original and why. The
//! rows are run one after the other on one open drive; those that read first, as the originals do where they have an
//! order. A row that would write is skipped by name unless the run may write, and so is a row that the drive cannot do.
#![forbid(unsafe_code)]

use std::time::Duration;

use clap::ValueEnum;
use nvmetal_driver::workload::{Access, Job, Limits, RunResult};
use nvmetal_driver::{ControllerOptions, Namespace};
use serde::Serialize;
use serde_json::json;

use super::Arguments;
use crate::check::evidence::Written;
use crate::device::Device;
use crate::drive::Drive;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::gate::Passed;
use crate::interrupt::Stop;
use crate::measure;
use crate::output::{Output, note};
use crate::progress::Progress;
use crate::provenance::{self, DeviceFacts, HostFacts};
use crate::report::profile as text;
use crate::session::Session;
use crate::written;

const SECOND: Duration = Duration::from_secs(1);

/// The known tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Name {
    /// 1 MiB, 32 in flight on each of 10 queues, over the same 10 GiB: read, then write.
    FioSeq,
    /// CrystalDiskMark 6.
    Cdm6,
    /// CrystalDiskMark 8.
    Cdm8,
    /// CrystalDiskMark 8 with its settings for NVMe.
    Cdm8Nvme,
    /// AS SSD, with its scores.
    AsSsd,
    /// 4 KiB random reads at depths 1, 2, 4 .. 1024.
    QdSweep,
    /// Random reads of 512 bytes .. 4 MiB at depth 32.
    BsSweep,
}

/// One row of a profile.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its name in the original.
    pub label: String,
    /// What is run.
    pub job: Job,
    /// Runs that count, after one that does not if `warms_up`.
    pub repeats: u32,
    /// Whether a run comes first that does not count.
    pub warms_up: bool,
}

/// What came of a row.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// The row.
    pub label: String,
    /// Its job.
    pub job: Job,
    /// Whether it writes.
    pub writes: bool,
    /// The best of its runs; `None` for a row that was skipped.
    pub figures: Option<Figures>,
    /// Why it was skipped.
    pub skipped: Option<String>,
}

/// The figures of a row.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figures {
    /// Bytes per second, of the best run.
    pub bytes_per_second: f64,
    /// I/Os per second, of the best run.
    pub iops: f64,
    /// The lowest mean latency of the runs.
    pub mean_ns: f64,
    /// Of the best run.
    pub p50_ns: u64,
    /// Of the best run.
    pub p99_ns: u64,
    /// I/Os that failed in all runs.
    pub failed: u64,
    /// How long all runs took.
    pub elapsed_ns: u64,
}

impl Figures {
    fn of(result: &RunResult) -> Self {
        let latency = result.latency();
        Self {
            bytes_per_second: result.bytes_per_second(),
            iops: result.iops(),
            mean_ns: latency.mean().unwrap_or(0.0),
            p50_ns: latency.percentile(50.0).unwrap_or(0),
            p99_ns: latency.percentile(99.0).unwrap_or(0),
            failed: result.errors.failed,
            elapsed_ns: result.elapsed_ns,
        }
    }

    fn best(self, other: Self) -> Self {
        let (best, worse) = if other.bytes_per_second > self.bytes_per_second { (other, self) } else { (self, other) };
        Self {
            mean_ns: best.mean_ns.min(worse.mean_ns),
            failed: best.failed + worse.failed,
            elapsed_ns: best.elapsed_ns + worse.elapsed_ns,
            ..best
        }
    }
}

/// A profile that was run.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Which.
    pub name: Name,
    /// Whether it was the emulator.
    pub emulated: bool,
    /// The drive.
    pub device: DeviceFacts,
    /// The machine.
    pub host: HostFacts,
    /// When it began.
    pub time: String,
    /// Its rows.
    pub rows: Vec<Outcome>,
    /// What differs from the original.
    pub differs: Vec<String>,
    /// Whether the blocks had been written before.
    pub written: Written,
    /// What was overwritten.
    pub gate: Option<Passed>,
    /// Whether the run was ended before its end.
    pub interrupted: bool,
}

/// A job in the words of the originals: block size, depth, queues.
fn job(access: Access, block_bytes: u64, iodepth: u32, numjobs: u16, size: u64, time: Duration) -> Job {
    Job {
        access,
        block_bytes,
        iodepth,
        numjobs,
        size_bytes: Some(size),
        limits: Limits { runtime_ns: Some(time.as_nanos() as u64), ..Limits::default() },
        ..Job::new()
    }
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

impl Name {
    /// The rows, those that read first.
    pub fn rows(self) -> Vec<Row> {
        let (walk, draw) = (Access::Sequential, Access::Random);
        let both = |label: &str, job: Job, repeats: u32, warms_up: bool| {
            [("Read", 100), ("Write", 0)].map(|(way, read_percent)| Row {
                label: format!("{way} {label}"),
                job: Job { read_percent, ..job.clone() },
                repeats,
                warms_up,
            })
        };
        let five = 5 * SECOND;
        let mark = |rows: &[(&str, Access, u64, u32, u16)]| -> Vec<Row> {
            let row = |&(label, access, bytes, depth, threads): &(&str, Access, u64, u32, u16)| {
                both(label, job(access, bytes, depth, threads, GIB, five), 5, true)
            };
            rows.iter().flat_map(row).collect()
        };
        let mut rows: Vec<Row> = match self {
            Self::FioSeq => {
                let limits = Limits { runtime_ns: Some(60_000_000_000), bytes: Some(10 * GIB), ios: None };
                both("1 MiB", Job { limits, ..job(walk, MIB, 32, 10, 10 * GIB, SECOND) }, 1, false).into()
            }
            Self::Cdm6 => mark(&[
                ("Seq Q32T1", walk, 128 * KIB, 32, 1),
                ("4KiB Q8T8", draw, 4 * KIB, 8, 8),
                ("4KiB Q32T1", draw, 4 * KIB, 32, 1),
                ("4KiB Q1T1", draw, 4 * KIB, 1, 1),
            ]),
            Self::Cdm8 => mark(&[
                ("SEQ1M Q8T1", walk, MIB, 8, 1),
                ("SEQ1M Q1T1", walk, MIB, 1, 1),
                ("RND4K Q32T1", draw, 4 * KIB, 32, 1),
                ("RND4K Q1T1", draw, 4 * KIB, 1, 1),
            ]),
            Self::Cdm8Nvme => mark(&[
                ("SEQ1M Q8T1", walk, MIB, 8, 1),
                ("SEQ128K Q32T1", walk, 128 * KIB, 32, 1),
                ("RND4K Q32T16", draw, 4 * KIB, 32, 16),
                ("RND4K Q1T1", draw, 4 * KIB, 1, 1),
            ]),
            Self::AsSsd => {
                let rows = [
                    both("Seq", job(walk, 16 * MIB, 1, 1, GIB, five), 1, false),
                    both("4K", job(draw, 4 * KIB, 1, 1, GIB, five), 1, false),
                    both("4K-64Thrd", job(draw, 4 * KIB, 1, 64, GIB, five), 1, false),
                ];
                let access = [
                    ("Read Acc.time", Job { size_bytes: None, ..job(draw, 4 * KIB, 1, 1, GIB, five) }),
                    ("Write Acc.time", Job { read_percent: 0, ..job(draw, 512, 1, 1, GIB, five) }),
                ];
                let access = access.map(|(label, job)| Row { label: label.into(), job, repeats: 1, warms_up: false });
                rows.into_iter().flatten().chain(access).collect()
            }
            Self::QdSweep => (0..=10)
                .map(|power| 1 << power)
                .map(|depth| Row {
                    label: format!("QD {depth}"),
                    job: Job { size_bytes: None, ..job(draw, 4 * KIB, depth, 1, GIB, five) },
                    repeats: 1,
                    warms_up: false,
                })
                .collect(),
            Self::BsSweep => (9..=22)
                .map(|power| 1_u64 << power)
                .map(|bytes| Row {
                    label: crate::units::block(bytes),
                    job: Job { size_bytes: None, ..job(draw, bytes, 32, 1, GIB, five) },
                    repeats: 1,
                    warms_up: false,
                })
                .collect(),
        };
        rows.sort_by_key(|row| row.job.writes());
        rows
    }

    /// What differs from the original, and why.
    fn differs(self) -> Vec<String> {
        let raw = "the raw drive without a file system and without the kernel, so there is no cache but the drive's";
        let more: &[&str] = match self {
            Self::FioSeq => &["ten queues instead of ten processes over one file"],
            Self::Cdm6 | Self::Cdm8 | Self::Cdm8Nvme => &[
                "the first bytes of the drive instead of a file of that size",
                "all reads are run before all writes, without the pause between rows",
            ],
            Self::AsSsd => &[
                "random offsets over the first GiB, where 4K-64Thrd has 64 areas of 16 MB",
                "MB are 10^6 bytes, in the scores, too",
            ],
            Self::QdSweep | Self::BsSweep => return vec!["a profile of nvmetal's own".to_owned()],
        };
        std::iter::once(raw).chain(more.iter().copied()).map(str::to_owned).collect()
    }
}

/// A job that the drive can do: as many in flight on as many queues as there are.
fn fitted(job: &Job, queues: u16, differs: &mut Vec<String>) -> Job {
    if job.numjobs <= queues {
        return job.clone();
    }
    let queues = queues.max(1);
    let all = job.iodepth * u32::from(job.numjobs);
    let iodepth = all.div_ceil(queues.into());
    let remark = format!(
        "{} threads with {} in flight each became {queues} queues with {iodepth} each: the drive has no more queues",
        job.numjobs, job.iodepth
    );
    if !differs.contains(&remark) {
        differs.push(remark);
    }
    Job { iodepth, numjobs: queues, ..job.clone() }
}

/// Runs a profile.
pub fn run(name: Name, arguments: &Arguments, out: &mut Output, stop: &Stop) -> Result<Exit> {
    let device = Device::find(&arguments.device)?;
    let mut rows = name.rows();
    if let Some(runtime) = arguments.workload.runtime {
        for row in &mut rows {
            row.job.limits.runtime_ns = Some(runtime.as_nanos() as u64);
        }
    }
    let may_write = arguments.permission.write || arguments.permission.serial.is_some();
    if may_write {
        arguments.permission.asked_for("a profile with rows that write")?;
    }
    if arguments.dry_run {
        let jobs: Vec<_> = rows.iter().map(|row| json!({ "label": row.label, "job": row.job })).collect();
        let document = json!({ "schema": "nvmetal.profile/1", "dry_run": true, "profile": name, "rows": jobs });
        let line = |row: &Row| format!("  {:<18} {}\n", row.label, crate::report::bench::shape(&row.job));
        let lines: String = rows.iter().map(line).collect();
        out.result(&document, || format!("Would run on {device}; nothing was opened:\n{lines}"))?;
        return Ok(Exit::Pass);
    }
    let most_queues = rows.iter().map(|row| row.job.numjobs).max().unwrap_or(1);
    let options = ControllerOptions { io_queues: most_queues, ..ControllerOptions::default() };
    let drive = Drive::from(Session::open(&device, &arguments.reach, options)?);
    let report = on_drive(&drive, name, &rows, may_write, arguments, stop);
    let closed = drive.close();
    if let Some(error) = &closed.error {
        note(&format!("giving the drive back: {}", error.message));
    }
    let report = report?;
    let mut document = serde_json::to_value(&report).unwrap_or_default();
    document["schema"] = json!("nvmetal.profile/1");
    document["nvmetal"] = json!(env!("CARGO_PKG_VERSION"));
    document["scores"] = json!(text::scores(&report));
    document["closed"] = json!(closed);
    out.result(&document, || text::human(&report))?;
    let failed = report.rows.iter().filter_map(|row| row.figures).any(|figures| figures.failed > 0);
    let exit = if failed { Exit::RunTime } else { Exit::Pass };
    let exit = stop.exit().filter(|_| report.interrupted).map_or(exit, |stopped| exit.and(stopped));
    Ok(closed.error.map_or(exit, |error| exit.and(error.kind.exit())))
}

fn on_drive(
    drive: &Drive,
    name: Name,
    rows: &[Row],
    may_write: bool,
    arguments: &Arguments,
    stop: &Stop,
) -> Result<Report> {
    let namespace = drive.namespace(arguments.workload.namespace_id)?;
    let time = provenance::now();
    let size = rows.iter().filter_map(|row| row.job.size_bytes).max().unwrap_or(u64::MAX);
    let blocks = (size >> namespace.lba_shift).clamp(1, namespace.blocks);
    let sample = written::look(drive, namespace, 0..blocks)?;
    let mut differs = name.differs();
    let mut gate = None;
    let mut outcomes = Vec::new();
    for row in rows {
        let job = fitted(&row.job, drive.io_queues(), &mut differs);
        let writes = job.writes();
        let skip = |why: String| Outcome {
            label: row.label.clone(),
            job: job.clone(),
            writes,
            figures: None,
            skipped: Some(why),
        };
        if stop.is_set() {
            outcomes.push(skip("interrupted".to_owned()));
            continue;
        }
        if writes && !may_write {
            outcomes.push(skip("needs --write --serial SN".to_owned()));
            continue;
        }
        if writes && gate.is_none() {
            gate = Some(arguments.permission.pass(drive, namespace, "a profile with rows that write")?);
        }
        match repeat(drive, namespace, row, &job, stop) {
            Ok(figures) => {
                let (label, job) = (row.label.clone(), job.clone());
                outcomes.push(Outcome { label, job, writes, figures: Some(figures), skipped: None });
            }
            // E-07: what the drive cannot do is skipped, and is not 0.
            Err(error) if error.kind == crate::error::Kind::Usage => outcomes.push(skip(error.message)),
            Err(error) => return Err(error),
        }
    }
    Ok(Report {
        name,
        emulated: drive.info().emulated,
        device: DeviceFacts::of(drive, Some(&namespace), drive.link_path().as_ref()),
        host: HostFacts::here(),
        time,
        rows: outcomes,
        differs,
        written: sample.written,
        gate,
        interrupted: stop.is_set(),
    })
}

/// All runs of a row; the best.
fn repeat(drive: &Drive, namespace: Namespace, row: &Row, job: &Job, stop: &Stop) -> Result<Figures> {
    // A region that is longer than the drive is the drive.
    let room = u64::try_from(namespace.bytes()).unwrap_or(u64::MAX);
    let job = Job { size_bytes: job.size_bytes.map(|size| size.min(room)), ..job.clone() };
    let mut best: Option<Figures> = None;
    for run in 0..row.repeats + u32::from(row.warms_up) {
        if stop.is_set() && best.is_some() {
            break;
        }
        let progress = Progress::new(row.label.clone(), job.limits.runtime_ns);
        let figures = Figures::of(&measure::run(drive, namespace, &job, progress, None, stop).0?);
        if run > 0 || !row.warms_up {
            best = Some(best.map_or(figures, |best| best.best(figures)));
        }
    }
    best.ok_or_else(|| Error::new(crate::error::Kind::Interrupted, "interrupted"))
}
