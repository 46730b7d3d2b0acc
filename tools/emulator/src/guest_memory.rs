//! The memory that the emulated controller may reach: what an IOMMU is to a drive.
//!
//! A table of ranges, each an IOVA and a piece of shared memory. Nothing in this crate touches the host's memory but
//! through here, so a controller that is told a wrong address by a driver (or by a fuzzer) causes a [`DmaFault`], the
//! emulator's IOMMU fault report, and never an access outside.
//!
//! **The memory is mapped once more.** A range is given as a file (the memfd that the driver's memory is made of) and the
//! emulator keeps a mapping of its own. What the driver does with its side can therefore never turn an access from here
//! into one of freed memory, and a controller in another process would do the very same.
//!
//! **An unmap is a proof.** Every access goes through an [`Access`], which holds the table for reading; [`unmap`] takes it
//! for writing. When it returns, every access that could have found the range is over, and none will find it again. The
//! span of one `Access` is the access epoch: as long as one batch of the controller's work, never longer.
//!
//! Bytes are moved by raw copies and the entries of queues by atomics. There is never a reference to this memory: the
//! driver on the other side may change it at any moment.
//!
//! [`unmap`]: GuestMemory::unmap
#![allow(clippy::cast_ptr_alignment)] // Looked at before each of them: what is not aligned goes as bytes.
#![allow(unsafe_code)] // The only file of this crate that may: bounds-checked raw copies and atomics.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{MemfdFlags, SealFlags};

/// The most fault reports that are kept; later ones are only counted.
const FAULTS_KEPT: usize = 64;

/// An access of the controller that the table did not allow: what an IOMMU would report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DmaFault {
    /// The first byte that was not mapped.
    pub iova: u64,
    /// The length of the access.
    pub bytes: u64,
    /// Whether the controller wanted to write.
    pub write: bool,
}

impl core::fmt::Display for DmaFault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let kind = if self.write { "write to" } else { "read of" };
        write!(f, "DMA fault: {kind} {} bytes at IOVA {:#x}, which is not mapped", self.bytes, self.iova)
    }
}

/// Why a range was not mapped or unmapped.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// It overlaps a range that is mapped, or wraps around.
    #[error("IOVA {iova:#x} (+{bytes:#x}) overlaps what is mapped, or is empty")]
    Overlap {
        /// First byte.
        iova: u64,
        /// Length.
        bytes: u64,
    },
    /// There is no such range.
    #[error("IOVA {iova:#x} (+{bytes:#x}) is not what one map had given")]
    NotMapped {
        /// First byte.
        iova: u64,
        /// Length.
        bytes: u64,
    },
    /// The system did not map the file.
    #[error("mapping {bytes:#x} bytes for the emulated controller: {source}")]
    System {
        /// Length.
        bytes: u64,
        /// The system's answer.
        source: std::io::Error,
    },
}

#[derive(Debug)]
struct Range {
    iova: u64,
    /// Behind the last byte.
    end: u64,
    map: MmapRaw,
    /// Reported as a fault although it is mapped: memory that its owner has taken back.
    closed: Vec<(u64, u64)>,
}

/// The ranges, sorted by IOVA.
#[derive(Debug, Default)]
struct Table {
    ranges: Vec<Range>,
    /// Whether the controller may master the bus at all.
    bus_master_off: bool,
}

/// The memory that the controller may reach. See the module.
#[derive(Debug, Default)]
pub struct GuestMemory {
    table: RwLock<Table>,
    faults: Mutex<VecDeque<DmaFault>>,
    fault_count: AtomicU64,
}

impl GuestMemory {
    /// Nothing mapped.
    pub fn new() -> Self {
        Self::default()
    }

    /// Maps `bytes` bytes from `offset` of `file` at `iova`.
    ///
    /// The file must not shrink while it is mapped (a sealed memfd cannot): the system ends a process that touches pages
    /// that are gone.
    pub fn map_file(&self, iova: u64, file: BorrowedFd<'_>, offset: u64, bytes: u64) -> Result<(), MapError> {
        let system = |source| MapError::System { bytes, source };
        let length = usize::try_from(bytes).map_err(|_| MapError::Overlap { iova, bytes })?;
        let map = MmapOptions::new()
            .offset(offset)
            .len(length)
            .map_raw(std::os::fd::AsRawFd::as_raw_fd(&file))
            .map_err(system)?;
        self.insert(iova, bytes, map)
    }

    /// Maps `bytes` bytes of memory that belongs to nobody else at `iova`: for tests, and for a controller memory buffer.
    pub fn map_anonymous(&self, iova: u64, bytes: u64) -> Result<(), MapError> {
        let system = |source| MapError::System { bytes, source };
        let length = usize::try_from(bytes).map_err(|_| MapError::Overlap { iova, bytes })?;
        let map = MmapRaw::from(MmapOptions::new().len(length).map_anon().map_err(system)?);
        self.insert(iova, bytes, map)
    }

    fn insert(&self, iova: u64, bytes: u64, map: MmapRaw) -> Result<(), MapError> {
        let end = iova.checked_add(bytes).filter(|&end| end > iova).ok_or(MapError::Overlap { iova, bytes })?;
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let at = table.ranges.partition_point(|range| range.end <= iova);
        if table.ranges.get(at).is_some_and(|next| next.iova < end) {
            return Err(MapError::Overlap { iova, bytes });
        }
        table.ranges.insert(at, Range { iova, end, map, closed: Vec::new() });
        Ok(())
    }

    /// Takes a range away. When it returns, the controller cannot reach the memory any more.
    pub fn unmap(&self, iova: u64, bytes: u64) -> Result<(), MapError> {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let found = table.ranges.iter().position(|range| range.iova == iova && range.end - range.iova == bytes);
        let at = found.ok_or(MapError::NotMapped { iova, bytes })?;
        table.ranges.remove(at);
        Ok(())
    }

    /// Takes everything away, and forgets the fault reports.
    pub fn clear(&self) {
        self.table.write().unwrap_or_else(PoisonError::into_inner).ranges.clear();
        self.take_faults();
    }

    /// Lets the controller master the bus, or not. Off, every access of its is a fault.
    pub fn set_bus_master(&self, on: bool) {
        self.table.write().unwrap_or_else(PoisonError::into_inner).bus_master_off = !on;
    }

    /// From now on, any access to these bytes (of one mapped range) is a fault, until [`GuestMemory::open`]: a test
    /// closes a buffer whose command has ended, so that a late write into it is seen.
    pub fn close(&self, iova: u64, bytes: u64) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(range) = table.ranges.iter_mut().find(|range| range.iova <= iova && iova < range.end) {
            range.closed.push((iova, iova.saturating_add(bytes)));
        }
    }

    /// Undoes [`GuestMemory::close`] of exactly these bytes.
    pub fn open(&self, iova: u64, bytes: u64) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(range) = table.ranges.iter_mut().find(|range| range.iova <= iova && iova < range.end) {
            range.closed.retain(|&closed| closed != (iova, iova.saturating_add(bytes)));
        }
    }

    /// Begins an access epoch.
    pub fn enter(&self) -> Access<'_> {
        Access { table: self.table.read().unwrap_or_else(PoisonError::into_inner), memory: self }
    }

    /// How many bytes are mapped, and in how many ranges.
    pub fn mapped(&self) -> (u64, usize) {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        (table.ranges.iter().map(|range| range.end - range.iova).sum(), table.ranges.len())
    }

    /// How many accesses were refused.
    pub fn fault_count(&self) -> u64 {
        self.fault_count.load(Ordering::Relaxed)
    }

    /// The first refused accesses since the last call.
    pub fn take_faults(&self) -> Vec<DmaFault> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }

    #[cold]
    fn report(&self, fault: DmaFault) -> DmaFault {
        self.fault_count.fetch_add(1, Ordering::Relaxed);
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        if faults.len() < FAULTS_KEPT {
            log::warn!("{fault}");
            faults.push_back(fault);
        }
        fault
    }
}

/// The right to reach the memory, for as long as it lives. See [`GuestMemory`].
#[derive(Debug)]
pub struct Access<'a> {
    table: RwLockReadGuard<'a, Table>,
    memory: &'a GuestMemory,
}

impl Access<'_> {
    /// Copies from `iova` on into `into`.
    pub fn read(&self, iova: u64, into: &mut [u8]) -> Result<(), DmaFault> {
        let mut done = 0;
        while done < into.len() {
            let (pointer, bytes) = self.find(iova.wrapping_add(done as u64), into.len() - done, false)?;
            // SAFETY: `find` has shown that `bytes` bytes from `pointer` lie in one mapping, which the guard keeps; `into`
            // is memory of our own, so the two do not overlap, and its length is checked by the subtraction above.
            unsafe { core::ptr::copy_nonoverlapping(pointer, into.as_mut_ptr().add(done), bytes) };
            done += bytes;
        }
        Ok(())
    }

    /// Copies `from` to `iova` on.
    #[inline]
    pub fn write(&self, iova: u64, from: &[u8]) -> Result<(), DmaFault> {
        let mut done = 0;
        while done < from.len() {
            let (pointer, bytes) = self.find(iova.wrapping_add(done as u64), from.len() - done, true)?;
            // SAFETY: as in `read`, the other way round.
            unsafe { core::ptr::copy_nonoverlapping(from.as_ptr().add(done), pointer, bytes) };
            done += bytes;
        }
        Ok(())
    }

    /// Sets `count` bytes from `iova` on to `value`.
    pub fn fill(&self, iova: u64, value: u8, count: usize) -> Result<(), DmaFault> {
        let mut done = 0;
        while done < count {
            let (pointer, bytes) = self.find(iova.wrapping_add(done as u64), count - done, true)?;
            // SAFETY: as in `read`.
            unsafe { core::ptr::write_bytes(pointer, value, bytes) };
            done += bytes;
        }
        Ok(())
    }

    /// Reads eight 64-bit words, a submission queue entry, each by one atomic load.
    #[inline]
    pub fn read_entry(&self, iova: u64) -> Result<[u64; 8], DmaFault> {
        let (pointer, bytes) = self.find(iova, 64, false)?;
        if bytes < 64 || !(pointer as usize).is_multiple_of(8) {
            let mut raw = [0; 64];
            self.read(iova, &mut raw)?;
            return Ok(core::array::from_fn(|i| {
                u64::from_le_bytes(core::array::from_fn(|byte| raw.get(8 * i + byte).copied().unwrap_or_default()))
            }));
        }
        let words = pointer.cast::<AtomicU64>();
        // SAFETY: 64 aligned bytes of one mapping, kept by the guard; atomics may be shared with the other side's.
        Ok(core::array::from_fn(|i| u64::from_le(unsafe { &*words.add(i) }.load(Ordering::Relaxed))))
    }

    /// Writes a completion queue entry: the first half, then the half with the phase tag, so that who sees the tag sees
    /// all of it, and all data written before.
    #[inline]
    pub fn write_completion(&self, iova: u64, halves: [u64; 2]) -> Result<(), DmaFault> {
        let (pointer, bytes) = self.find(iova, 16, true)?;
        if bytes < 16 || !(pointer as usize).is_multiple_of(8) {
            self.write(iova, &halves[0].to_le_bytes())?;
            return self.write(iova.wrapping_add(8), &halves[1].to_le_bytes());
        }
        let words = pointer.cast::<AtomicU64>();
        // SAFETY: 16 aligned bytes of one mapping, kept by the guard; atomics may be shared with the other side's.
        unsafe {
            (*words).store(halves[0].to_le(), Ordering::Relaxed);
            // Release: orders the data and the first half before the phase tag, against the driver's acquire.
            (*words.add(1)).store(halves[1].to_le(), Ordering::Release);
        }
        Ok(())
    }

    /// Reads a 32-bit number by one atomic load where it is aligned: a shadow doorbell.
    pub fn read_u32(&self, iova: u64) -> Result<u32, DmaFault> {
        let mut raw = [0; 4];
        let (pointer, bytes) = self.find(iova, 4, false)?;
        if bytes < 4 || !(pointer as usize).is_multiple_of(4) {
            self.read(iova, &mut raw)?;
            return Ok(u32::from_le_bytes(raw));
        }
        // SAFETY: 4 aligned bytes of one mapping, kept by the guard.
        let word = unsafe { &*pointer.cast::<AtomicU32>() };
        Ok(u32::from_le(word.load(Ordering::Acquire)))
    }

    /// Writes a 32-bit number by one atomic store where it is aligned: an event index.
    pub fn write_u32(&self, iova: u64, value: u32) -> Result<(), DmaFault> {
        let (pointer, bytes) = self.find(iova, 4, true)?;
        if bytes < 4 || !(pointer as usize).is_multiple_of(4) {
            return self.write(iova, &value.to_le_bytes());
        }
        // SAFETY: 4 aligned bytes of one mapping, kept by the guard.
        let word = unsafe { &*pointer.cast::<AtomicU32>() };
        word.store(value.to_le(), Ordering::Release);
        Ok(())
    }

    /// Where `iova` lies in this process and how many of `bytes` follow in the same mapping (at least one).
    #[inline]
    fn find(&self, iova: u64, bytes: usize, write: bool) -> Result<(*mut u8, usize), DmaFault> {
        let refused = || self.memory.report(DmaFault { iova, bytes: bytes as u64, write });
        let ranges = &self.table.ranges;
        let at = ranges.partition_point(|range| range.end <= iova);
        let range = match ranges.get(at) {
            Some(range) if range.iova <= iova && !self.table.bus_master_off => range,
            _ => return Err(refused()),
        };
        let there = usize::try_from(range.end - iova).unwrap_or(usize::MAX).min(bytes);
        if range.closed.iter().any(|&(start, end)| iova < end && start < iova + there as u64) {
            return Err(refused());
        }
        // SAFETY: `iova` lies in the range, so the offset lies in the mapping of the same length.
        Ok((unsafe { range.map.as_mut_ptr().add((iova - range.iova) as usize) }, there))
    }
}

/// Words in a file of their own, which another process may map, too: doorbells.
///
/// The file is sealed, so that nobody can take its pages away.
#[derive(Debug)]
pub struct SharedWords {
    map: MmapRaw,
    /// Where in the file the first word lies.
    offset: usize,
    words: usize,
    file: OwnedFd,
}

impl SharedWords {
    /// A file of `bytes` zeros with `words` words from `offset` on.
    pub fn new(bytes: u64, offset: usize, words: usize) -> std::io::Result<Self> {
        let file = rustix::fs::memfd_create("nvmetal-doorbells", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&file, bytes)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let length = usize::try_from(bytes).map_err(std::io::Error::other)?;
        let end = words.checked_mul(size_of::<u32>()).and_then(|bytes| bytes.checked_add(offset));
        if end.is_none_or(|end| end > length) || !offset.is_multiple_of(size_of::<u32>()) {
            return Err(std::io::ErrorKind::InvalidInput.into());
        }
        let map = MmapOptions::new().len(length).map_raw(&file)?;
        Ok(Self { map, offset, words, file })
    }

    /// The word at `index`; `None` behind the last.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&AtomicU32> {
        if index >= self.words {
            return None;
        }
        // SAFETY: `new` has checked that all words lie in the mapping, which `self` keeps and whose file cannot shrink;
        // page plus a multiple of 4 is aligned. An atomic may be shared with whoever else has mapped the file.
        Some(unsafe { &*self.map.as_mut_ptr().add(self.offset + index * size_of::<u32>()).cast::<AtomicU32>() })
    }

    /// The file, to be sent to another process.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_reaches_across_neighbouring_ranges_and_not_beyond() {
        let memory = GuestMemory::new();
        memory.map_anonymous(0x1000, 0x1000).unwrap();
        memory.map_anonymous(0x2000, 0x1000).unwrap();
        let access = memory.enter();
        let data: Vec<u8> = (0..=255).cycle().take(0x1800).collect();
        access.write(0x1400, &data).unwrap();
        let mut back = vec![0; 0x1800];
        access.read(0x1400, &mut back).unwrap();
        assert_eq!(back, data);
        assert_eq!(access.write(0x2fff, &[1, 2]), Err(DmaFault { iova: 0x3000, bytes: 1, write: true }));
        assert_eq!(access.read(0xfff, &mut [0; 2]), Err(DmaFault { iova: 0xfff, bytes: 2, write: false }));
        assert_eq!(access.read(u64::MAX, &mut [0; 2]).map_err(|fault| fault.write), Err(false));
        drop(access);
        assert_eq!(memory.take_faults().len(), 3);
    }

    #[test]
    fn an_unmapped_range_is_reached_no_more() {
        let memory = GuestMemory::new();
        memory.map_anonymous(0x1000, 0x1000).unwrap();
        assert!(matches!(memory.unmap(0x1000, 0x800), Err(MapError::NotMapped { .. })), "an unmap is that of one map");
        memory.unmap(0x1000, 0x1000).unwrap();
        assert!(memory.enter().write_u32(0x1000, 1).is_err());
    }

    #[test]
    fn ranges_do_not_overlap() {
        let memory = GuestMemory::new();
        memory.map_anonymous(0x1000, 0x2000).unwrap();
        for (iova, bytes) in [(0x0, 0x1001), (0x2000, 0x1000), (0x1000, 0x2000), (0x2fff, 1), (u64::MAX, 2)] {
            assert!(matches!(memory.map_anonymous(iova, bytes), Err(MapError::Overlap { .. })), "{iova:#x}+{bytes:#x}");
        }
        memory.map_anonymous(0x3000, 0x1000).unwrap();
    }

    #[test]
    fn a_closed_buffer_is_guarded_although_its_range_is_mapped() {
        let memory = GuestMemory::new();
        memory.map_anonymous(0x1000, 0x2000).unwrap();
        memory.close(0x1800, 0x100);
        assert!(memory.enter().write(0x1700, &[0; 0x100]).is_ok());
        assert!(memory.enter().write(0x1700, &[0; 0x101]).is_err());
        memory.open(0x1800, 0x100);
        assert!(memory.enter().write(0x1700, &[0; 0x101]).is_ok());
    }

    #[test]
    fn shared_words_lie_in_their_file_and_end_where_they_end() {
        let words = SharedWords::new(0x2000, 0x1000, 4).unwrap();
        words.get(3).unwrap().store(7, Ordering::Release);
        assert!(words.get(4).is_none());
        let mut raw = [0; 4];
        rustix::io::pread(words.file(), &mut raw, 0x100c).unwrap();
        assert_eq!(u32::from_ne_bytes(raw), 7);
        assert!(rustix::fs::ftruncate(words.file(), 0).is_err(), "it is sealed");
        assert!(SharedWords::new(0x1000, 0x1000, 1).is_err());
        assert!(SharedWords::new(0x2000, 0x1000, usize::MAX).is_err());
    }

    #[test]
    fn without_bus_mastering_nothing_is_reached() {
        let memory = GuestMemory::new();
        memory.map_anonymous(0x1000, 0x1000).unwrap();
        memory.set_bus_master(false);
        assert!(memory.enter().read_u32(0x1000).is_err());
        memory.set_bus_master(true);
        assert!(memory.enter().read_u32(0x1000).is_ok());
    }
}
