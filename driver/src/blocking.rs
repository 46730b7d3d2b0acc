//! Reading and writing a namespace by calls that return when it is done.
//!
//! [`BlockingQueue::read_at`] and [`BlockingQueue::write_at`] are what a file's calls of these names are, on a raw drive:
//! bytes from an offset into a slice. They copy through buffers of the queue's own and split what is long into pieces, of
//! which several are in flight at a time. Who wants every I/O per second uses [`IoQueue`] and its buffers, and copies
//! nothing; who wants many things at once without a thread for each uses [`AsyncQueue`].
//!
//! ```
//! use nvmetal_driver::blocking::{BlockingOptions, BlockingQueue};
//! use nvmetal_driver::transport::emulated::EmulatedTransport;
//! use nvmetal_driver::{Admin, Controller, ControllerOptions};
//!
//! let drive = EmulatedTransport::open("ideal,written=no")?;
//! let controller = Controller::open(drive, ControllerOptions::default())?;
//! let namespace = controller.namespace(1)?;
//!
//! let mut queue = BlockingQueue::new(&controller, namespace, BlockingOptions::default())?;
//! queue.write_at(4096, &[0x6e; 512])?;
//! let mut data = [0; 1024];
//! queue.read_at(4096, &mut data)?;
//! assert_eq!((data[511], data[512]), (0x6e, 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`IoQueue`]: crate::io_queue::IoQueue
//! [`AsyncQueue`]: crate::future::AsyncQueue
#![forbid(unsafe_code)]

use std::sync::Arc;

use nvmetal_core::command::io::IoOpcode;
use nvmetal_core::status::Status;

use crate::clock::MILLISECOND_NS;
use crate::controller::{Controller, Namespace};
use crate::dma::{Buffer, BufferPool, DmaError};
use crate::error::DriverError;
use crate::io_queue::{AnyIoQueue, Io, Payload, QueueOptions, RejectedReason, Wait};

/// The longest idle wait before the commands' age is looked at.
const LOOK_EVERY_NS: u64 = 10 * MILLISECOND_NS;

/// How a [`BlockingQueue`] is to be made.
#[derive(Debug, Clone, Copy)]
pub struct BlockingOptions {
    /// Pieces in flight at a time, at most.
    pub depth: u32,
    /// Bytes of a piece, at most; the controller's limit may lower it.
    pub piece_bytes: u64,
    /// How the calling thread waits; needs a controller with interrupts for more than polling.
    pub wait: Wait,
    /// How long a command may take.
    pub timeout_ns: u64,
}

impl Default for BlockingOptions {
    fn default() -> Self {
        Self { depth: 8, piece_bytes: 128 << 10, wait: Wait::Poll, timeout_ns: QueueOptions::default().timeout_ns }
    }
}

/// What travels with a command.
#[derive(Debug)]
struct Piece {
    buffer: Buffer,
    /// The call that it belongs to: one that was given up must not be taken for the next one's.
    call: u32,
    /// Where its data is in the caller's slice.
    at: usize,
    bytes: usize,
}

impl Payload for Piece {
    fn buffer(&self) -> &Buffer {
        &self.buffer
    }
}

/// The caller's memory.
enum Data<'a> {
    Into(&'a mut [u8]),
    From(&'a [u8]),
}

impl Data<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Into(into) => into.len(),
            Self::From(from) => from.len(),
        }
    }

    fn opcode(&self) -> IoOpcode {
        match self {
            Self::Into(_) => IoOpcode::READ,
            Self::From(_) => IoOpcode::WRITE,
        }
    }
}

/// A queue of its own for blocking reads and writes of one namespace. See the [module](self).
#[derive(Debug)]
pub struct BlockingQueue {
    queue: AnyIoQueue<Piece>,
    free: Vec<Buffer>,
    piece_bytes: usize,
    call: u32,
    sent: [u64; 2],
}

impl BlockingQueue {
    /// Makes the queue and its buffers.
    ///
    /// # Errors
    /// A namespace whose blocks have metadata between them: its bytes are not a row of data. Else as
    /// [`Controller::create_io_queue`] and [`BufferPool::allocate`].
    pub fn new(
        controller: &Arc<Controller>,
        namespace: Namespace,
        options: BlockingOptions,
    ) -> Result<Self, DriverError> {
        if namespace.metadata_extended {
            return Err(DriverError::Request(format!(
                "{}: the blocks of namespace {} have metadata between them; blocking reads and writes are of data alone",
                controller.address(),
                namespace.nsid
            )));
        }
        let most = controller.max_transfer_bytes().unwrap_or(u64::MAX).min(65_536 << namespace.lba_shift);
        let blocks = (options.piece_bytes.min(most) >> namespace.lba_shift).max(1);
        let piece_bytes = (blocks << namespace.lba_shift) as usize;
        let depth = options.depth.max(1);
        let queue_options =
            QueueOptions { depth, wait: options.wait, timeout_ns: options.timeout_ns, ..QueueOptions::default() };
        let queue = controller.create_io_queue(namespace, queue_options)?;
        let pool = BufferPool {
            count: depth.min(queue.depth()) as usize,
            bytes_each: piece_bytes,
            page_bytes: controller.page().bytes() as usize,
            metadata_bytes: blocks as usize * usize::from(namespace.metadata_bytes),
        };
        let free = pool.allocate(controller.transport())?;
        Ok(Self { queue, free, piece_bytes, call: 0, sent: [0; 2] })
    }

    /// The namespace.
    pub fn namespace(&self) -> &Namespace {
        self.queue.namespace()
    }

    /// Fills `into` with the namespace's bytes from `offset_bytes` on. Both are multiples of the logical block.
    ///
    /// # Errors
    /// [`DriverError::Command`] if a piece failed: what of `into` has been filled is not known. It is not repeated here.
    /// [`DriverError::Request`] for an offset or length that is no multiple of the block, or beyond the end.
    /// [`DriverError::Timeout`], [`DriverError::Fault`], [`DriverError::Lost`] if the drive does not answer as it must.
    pub fn read_at(&mut self, offset_bytes: u64, into: &mut [u8]) -> Result<(), DriverError> {
        self.transfer(offset_bytes, &mut Data::Into(into))
    }

    /// Writes `from` to the namespace's bytes from `offset_bytes` on. Both are multiples of the logical block.
    ///
    /// When it returns the drive has taken the data, possibly into a volatile cache.
    ///
    /// # Errors
    /// As [`BlockingQueue::read_at`]; after a failure each block may hold what it held before or what was to be written.
    pub fn write_at(&mut self, offset_bytes: u64, from: &[u8]) -> Result<(), DriverError> {
        self.transfer(offset_bytes, &mut Data::From(from))
    }

    fn transfer(&mut self, offset_bytes: u64, data: &mut Data<'_>) -> Result<(), DriverError> {
        let namespace = *self.queue.namespace();
        let lba_bytes = namespace.lba_bytes();
        if !offset_bytes.is_multiple_of(lba_bytes) || !(data.len() as u64).is_multiple_of(lba_bytes) {
            return Err(DriverError::Request(format!(
                "{} bytes at offset {offset_bytes} are not whole logical blocks of {lba_bytes} bytes",
                data.len()
            )));
        }
        let end = u128::from(offset_bytes) + data.len() as u128;
        if end > namespace.bytes() {
            return Err(DriverError::Request(format!(
                "{} bytes at offset {offset_bytes} reach beyond the namespace's {} bytes",
                data.len(),
                namespace.bytes()
            )));
        }
        self.call = self.call.wrapping_add(1);
        let (mut submitted, mut ended) = (0, 0);
        let mut failure = None;
        while ended < data.len() {
            // After a failure nothing more is begun; what is in flight is waited for.
            while failure.is_none() && submitted < data.len() {
                let Some(buffer) = self.free.pop() else { break };
                let bytes = self.piece_bytes.min(data.len() - submitted);
                let lba = (offset_bytes + submitted as u64) >> namespace.lba_shift;
                self.submit(lba, Piece { buffer, call: self.call, at: submitted, bytes }, data)?;
                submitted += bytes;
            }
            self.queue.ring();
            ended += self.drain(data, &mut failure)?;
            if failure.is_some() && ended == submitted {
                break;
            }
        }
        failure.map_or(Ok(()), |(status, at)| {
            let lba = (offset_bytes + at as u64) >> namespace.lba_shift;
            Err(DriverError::Command {
                address: self.queue.controller().address().to_owned(),
                queue: self.queue.id(),
                command: format!("{} at LBA {lba}", data.opcode().name().unwrap_or("I/O")),
                status,
            })
        })
    }

    fn submit(&mut self, lba: u64, mut piece: Piece, data: &Data<'_>) -> Result<(), DriverError> {
        if let Data::From(from) = data {
            let part = from.get(piece.at..piece.at + piece.bytes).unwrap_or_default();
            piece.buffer.copy_in(0, part)?;
        }
        let blocks = (piece.bytes >> self.queue.namespace().lba_shift) as u32;
        let io = Io { opcode: data.opcode(), lba, blocks, flags: 0 };
        let stamp_ns = self.queue.clock().now_ns();
        match self.queue.submit(io, piece, stamp_ns) {
            Ok(_) => {
                self.sent[usize::from(matches!(data, Data::From(_)))] += 1;
                Ok(())
            }
            Err(rejected) => {
                self.free.push(rejected.payload.buffer);
                Err(refusal(&self.queue, rejected.reason))
            }
        }
    }

    /// Takes what has come back, or waits a little for it; gives the bytes of this call that have ended.
    fn drain(&mut self, data: &mut Data<'_>, failure: &mut Option<(Status, usize)>) -> Result<usize, DriverError> {
        let Self { queue, free, call, .. } = self;
        let mut ended = 0;
        let mut copied: Result<(), DmaError> = Ok(());
        let count = queue.poll(u32::MAX, |done| {
            let Piece { buffer, call: of, at, bytes } = done.buffer;
            if of == *call {
                ended += bytes;
                let status = Status::from_bits(done.status);
                match data {
                    _ if !status.is_success() => *failure = failure.or(Some((status, at))),
                    Data::Into(into) => {
                        if let Some(place) = into.get_mut(at..at + bytes)
                            && let Err(error) = buffer.copy_out(0, place)
                        {
                            copied = Err(error);
                        }
                    }
                    Data::From(_) => {}
                }
            }
            free.push(buffer);
        })?;
        copied?;
        let now_ns = queue.clock().now_ns();
        if let Some(overdue) = queue.overdue(now_ns) {
            return Err(queue.timed_out(overdue));
        }
        if count == 0 {
            queue.idle(now_ns + LOOK_EVERY_NS);
        }
        Ok(ended)
    }
}

impl Drop for BlockingQueue {
    fn drop(&mut self) {
        let tally = self.queue.controller().tally();
        tally.add(false, IoOpcode::READ.into_bits(), self.sent[0]);
        tally.add(false, IoOpcode::WRITE.into_bits(), self.sent[1]);
    }
}

/// The error for a command that the queue did not take.
fn refusal<P: Payload>(queue: &AnyIoQueue<P>, reason: RejectedReason) -> DriverError {
    DriverError::Request(format!("{}: queue {}: {}", queue.controller().address(), queue.id(), reason.text()))
}
