//! Buffers for commands, cut from one mapping.
#![allow(unsafe_code)] // Writes into the part of a shared allocation that a buffer owns.

use core::fmt;
use std::sync::Arc;

use nvmetal_core::data_pointer::{PageSize, Segment};

use super::prp::{ListShape, PrpPair};
use super::{DmaError, DmaMemory};
use crate::transport::Transport;

/// The largest page that is served; no Linux has a larger one.
const MOST_PAGE_BYTES: u64 = 128 << 10;

/// What a pool of buffers is made of; [`BufferPool::allocate`] makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferPool {
    /// How many buffers.
    pub count: usize,
    /// Bytes of data of each.
    pub bytes_each: usize,
    /// The controller's memory page (CC.MPS), in bytes: the unit of PRP entries. A power of two, at least 4096.
    pub page_bytes: usize,
    /// Bytes of metadata of each, in a place of their own; 0 for none.
    pub metadata_bytes: usize,
}

/// The memory that all buffers of a pool share, and how it is divided: data, then metadata, then PRP lists.
struct Shared {
    memory: DmaMemory,
    /// IOVA of the first buffer.
    data_iova: u64,
    /// From one buffer to the next.
    data_stride: usize,
    /// From the first buffer to the first one's metadata.
    metadata_distance: usize,
    metadata_bytes: usize,
    metadata_stride: usize,
    bytes_each: usize,
    page: PageSize,
    /// Whether a list may be longer than a page.
    chained: bool,
}

/// Memory for one command: data, optional metadata, and the PRP list that describes the data.
///
/// It moves into a queue with its command and out again with the completion, so it is a handle of one word. It is not
/// `Clone`: whoever has it is the only one who may touch its memory, and while a queue has it, that is the device. A
/// queue never lets go of a buffer before the device is proven quiet, so *dropping* a buffer never frees memory that a
/// command still uses; and even then the pool's memory is unmapped before it is freed (see [`DmaMemory`]).
pub struct Buffer {
    inner: Box<Inner>,
}

/// What a buffer knows of itself; half a cache line.
struct Inner {
    /// Where the data begins, as the device sees it.
    iova: u64,
    /// Where the PRP list begins; 0 if two words always do.
    list_iova: u64,
    bytes: u32,
    /// Bytes from the beginning to the end of its page or of the data: what PRP1 alone describes.
    first_bytes: u32,
    shared: Arc<Shared>,
}

impl BufferPool {
    /// Allocates the buffers, in one mapping, each beginning at a page boundary, their PRP lists written.
    ///
    /// The memory is given back when the last of them has been dropped.
    ///
    /// # Errors
    /// [`DmaError::Shape`] for no bytes, 4 GiB and more, or a page size that is none; else as [`DmaMemory::new`].
    pub fn allocate(&self, transport: &Arc<dyn Transport>) -> Result<Vec<Buffer>, DmaError> {
        let shape = |reason| DmaError::Shape { count: self.count, bytes_each: self.bytes_each, reason };
        let page = PageSize::from_bytes(self.page_bytes as u64)
            .filter(|page| page.bytes() <= MOST_PAGE_BYTES)
            .ok_or(shape("the page size is not a power of two from 4 KiB to 128 KiB"))?;
        let bytes = u32::try_from(self.bytes_each).map_err(|_| shape("4 GiB is the limit of one"))?;
        if bytes == 0 || self.count == 0 {
            return Err(shape("there is nothing to allocate"));
        }
        let data_pages = self.bytes_each.div_ceil(self.page_bytes);
        // All buffers begin at a page, so all lists are as long.
        let list = ListShape { data: Segment { iova: 0, bytes: u64::from(bytes) }, page };
        let data_stride = data_pages * self.page_bytes;
        let metadata_stride = self.metadata_bytes.next_multiple_of(64);
        let list_stride = list.bytes().next_multiple_of(list.alignment());
        let total = |each: usize| each.checked_mul(self.count).ok_or(shape("its length does not fit in an address"));
        let metadata_distance = total(data_stride)?;
        let list_distance = (metadata_distance + total(metadata_stride)?).next_multiple_of(self.page_bytes);
        // A mapping is aligned to the system's page; where the controller's is larger, the first buffer moves up.
        let slack = if self.page_bytes > rustix::param::page_size() { self.page_bytes } else { 0 };

        let memory = DmaMemory::new(Arc::clone(transport), list_distance + total(list_stride)? + slack)?;
        let data_iova = memory.iova().next_multiple_of(self.page_bytes as u64);
        let shared = Arc::new(Shared {
            memory,
            data_iova,
            data_stride,
            metadata_distance,
            metadata_bytes: self.metadata_bytes,
            metadata_stride,
            bytes_each: self.bytes_each,
            page,
            chained: list.is_chained(),
        });
        let buffers = (0..self.count).map(|index| {
            let has_list = list.bytes() > 0;
            let list_iova = data_iova + (list_distance + index * list_stride) as u64;
            let mut buffer = Buffer::from(Inner {
                iova: data_iova + (index * data_stride) as u64,
                list_iova: if has_list { list_iova } else { 0 },
                bytes,
                first_bytes: bytes.min(self.page_bytes as u32),
                shared: Arc::clone(&shared),
            });
            buffer.write_list().map(|()| buffer)
        });
        buffers.collect()
    }
}

impl From<Inner> for Buffer {
    fn from(inner: Inner) -> Self {
        Self { inner: Box::new(inner) }
    }
}

impl Buffer {
    /// Where the data begins, as the device sees it: PRP1, or the address of an SGL data block.
    #[inline]
    pub fn iova(&self) -> u64 {
        self.inner.iova
    }

    /// Bytes of data from there on.
    #[inline]
    pub fn len(&self) -> usize {
        self.inner.bytes as usize
    }

    /// Never true; a buffer has at least one byte.
    pub fn is_empty(&self) -> bool {
        self.inner.bytes == 0
    }

    /// The data pointer of a transfer of the first `bytes` bytes; `None` if the buffer does not have so many, or none
    /// are asked for.
    #[inline(always)]
    pub fn prp(&self, bytes: usize) -> Option<PrpPair> {
        let inner = &*self.inner;
        // 0 becomes the largest number, and is refused as too long.
        let prp2 = if bytes.wrapping_sub(1) < inner.first_bytes as usize { 0 } else { inner.second(bytes)? };
        Some(PrpPair { prp1: inner.iova, prp2 })
    }

    /// The controller's memory page that the buffer was made for.
    pub(super) fn page(&self) -> PageSize {
        self.inner.shared.page
    }

    /// Copies from `offset` of the data into `into`.
    pub fn copy_out(&self, offset: usize, into: &mut [u8]) -> Result<(), DmaError> {
        self.check(offset, into.len())?;
        self.inner.shared.memory.copy_out(self.place() + offset, into)
    }

    /// Copies `from` to `offset` of the data.
    pub fn copy_in(&mut self, offset: usize, from: &[u8]) -> Result<(), DmaError> {
        self.check(offset, from.len())?;
        // SAFETY: the range is inside this buffer's part of the allocation, and `&mut self` is the only handle on it.
        unsafe { self.inner.shared.memory.copy_in_shared(self.place() + offset, from) }
    }

    /// Sets all data to `value`.
    pub fn fill(&mut self, value: u8) {
        // SAFETY: as in `copy_in`.
        let filled = unsafe { self.inner.shared.memory.fill_shared(self.place(), self.len(), value) };
        debug_assert!(filled.is_ok(), "a buffer lies inside its memory");
    }

    /// Bytes of metadata.
    pub fn metadata_len(&self) -> usize {
        self.inner.shared.metadata_bytes
    }

    /// Where the metadata begins, as the device sees it (MPTR); `None` for a pool without.
    pub fn metadata_iova(&self) -> Option<u64> {
        (self.inner.shared.metadata_bytes > 0).then(|| self.inner.shared.memory.iova() + self.metadata_place() as u64)
    }

    /// Copies from `offset` of the metadata into `into`.
    pub fn metadata_out(&self, offset: usize, into: &mut [u8]) -> Result<(), DmaError> {
        self.check_metadata(offset, into.len())?;
        self.inner.shared.memory.copy_out(self.metadata_place() + offset, into)
    }

    /// Copies `from` to `offset` of the metadata.
    pub fn metadata_in(&mut self, offset: usize, from: &[u8]) -> Result<(), DmaError> {
        self.check_metadata(offset, from.len())?;
        // SAFETY: the range is inside this buffer's part of the metadata, and `&mut self` is the only handle on it.
        unsafe { self.inner.shared.memory.copy_in_shared(self.metadata_place() + offset, from) }
    }

    /// Makes the data begin `offset` bytes after where the pool put it, at any multiple of 4, for transfers that do not
    /// begin at a page boundary; the end stays where it is. Rewrites the PRP list once. `set_offset(0)` undoes it.
    pub fn set_offset(&mut self, offset: usize) -> Result<(), DmaError> {
        let length = self.inner.shared.bytes_each;
        if !offset.is_multiple_of(4) || offset >= length {
            return Err(DmaError::Offset { offset, length });
        }
        self.inner.iova = self.inner.shared.data_iova + (self.index() * self.inner.shared.data_stride + offset) as u64;
        self.inner.bytes = (length - offset) as u32;
        let page = self.inner.shared.page;
        self.inner.first_bytes = self.inner.bytes.min((page.bytes() - page.offset(self.inner.iova)) as u32);
        self.write_list()
    }

    /// Which buffer of its pool this is.
    fn index(&self) -> usize {
        (self.inner.iova - self.inner.shared.data_iova) as usize / self.inner.shared.data_stride
    }

    /// Where the data is in the memory.
    fn place(&self) -> usize {
        (self.inner.iova - self.inner.shared.memory.iova()) as usize
    }

    /// Where the metadata is in the memory.
    fn metadata_place(&self) -> usize {
        let first = (self.inner.shared.data_iova - self.inner.shared.memory.iova()) as usize
            + self.inner.shared.metadata_distance;
        first + self.index() * self.inner.shared.metadata_stride
    }

    fn check(&self, offset: usize, bytes: usize) -> Result<(), DmaError> {
        within(offset, bytes, self.len())
    }

    fn check_metadata(&self, offset: usize, bytes: usize) -> Result<(), DmaError> {
        within(offset, bytes, self.metadata_len())
    }

    fn write_list(&mut self) -> Result<(), DmaError> {
        if self.inner.list_iova == 0 {
            return Ok(());
        }
        // SAFETY: the pool gave each buffer a list of its own with room for the whole buffer, of which this is a part;
        // `&mut self` is the only handle on it.
        unsafe { self.inner.list_shape().write(&self.inner.shared.memory, self.inner.list_iova) }
    }
}

impl Inner {
    /// The second entry of a transfer that goes beyond the first page, if the buffer is that long.
    #[inline]
    fn second(&self, bytes: usize) -> Option<u64> {
        if bytes.wrapping_sub(1) >= self.bytes as usize {
            return None;
        }
        let first_bytes = self.first_bytes as usize;
        Some(if bytes - first_bytes <= self.shared.page.bytes() as usize {
            self.iova + first_bytes as u64
        } else if self.shared.chained {
            self.chain_for(bytes as u64)
        } else {
            self.list_iova
        })
    }

    fn list_shape(&self) -> ListShape {
        ListShape { data: Segment { iova: self.iova, bytes: u64::from(self.bytes) }, page: self.shared.page }
    }

    /// The list of a transfer that may end where a chain has a link.
    #[cold]
    fn chain_for(&self, bytes: u64) -> u64 {
        self.list_shape().list_for(self.list_iova, bytes)
    }
}

fn within(offset: usize, bytes: usize, length: usize) -> Result<(), DmaError> {
    match offset.checked_add(bytes) {
        Some(end) if end <= length => Ok(()),
        _ => Err(DmaError::OutOfRange { offset, bytes, length }),
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("iova", &format_args!("{:#x}", self.inner.iova))
            .field("bytes", &self.inner.bytes)
            .field("list_iova", &format_args!("{:#x}", self.inner.list_iova))
            .finish_non_exhaustive()
    }
}

const _: () = assert!(size_of::<Option<Buffer>>() == 8 && size_of::<Inner>() <= 32);

#[cfg(test)]
mod tests {
    use super::super::leaked_bytes;
    use super::*;
    use crate::testing::FakeTransport;
    use proptest::prelude::*;

    /// Walks a data pointer as a controller does, reading lists from `memory`; gives the IOVAs of every byte run.
    fn walk(buffer: &Buffer, bytes: usize) -> Vec<(u64, usize)> {
        let page = buffer.inner.shared.page.bytes();
        let read = |iova: u64| {
            let mut word = [0; 8];
            let place = (iova - buffer.inner.shared.memory.iova()) as usize;
            buffer.inner.shared.memory.copy_out(place, &mut word).expect("a list lies in the memory");
            u64::from_le_bytes(word)
        };
        let pair = buffer.prp(bytes).expect("the length is within the buffer");
        let first = bytes.min((page - pair.prp1 % page) as usize);
        let (mut runs, mut left) = (vec![(pair.prp1, first)], bytes - first);
        let mut list = (left > page as usize).then_some(pair.prp2);
        while left > 0 {
            let data = match &mut list {
                None => pair.prp2,
                Some(at) => {
                    if *at % page == page - 8 && left > page as usize {
                        *at = read(*at);
                        assert_eq!(*at % page, 0);
                    }
                    *at += 8;
                    read(*at - 8)
                }
            };
            assert_eq!(data % page, 0, "only PRP1 may have an offset");
            let run = left.min(page as usize);
            runs.push((data, run));
            left -= run;
        }
        runs
    }

    fn assert_contiguous(buffer: &Buffer, bytes: usize) {
        let mut next = buffer.iova();
        for (iova, run) in walk(buffer, bytes) {
            assert_eq!(iova, next, "{bytes} bytes at {:#x}", buffer.iova());
            next += run as u64;
        }
        assert_eq!(next, buffer.iova() + bytes as u64);
    }

    fn pool(count: usize, bytes_each: usize, page_bytes: usize, metadata_bytes: usize) -> Vec<Buffer> {
        let transport: Arc<dyn Transport> = Arc::new(FakeTransport::default());
        BufferPool { count, bytes_each, page_bytes, metadata_bytes }.allocate(&transport).expect("a pool")
    }

    #[test]
    fn buffers_begin_at_pages_and_do_not_overlap() {
        let mut buffers = pool(5, 9000, 4096, 24);
        for (index, buffer) in buffers.iter_mut().enumerate() {
            assert_eq!(buffer.iova() % 4096, 0);
            buffer.fill(index as u8 + 1);
            buffer.metadata_in(0, &[index as u8 + 101; 24]).expect("metadata");
        }
        for (index, buffer) in buffers.iter().enumerate() {
            let (mut data, mut metadata) = (vec![0; 9000], [0; 24]);
            buffer.copy_out(0, &mut data).expect("data");
            buffer.metadata_out(0, &mut metadata).expect("metadata");
            assert!(data.iter().all(|byte| *byte == index as u8 + 1));
            assert!(metadata.iter().all(|byte| *byte == index as u8 + 101));
            assert_contiguous(buffer, 9000);
        }
    }

    #[test]
    fn one_mapping_serves_a_whole_pool_and_goes_back_with_its_last_buffer() {
        let fake = Arc::new(FakeTransport::default());
        let transport: Arc<dyn Transport> = Arc::clone(&fake) as _;
        let mut buffers = BufferPool { count: 64, bytes_each: 131072, page_bytes: 4096, metadata_bytes: 0 }
            .allocate(&transport)
            .expect("a pool");
        assert_eq!(fake.mappings().len(), 1);
        let last = buffers.pop();
        drop(buffers);
        assert_eq!(fake.mappings().len(), 1);
        drop(last);
        assert_eq!(fake.mappings().len(), 0);
    }

    #[test]
    fn memory_that_may_still_be_written_is_leaked_and_counted() {
        let transport: Arc<dyn Transport> = Arc::new(FakeTransport::never_quiet());
        let before = leaked_bytes();
        let memory = DmaMemory::new(transport, 8192).expect("memory");
        let at = memory.pointer(0, 8192).expect("in range");
        drop(memory);
        assert!(leaked_bytes() >= before + 8192);
        // SAFETY: leaked on purpose, so it is still mapped; this would fault otherwise.
        assert_eq!(unsafe { at.read_volatile() }, 0);
    }

    #[test]
    fn accesses_outside_are_refused() {
        let mut buffers = pool(2, 4096, 4096, 0);
        let buffer = &mut buffers[0];
        assert!(matches!(buffer.copy_out(4090, &mut [0; 7]), Err(DmaError::OutOfRange { length: 4096, .. })));
        assert!(buffer.copy_in(usize::MAX, &[0]).is_err());
        assert!(buffer.metadata_in(0, &[0]).is_err());
        assert_eq!(buffer.metadata_iova(), None);
        assert_eq!(buffer.prp(0), None);
        assert_eq!(buffer.prp(4097), None);
        assert!(buffer.set_offset(4096).is_err());
        assert!(buffer.set_offset(2).is_err());
    }

    #[test]
    fn a_pool_of_nothing_is_refused() {
        let transport: Arc<dyn Transport> = Arc::new(FakeTransport::default());
        for pool in [
            BufferPool { count: 0, bytes_each: 1, page_bytes: 4096, metadata_bytes: 0 },
            BufferPool { count: 1, bytes_each: 0, page_bytes: 4096, metadata_bytes: 0 },
            BufferPool { count: 1, bytes_each: 1, page_bytes: 4095, metadata_bytes: 0 },
            BufferPool { count: 1, bytes_each: 1 << 32, page_bytes: 4096, metadata_bytes: 0 },
            BufferPool { count: usize::MAX / 2, bytes_each: 8192, page_bytes: 4096, metadata_bytes: 0 },
        ] {
            assert!(matches!(pool.allocate(&transport), Err(DmaError::Shape { .. })), "{pool:?}");
        }
    }

    #[test]
    fn c21_large_transfers_are_right_at_every_edge_of_their_chain() {
        let mut buffers = pool(2, 5 << 20, 4096, 0);
        let buffer = &mut buffers[1];
        for offset in [0, 4, 4092, 4096, 8196] {
            buffer.set_offset(offset).expect("a multiple of 4");
            for pages in [1, 2, 3, 511, 512, 513, 514, 1022, 1023, 1024, 1025] {
                for extra in [0, 4, 512] {
                    assert_contiguous(buffer, pages * 4096 + extra);
                }
            }
            assert_contiguous(buffer, buffer.len());
        }
    }

    #[test]
    fn c19_prp_table() {
        let mut buffers = pool(1, 0x5000, 0x1000, 0);
        let buffer = &mut buffers[0];
        assert_eq!(buffer.iova(), 0x100_0000);
        let list: &[u64] = &[0x100_1000, 0x100_2000, 0x100_3000];
        let none: &[u64] = &[];
        for (offset, bytes, prp2, entries) in [
            (0, 0x200, 0, none),
            (0, 0x1000, 0, none),
            (0, 0x1008, 0x100_1000, none),
            (0, 0x2000, 0x100_1000, none),
            (0, 0x2010, buffer.inner.list_iova, &list[..2]),
            (0, 0x3000, buffer.inner.list_iova, &list[..2]),
            (0, 0x3018, buffer.inner.list_iova, &list[..3]),
            (4, 0x200, 0, none),
            (4, 0xffc, 0, none),
            (4, 0x1000, 0x100_1000, none),
            (4, 0x2010, buffer.inner.list_iova, &list[..2]),
        ] {
            buffer.set_offset(offset).expect("a multiple of 4");
            let pair = buffer.prp(bytes).expect("within the buffer");
            assert_eq!(pair, PrpPair { prp1: 0x100_0000 + offset as u64, prp2 }, "{offset:#x}, {bytes:#x}");
            for (index, entry) in entries.iter().enumerate() {
                let place = (pair.prp2 - buffer.inner.shared.memory.iova()) as usize + index * 8;
                assert_eq!(buffer.inner.shared.memory.read_at::<u64>(place).expect("a list entry").to_le(), *entry);
            }
        }
    }

    proptest! {
        #[test]
        fn c19_every_transfer_describes_its_bytes_in_order(
            bytes_each in 1_usize..300_000,
            page_shift in 12_u32..16,
            offset in 0_usize..70_000,
            length in 1_usize..300_000,
        ) {
            let mut buffers = pool(2, bytes_each, 1 << page_shift, 0);
            let buffer = &mut buffers[1];
            buffer.set_offset(offset.min(bytes_each - 1) & !3).expect("a multiple of 4");
            assert_contiguous(buffer, length.min(buffer.len()));
            buffer.set_offset(0).expect("0 is always possible");
            assert_contiguous(buffer, buffer.len());
        }
    }
}
