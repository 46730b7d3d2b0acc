//! Memory for the rings of a queue.
#![allow(unsafe_code)] // The promise of `RingMemory`.

use core::ptr::NonNull;
use std::sync::Arc;

use nvmetal_core::queue::RingMemory;

use super::{DmaError, DmaMemory};
use crate::transport::Transport;

/// One ring's memory: an allocation of its own, zeroed, at a page boundary.
///
/// A ring is held by its queue and, until the controller has been told to forget it, by whoever proves that: freeing it
/// early would let the controller write completions into somebody else's memory.
#[derive(Debug, Clone)]
pub struct RingBuffer(Arc<DmaMemory>);

impl RingBuffer {
    /// Allocates `bytes` for a ring.
    pub fn new(transport: &Arc<dyn Transport>, bytes: usize) -> Result<Self, DmaError> {
        Ok(Self(Arc::new(DmaMemory::new(Arc::clone(transport), bytes)?)))
    }

    /// Where the device sees it.
    pub fn iova(&self) -> u64 {
        self.0.iova()
    }

    /// Keeps the memory for ever: nobody can prove that the device has forgotten it.
    pub fn leak(self) {
        core::mem::forget(self);
    }
}

// SAFETY: an allocation that is neither moved nor unmapped while a handle exists, aligned to a page and zeroed when it
// was made. A handle is cloned only to keep the memory alive; accesses come from the one ring made of it, and the device.
unsafe impl RingMemory for RingBuffer {
    fn pointer(&self) -> NonNull<u8> {
        // An offset of 0 is inside any allocation.
        self.0.pointer(0, 0).unwrap_or(NonNull::dangling())
    }

    fn bytes(&self) -> usize {
        self.0.len()
    }
}
