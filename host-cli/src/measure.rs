//! A run of the workload engine, watched.
//!
//! While the queues run, the calling thread reads the temperature and the links once in an interval (an idle link may
//! have slowed down, so links are judged by what they do under load), shows progress, and ends the run when it was asked
//! to. What it reads costs one Get Log Page an interval.
#![forbid(unsafe_code)]

use core::ops::ControlFlow;

use std::time::Duration;

use nvmetal_core::log::Smart;
use nvmetal_driver::pci::link::LinkPath;
use nvmetal_driver::workload::{Direction, Job, Observer, RunResult, Tick};
use nvmetal_driver::{DriverError, Namespace};
use serde::Serialize;

use crate::check::evidence::{IoErrors, Latency, Run, Written};
use crate::drive::Drive;
use crate::interrupt::Stop;
use crate::progress::{Progress, Standing};
use crate::units::celsius;

/// The longest interval between two looks.
const LOOK_EVERY_NS: u64 = 1_000_000_000;
/// A run is looked at at least this often, so that three readings of the links can agree.
const LOOKS: u64 = 5;
/// Looks that are kept: a day of seconds.
const MOST_SAMPLES: usize = 86_400;
/// Readings of the links that are kept.
const LINK_READINGS: usize = 16;

/// A look at the drive during a run.
#[derive(Debug, Clone, Serialize)]
pub struct SampleAt {
    /// Since the run's begin, on the clock of its I/Os.
    pub at_ns: u64,
    /// Composite temperature; `None` where it is not reported.
    pub kelvin: Option<u16>,
    /// The drive's link, where it can be seen.
    pub link: Option<String>,
}

/// A counter of the health log, and what of its growth the run's own commands explain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// The field.
    pub field: &'static str,
    /// By how much it grew.
    pub grew: u128,
    /// What this run sent.
    pub own: u128,
    /// The rest: another host's, or the drive's own.
    pub others: i128,
}

/// What was seen beside the run.
#[derive(Debug, Default)]
pub struct Watched {
    /// Each look.
    pub samples: Vec<SampleAt>,
    /// The health log just before and just after.
    pub smart: (Option<Box<Smart>>, Option<Box<Smart>>),
    /// Reads and writes that this run sent: commands and bytes.
    pub own: [(u64, u64); 2],
    /// Clock of the device, composite temperature in kelvin.
    pub temperature: Vec<(u64, u16)>,
    /// The links while the queues ran.
    pub links: Vec<LinkPath>,
}

impl Watched {
    /// What throttled the drive, by its own counters.
    pub fn throttled(&self) -> Option<String> {
        let (Some(before), Some(after)) = (self.smart.0.as_ref(), self.smart.1.as_ref()) else { return None };
        let grew = [
            ("light throttling", before.thermal_management_1_transitions, after.thermal_management_1_transitions),
            ("heavy throttling", before.thermal_management_2_transitions, after.thermal_management_2_transitions),
            ("time over the warning temperature", before.warning_temperature_time, after.warning_temperature_time),
            ("time over the critical temperature", before.critical_temperature_time, after.critical_temperature_time),
        ];
        let grown = grew.into_iter().find(|(_, before, after)| after.get() > before.get());
        grown.map(|(what, ..)| format!("the drive counted {what}"))
    }

    /// How the counters of commands grew, with this run's own subtracted.
    pub fn smart_changes(&self) -> Vec<Counted> {
        let (Some(before), Some(after)) = (self.smart.0.as_ref(), self.smart.1.as_ref()) else { return Vec::new() };
        let counted = |field, before: u128, after: u128, own: u64| {
            let grew = after.saturating_sub(before);
            Counted { field, grew, own: own.into(), others: grew as i128 - i128::from(own) }
        };
        let [(reads, _), (writes, _)] = self.own;
        vec![
            counted("host_read_commands", before.host_read_commands.get(), after.host_read_commands.get(), reads),
            counted("host_write_commands", before.host_write_commands.get(), after.host_write_commands.get(), writes),
        ]
    }
}

/// How many commands of this name the drive was sent so far.
fn count(drive: &Drive, name: &str) -> u64 {
    drive.sent().iter().find(|sent| !sent.admin && sent.name == name).map_or(0, |sent| sent.count)
}

/// Runs a job and watches it, every `interval` if that is given.
pub fn run(
    drive: &Drive,
    namespace: Namespace,
    job: &Job,
    progress: Progress,
    interval: Option<Duration>,
    stop: &Stop,
) -> (Result<RunResult, DriverError>, Watched) {
    let smart = || drive.admin().smart().ok();
    let (before, sent) = (smart(), [count(drive, "Read"), count(drive, "Write")]);
    let default_ns = job.limits.runtime_ns.map_or(LOOK_EVERY_NS, |ns| (ns / LOOKS).clamp(1_000_000, LOOK_EVERY_NS));
    let asked_ns = interval.map(|interval| interval.as_nanos().clamp(1_000_000, u128::from(LOOK_EVERY_NS)) as u64);
    let mut watch = Watch {
        drive,
        stop,
        interval_ns: asked_ns.unwrap_or(default_ns),
        progress,
        last: Tick { elapsed_ns: 0, ios: 0, bytes: 0 },
        seen: Watched::default(),
    };
    let result = drive.run(namespace, job, &mut watch);
    let mut seen = watch.seen;
    // Some drives count a while later; a drive that is gone is not asked.
    seen.smart = (before, result.is_ok().then(smart).flatten());
    let bytes = |of: fn(&RunResult) -> u64| result.as_ref().map_or(0, of);
    seen.own = [
        (count(drive, "Read") - sent[0], bytes(|result| result.read.bytes)),
        (count(drive, "Write") - sent[1], bytes(|result| result.write.bytes)),
    ];
    (result, seen)
}

struct Watch<'a> {
    drive: &'a Drive,
    stop: &'a Stop,
    interval_ns: u64,
    progress: Progress,
    last: Tick,
    seen: Watched,
}

impl Observer for Watch<'_> {
    fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    fn tick(&mut self, tick: Tick) -> ControlFlow<()> {
        if self.stop.is_set() {
            return ControlFlow::Break(());
        }
        let kelvin = match self.drive.admin().smart() {
            Ok(smart) => smart.composite_temperature.get(),
            Err(error) => {
                log::debug!("temperature: {error}");
                0
            }
        };
        if kelvin != 0 {
            self.seen.temperature.push((self.drive.clock().now_ns(), kelvin));
        }
        let path = self.drive.link_path();
        if self.seen.samples.len() < MOST_SAMPLES {
            self.seen.samples.push(SampleAt {
                at_ns: tick.elapsed_ns,
                kelvin: (kelvin != 0).then_some(kelvin),
                link: path.as_ref().map(|path| crate::command::list::link(Some(path))),
            });
        }
        if self.seen.links.len() < LINK_READINGS {
            self.seen.links.extend(path);
        }
        let seconds = tick.elapsed_ns.saturating_sub(self.last.elapsed_ns) as f64 / 1e9;
        if seconds > 0.0 {
            if self.stop.wants_state() {
                self.progress.tell();
            }
            self.progress.update(Standing {
                elapsed_ns: tick.elapsed_ns,
                iops: tick.ios.saturating_sub(self.last.ios) as f64 / seconds,
                bytes_per_second: tick.bytes.saturating_sub(self.last.bytes) as f64 / seconds,
                celsius: (kelvin != 0).then(|| celsius(kelvin)),
            });
        }
        self.last = tick;
        ControlFlow::Continue(())
    }
}

/// The reads of a run as evidence.
pub fn evidence(job: &Job, result: &RunResult, written: Written) -> Run {
    Run {
        block_bytes: job.block_bytes,
        depth: result.iodepth,
        jobs: u32::from(result.queues),
        seconds: result.elapsed_ns as f64 / 1e9,
        ios: result.read.ios,
        bytes: result.read.bytes,
        bytes_per_second: result.read_bytes_per_second(),
        iops: result.iops(),
        latency_ns: latency(&result.read, result.clock_error_ns),
        ios_per_second: result.seconds().iter().map(|bin| bin.ios).collect(),
        errors: errors(result),
        written,
    }
}

/// The latencies of one direction.
pub fn latency(direction: &Direction, clock_error_ns: u64) -> Latency {
    let histogram = &direction.latency;
    let at = |percent| histogram.percentile(percent).unwrap_or(0);
    Latency {
        min: histogram.min().unwrap_or(0),
        mean: histogram.mean().unwrap_or(0.0) as u64,
        p50: at(50.0),
        p90: at(90.0),
        p99: at(99.0),
        p999: at(99.9),
        p9999: at(99.99),
        p99999: at(99.999),
        max: histogram.max().unwrap_or(0),
        clock_error: clock_error_ns,
    }
}

/// What went wrong in a run.
pub fn errors(result: &RunResult) -> IoErrors {
    let first_miscompare = result.errors.miscompared.first().map(|miscompare| format!("miscompare at {miscompare}"));
    let first = result.errors.first.first().map(|failed| {
        let what = if failed.write { "write" } else { "read" };
        format!("{what} at LBA {}: {}", failed.lba, failed.cause)
    });
    IoErrors {
        recovered: result.errors.recovered,
        failed: result.errors.failed,
        miscompares: result.errors.miscompares,
        first: first_miscompare.or(first),
    }
}
