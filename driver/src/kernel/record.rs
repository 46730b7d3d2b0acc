//! What one thread of a run measures.
//!
//! A latency runs from the moment before the I/O was handed to the kernel to the moment in which its end was seen here:
//! what a program experiences, system calls included.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::clock::Clock;
use crate::workload::crew::{Live, Recorded};
use crate::workload::result::{BIN_NS, Bin, Cause, FailedIo};

/// The time of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    /// When recording begins.
    pub start_ns: u64,
    /// When the run ends.
    pub stop_ns: u64,
}

/// One I/O: where and when it began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begun {
    pub lba: u64,
    pub write: bool,
    pub stamp_ns: u64,
}

/// Records of one thread.
#[derive(Debug)]
pub(super) struct Recorder {
    pub clock: Clock,
    live: Arc<Live>,
    span: Span,
    io_bytes: u64,
    bin: Bin,
    bin_end_ns: u64,
    recorded: Recorded,
}

impl Recorder {
    pub fn new(clock: &Clock, live: Arc<Live>, span: Span, io_bytes: u64) -> Self {
        Self {
            clock: clock.clone(),
            live,
            span,
            io_bytes,
            bin: Bin::default(),
            bin_end_ns: span.start_ns.saturating_add(BIN_NS),
            recorded: Recorded::default(),
        }
    }

    /// Whether the run's time is over at this moment; if so, that is the reason of its end.
    pub fn is_over(&mut self, now_ns: u64) -> bool {
        let over = now_ns >= self.span.stop_ns;
        self.recorded.out_of_time |= over;
        over
    }

    /// An I/O was handed to the kernel.
    pub fn sent(&mut self, write: bool) {
        if write {
            self.recorded.writes_sent += 1;
        } else {
            self.recorded.reads_sent += 1;
        }
    }

    /// A time stamp was shared over this long.
    pub fn shared_for(&mut self, ns: u64) {
        self.recorded.clock_error_ns = self.recorded.clock_error_ns.max(ns);
    }

    /// An I/O ended: all of it (`Ok`) or not. `result` is what the kernel says, bytes or a negative error number.
    pub fn ended(&mut self, begun: Begun, result: i64, seen_ns: u64) {
        self.recorded.last_seen_ns = seen_ns;
        if u64::try_from(result) != Ok(self.io_bytes) {
            let cause = if result < 0 { Cause::Errno(-result as i32) } else { Cause::Short };
            let at_ns = seen_ns.saturating_sub(self.span.start_ns);
            self.recorded.errors.failed += 1;
            self.recorded.errors.note(FailedIo { write: begun.write, lba: begun.lba, cause, at_ns });
            return;
        }
        // What completes after the run's time, or was begun before it (in the ramp), is not counted.
        if seen_ns >= self.span.stop_ns || begun.stamp_ns < self.span.start_ns {
            return;
        }
        let latency_ns = seen_ns.saturating_sub(begun.stamp_ns);
        if begun.write {
            self.recorded.write_latency.record(latency_ns);
        } else {
            self.recorded.read_latency.record(latency_ns);
        }
        self.bin.ios += 1;
        self.bin.bytes += self.io_bytes;
    }

    /// Ends the bins that are over at this moment; before the I/Os of the moment are recorded.
    pub fn roll(&mut self, now_ns: u64) {
        if now_ns < self.bin_end_ns {
            return;
        }
        while now_ns >= self.bin_end_ns && self.bin_end_ns <= self.span.stop_ns {
            self.recorded.end_bin(core::mem::take(&mut self.bin));
            self.bin_end_ns += BIN_NS;
        }
        let ios = self.recorded.read_latency.count() + self.recorded.write_latency.count();
        self.live.ios.store(ios, Ordering::Relaxed);
        self.live.bytes.store(ios * self.io_bytes, Ordering::Relaxed);
    }

    /// How many have failed.
    pub fn failures(&self) -> u64 {
        self.recorded.errors.failed
    }

    /// The records.
    pub fn finish(mut self) -> Recorded {
        if self.bin != Bin::default() {
            self.recorded.end_bin(self.bin);
        }
        self.recorded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn recorder() -> Recorder {
        let span = Span { start_ns: 1000 * MS, stop_ns: 1250 * MS };
        Recorder::new(&Clock::virtual_at(0).0, Arc::default(), span, 4096)
    }

    fn begun(at_ms: u64) -> Begun {
        Begun { lba: 8, write: false, stamp_ns: at_ms * MS }
    }

    #[test]
    fn only_what_begins_and_ends_within_the_runs_time_is_counted() {
        let mut recorder = recorder();
        for (from_ms, to_ms) in [(900, 990), (990, 1010), (1010, 1020), (1150, 1160), (1240, 1260)] {
            recorder.roll(to_ms * MS);
            recorder.ended(begun(from_ms), 4096, to_ms * MS);
        }
        let recorded = recorder.finish();
        assert_eq!(recorded.read_latency.count(), 2);
        assert_eq!(recorded.bins.iter().map(|bin| bin.ios).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(recorded.last_seen_ns, 1260 * MS);
    }

    #[test]
    fn an_error_number_and_a_short_read_are_failures_and_not_ios() {
        let mut recorder = recorder();
        recorder.ended(begun(1000), -61, 1001 * MS);
        recorder.ended(begun(1000), 512, 1001 * MS);
        recorder.ended(begun(1000), 0, 1001 * MS);
        assert_eq!(recorder.failures(), 3);
        let recorded = recorder.finish();
        assert_eq!((recorded.read_latency.count(), recorded.errors.failed), (0, 3));
        assert_eq!(recorded.errors.by_cause[&Cause::Errno(61)], 1);
        assert_eq!(recorded.errors.by_cause[&Cause::Short], 2);
        assert_eq!(recorded.errors.first[0].lba, 8);
    }
}
