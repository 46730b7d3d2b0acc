//! Reading and writing a namespace by futures that need no particular runtime.
//!
//! An [`AsyncQueue`] is a handle on a queue pair; [`AsyncQueue::transfer`] takes a buffer and gives a [`Transfer`], a
//! future that ends with the buffer. There is no thread behind it and no timer. *Somebody has to look at the queue*, and
//! whoever polls any of its futures does, for all of them: what has completed is sorted to its future, whose task is
//! woken. So a runtime that polls its tasks round makes progress by itself; one that sleeps has to be told when to look.
//! There are three ways:
//!
//! - [`AsyncQueue::block_on`] runs one future (which may join many) on the calling thread and waits as the queue does.
//! - A loop of one's own calls [`AsyncQueue::turn`] and, when nothing is to be done, [`AsyncQueue::idle`].
//! - A runtime with a reactor watches [`AsyncQueue::event`], the eventfd that the drive's interrupt signals, and calls
//!   [`AsyncQueue::turn`] when it has been.
//!
//! **Dropping a future in flight is safe and frees nothing early.** The command goes on, and its buffer stays with the
//! queue until its completion has come (or the queue was deleted). Then it waits in [`AsyncQueue::take_abandoned`]. A
//! write that was dropped may or may not reach the drive; a future that was never polled was never sent.
//!
//! The handle can be cloned and used from several threads; a lock stands before the queue. That, and a bell for each
//! command, is what this costs over [`IoQueue`](crate::io_queue::IoQueue).
//!
//! ```
//! use nvmetal_driver::dma::BufferPool;
//! use nvmetal_driver::future::AsyncQueue;
//! use nvmetal_driver::io_queue::{Io, QueueOptions};
//! use nvmetal_driver::transport::emulated::EmulatedTransport;
//! use nvmetal_driver::{Admin, Controller, ControllerOptions};
//!
//! let drive = EmulatedTransport::open("ideal")?;
//! let controller = Controller::open(drive, ControllerOptions::default())?;
//! let pool = BufferPool { count: 2, bytes_each: 4096, page_bytes: 4096, metadata_bytes: 0 };
//! let mut buffers = pool.allocate(controller.transport())?;
//! let (first, second) = (buffers.remove(0), buffers.remove(0));
//!
//! let queue = AsyncQueue::new(&controller, controller.namespace(1)?, QueueOptions::default())?;
//! let read = queue.block_on(async {
//!     let first = queue.transfer(Io::read(0, 8), first).await?;
//!     let second = queue.transfer(Io::read(8, 8), second).await?;
//!     Ok::<_, nvmetal_driver::future::TransferError>([first, second])
//! })?;
//! assert_eq!(read[1].len(), 4096);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

use core::fmt;
use core::future::Future;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;

use nvmetal_core::command::io::IoOpcode;
use nvmetal_core::status::Status;

use crate::clock::{Clock, MILLISECOND_NS};
use crate::controller::{Controller, Namespace};
use crate::dma::Buffer;
use crate::error::DriverError;
use crate::io_queue::{AnyIoQueue, Io, Payload, QueueOptions, RejectedReason};
use crate::transport::{Interrupt, Waiting};

/// The longest idle wait of [`AsyncQueue::block_on`]: a waker of another thread's is seen by then.
const LOOK_EVERY_NS: u64 = MILLISECOND_NS;

/// Why a transfer did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The drive completed it with an error.
    #[error("{command} at LBA {lba}: {status}")]
    Status {
        /// The command's name.
        command: &'static str,
        /// Its first block.
        lba: u64,
        /// What the drive said.
        status: Status,
        /// The buffer; of a read, its contents are not known.
        buffer: Buffer,
    },
    /// It was never sent.
    #[error("{}", reason.text())]
    Rejected {
        /// Why.
        reason: RejectedReason,
        /// The buffer.
        buffer: Buffer,
    },
    /// The queue is of no use any more: the drive is gone, broke the protocol, or did not answer in time. The buffer
    /// stays with the queue, for the drive may still write to it.
    #[error(transparent)]
    Queue(Arc<DriverError>),
}

impl TransferError {
    /// The buffer, where it has come back.
    pub fn into_buffer(self) -> Option<Buffer> {
        match self {
            Self::Status { buffer, .. } | Self::Rejected { buffer, .. } => Some(buffer),
            Self::Queue(_) => None,
        }
    }
}

/// What travels with a command: its buffer, and the place of whoever waits for it.
#[derive(Debug)]
struct Ticketed {
    buffer: Buffer,
    place: usize,
}

impl Payload for Ticketed {
    fn buffer(&self) -> &Buffer {
        &self.buffer
    }
}

/// What is known of a command that was sent.
#[derive(Debug)]
enum Place {
    /// Nobody's.
    Free,
    /// In flight, and who is to be woken.
    Awaited(Waker),
    /// In flight, its future dropped.
    Abandoned,
    /// Completed, not yet taken by its future.
    Done(Buffer, Status),
}

struct Inner {
    queue: AnyIoQueue<Ticketed>,
    places: Vec<Place>,
    free: Vec<usize>,
    /// Those who wait for room in the queue.
    waiting: Vec<Waker>,
    abandoned: Vec<Buffer>,
    failed: Option<Arc<DriverError>>,
    sent: [u64; 2],
}

impl Inner {
    /// Sorts what has completed to its places. Whom to wake is added to `wake`: that is done without the lock.
    fn drain(&mut self, wake: &mut Vec<Waker>) -> u32 {
        if self.failed.is_some() {
            return 0;
        }
        let Self { queue, places, free, abandoned, .. } = self;
        let polled = queue.poll(u32::MAX, |done| {
            let Ticketed { buffer, place: index } = done.buffer;
            let Some(place) = places.get_mut(index) else { return abandoned.push(buffer) };
            match core::mem::replace(place, Place::Free) {
                Place::Awaited(waker) => {
                    *place = Place::Done(buffer, Status::from_bits(done.status));
                    wake.push(waker);
                }
                Place::Abandoned | Place::Free | Place::Done(..) => {
                    abandoned.push(buffer);
                    free.push(index);
                }
            }
        });
        let now_ns = queue.clock().now_ns();
        let outcome = polled.and_then(|count| match queue.overdue(now_ns) {
            Some(overdue) => Err(queue.timed_out(overdue)),
            None => Ok(count),
        });
        match outcome {
            Ok(count) => {
                // All of them: one that is woken and then dropped must not take the room with it.
                if count > 0 {
                    wake.append(&mut self.waiting);
                }
                count
            }
            Err(error) => {
                self.failed = Some(Arc::new(error));
                wake.append(&mut self.waiting);
                wake.extend(self.places.iter().filter_map(|place| match place {
                    Place::Awaited(waker) => Some(waker.clone()),
                    _ => None,
                }));
                0
            }
        }
    }

    /// Nobody will ask for the place any more. The waker is to be dropped without the lock.
    fn abandon(&mut self, index: usize) -> Option<Waker> {
        let place = self.places.get_mut(index)?;
        match core::mem::replace(place, Place::Abandoned) {
            Place::Awaited(waker) => return Some(waker),
            Place::Abandoned => {}
            Place::Free => *place = Place::Free,
            Place::Done(buffer, _) => {
                *place = Place::Free;
                self.free.push(index);
                self.abandoned.push(buffer);
            }
        }
        None
    }

    /// Sends a command; gives its place, or the buffer back.
    fn send(&mut self, io: Io, buffer: Buffer, waker: &Waker) -> Result<usize, (RejectedReason, Buffer)> {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place::Free);
            self.places.len() - 1
        });
        let stamp_ns = self.queue.clock().now_ns();
        match self.queue.submit(io, Ticketed { buffer, place }, stamp_ns) {
            Ok(_) => {
                self.queue.ring();
                self.sent[usize::from(io.opcode == IoOpcode::WRITE)] += 1;
                if let Some(there) = self.places.get_mut(place) {
                    *there = Place::Awaited(waker.clone());
                }
                Ok(place)
            }
            Err(rejected) => {
                self.free.push(place);
                Err((rejected.reason, rejected.payload.buffer))
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let tally = self.queue.controller().tally();
        tally.add(false, IoOpcode::READ.into_bits(), self.sent[0]);
        tally.add(false, IoOpcode::WRITE.into_bits(), self.sent[1]);
    }
}

struct Shared {
    inner: Mutex<Inner>,
    controller: Arc<Controller>,
    namespace: Namespace,
    interrupt: Option<Interrupt>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A queue pair whose commands are futures. See the [module](self).
#[derive(Clone)]
pub struct AsyncQueue {
    shared: Arc<Shared>,
}

impl fmt::Debug for AsyncQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncQueue").field("queue", &self.shared.lock().queue).finish_non_exhaustive()
    }
}

impl AsyncQueue {
    /// Makes the queue pair.
    ///
    /// # Errors
    /// As [`Controller::create_io_queue`].
    pub fn new(controller: &Arc<Controller>, namespace: Namespace, options: QueueOptions) -> Result<Self, DriverError> {
        let queue = controller.create_io_queue(namespace, options)?;
        let interrupt = queue.interrupt().cloned();
        let inner = Inner {
            places: Vec::with_capacity(queue.depth() as usize),
            free: Vec::with_capacity(queue.depth() as usize),
            waiting: Vec::new(),
            abandoned: Vec::new(),
            failed: None,
            sent: [0; 2],
            queue,
        };
        let inner = Mutex::new(inner);
        let controller = Arc::clone(controller);
        Ok(Self { shared: Arc::new(Shared { inner, controller, namespace, interrupt }) })
    }

    /// The namespace.
    pub fn namespace(&self) -> &Namespace {
        &self.shared.namespace
    }

    /// The clock of deadlines.
    pub fn clock(&self) -> &Clock {
        self.shared.controller.clock()
    }

    /// Reads into, or writes from, the beginning of `buffer`. Nothing is sent before the future is polled.
    pub fn transfer(&self, io: Io, buffer: Buffer) -> Transfer {
        Transfer { shared: Arc::clone(&self.shared), io, state: State::New(buffer) }
    }

    /// Commands in flight, those of dropped futures included.
    pub fn in_flight(&self) -> u32 {
        self.shared.lock().queue.in_flight()
    }

    /// The buffers of futures that were dropped in flight, as far as their commands have ended since.
    pub fn take_abandoned(&self) -> Vec<Buffer> {
        core::mem::take(&mut self.shared.lock().abandoned)
    }

    /// The eventfd that the drive's interrupt signals, for a runtime's reactor: when it can be read, read it and call
    /// [`AsyncQueue::turn`]. `None` without interrupts, and on the emulator.
    pub fn event(&self) -> Option<BorrowedFd<'_>> {
        self.shared.interrupt.as_ref()?.event.as_ref().map(AsFd::as_fd)
    }

    /// Looks at the queue once: wakes the tasks whose commands have completed; gives how many commands that were.
    ///
    /// # Errors
    /// The queue is of no use any more. All its futures have been woken and end with the same error.
    pub fn turn(&self) -> Result<u32, Arc<DriverError>> {
        let mut wake = Vec::new();
        let mut inner = self.shared.lock();
        let count = inner.drain(&mut wake);
        let failed = inner.failed.clone();
        drop(inner);
        wake.into_iter().for_each(Waker::wake);
        failed.map_or(Ok(count), Err)
    }

    /// Waits as the queue was made to, after a [`AsyncQueue::turn`] that found nothing; at most until `until_ns`.
    pub fn idle(&self, until_ns: u64) {
        let (until_ns, interrupt) = self.shared.lock().queue.next_wait(until_ns);
        let waiting = interrupt.as_ref().map_or(Waiting::Polling, Waiting::Interrupt);
        self.shared.controller.transport().idle(until_ns, waiting);
    }

    /// Runs a future to its end on this thread, looking at the queue whenever the future has nothing to do.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&woken));
        let mut future = pin!(future);
        loop {
            // AcqRel: what was done before the wake is seen by the poll.
            if woken.0.swap(false, Ordering::AcqRel)
                && let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker))
            {
                return output;
            }
            // An error wakes the futures, which end with it.
            if matches!(self.turn(), Ok(0)) && !woken.0.load(Ordering::Acquire) {
                self.idle(self.clock().now_ns() + LOOK_EVERY_NS);
            }
        }
    }
}

/// The waker of [`AsyncQueue::block_on`].
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

enum State {
    /// Not yet sent.
    New(Buffer),
    /// Sent; its place.
    Sent(usize),
    /// Its end has been told.
    Ended,
}

/// A read or write: a future that ends with the buffer. See the [module](self) for what dropping it means.
#[must_use = "nothing is sent before it is polled"]
pub struct Transfer {
    shared: Arc<Shared>,
    io: Io,
    state: State,
}

impl fmt::Debug for Transfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transfer").field("io", &self.io).finish_non_exhaustive()
    }
}

impl Transfer {
    /// Sends it, if there is room.
    fn send(&mut self, buffer: Buffer, waker: &Waker, wake: &mut Vec<Waker>) -> Option<TransferError> {
        let mut inner = self.shared.lock();
        if let Some(error) = &inner.failed {
            return Some(TransferError::Queue(Arc::clone(error)));
        }
        let sent = match inner.send(self.io, buffer, waker) {
            // Room may have come that nobody has looked for.
            Err((RejectedReason::Full, buffer)) if inner.drain(wake) > 0 => inner.send(self.io, buffer, waker),
            sent => sent,
        };
        match sent {
            Ok(place) => self.state = State::Sent(place),
            Err((RejectedReason::Full, buffer)) => {
                if !inner.waiting.iter().any(|waiting| waiting.will_wake(waker)) {
                    inner.waiting.push(waker.clone());
                }
                self.state = State::New(buffer);
            }
            Err((reason, buffer)) => return Some(TransferError::Rejected { reason, buffer }),
        }
        None
    }

    /// Looks whether it has completed.
    fn look(&mut self, index: usize, waker: &Waker, wake: &mut Vec<Waker>) -> Poll<Result<Buffer, TransferError>> {
        let mut inner = self.shared.lock();
        inner.drain(wake);
        let failed = inner.failed.clone();
        let Some(place) = inner.places.get_mut(index) else { return Poll::Pending };
        let before = core::mem::replace(place, Place::Free);
        if let Place::Done(buffer, status) = before {
            inner.free.push(index);
            self.state = State::Ended;
            if status.is_success() {
                return Poll::Ready(Ok(buffer));
            }
            let command = self.io.opcode.name().unwrap_or("I/O");
            return Poll::Ready(Err(TransferError::Status { command, lba: self.io.lba, status, buffer }));
        }
        let Some(error) = failed else {
            *place = Place::Awaited(waker.clone());
            drop(inner);
            // Only now: with a waker may go its task, and with that another transfer, which takes the lock.
            drop(before);
            return Poll::Pending;
        };
        *place = before;
        let stale = inner.abandon(index);
        self.state = State::Ended;
        drop(inner);
        drop(stale);
        Poll::Ready(Err(TransferError::Queue(error)))
    }
}

impl Future for Transfer {
    type Output = Result<Buffer, TransferError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut wake = Vec::new();
        let outcome = match core::mem::replace(&mut self.state, State::Ended) {
            State::New(buffer) => match self.send(buffer, context.waker(), &mut wake) {
                Some(error) => Poll::Ready(Err(error)),
                None => Poll::Pending,
            },
            State::Sent(index) => {
                self.state = State::Sent(index);
                self.look(index, context.waker(), &mut wake)
            }
            // Polled again after its end, which no executor does.
            State::Ended => Poll::Pending,
        };
        wake.into_iter().for_each(Waker::wake);
        outcome
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        if let State::Sent(index) = self.state {
            let mut inner = self.shared.lock();
            let waker = inner.abandon(index);
            drop(inner);
            // Only now: see `look`.
            drop(waker);
        }
    }
}
