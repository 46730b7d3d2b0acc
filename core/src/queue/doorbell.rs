//! The doorbell: the one register a queue writes.
//!
//! Writing a submission queue's tail doorbell tells the controller that entries up to there are ready; writing a
//! completion queue's head doorbell tells it that entries up to there may be used again. A queue pair is generic over
//! how that write is done, so that the path to a mapped register is a plain store, and a device that has to be *called*
//! (an emulator that is stepped, a socket whose doorbells are not mapped, a trace) still runs the same queue.
//!
//! The order of the write against the entries before it is not this trait's business: [`super::barrier`] has it.
//!
//! A doorbell that is a call may also be shown what goes through its queue ([`Doorbell::WATCHES`]): that is how a
//! conversation with a drive becomes readable. For a mapped register nothing of it is compiled.
#![allow(unsafe_code)] // The store to a mapped register.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};

use super::ring::RawCompletion;
use crate::command::SubmissionEntry;

/// Something that takes a doorbell value.
pub trait Doorbell {
    /// Whether the queue may be asked to show what goes through it.
    const WATCHES: bool = false;

    /// Whether it is to show it, where [`Doorbell::WATCHES`] says that it may be asked.
    fn watches(&self) -> bool {
        Self::WATCHES
    }

    /// Hands `value` (a tail or a head index) to the controller.
    fn ring(&self, value: u32);

    /// The queue has been made again and begins at 0.
    fn restart(&self) {}

    /// An entry of the submission queue, just before its doorbell is rung.
    fn submitted(&self, entry: &SubmissionEntry) {
        let _ = entry;
    }

    /// An entry of the completion queue that is new, before it has been checked.
    fn completed(&self, completion: RawCompletion) {
        let _ = completion;
    }
}

/// A doorbell register in mapped memory.
///
/// It does not keep the mapping alive: the driver's handle that holds one does.
#[derive(Debug, Clone, Copy)]
pub struct Mapped {
    register: NonNull<AtomicU32>,
}

// SAFETY: a doorbell register may be written from any thread; the store is atomic and the register has no other state.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// A doorbell at `register`.
    ///
    /// # Safety
    /// `register` must be a 4-byte aligned doorbell register that stays mapped for as long as this value or a copy of it
    /// is used.
    pub const unsafe fn new(register: NonNull<u32>) -> Self {
        Self { register: register.cast() }
    }
}

impl Doorbell for Mapped {
    #[inline(always)]
    fn ring(&self, value: u32) {
        // SAFETY: `new` was promised a mapped, aligned register. An atomic store is never split, merged or removed here:
        // the barrier before it has a memory clobber, and the value reaches a device.
        unsafe { self.register.as_ref() }.store(value, Ordering::Relaxed);
    }
}

impl<D: Doorbell> Doorbell for &D {
    const WATCHES: bool = D::WATCHES;

    fn watches(&self) -> bool {
        (**self).watches()
    }

    #[inline(always)]
    fn ring(&self, value: u32) {
        (**self).ring(value);
    }

    fn restart(&self) {
        (**self).restart();
    }

    fn submitted(&self, entry: &SubmissionEntry) {
        (**self).submitted(entry);
    }

    fn completed(&self, completion: RawCompletion) {
        (**self).completed(completion);
    }
}
