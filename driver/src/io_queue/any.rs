//! A queue pair whatever its doorbells are.
//!
//! Each call chooses anew between the kinds. That costs a few instructions and a wrong guess of the processor now and
//! then, so a loop that counts both is written against [`IoQueue<D, P>`](super::IoQueue) and entered through a `match`; what is
//! not in a hurry uses these.
#![forbid(unsafe_code)]

use std::sync::Arc;

use nvmetal_core::queue::Done;

use super::{AnyIoQueue, Io, Overdue, Payload, Rejected, Rescue, ScatterPayload, Wait};
use crate::clock::Clock;
use crate::controller::{Controller, Namespace};
use crate::error::DriverError;
use crate::transport::Interrupt;

/// The same for each kind.
macro_rules! each {
    ($any:expr, $queue:ident => $result:expr) => {
        match $any {
            AnyIoQueue::Mapped($queue) => $result,
            AnyIoQueue::Called($queue) => $result,
            AnyIoQueue::Shadowed($queue) => $result,
        }
    };
}

impl<P: Payload> AnyIoQueue<P> {
    /// As [`super::IoQueue::id`].
    pub fn id(&self) -> u16 {
        each!(self, queue => queue.id())
    }

    /// As [`super::IoQueue::namespace`].
    pub fn namespace(&self) -> &Namespace {
        each!(self, queue => queue.namespace())
    }

    /// As [`super::IoQueue::clock`].
    pub fn clock(&self) -> &Clock {
        each!(self, queue => queue.clock())
    }

    /// As [`super::IoQueue::controller`].
    pub fn controller(&self) -> &Arc<Controller> {
        each!(self, queue => queue.controller())
    }

    /// As [`super::IoQueue::depth`].
    pub fn depth(&self) -> u32 {
        each!(self, queue => queue.depth())
    }

    /// As [`super::IoQueue::in_flight`].
    pub fn in_flight(&self) -> u32 {
        each!(self, queue => queue.in_flight())
    }

    /// As [`super::IoQueue::waits`].
    pub fn waits(&self) -> Wait {
        each!(self, queue => queue.waits())
    }

    /// As [`super::IoQueue::submit`].
    pub fn submit(&mut self, io: Io, payload: P, stamp_ns: u64) -> Result<u16, Rejected<P>> {
        each!(self, queue => queue.submit(io, payload, stamp_ns))
    }

    /// As [`super::IoQueue::submit_scattered`].
    pub fn submit_scattered(&mut self, io: Io, payload: P, stamp_ns: u64) -> Result<u16, Rejected<P>>
    where
        P: ScatterPayload,
    {
        each!(self, queue => queue.submit_scattered(io, payload, stamp_ns))
    }

    /// As [`super::IoQueue::ring`].
    pub fn ring(&mut self) {
        each!(self, queue => queue.ring());
    }

    /// As [`super::IoQueue::poll`].
    pub fn poll(&mut self, limit: u32, each: impl FnMut(Done<P>)) -> Result<u32, DriverError> {
        each!(self, queue => queue.poll(limit, each))
    }

    /// As [`super::IoQueue::idle`].
    pub fn idle(&self, until_ns: u64) {
        each!(self, queue => queue.idle(until_ns));
    }

    /// As [`super::IoQueue::overdue`].
    pub fn overdue(&mut self, now_ns: u64) -> Option<Overdue> {
        each!(self, queue => queue.overdue(now_ns))
    }

    /// As [`super::IoQueue::timed_out`].
    pub fn timed_out(&self, overdue: Overdue) -> DriverError {
        each!(self, queue => queue.timed_out(overdue))
    }

    /// As [`super::IoQueue::rescue`].
    ///
    /// # Errors
    /// As there.
    pub fn rescue(&mut self, overdue: Overdue) -> Result<Rescue<P>, DriverError> {
        each!(self, queue => queue.rescue(overdue))
    }

    /// As [`super::IoQueue::try_recover`].
    ///
    /// # Errors
    /// As there.
    pub fn try_recover(&mut self) -> Result<Option<Vec<P>>, DriverError> {
        each!(self, queue => queue.try_recover())
    }

    /// As [`super::IoQueue::delete`].
    ///
    /// # Errors
    /// The deletion could not be confirmed.
    pub fn delete(self) -> Result<Vec<P>, DriverError> {
        each!(self, queue => queue.delete())
    }

    /// How the next idle wait is to go: until when, and by which interrupt.
    pub(crate) fn next_wait(&self, until_ns: u64) -> (u64, Option<Interrupt>) {
        let (until_ns, interrupt) = each!(self, queue => queue.next_wait(until_ns));
        (until_ns, interrupt.cloned())
    }

    /// The interrupt that the queue raises.
    pub(crate) fn interrupt(&self) -> Option<&Interrupt> {
        each!(self, queue => queue.interrupt.as_ref())
    }
}
