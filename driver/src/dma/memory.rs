//! One allocation that the device may reach.
#![allow(unsafe_code)] // Raw copies in and out of memory that a device may write.

use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::DmaError;
use crate::transport::{HostRange, Transport, Unmapped};

/// The huge page that is tried for.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// From this length on a huge page is worth what it wastes.
const HUGE_FROM_BYTES: usize = HUGE_PAGE_BYTES / 2;

static LEAKED_BYTES: AtomicU64 = AtomicU64::new(0);

/// Bytes that this process keeps for ever, because no transport could promise that the device does not reach them.
pub fn leaked_bytes() -> u64 {
    LEAKED_BYTES.load(Ordering::Relaxed)
}

/// Which pages an allocation is made of. The IOMMU walks one entry for a huge page where it walks 512 for small ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageKind {
    /// Pages of the system's size.
    Normal,
    /// Pages of 2 MiB from the system's pool of huge pages.
    Huge,
}

/// An allocation of zeroed memory, present in RAM, mapped for the device, with its IOVA.
///
/// Writing needs `&mut self`: two threads may read, but not write, the same memory. Both are plain copies; they are
/// ordered against the device by the queue's barriers (the copy comes before the doorbell, and after the completion was
/// seen), not by anything here.
///
/// Dropping it unmaps it first, and gives it back to the system only if the transport answers [`Unmapped::Quiet`].
pub struct DmaMemory {
    host: ManuallyDrop<Host>,
    iova: u64,
    transport: Arc<dyn Transport>,
}

/// In which order an allocation's pages are taken from the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Upwards,
    Downwards,
}

/// The part that the process owns.
struct Host {
    map: MmapRaw,
    file: OwnedFd,
    pages: PageKind,
}

impl DmaMemory {
    /// Allocates at least `bytes` (rounded up to whole pages), zeroed, and maps it through `transport`.
    ///
    /// Large allocations are made of huge pages where the system has some to spare.
    ///
    /// # Errors
    /// [`DmaError::Allocate`] where the system has no memory, [`DmaError::Map`] where the transport refuses (the locked
    /// memory limit, no free IOVA, too many mappings).
    pub fn new(transport: Arc<dyn Transport>, bytes: usize) -> Result<Self, DmaError> {
        if transport.needs_huge_pages() {
            return Self::of_adjacent_huge_pages(&transport, bytes);
        }
        Self::map(transport, Host::allocate(bytes)?)
    }

    /// Huge pages are handed out in one direction of memory or the other, depending on how the system came by them. One
    /// of both orders has them next to each other, if they are at all.
    fn of_adjacent_huge_pages(transport: &Arc<dyn Transport>, bytes: usize) -> Result<Self, DmaError> {
        let upwards = Self::map(Arc::clone(transport), Host::of_pages(bytes, PageKind::Huge, Order::Upwards)?);
        match upwards {
            Err(DmaError::Map(_)) => {
                Self::map(Arc::clone(transport), Host::of_pages(bytes, PageKind::Huge, Order::Downwards)?)
            }
            other => other,
        }
    }

    fn map(transport: Arc<dyn Transport>, host: Host) -> Result<Self, DmaError> {
        let range = HostRange { pointer: host.pointer(), bytes: host.map.len(), file: Some((host.file.as_fd(), 0)) };
        let iova = transport.map(range)?;
        Ok(Self { host: ManuallyDrop::new(host), iova, transport })
    }

    /// The address at which the device sees the first byte.
    #[inline]
    pub fn iova(&self) -> u64 {
        self.iova
    }

    /// The length: what was asked for, in whole pages.
    #[inline]
    pub fn len(&self) -> usize {
        self.host.map.len()
    }

    /// Never true; there is no allocation of nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Which pages it is made of.
    pub fn pages(&self) -> PageKind {
        self.host.pages
    }

    /// The transport that mapped it.
    pub fn transport(&self) -> &Arc<dyn Transport> {
        &self.transport
    }

    /// The address of `bytes` bytes from `offset` in this process, for a ring. Valid as long as this value lives.
    pub fn pointer(&self, offset: usize, bytes: usize) -> Result<NonNull<u8>, DmaError> {
        self.check(offset, bytes)?;
        // SAFETY: `check` has shown that `offset` lies in the allocation or one past its end.
        Ok(unsafe { self.host.pointer().add(offset) })
    }

    /// Copies from `offset` into `into`.
    pub fn copy_out(&self, offset: usize, into: &mut [u8]) -> Result<(), DmaError> {
        let from = self.pointer(offset, into.len())?;
        // SAFETY: `pointer` has checked the source range, which stays mapped while `self` lives; `into` is ours alone, so
        // the two cannot overlap. The source may be changed by the device meanwhile; no reference to it is made.
        unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    /// Copies `from` to `offset`.
    pub fn copy_in(&mut self, offset: usize, from: &[u8]) -> Result<(), DmaError> {
        // SAFETY: `&mut self` is the proof that nobody else in this process accesses the range.
        unsafe { self.copy_in_shared(offset, from) }
    }

    /// Sets `bytes` bytes from `offset` to zero.
    pub fn zero(&mut self, offset: usize, bytes: usize) -> Result<(), DmaError> {
        // SAFETY: as in `copy_in`.
        unsafe { self.fill_shared(offset, bytes, 0) }
    }

    /// Reads a structure from `offset`.
    pub fn read_at<T: FromBytes + IntoBytes>(&self, offset: usize) -> Result<T, DmaError> {
        let mut value = T::new_zeroed();
        self.copy_out(offset, value.as_mut_bytes())?;
        Ok(value)
    }

    /// Writes a structure to `offset`.
    pub fn write_at<T: IntoBytes + Immutable>(&mut self, offset: usize, value: &T) -> Result<(), DmaError> {
        self.copy_in(offset, value.as_bytes())
    }

    /// [`DmaMemory::copy_in`] through a shared handle.
    ///
    /// # Safety
    /// No other thread of this process may access the range meanwhile.
    pub(super) unsafe fn copy_in_shared(&self, offset: usize, from: &[u8]) -> Result<(), DmaError> {
        let to = self.pointer(offset, from.len())?;
        // SAFETY: `pointer` has checked the target range; `from` is ordinary memory and cannot overlap the mapping; the
        // caller keeps other threads away.
        unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), to.as_ptr(), from.len()) };
        Ok(())
    }

    /// Writes `count` little-endian words to `offset`, a multiple of 8: `first`, and each `step` more than the one before.
    ///
    /// # Safety
    /// As [`DmaMemory::copy_in_shared`].
    #[inline]
    pub(super) unsafe fn progression_in_shared(
        &self,
        offset: usize,
        first: u64,
        step: u64,
        count: usize,
    ) -> Result<(), DmaError> {
        let bytes = count.checked_mul(size_of::<u64>()).filter(|_| offset.is_multiple_of(size_of::<u64>()));
        let mut to = self.pointer(offset, bytes.unwrap_or(usize::MAX))?.cast::<u64>();
        let mut value = first;
        let mut next = || {
            let now = value;
            value = now.wrapping_add(step);
            now.to_le()
        };
        for _ in 0..count / 4 {
            let four = [next(), next(), next(), next()];
            // SAFETY: `pointer` has checked the range, and the mapping begins at a page, so a multiple of 8 is aligned; the
            // caller keeps other threads away.
            unsafe { to.cast::<[u64; 4]>().write(four) };
            // SAFETY: at most `count` words further, behind the last of the range.
            to = unsafe { to.add(4) };
        }
        for index in 0..count % 4 {
            // SAFETY: as above; these are the last words of the range.
            unsafe { to.add(index).write(next()) };
        }
        Ok(())
    }

    /// Sets `bytes` bytes from `offset` to `value`, through a shared handle.
    ///
    /// # Safety
    /// As [`DmaMemory::copy_in_shared`].
    pub(super) unsafe fn fill_shared(&self, offset: usize, bytes: usize, value: u8) -> Result<(), DmaError> {
        let to = self.pointer(offset, bytes)?;
        // SAFETY: `pointer` has checked the range; the caller keeps other threads away.
        unsafe { core::ptr::write_bytes(to.as_ptr(), value, bytes) };
        Ok(())
    }

    fn check(&self, offset: usize, bytes: usize) -> Result<(), DmaError> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.len() => Ok(()),
            _ => Err(DmaError::OutOfRange { offset, bytes, length: self.len() }),
        }
    }
}

impl Drop for DmaMemory {
    fn drop(&mut self) {
        let bytes = self.len() as u64;
        let reason = match self.transport.unmap(self.iova, bytes) {
            Ok(Unmapped::Quiet) => {
                // SAFETY: `host` is not used after this; the device cannot reach the memory any more.
                unsafe { ManuallyDrop::drop(&mut self.host) };
                return;
            }
            Ok(Unmapped::MayBeWritten) => "nothing keeps the device from writing there".to_owned(),
            Err(error) => error.to_string(),
        };
        LEAKED_BYTES.fetch_add(bytes, Ordering::Relaxed);
        log::warn!(
            "{}: {bytes} bytes at IOVA {:#x} are kept until the process ends: {reason}",
            self.transport.info().address,
            self.iova
        );
    }
}

impl fmt::Debug for DmaMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DmaMemory")
            .field("iova", &format_args!("{:#x}", self.iova))
            .field("bytes", &self.len())
            .field("pages", &self.pages())
            .finish_non_exhaustive()
    }
}

impl Host {
    fn allocate(bytes: usize) -> Result<Self, DmaError> {
        if bytes >= HUGE_FROM_BYTES {
            match Self::of_pages(bytes, PageKind::Huge, Order::Upwards) {
                Ok(host) => return Ok(host),
                Err(error) => log::debug!("no huge pages, normal ones are taken: {error}"),
            }
        }
        Self::of_pages(bytes, PageKind::Normal, Order::Upwards)
    }

    fn of_pages(bytes: usize, pages: PageKind, order: Order) -> Result<Self, DmaError> {
        let failed = |what: &'static str| {
            move |source: rustix::io::Errno| DmaError::Allocate { bytes, what, source: source.into() }
        };
        let (page_bytes, kind) = match pages {
            PageKind::Normal => (rustix::param::page_size(), MemfdFlags::empty()),
            PageKind::Huge => (HUGE_PAGE_BYTES, MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB),
        };
        let length = bytes.max(1).checked_next_multiple_of(page_bytes).ok_or(DmaError::Allocate {
            bytes,
            what: "length",
            source: std::io::ErrorKind::InvalidInput.into(),
        })?;
        let file = rustix::fs::memfd_create("nvmetal", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | kind)
            .map_err(failed("memfd_create"))?;
        rustix::fs::ftruncate(&file, length as u64).map_err(failed("ftruncate"))?;
        // Takes every page now, and says so if there are not enough; touching them later would end in SIGBUS.
        let take = |offset: usize, bytes: usize| {
            rustix::fs::fallocate(&file, FallocateFlags::empty(), offset as u64, bytes as u64).map_err(failed(
                match pages {
                    PageKind::Normal => "fallocate",
                    PageKind::Huge => "taking huge pages (how many there are: /proc/sys/vm/nr_hugepages)",
                },
            ))
        };
        match order {
            Order::Upwards => take(0, length)?,
            Order::Downwards => {
                (0..length).step_by(page_bytes).rev().try_for_each(|offset| take(offset, page_bytes))?;
            }
        }
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(failed("sealing against truncation"))?;
        let map = MmapOptions::new().len(length).populate().map_raw(&file).map_err(|source| DmaError::Allocate {
            bytes,
            what: "mmap",
            source,
        })?;
        Ok(Self { map, file, pages })
    }

    fn pointer(&self) -> NonNull<u8> {
        // SAFETY: a mapping never begins at address 0 (memmap2 gives a dangling, non-null pointer for empty ones).
        unsafe { NonNull::new_unchecked(self.map.as_mut_ptr()) }
    }
}
