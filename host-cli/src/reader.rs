//! Reading a few blocks of a drive, one at a time: through a queue of our own, or through the kernel.
//!
//! For looking at what a drive holds before a run: whether it was ever written, and whether something on it must not be
//! overwritten. Nothing here is fast, and nothing needs to be.
#![forbid(unsafe_code)]

use nvmetal_core::command::io::IoOpcode;
use nvmetal_core::status::Status;
use nvmetal_driver::controller::Controller;
use nvmetal_driver::dma::{Buffer, BufferPool};
use nvmetal_driver::io_queue::{AnyIoQueue, Io, QueueOptions};
use nvmetal_driver::kernel::BlockTarget;
use nvmetal_driver::{DriverError, Namespace};
use std::sync::Arc;

/// How long an idle wait lasts before the command's age is looked at.
const LOOK_EVERY_NS: u64 = 1_000_000;

/// How often a read that failed is tried at first, before the last time.
const REPETITIONS: u32 = 3;

/// Reads a few blocks and waits for them, whichever way they come.
pub trait ReadBlocks {
    /// Reads, and reads again where the drive does not say that this is in vain; tells whether it had to.
    fn read_again(&mut self, lba: u64, blocks: u32) -> Result<(Vec<u8>, bool), DriverError>;
}

/// Through the kernel, which repeats what may be repeated by itself and does not tell.
impl ReadBlocks for BlockTarget {
    fn read_again(&mut self, lba: u64, blocks: u32) -> Result<(Vec<u8>, bool), DriverError> {
        self.read_blocks(lba, blocks).map(|data| (data, false))
    }
}

/// A queue for single reads.
pub struct Reader {
    queue: AnyIoQueue,
    buffer: Option<Buffer>,
    controller: Arc<Controller>,
    namespace: Namespace,
    reads: u64,
}

impl Reader {
    /// A reader of up to `bytes_each` bytes at a time.
    pub fn new(controller: &Arc<Controller>, namespace: Namespace, bytes_each: usize) -> Result<Self, DriverError> {
        let blocks = (bytes_each >> namespace.lba_shift).max(1);
        let metadata = blocks * usize::from(namespace.metadata_bytes);
        let data = blocks << namespace.lba_shift;
        let pool = BufferPool {
            count: 1,
            bytes_each: data + if namespace.metadata_extended { metadata } else { 0 },
            page_bytes: controller.page().bytes() as usize,
            metadata_bytes: if namespace.metadata_extended { 0 } else { metadata },
        };
        let buffer = pool.allocate(controller.transport())?.pop();
        let queue = controller.create_io_queue(namespace, QueueOptions { depth: 1, ..QueueOptions::default() })?;
        Ok(Self { queue, buffer, controller: Arc::clone(controller), namespace, reads: 0 })
    }

    /// Reads `blocks` blocks from `lba`.
    pub fn read(&mut self, lba: u64, blocks: u32) -> Result<Vec<u8>, DriverError> {
        let Some(buffer) = self.buffer.take() else {
            return Err(DriverError::Request("an earlier read on this queue has not come back".to_owned()));
        };
        let io = Io::read(lba, blocks);
        self.reads += 1;
        let (status, buffer) = one(&mut self.queue, io, buffer)?;
        let mut data = vec![0; (blocks as usize) << self.namespace.lba_shift];
        let copied = buffer.copy_out(0, &mut data);
        self.buffer = Some(buffer);
        copied?;
        if status.is_success() {
            return Ok(data);
        }
        Err(DriverError::Command {
            address: self.controller.address().to_owned(),
            queue: 1,
            command: format!("Read of {blocks} blocks at LBA {lba}"),
            status,
        })
    }
}

impl ReadBlocks for Reader {
    fn read_again(&mut self, lba: u64, blocks: u32) -> Result<(Vec<u8>, bool), DriverError> {
        for attempt in 0..REPETITIONS {
            match self.read(lba, blocks) {
                Ok(data) => return Ok((data, attempt > 0)),
                Err(error) if error.status().is_some_and(|status| !status.dnr()) => log::info!("{error}; again"),
                Err(error) => return Err(error),
            }
        }
        self.read(lba, blocks).map(|data| (data, true))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.controller.tally().add(false, IoOpcode::READ.into_bits(), self.reads);
    }
}

/// Sends one command and waits for it.
fn one(queue: &mut AnyIoQueue, io: Io, buffer: Buffer) -> Result<(Status, Buffer), DriverError> {
    let started_ns = queue.clock().now_ns();
    queue.submit(io, buffer, started_ns).map_err(|rejected| DriverError::Request(rejected.reason.text().to_owned()))?;
    queue.ring();
    loop {
        let mut done = None;
        queue.poll(1, |completed| done = Some((Status::from_bits(completed.status), completed.buffer)))?;
        if let Some(done) = done {
            return Ok(done);
        }
        let now_ns = queue.clock().now_ns();
        if let Some(overdue) = queue.overdue(now_ns) {
            return Err(queue.timed_out(overdue));
        }
        queue.idle(now_ns + LOOK_EVERY_NS);
    }
}
