//! What came of a run.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use super::histogram::Histogram;

/// Width of a bin of the time series.
pub const BIN_NS: u64 = 100_000_000;

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndReason {
    /// Its time was over.
    Runtime,
    /// Its number of I/Os or bytes was reached.
    Done,
    /// The observer asked for it.
    Interrupted,
}

/// Reads, or writes.
#[derive(Debug, Clone, Default)]
pub struct Direction {
    /// I/Os completed with success within the run's time.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their latencies, in nanoseconds.
    pub latency: Histogram,
}

/// A command that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct FailedIo {
    /// Whether it was a write.
    pub write: bool,
    /// Its first block.
    pub lba: u64,
    /// Its status field.
    pub status: u16,
    /// When, from the run's begin.
    pub at_ns: u64,
}

/// Commands that failed.
#[derive(Debug, Clone, Default)]
pub struct Errors {
    /// I/Os that failed for good.
    pub failed: u64,
    /// I/Os that failed and succeeded when repeated.
    pub recovered: u64,
    /// How often each status was seen.
    pub by_status: BTreeMap<u16, u64>,
    /// The first few.
    pub first: Vec<FailedIo>,
}

/// How many failed commands are kept one by one.
pub(super) const KEPT_FAILURES: usize = 16;

impl Errors {
    pub(super) fn merge(&mut self, other: Self) {
        self.failed += other.failed;
        self.recovered += other.recovered;
        for (status, count) in other.by_status {
            *self.by_status.entry(status).or_default() += count;
        }
        self.first.extend(other.first);
        self.first.sort_by_key(|failed| failed.at_ns);
        self.first.truncate(KEPT_FAILURES);
    }
}

/// A bin of the time series.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Bin {
    /// I/Os completed in it.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The outcome of a run.
#[derive(Debug, Clone)]
pub struct RunResult {
    /// From the first submission (or the end of the ramp) to the end of the run's time, or to the last completion.
    pub elapsed_ns: u64,
    /// Why it ended.
    pub end: EndReason,
    /// Reads.
    pub read: Direction,
    /// Writes.
    pub write: Direction,
    /// I/Os and bytes in each [`BIN_NS`].
    pub bins: Vec<Bin>,
    /// What failed.
    pub errors: Errors,
    /// The most by which a latency may be wrong because a time stamp was shared within a batch.
    pub clock_error_ns: u64,
    /// Which clock it was.
    pub clock: &'static str,
    /// I/Os in flight on each queue.
    pub iodepth: u32,
    /// Commands that one I/O was split into.
    pub commands_per_io: u32,
    /// Queues.
    pub queues: u16,
    /// Processor time of the run's threads; `None` where time is virtual.
    pub cpu_ns: Option<u64>,
    /// Whether completions were polled for; else by interrupt.
    pub polled: bool,
}

impl RunResult {
    /// I/Os completed.
    pub fn ios(&self) -> u64 {
        self.read.ios + self.write.ios
    }

    /// Bytes moved.
    pub fn bytes(&self) -> u64 {
        self.read.bytes + self.write.bytes
    }

    /// A rate per second of the run's time.
    fn per_second(&self, amount: u64) -> f64 {
        if self.elapsed_ns == 0 { 0.0 } else { amount as f64 * 1e9 / self.elapsed_ns as f64 }
    }

    /// I/Os per second.
    pub fn iops(&self) -> f64 {
        self.per_second(self.ios())
    }

    /// Bytes per second.
    pub fn bytes_per_second(&self) -> f64 {
        self.per_second(self.bytes())
    }

    /// Bytes per second that were read.
    pub fn read_bytes_per_second(&self) -> f64 {
        self.per_second(self.read.bytes)
    }

    /// Bytes per second that were written.
    pub fn write_bytes_per_second(&self) -> f64 {
        self.per_second(self.write.bytes)
    }

    /// All latencies.
    pub fn latency(&self) -> Histogram {
        let mut all = self.read.latency.clone();
        all.merge(&self.write.latency);
        all
    }

    /// Bytes in each whole second.
    pub fn seconds(&self) -> Vec<Bin> {
        let per_second = (1_000_000_000 / BIN_NS) as usize;
        let whole = (self.elapsed_ns / 1_000_000_000) as usize;
        let sum = |bins: &[Bin]| {
            bins.iter().fold(Bin::default(), |sum, bin| Bin { ios: sum.ios + bin.ios, bytes: sum.bytes + bin.bytes })
        };
        self.bins.chunks(per_second).take(whole).map(sum).collect()
    }
}
