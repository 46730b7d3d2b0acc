//! The mapping of registers, and how they are accessed.
//!
//! One load or store of the register's width each, never split, merged or repeated by the compiler: that is what the
//! `volatile` crate's pointer gives. No reference to a register ever exists.
#![allow(unsafe_code)] // Pointers into mapped registers.

use core::ops::Range;
use core::ptr::NonNull;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use memmap2::{MmapOptions, MmapRaw};
use nvmetal_core::queue::doorbell::Mapped;
use volatile::VolatilePtr;

use super::sigbus::Watched;

/// A mapped area of a region.
#[derive(Debug)]
pub struct Window {
    // In this order: the table must forget the mapping before it goes.
    watched: Watched,
    map: MmapRaw,
    /// Offsets in the region.
    area: Range<u64>,
}

impl Window {
    /// Maps `area` of the region that begins at `file_offset` of `device`.
    pub(crate) fn map(device: BorrowedFd<'_>, file_offset: u64, area: Range<u64>) -> io::Result<Self> {
        let bytes = usize::try_from(area.end - area.start).map_err(io::Error::other)?;
        let map = MmapOptions::new().offset(file_offset + area.start).len(bytes).map_raw(device.as_raw_fd())?;
        // SAFETY: the mapping is whole pages, is accessed below as registers only, and is unmapped after `watched` has
        // been dropped (fields are dropped in their order).
        let watched = unsafe { Watched::new(map.as_mut_ptr() as usize, bytes) }?;
        Ok(Self { watched, map, area })
    }

    /// All of it, as memory.
    pub(crate) fn whole(&self) -> (NonNull<u8>, usize) {
        (NonNull::new(self.map.as_mut_ptr()).unwrap_or(NonNull::dangling()), self.map.len())
    }

    /// The offsets that it has.
    pub fn area(&self) -> &Range<u64> {
        &self.area
    }

    /// Whether an access to it faulted: the device is gone.
    pub fn is_lost(&self) -> bool {
        self.watched.is_lost()
    }

    /// Reads 32 bits; `None` outside of the window or not aligned.
    pub fn read32(&self, offset: u64) -> Option<u32> {
        let register = self.register::<u32>(offset)?;
        // SAFETY: `register` has checked that it lies in the mapping, which `self` keeps, and is aligned.
        Some(unsafe { VolatilePtr::new(register) }.read())
    }

    /// Writes 32 bits; `None` outside of the window or not aligned.
    pub fn write32(&self, offset: u64, value: u32) -> Option<()> {
        let register = self.register::<u32>(offset)?;
        // SAFETY: as in `read32`.
        unsafe { VolatilePtr::new(register) }.write(value);
        Some(())
    }

    /// Reads 64 bits in one access; `None` outside of the window or not aligned.
    pub fn read64(&self, offset: u64) -> Option<u64> {
        let register = self.register::<u64>(offset)?;
        // SAFETY: as in `read32`.
        Some(unsafe { VolatilePtr::new(register) }.read())
    }

    /// Writes 64 bits in one access; `None` outside of the window or not aligned.
    pub fn write64(&self, offset: u64, value: u64) -> Option<()> {
        let register = self.register::<u64>(offset)?;
        // SAFETY: as in `read32`.
        unsafe { VolatilePtr::new(register) }.write(value);
        Some(())
    }

    /// The doorbell at `offset`; who uses it keeps this window alive.
    pub fn doorbell(&self, offset: u64) -> Option<Mapped> {
        let register = self.register::<u32>(offset)?;
        // SAFETY: aligned and mapped for as long as the window lives, which the transport's handle on a doorbell keeps.
        Some(unsafe { Mapped::new(register) })
    }

    fn register<T>(&self, offset: u64) -> Option<NonNull<T>> {
        let size = size_of::<T>() as u64;
        let inside = offset >= self.area.start && offset.checked_add(size)? <= self.area.end;
        if !inside || !offset.is_multiple_of(size) {
            return None;
        }
        let place = (offset - self.area.start) as usize;
        NonNull::new(self.map.as_mut_ptr().wrapping_add(place).cast())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvmetal_core::queue::doorbell::Doorbell;
    use rustix::fs::MemfdFlags;
    use std::os::fd::AsFd;

    #[test]
    fn registers_are_reached_at_their_offset_in_the_region() {
        let file = rustix::fs::memfd_create("a device", MemfdFlags::CLOEXEC).expect("a memfd");
        rustix::fs::ftruncate(&file, 0x8000).expect("room");
        let window = Window::map(file.as_fd(), 0x4000, 0x1000..0x3000).expect("a mapping");
        window.write64(0x1008, 0x1122_3344_5566_7788).expect("inside");
        assert_eq!(window.read32(0x1008), Some(0x5566_7788));
        assert_eq!(window.read64(0x1008), Some(0x1122_3344_5566_7788));
        let mut bytes = [0; 4];
        rustix::io::pread(&file, &mut bytes, 0x500c).expect("read");
        assert_eq!(u32::from_ne_bytes(bytes), 0x1122_3344);
        window.doorbell(0x2ffc).expect("inside").ring(9);
        assert_eq!(window.read32(0x2ffc), Some(9));
    }

    #[test]
    fn accesses_outside_or_across_are_refused() {
        let file = rustix::fs::memfd_create("a device", MemfdFlags::CLOEXEC).expect("a memfd");
        rustix::fs::ftruncate(&file, 0x2000).expect("room");
        let window = Window::map(file.as_fd(), 0, 0x1000..0x2000).expect("a mapping");
        for offset in [0, 0xffc, 0x1ffd, 0x1002, 0x2000, u64::MAX - 1] {
            assert_eq!(window.read32(offset), None, "{offset:#x}");
        }
        assert_eq!(window.read64(0x1004), None);
        assert!(window.doorbell(0x2000).is_none());
    }

    #[test]
    fn a_device_that_went_reads_all_ones() {
        let file = rustix::fs::memfd_create("a device", MemfdFlags::CLOEXEC).expect("a memfd");
        rustix::fs::ftruncate(&file, 0x4000).expect("room");
        let window = Window::map(file.as_fd(), 0, 0..0x4000).expect("a mapping");
        assert_eq!(window.read32(0x1c), Some(0));
        rustix::fs::ftruncate(&file, 0).expect("cut");
        assert_eq!(window.read32(0x1c), Some(u32::MAX));
        assert_eq!(window.read64(0), Some(u64::MAX));
        window.doorbell(0x1000).expect("inside").ring(1);
        assert!(window.is_lost());
    }
}
