//! What came of a run.
#![forbid(unsafe_code)]

use core::fmt;
use std::collections::BTreeMap;

use nvmetal_core::status::Status;
use serde::{Serialize, Serializer};

use super::histogram::Histogram;
use super::pattern::Miscompare;
use crate::controller::Recoveries;
use crate::io_queue::Wait;

/// Width of a bin of the time series.
pub const BIN_NS: u64 = 100_000_000;

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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

/// Why an I/O failed, in the words of whoever completed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// The controller's status field, without the phase tag.
    Status(u16),
    /// What the kernel's block layer made of the status: an error number. Several statuses share one.
    Errno(i32),
    /// Less was moved than asked for.
    Short,
    /// It was in flight when its queue was deleted, or the controller reset, because a command did not come back.
    NeverCompleted,
}

impl Cause {
    /// What an error number says about a drive, in the block layer's usage; `None` where it says nothing more than its
    /// name.
    fn meaning(errno: i32) -> Option<&'static str> {
        match errno {
            libc::ENODATA => Some("media error"),
            libc::EILSEQ => Some("protection information does not match"),
            libc::EREMOTEIO => Some("the drive rejects the command"),
            libc::ETIMEDOUT => Some("the command timed out in the kernel"),
            libc::ENOLINK => Some("path or transport error"),
            _ => None,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Status(status) => write!(f, "{}", Status::from_bits(status)),
            Self::Errno(errno) => {
                write!(f, "{}", std::io::Error::from_raw_os_error(errno))?;
                Self::meaning(errno).map_or(Ok(()), |meaning| write!(f, ": {meaning}"))
            }
            Self::Short => f.write_str("less was transferred than asked for"),
            Self::NeverCompleted => f.write_str("not completed when the queue ended with a reset"),
        }
    }
}

impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// An I/O that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FailedIo {
    /// Whether it was a write.
    pub write: bool,
    /// Its first block.
    pub lba: u64,
    /// Why.
    pub cause: Cause,
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
    /// How often each cause was seen.
    pub by_cause: BTreeMap<Cause, u64>,
    /// The first few.
    pub first: Vec<FailedIo>,
    /// Blocks that did not hold what was written to them.
    pub miscompares: u64,
    /// The first few of those.
    pub miscompared: Vec<Miscompare>,
}

/// How many failed commands are kept one by one.
const KEPT_FAILURES: usize = 16;

impl Errors {
    /// Counts a cause, and keeps the I/O if it is one of the first.
    pub(crate) fn note(&mut self, failed: FailedIo) {
        *self.by_cause.entry(failed.cause).or_default() += 1;
        if self.first.len() < KEPT_FAILURES {
            self.first.push(failed);
        }
    }

    /// Counts a block that does not hold what it should, and keeps it if it is one of the first.
    pub(super) fn miscompare(&mut self, miscompare: Miscompare) {
        self.miscompares += 1;
        if self.miscompared.len() < KEPT_FAILURES {
            self.miscompared.push(miscompare);
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.miscompares += other.miscompares;
        self.miscompared.extend(other.miscompared);
        self.miscompared.truncate(KEPT_FAILURES);
        self.failed += other.failed;
        self.recovered += other.recovered;
        for (cause, count) in other.by_cause {
            *self.by_cause.entry(cause).or_default() += count;
        }
        self.first.extend(other.first);
        self.first.sort_by_key(|failed| failed.at_ns);
        self.first.truncate(KEPT_FAILURES);
    }
}

/// What was read and checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// I/Os.
    pub ios: u64,
    /// Logical blocks.
    pub blocks: u64,
}

impl Verified {
    pub(super) fn add(&mut self, other: Self) {
        self.ios += other.ios;
        self.blocks += other.blocks;
    }
}

/// A bin of the time series.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Bin {
    /// I/Os completed in it.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What a run's threads took of the processors, in the kernel and outside of it, from their begin to their end (the ramp
/// included). Interrupts that the kernel served meanwhile are not in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ProcessorUse {
    /// Processor time of all threads.
    pub cpu_ns: u64,
    /// How long they lived, all together.
    pub wall_ns: u64,
}

impl ProcessorUse {
    /// The share of a processor that each thread took, in per cent.
    pub fn percent(&self) -> f64 {
        if self.wall_ns == 0 { 0.0 } else { 100.0 * self.cpu_ns as f64 / self.wall_ns as f64 }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.cpu_ns += other.cpu_ns;
        self.wall_ns += other.wall_ns;
    }
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
    /// What neither reads nor writes: trims, zeroes, compares, verifies.
    pub other: Direction,
    /// What was read back and checked.
    pub verified: Verified,
    /// I/Os and bytes in each [`BIN_NS`].
    pub bins: Vec<Bin>,
    /// The 99th percentile of the latencies in each bin; `None` for a bin without I/Os, and where there were too many bins
    /// to keep that.
    pub p99_ns: Vec<Option<u64>>,
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
    /// What the run's threads took of the processors; `None` where time is virtual.
    pub processor: Option<ProcessorUse>,
    /// How completions were waited for.
    pub wait: Wait,
    /// What was done in the run about commands that did not come back.
    pub recoveries: Recoveries,
}

impl RunResult {
    /// I/Os completed.
    pub fn ios(&self) -> u64 {
        self.read.ios + self.write.ios + self.other.ios
    }

    /// Bytes moved.
    pub fn bytes(&self) -> u64 {
        self.read.bytes + self.write.bytes + self.other.bytes
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
        all.merge(&self.other.latency);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_says_who_names_it() {
        assert_eq!(Cause::Status(0x281).to_string(), "Unrecovered Read Error (0281h)");
        assert_eq!(Cause::Errno(libc::ENODATA).to_string(), "No data available (os error 61): media error");
        assert_eq!(Cause::Errno(libc::EIO).to_string(), "Input/output error (os error 5)");
    }

    #[test]
    fn all_failures_are_counted_and_the_first_few_kept() {
        let mut errors = Errors::default();
        for lba in 0..100 {
            errors.note(FailedIo { write: false, lba, cause: Cause::Errno(libc::EIO), at_ns: lba });
        }
        assert_eq!(errors.by_cause[&Cause::Errno(libc::EIO)], 100);
        assert_eq!(errors.first.len(), KEPT_FAILURES);
        assert_eq!(errors.first.last().map(|failed| failed.lba), Some(KEPT_FAILURES as u64 - 1));
    }
}
