//! Memory that lies in the device: its controller memory buffer, mapped for this process and shared out in pages.
//!
//! NVM Express Base Specification, "Controller Memory Buffer". The controller takes addresses from [`BASE`] on for this
//! memory and never sends them over the bus. So no IOMMU sees them, and the base may be any address that no memory of the
//! host has: this one is far above what is given out for those.
#![forbid(unsafe_code)]

use core::ops::Range;
use core::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::MmapRaw;

use crate::vfio::window::Window;

/// Where the controller is told to take addresses for the buffer.
pub const BASE: u64 = 1 << 51;
/// Pieces are multiples of it: the smallest memory page, to which a queue is aligned at most.
const PIECE_BYTES: usize = 4096;

/// A mapping of the device's memory.
#[derive(Debug)]
pub enum DeviceMapping {
    /// A part of a BAR. A device that goes leaves all-ones in its place.
    Bar(Window),
    /// Memory of a controller in software.
    Memory(MmapRaw),
}

impl DeviceMapping {
    fn place(&self) -> Option<(NonNull<u8>, usize)> {
        match self {
            Self::Bar(window) => Some(window.whole()),
            Self::Memory(map) => Some((NonNull::new(map.as_mut_ptr())?, map.len())),
        }
    }
}

/// The buffer.
#[derive(Debug)]
pub struct DeviceMemory {
    mapping: DeviceMapping,
    /// Pieces that are in use, in ascending order.
    used: Mutex<Vec<Range<usize>>>,
}

impl DeviceMemory {
    /// The buffer behind `mapping`, all of it free.
    pub fn new(mapping: DeviceMapping) -> Arc<Self> {
        Arc::new(Self { mapping, used: Mutex::default() })
    }

    /// A piece of at least `bytes`; `None` where no such piece is free.
    pub(super) fn take(self: &Arc<Self>, bytes: usize) -> Option<Piece> {
        let (_, length) = self.mapping.place()?;
        let bytes = bytes.checked_next_multiple_of(PIECE_BYTES)?;
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let mut from = 0;
        let mut index = 0;
        for (at, taken) in used.iter().enumerate() {
            if taken.start - from >= bytes {
                break;
            }
            from = taken.end;
            index = at + 1;
        }
        let end = from.checked_add(bytes).filter(|&end| end <= length)?;
        used.insert(index, from..end);
        Some(Piece { memory: Arc::clone(self), part: from..end })
    }
}

/// A piece of the buffer, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Piece {
    memory: Arc<DeviceMemory>,
    part: Range<usize>,
}

impl Piece {
    /// Where this process has it. It is mapped for as long as the piece lives.
    pub(super) fn pointer(&self) -> NonNull<u8> {
        let start = self.memory.mapping.place().map_or(NonNull::dangling(), |(start, _)| start);
        NonNull::new(start.as_ptr().wrapping_add(self.part.start)).unwrap_or(NonNull::dangling())
    }

    pub(super) fn bytes(&self) -> usize {
        self.part.len()
    }

    /// Where the controller has it.
    pub(super) fn address(&self) -> u64 {
        BASE + self.part.start as u64
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.memory.used.lock().unwrap_or_else(PoisonError::into_inner).retain(|used| *used != self.part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(bytes: usize) -> Arc<DeviceMemory> {
        let map = memmap2::MmapOptions::new().len(bytes).map_anon().expect("memory");
        DeviceMemory::new(DeviceMapping::Memory(map.into()))
    }

    #[test]
    fn pieces_never_overlap_and_their_places_are_used_again() {
        let memory = memory(4 * PIECE_BYTES);
        let [first, second, third] = [1, PIECE_BYTES + 1, 64].map(|bytes| memory.take(bytes).expect("room"));
        assert_eq!([first.address(), second.address(), third.address()], [BASE, BASE + 0x1000, BASE + 0x3000]);
        assert!(memory.take(1).is_none());
        drop(second);
        assert!(memory.take(3 * PIECE_BYTES).is_none());
        let again = memory.take(PIECE_BYTES).expect("the place is free");
        assert_eq!((again.address(), again.bytes()), (BASE + 0x1000, PIECE_BYTES));
        drop(first);
        assert_eq!(memory.take(8).expect("the first place").address(), BASE);
        assert!(memory.take(usize::MAX).is_none());
    }
}
