//! Threads that each wait for one read at a time.
//!
//! Where io_uring is missing or forbidden (kernels before 5.1, `kernel.io_uring_disabled`, containers), a queue depth of n
//! is n threads in `pread`. That costs a change of threads for every I/O: fair for judging a drive, not for judging the
//! kernel. A read that never ends cannot be given up here; the kernel's own timeout ends it.
#![forbid(unsafe_code)]

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use memmap2::MmapMut;
use rustix::io::Errno;

use super::engine::Watched;
use super::record::{Begun, Recorder};
use super::sequence::Sequence;
use crate::error::DriverError;
use crate::workload::crew::{Recorded, Shared};

/// One thread.
#[derive(Debug)]
pub(super) struct BlockingWorker<'a> {
    pub watched: Watched<'a>,
    pub sequence: Sequence,
    pub recorder: Recorder,
    pub shared: Arc<Shared>,
    /// Whole pages, as direct access wants them.
    pub memory: MmapMut,
    pub io_bytes: usize,
    pub lba_bytes: u64,
}

impl BlockingWorker<'_> {
    /// Reads, or writes, until the run is over.
    pub fn work(mut self, file: BorrowedFd<'_>) -> Result<Recorded, DriverError> {
        loop {
            let stamp_ns = self.recorder.clock.now_ns();
            self.recorder.roll(stamp_ns);
            if self.recorder.is_over(stamp_ns) || self.shared.stop.load(Ordering::Relaxed) {
                break;
            }
            let Some((lba, write)) = self.sequence.next() else { break };
            let data = self.memory.get_mut(..self.io_bytes).unwrap_or_default();
            let offset = lba.saturating_mul(self.lba_bytes);
            let moved = rustix::io::retry_on_intr(|| {
                if write { rustix::io::pwrite(file, data, offset) } else { rustix::io::pread(file, &mut *data, offset) }
            });
            let result = moved.map_or_else(
                |errno| -i64::from(errno.raw_os_error()),
                |bytes| i64::try_from(bytes).unwrap_or(i64::MAX),
            );
            let seen_ns = self.recorder.clock.now_ns();
            self.recorder.roll(seen_ns);
            self.recorder.sent(write);
            self.recorder.ended(Begun { lba, write, stamp_ns }, result, seen_ns);
            if let Err(errno) = moved {
                self.watched.still_there(errno, self.recorder.failures())?;
            }
        }
        Ok(self.recorder.finish())
    }
}

/// Whole pages for one I/O.
pub(super) fn memory(io_bytes: usize) -> Result<MmapMut, Errno> {
    MmapMut::map_anon(io_bytes).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::NOMEM))
}
