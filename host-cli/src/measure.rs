//! A run of the workload engine, watched.
//!
//! While the queues run, the calling thread reads the temperature and the links once in an interval (an idle link may
//! have slowed down, so links are judged by what they do under load), shows progress, and ends the run when it was asked
//! to. What it reads costs one Get Log Page an interval.
#![forbid(unsafe_code)]

use core::ops::ControlFlow;

use nvmetal_driver::pci::link::LinkPath;
use nvmetal_driver::workload::{Direction, Job, Observer, RunResult, Tick};
use nvmetal_driver::{DriverError, Namespace};

use crate::check::evidence::{IoErrors, Latency, Run, Written};
use crate::drive::Drive;
use crate::interrupt::Stop;
use crate::progress::{Progress, Standing};
use crate::units::celsius;

/// The longest interval between two looks.
const LOOK_EVERY_NS: u64 = 1_000_000_000;
/// A run is looked at at least this often, so that three readings of the links can agree.
const LOOKS: u64 = 5;
/// Readings of the links that are kept.
const LINK_READINGS: usize = 16;

/// What was seen beside the run.
#[derive(Debug, Default)]
pub struct Watched {
    /// Clock of the device, composite temperature in kelvin.
    pub temperature: Vec<(u64, u16)>,
    /// The links while the queues ran.
    pub links: Vec<LinkPath>,
}

/// Runs a job and watches it.
pub fn run(
    drive: &Drive,
    namespace: Namespace,
    job: &Job,
    progress: Progress,
    stop: &Stop,
) -> (Result<RunResult, DriverError>, Watched) {
    let mut watch = Watch {
        drive,
        stop,
        interval_ns: job.limits.runtime_ns.map_or(LOOK_EVERY_NS, |ns| (ns / LOOKS).clamp(1_000_000, LOOK_EVERY_NS)),
        progress,
        last: Tick { elapsed_ns: 0, ios: 0, bytes: 0 },
        seen: Watched::default(),
    };
    let result = drive.run(namespace, job, &mut watch);
    (result, watch.seen)
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
        if self.seen.links.len() < LINK_READINGS {
            self.seen.links.extend(self.drive.link_path());
        }
        let seconds = tick.elapsed_ns.saturating_sub(self.last.elapsed_ns) as f64 / 1e9;
        if seconds > 0.0 {
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
        max: histogram.max().unwrap_or(0),
        clock_error: clock_error_ns,
    }
}

/// What went wrong in a run.
pub fn errors(result: &RunResult) -> IoErrors {
    let first = result.errors.first.first().map(|failed| {
        let what = if failed.write { "write" } else { "read" };
        format!("{what} at LBA {}: {}", failed.lba, failed.cause)
    });
    IoErrors { recovered: result.errors.recovered, failed: result.errors.failed, miscompares: 0, first }
}
