//! Memory for the rings of a queue.
#![allow(unsafe_code)] // The promise of `RingMemory`.

use core::ptr::NonNull;
use std::sync::Arc;

use nvmetal_core::queue::RingMemory;

use super::device_memory::{DeviceMemory, Piece};
use super::{DmaError, DmaMemory};
use crate::transport::Transport;

/// One ring's memory: an allocation of its own, zeroed, at a page boundary; or a piece of the controller's own memory.
///
/// A ring is held by its queue and, until the controller has been told to forget it, by whoever proves that: freeing it
/// early would let the controller write completions into somebody else's memory.
#[derive(Debug, Clone)]
pub struct RingBuffer(Place);

#[derive(Debug, Clone)]
enum Place {
    Host(Arc<DmaMemory>),
    Device(Arc<Piece>),
}

impl RingBuffer {
    /// Allocates `bytes` for a ring.
    pub fn new(transport: &Arc<dyn Transport>, bytes: usize) -> Result<Self, DmaError> {
        Ok(Self(Place::Host(Arc::new(DmaMemory::new(Arc::clone(transport), bytes)?))))
    }

    /// Takes `bytes` of the controller memory buffer; `None` where it has no room left.
    ///
    /// Only for a submission ring: what the controller writes itself would have to be read across the bus.
    pub fn in_device(memory: &Arc<DeviceMemory>, bytes: usize) -> Option<Self> {
        let piece = memory.take(bytes)?;
        for word in 0..piece.bytes() / size_of::<u64>() {
            // SAFETY: within the piece, which is mapped and nobody else's; pieces begin at multiples of a page. Volatile,
            // because it is memory of a device: every store has to reach it, once and whole.
            unsafe { piece.pointer().cast::<u64>().add(word).write_volatile(0) };
        }
        Some(Self(Place::Device(Arc::new(piece))))
    }

    /// Where the device sees it.
    pub fn iova(&self) -> u64 {
        match &self.0 {
            Place::Host(memory) => memory.iova(),
            Place::Device(piece) => piece.address(),
        }
    }

    /// Keeps the memory for ever: nobody can prove that the device has forgotten it.
    pub fn leak(self) {
        core::mem::forget(self);
    }
}

// SAFETY: an allocation or a piece of a mapping that is neither moved nor unmapped while a handle exists, aligned to a page
// and zeroed when it was made. A handle is cloned only to keep the memory alive; accesses come from the one ring made of it,
// and the device.
unsafe impl RingMemory for RingBuffer {
    fn pointer(&self) -> NonNull<u8> {
        match &self.0 {
            // An offset of 0 is inside any allocation.
            Place::Host(memory) => memory.pointer(0, 0).unwrap_or(NonNull::dangling()),
            Place::Device(piece) => piece.pointer(),
        }
    }

    fn bytes(&self) -> usize {
        match &self.0 {
            Place::Host(memory) => memory.len(),
            Place::Device(piece) => piece.bytes(),
        }
    }
}
