//! A queue pair for I/O: one thread's way to a drive.
//!
//! A queue owns what is in flight. [`IoQueue::submit`] takes the buffer, [`IoQueue::poll`] gives it back with the
//! completion; there is no way to touch a buffer in between, to free it early, or to use one queue from two threads.
//! Submitting does not tell the controller: [`IoQueue::ring`] does, once for a batch.
//!
//! This is how it is used, and what the compiler makes of misuse:
//!
//! ```
//! # use nvmetal_core::queue::Doorbell;
//! # use nvmetal_driver::{dma::Buffer, error::DriverError, io_queue::{Io, IoQueue, RejectedReason}};
//! /// Reads block 0; the buffer comes back with the completion.
//! fn read<D: Doorbell>(queue: &mut IoQueue<D>, buffer: Buffer) -> Result<Option<Buffer>, DriverError> {
//!     if let Err(rejected) = queue.submit(Io::read(0, 1), buffer, queue.clock().now_ns()) {
//!         assert_eq!(rejected.reason, RejectedReason::Full);
//!         return Ok(Some(rejected.payload));
//!     }
//!     queue.ring();
//!     let mut back = None;
//!     while back.is_none() {
//!         queue.poll(1, |done| back = Some(done.buffer))?;
//!     }
//!     Ok(back)
//! }
//! ```
//!
//! Using a buffer again while it is in flight: it has been moved.
//!
//! ```compile_fail,E0382
//! # use nvmetal_core::queue::Doorbell;
//! # use nvmetal_driver::{dma::Buffer, io_queue::{Io, IoQueue}};
//! fn reuse<D: Doorbell>(queue: &mut IoQueue<D>, mut buffer: Buffer) {
//!     let _ = queue.submit(Io::read(0, 1), buffer, 0);
//!     buffer.fill(0);
//! }
//! ```
//!
//! Freeing it early: the same.
//!
//! ```compile_fail,E0382
//! # use nvmetal_core::queue::Doorbell;
//! # use nvmetal_driver::{dma::Buffer, io_queue::{Io, IoQueue}};
//! fn free<D: Doorbell>(queue: &mut IoQueue<D>, buffer: Buffer) {
//!     let _ = queue.submit(Io::read(0, 1), buffer, 0);
//!     drop(buffer);
//! }
//! ```
//!
//! One queue in two threads: there is no second borrow to submit with.
//!
//! ```compile_fail,E0499
//! # use nvmetal_core::queue::Doorbell;
//! # use nvmetal_driver::io_queue::IoQueue;
//! fn share<D: Doorbell + Send>(queue: &mut IoQueue<D>) {
//!     std::thread::scope(|threads| {
//!         threads.spawn(|| queue.ring());
//!         threads.spawn(|| queue.ring());
//!     });
//! }
//! ```
//!
//! Nor is there one to look with: a queue is not `Sync`.
//!
//! ```compile_fail,E0277
//! # use nvmetal_core::queue::Doorbell;
//! # use nvmetal_driver::io_queue::IoQueue;
//! fn look<D: Doorbell + Sync>(queue: &IoQueue<D>) {
//!     std::thread::scope(|threads| {
//!         threads.spawn(|| queue.in_flight());
//!     });
//! }
//! ```
//!
//! Dropping a queue deletes it on the controller first. Only when that has been confirmed do the buffers that were still
//! in flight go back to their pool; otherwise they, and the rings, are leaked.
//!
//! The queue is generic over its doorbell, so that ringing a mapped register is a plain store. [`AnyIoQueue`] is the
//! choice made once, when the queue is created; a hot loop is written against `IoQueue<D, P>` and entered through it.
#![forbid(unsafe_code)]

mod any;
mod care;
mod rescue;
mod wait;

use core::fmt;
use std::sync::Arc;

use nvmetal_core::command::Command;
use nvmetal_core::command::admin::{
    CreateIoCompletionQueue, CreateIoSubmissionQueue, DeleteIoCompletionQueue, QueuePriority,
};
use nvmetal_core::command::io::IoOpcode;
use nvmetal_core::number::ZeroBasedU16;
use nvmetal_core::queue::shadow::Shadowed;
use nvmetal_core::queue::slot::MAX_SLOTS;
use nvmetal_core::queue::{
    CompletionRing, DeviceQuiet, Done, Doorbell, Generations, IoWords, Parts, QueuePair, Slot, SlotTable,
    SubmissionRing,
};
use nvmetal_core::register;

use crate::clock::{Clock, MILLISECOND_NS};
use crate::controller::{AdminData, Controller, Namespace};
use crate::dma::{Buffer, RingBuffer};
use crate::error::DriverError;
use crate::transport::{CalledDoorbell, DoorbellKind, Interrupt, MappedDoorbell, Waiting};

pub use care::{ScatterPayload, describe_range};
pub use rescue::Rescue;
use wait::{Adaptive, Next};
pub use wait::{MOST_NS as HYBRID_POLLS_MOST_NS, Wait};

/// The most blocks of one command.
const MOST_BLOCKS: u64 = 1 << 16;

/// How a queue pair is to be made.
#[derive(Debug, Clone, Copy)]
pub struct QueueOptions {
    /// The most commands in flight, 1 to 4096; the controller's limit (CAP.MQES) may lower it.
    pub depth: u32,
    /// How it waits for completions. Without interrupts at the controller, every way is polling.
    pub wait: Wait,
    /// How long a command may take.
    pub timeout_ns: u64,
    /// Its class under weighted round robin.
    pub priority: QueuePriority,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self { depth: 32, wait: Wait::Poll, timeout_ns: 10_000 * MILLISECOND_NS, priority: QueuePriority::MEDIUM }
    }
}

/// What travels with a command: its buffer, and what else its user wants to know when it comes back.
///
/// Up to two words fit into a slot of half a cache line.
pub trait Payload: Send {
    /// The buffer that the device may touch.
    fn buffer(&self) -> &Buffer;
}

impl Payload for Buffer {
    #[inline(always)]
    fn buffer(&self) -> &Buffer {
        self
    }
}

/// A read or write of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Io {
    /// Read, write, or another command of the same shape (compare, verify, write zeroes).
    pub opcode: IoOpcode,
    /// The first block.
    pub lba: u64,
    /// The number of blocks.
    pub blocks: u32,
    /// Bits of dword 12 above the length: FUA, limited retry, protection information.
    pub flags: u32,
}

impl Io {
    /// A read.
    #[inline]
    pub fn read(lba: u64, blocks: u32) -> Self {
        Self { opcode: IoOpcode::READ, lba, blocks, flags: 0 }
    }

    /// A write.
    #[inline]
    pub fn write(lba: u64, blocks: u32) -> Self {
        Self { opcode: IoOpcode::WRITE, lba, blocks, flags: 0 }
    }
}

/// A command that was not taken, and its payload.
#[derive(Debug)]
pub struct Rejected<P> {
    /// Why.
    pub reason: RejectedReason,
    /// The caller's again.
    pub payload: P,
}

/// Why a command was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectedReason {
    /// As many are in flight as the queue holds: poll first.
    Full,
    /// The queue is stopped after a fault.
    Stopped,
    /// No blocks, or more than 65,536.
    Length,
    /// Beyond the end of the namespace.
    Range,
    /// The buffer is shorter than the blocks, with the metadata between them if there is some.
    Buffer,
    /// The blocks have metadata in a place of its own, and the buffer has no room for it.
    Metadata,
    /// The controller takes no scatter gather list like this.
    Sgl,
}

impl RejectedReason {
    /// One short sentence.
    pub fn text(self) -> &'static str {
        match self {
            Self::Full => "the queue is full",
            Self::Stopped => "the queue is stopped after a fault of the device",
            Self::Length => "a command moves 1 to 65536 blocks",
            Self::Range => "the blocks lie beyond the end of the namespace",
            Self::Buffer => "the buffer is shorter than the blocks",
            Self::Metadata => "the buffer has no room for the blocks' metadata",
            Self::Sgl => "the controller takes no scatter gather list, or none so aligned",
        }
    }
}

/// How often a queue that waits asks whether the device is known to be gone.
const LOST_LOOK_NS: u64 = 1_000_000_000;

/// A command that is overdue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overdue {
    /// Its id.
    pub cid: u16,
    /// How long it has been in flight.
    pub waited_ns: u64,
}

/// A doorbell with a shadow. It is rung so seldom that it does not matter of which kind it is.
pub type ShadowedDoorbell = Shadowed<DoorbellKind, RingBuffer>;

type Pair<D, P> = QueuePair<D, RingBuffer, Box<[Slot<P>]>>;

/// A queue pair of one of the two kinds.
#[derive(Debug)]
pub enum AnyIoQueue<P: Payload = Buffer> {
    /// With mapped doorbells.
    Mapped(IoQueue<MappedDoorbell, P>),
    /// With doorbells that are calls.
    Called(IoQueue<CalledDoorbell, P>),
    /// With doorbells in memory, rung for real only when the controller asked for it.
    Shadowed(IoQueue<ShadowedDoorbell, P>),
}

/// A queue pair for one namespace, owned by one thread.
pub struct IoQueue<D: Doorbell, P: Payload = Buffer> {
    pair: Pair<D, P>,
    /// Whether it was deleted, or given up.
    ended: bool,
    namespace: Namespace,
    /// The namespace's id in its place in an entry.
    nsid_word: u64,
    /// A command of any length that begins below this block ends in the namespace, and has no metadata.
    any_length_below_lba: u64,
    clock: Clock,
    timeout_ns: u64,
    /// No command can be overdue before then.
    look_at_ns: u64,
    /// `None` for a queue that only polls.
    interrupt: Option<Interrupt>,
    /// `None` for a queue that does one thing only.
    adaptive: Option<Adaptive>,
    controller: Arc<Controller>,
    rings: [RingBuffer; 2],
    /// The controller's epoch in which the queue was made.
    epoch: u32,
    rescuing: Option<rescue::Rescuing>,
    options: QueueOptions,
    entries: u32,
}

impl<D: Doorbell, P: Payload> fmt::Debug for IoQueue<D, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoQueue")
            .field("id", &self.pair.queue_id())
            .field("in_flight", &self.pair.in_flight())
            .finish_non_exhaustive()
    }
}

impl Controller {
    /// Makes a queue pair for `namespace`.
    ///
    /// # Errors
    /// No queue left of those that the controller granted; the controller's refusal; no memory.
    pub fn create_io_queue<P: Payload>(
        self: &Arc<Self>,
        namespace: Namespace,
        options: QueueOptions,
    ) -> Result<AnyIoQueue<P>, DriverError> {
        let Some(queue_id) = self.take_queue_id() else {
            return Err(DriverError::Request(format!(
                "{}: all I/O queues are in use; the drive offers {}",
                self.address(),
                self.io_queues()
            )));
        };
        let epoch = self.queue_begins(queue_id);
        let made = Making { controller: self, namespace, options, queue_id, epoch }.make();
        if made.is_err() {
            self.queue_ends(queue_id);
            self.give_queue_id_back(queue_id);
        }
        made
    }
}

/// The making of one queue pair.
struct Making<'a> {
    controller: &'a Arc<Controller>,
    namespace: Namespace,
    options: QueueOptions,
    queue_id: u16,
    epoch: u32,
}

impl Making<'_> {
    fn make<P: Payload>(&self) -> Result<AnyIoQueue<P>, DriverError> {
        let entries = (self.options.depth + 1).clamp(2, self.controller.max_queue_entries().min(65_536));
        let depth = (entries - 1).min(MAX_SLOTS as u32);
        let transport = self.controller.transport();
        let submission = self.controller.submission_memory(entries as usize * 64)?;
        let completion = RingBuffer::new(transport, entries as usize * 16)?;
        let dstrd = self.controller.brought_up().cap.dstrd();
        let doorbell = |completion| transport.doorbell(register::doorbell_offset(self.queue_id, completion, dstrd));
        let doorbells = (doorbell(false)?, doorbell(true)?);
        // Before the queue exists: their words are set to where it begins.
        let shadowed = match self.controller.shadows() {
            Some(pages) => Some((self.shadow(doorbell(false)?, pages, 0)?, self.shadow(doorbell(true)?, pages, 1)?)),
            None => None,
        };
        let interrupt = self.vector();
        self.create(entries, &submission, &completion, interrupt.as_ref())?;
        let rings = [submission, completion];
        let common = (entries, depth, rings, interrupt);
        if let Some((tail, head)) = shadowed {
            return Ok(AnyIoQueue::Shadowed(self.assemble(tail, head, common)?));
        }
        Ok(match doorbells {
            (DoorbellKind::Mapped(tail), DoorbellKind::Mapped(head)) => {
                AnyIoQueue::Mapped(self.assemble(tail, head, common)?)
            }
            (DoorbellKind::Called(tail), DoorbellKind::Called(head)) => {
                AnyIoQueue::Called(self.assemble(tail, head, common)?)
            }
            _ => return Err(DriverError::Request("a transport with two kinds of doorbells".to_owned())),
        })
    }

    /// The doorbell with its shadow; `which` is 0 for the tail, 1 for the head.
    fn shadow(
        &self,
        doorbell: DoorbellKind,
        pages: &[RingBuffer; 2],
        which: usize,
    ) -> Result<ShadowedDoorbell, DriverError> {
        let stride_bytes = self.controller.brought_up().cap.doorbell_stride_bytes() as usize;
        let index = 2 * usize::from(self.queue_id) + which;
        Shadowed::new(doorbell, pages[0].clone(), pages[1].clone(), index, stride_bytes).ok_or_else(|| {
            DriverError::Request(format!("queue {} has no place in a page of shadow doorbells", self.queue_id))
        })
    }

    /// The vector that the queue signals: its own, or where there are fewer vectors than queues, a shared one.
    fn vector(&self) -> Option<Interrupt> {
        let vectors = self.controller.interrupts();
        if !self.options.wait.needs_interrupts() || vectors.is_empty() {
            return None;
        }
        let index = if vectors.len() == 1 { 0 } else { 1 + usize::from(self.queue_id - 1) % (vectors.len() - 1) };
        vectors.get(index).cloned()
    }

    fn create(
        &self,
        entries: u32,
        submission: &RingBuffer,
        completion: &RingBuffer,
        interrupt: Option<&Interrupt>,
    ) -> Result<(), DriverError> {
        let qsize = ZeroBasedU16::from_count(entries).unwrap_or_default();
        let create_cq = CreateIoCompletionQueue {
            qid: self.queue_id,
            qsize,
            pc: true,
            ien: interrupt.is_some(),
            iv: interrupt.map_or(0, |interrupt| interrupt.vector),
        };
        let controller = self.controller;
        controller.admin_entry(create_cq.entry().with_prp(completion.iova(), 0), AdminData::None)?;
        let create_sq = CreateIoSubmissionQueue {
            qid: self.queue_id,
            qsize,
            pc: true,
            qprio: self.options.priority,
            cqid: self.queue_id,
            nvmsetid: 0,
        };
        let created = controller.admin_entry(create_sq.entry().with_prp(submission.iova(), 0), AdminData::None);
        if let Err(error) = created {
            // The completion queue exists; without its deletion its memory may still be written.
            if controller.admin(&DeleteIoCompletionQueue { qid: self.queue_id }, AdminData::None).is_err() {
                completion.clone().leak();
                submission.clone().leak();
            }
            return Err(error);
        }
        Ok(())
    }

    fn assemble<D: Doorbell, P: Payload>(
        &self,
        tail_doorbell: D,
        head_doorbell: D,
        (entries, depth, rings, interrupt): (u32, u32, [RingBuffer; 2], Option<Interrupt>),
    ) -> Result<IoQueue<D, P>, DriverError> {
        let slots: Box<[Slot<P>]> = (0..depth).map(|_| Slot::new()).collect();
        let impossible = || DriverError::Request(format!("no queue of {entries} entries can be made"));
        let parts = Parts {
            queue_id: self.queue_id,
            submission: SubmissionRing::new(rings[0].clone(), entries)?,
            completion: CompletionRing::new(rings[1].clone(), entries)?,
            slots: SlotTable::new(slots, Generations::Counted).ok_or_else(impossible)?,
            tail_doorbell,
            head_doorbell,
        };
        let pair = QueuePair::new(parts).ok_or_else(impossible)?;
        Ok(IoQueue {
            pair,
            ended: false,
            namespace: self.namespace,
            nsid_word: IoWords::command(0, self.namespace.nsid),
            any_length_below_lba: match self.namespace.metadata_bytes {
                0 => self.namespace.blocks.saturating_add(1).saturating_sub(MOST_BLOCKS),
                _ => 0,
            },
            clock: self.controller.clock().clone(),
            timeout_ns: self.options.timeout_ns,
            look_at_ns: 0,
            adaptive: (interrupt.is_some() && self.options.wait == Wait::Hybrid).then(Adaptive::new),
            interrupt,
            controller: Arc::clone(self.controller),
            rings,
            epoch: self.epoch,
            rescuing: None,
            options: self.options,
            entries,
        })
    }
}

impl<D: Doorbell, P: Payload> IoQueue<D, P> {
    /// The queue's id.
    pub fn id(&self) -> u16 {
        self.pair.queue_id()
    }

    /// The namespace that its commands are for.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The clock that stamps are taken from.
    #[inline(always)]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The controller.
    pub fn controller(&self) -> &Arc<Controller> {
        &self.controller
    }

    /// The most commands in flight.
    pub fn depth(&self) -> u32 {
        self.pair.capacity() as u32
    }

    /// Commands in flight.
    #[inline(always)]
    pub fn in_flight(&self) -> u32 {
        self.pair.in_flight()
    }

    /// Takes a read or write; its data is the beginning of the payload's buffer. `stamp_ns` is when it counts as begun.
    ///
    /// Nothing reaches the controller before [`IoQueue::ring`].
    #[inline(always)]
    pub fn submit(&mut self, io: Io, payload: P, stamp_ns: u64) -> Result<u16, Rejected<P>> {
        let reject = |reason, payload| Err(Rejected { reason, payload });
        let zero_based = io.blocks.wrapping_sub(1);
        if u64::from(zero_based) >= MOST_BLOCKS {
            return reject(RejectedReason::Length, payload);
        }
        if io.lba >= self.any_length_below_lba {
            return self.submit_with_care(io.lba, io.blocks, io.flags, io.opcode, payload, stamp_ns);
        }
        let bytes = (io.blocks as usize) << self.namespace.lba_shift;
        let Some(prp) = payload.buffer().prp(bytes) else { return reject(RejectedReason::Buffer, payload) };
        let words = IoWords {
            command: self.nsid_word + u64::from(io.opcode.into_bits()),
            prp1: prp.prp1,
            prp2: prp.prp2,
            start_lba: io.lba,
            dword12: zero_based | io.flags,
        };
        self.pair.submit_io(&words, payload, stamp_ns).map_err(care::rejected)
    }

    /// Tells the controller of all commands since the last time.
    #[inline(always)]
    pub fn ring(&mut self) {
        self.pair.ring();
    }

    /// Takes up to `limit` completions and hands each to `each`; gives their number.
    ///
    /// # Errors
    /// [`DriverError::Fault`]: the device answered what it cannot have; the queue is stopped. [`DriverError::Parked`]: the
    /// controller is to be reset; see [`IoQueue::try_recover`].
    #[inline(always)]
    pub fn poll(&mut self, limit: u32, each: impl FnMut(Done<P>)) -> Result<u32, DriverError> {
        if self.controller.epoch() != self.epoch {
            return Err(self.parked());
        }
        match self.pair.poll(limit, each) {
            Ok(count) => Ok(count),
            Err(source) => Err(self.broken(source)),
        }
    }

    #[cold]
    fn broken(&self, source: nvmetal_core::queue::DeviceFault) -> DriverError {
        DriverError::Fault { address: self.controller.address().to_owned(), source }
    }

    /// How it waits: as it was made to, or by polling where there are no interrupts.
    pub fn waits(&self) -> Wait {
        match (&self.interrupt, &self.adaptive) {
            (None, _) => Wait::Poll,
            (Some(_), None) => Wait::Interrupt,
            (Some(_), Some(_)) => Wait::Hybrid,
        }
    }

    /// To be called when a poll found nothing: waits as the queue was made to, at most until `until_ns`.
    ///
    /// It returns when it pleases; the caller polls again.
    pub fn idle(&self, until_ns: u64) {
        let (until_ns, interrupt) = self.next_wait(until_ns);
        self.controller.transport().idle(until_ns, interrupt.map_or(Waiting::Polling, Waiting::Interrupt));
    }

    /// How an idle wait is to go: until when at most, and by which interrupt (or by polling).
    fn next_wait(&self, until_ns: u64) -> (u64, Option<&Interrupt>) {
        let (Some(adaptive), Some(interrupt)) = (&self.adaptive, &self.interrupt) else {
            return (until_ns, self.interrupt.as_ref());
        };
        match adaptive.empty(self.pair.completion_head(), self.clock.now_ns()) {
            Next::Poll { until_ns: poll_ns } => (until_ns.min(poll_ns), None),
            Next::Sleep => (until_ns, Some(interrupt)),
        }
    }

    /// The oldest command, if it has been in flight for longer than the queue's timeout.
    ///
    /// Costs a comparison, except once a second. On a device that is known to be gone, every command is overdue.
    #[inline]
    pub fn overdue(&mut self, now_ns: u64) -> Option<Overdue> {
        if now_ns < self.look_at_ns { None } else { self.look_for_overdue(now_ns) }
    }

    #[cold]
    fn look_for_overdue(&mut self, now_ns: u64) -> Option<Overdue> {
        let oldest = self.pair.slots().oldest();
        let (cid, since_ns) = oldest.unwrap_or((0, now_ns));
        let waited_ns = now_ns.saturating_sub(since_ns);
        // Whatever is submitted from now on is younger than the oldest is now. A device that is known to be gone is not
        // waited for until then.
        self.look_at_ns = since_ns.saturating_add(self.timeout_ns).min(now_ns.saturating_add(LOST_LOOK_NS));
        let gone = oldest.is_some() && self.controller.transport().signals().lost;
        (gone || oldest.is_some() && waited_ns >= self.timeout_ns).then_some(Overdue { cid, waited_ns })
    }

    /// The error for a command that is overdue: a device that is gone, or a timeout.
    pub fn timed_out(&self, overdue: Overdue) -> DriverError {
        if let Err(error) = self.controller.check_alive() {
            return error;
        }
        DriverError::Timeout {
            address: self.controller.address().to_owned(),
            queue: self.id(),
            command: format!("command {:#06x}", overdue.cid),
            waited_ms: overdue.waited_ns / MILLISECOND_NS,
        }
    }

    /// Deletes the queue on the controller and gives back what was still in flight.
    ///
    /// # Errors
    /// The deletion could not be confirmed: what was in flight, and the rings, are leaked.
    pub fn delete(mut self) -> Result<Vec<P>, DriverError> {
        self.end()
    }

    fn end(&mut self) -> Result<Vec<P>, DriverError> {
        if core::mem::replace(&mut self.ended, true) {
            return Ok(Vec::new());
        }
        let ended = self.end_on_the_controller();
        self.controller.queue_ends(self.pair.queue_id());
        ended
    }

    fn end_on_the_controller(&mut self) -> Result<Vec<P>, DriverError> {
        let queue_id = self.pair.queue_id();
        self.pair.stop();
        let proof =
            if self.controller.is_down() { Ok(DeviceQuiet::ControllerDisabled) } else { self.delete_or_reset() };
        match proof {
            Ok(proof) => {
                self.controller.give_queue_id_back(queue_id);
                Ok(self.reclaimed(proof))
            }
            Err(error) => {
                self.rings.iter().cloned().for_each(RingBuffer::leak);
                Err(error)
            }
        }
    }
}

impl<D: Doorbell, P: Payload> Drop for IoQueue<D, P> {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            log::debug!("{}: a queue was not deleted: {error}", self.controller.address());
        }
    }
}
