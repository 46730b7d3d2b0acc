//! The information structures of VFIO, read from the bytes that the kernel filled in.
//!
//! `VFIO_DEVICE_GET_REGION_INFO` and `VFIO_IOMMU_GET_INFO` answer with a fixed part and, behind it, a chain of
//! capabilities: each has an id, a version and the offset of the next one. They are read here from plain bytes, every
//! offset checked, so that the reading is tested without a device.
#![forbid(unsafe_code)]

use core::mem::offset_of;

use vfio_bindings::bindings::vfio::{
    VFIO_IOMMU_INFO_CAPS, VFIO_IOMMU_INFO_PGSIZES, VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE,
    VFIO_IOMMU_TYPE1_INFO_DMA_AVAIL, VFIO_REGION_INFO_CAP_MSIX_MAPPABLE, VFIO_REGION_INFO_CAP_SPARSE_MMAP,
    VFIO_REGION_INFO_FLAG_CAPS, vfio_info_cap_header, vfio_iommu_type1_info, vfio_iommu_type1_info_cap_iova_range,
    vfio_iommu_type1_info_dma_avail, vfio_iova_range, vfio_region_info, vfio_region_info_cap_sparse_mmap,
    vfio_region_sparse_mmap_area,
};

use super::iova::IovaRange;

/// More capabilities than this are a loop.
const CHAIN_LIMIT: usize = 64;

/// What the kernel says of one region (a BAR, or configuration space).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RegionInfo {
    /// `VFIO_REGION_INFO_FLAG_*`.
    pub flags: u32,
    /// Its length.
    pub bytes: u64,
    /// Where it is in the device's file.
    pub file_offset: u64,
    /// The parts that may be mapped, as (offset, length); `None` if there is no such list.
    pub sparse: Option<Vec<(u64, u64)>>,
    /// Whether the page of the MSI-X table may be mapped, too.
    pub msix_mappable: bool,
}

/// What the kernel says of a type1 container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Type1Info {
    /// A bit for each page size; 0 if it does not say.
    pub page_sizes: u64,
    /// Usable addresses; `None` on kernels before 5.4, which do not say.
    pub ranges: Option<Vec<IovaRange>>,
    /// Mappings that can still be made; `None` on kernels before 5.10.
    pub mappings_left: Option<u32>,
}

impl RegionInfo {
    /// Reads what `VFIO_DEVICE_GET_REGION_INFO` filled in; `None` if it is cut short.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let flags = word32(bytes, offset_of!(vfio_region_info, flags))?;
        let mut info = Self {
            flags,
            bytes: word64(bytes, offset_of!(vfio_region_info, size))?,
            file_offset: word64(bytes, offset_of!(vfio_region_info, offset))?,
            sparse: None,
            msix_mappable: false,
        };
        if flags & VFIO_REGION_INFO_FLAG_CAPS != 0 {
            let first = word32(bytes, offset_of!(vfio_region_info, cap_offset))?;
            for (id, at) in chain(bytes, first) {
                match u32::from(id) {
                    VFIO_REGION_INFO_CAP_SPARSE_MMAP => info.sparse = Some(sparse_areas(bytes, at)?),
                    VFIO_REGION_INFO_CAP_MSIX_MAPPABLE => info.msix_mappable = true,
                    _ => {}
                }
            }
        }
        Some(info)
    }
}

impl Type1Info {
    /// Reads what `VFIO_IOMMU_GET_INFO` filled in; `None` if it is cut short.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let flags = word32(bytes, offset_of!(vfio_iommu_type1_info, flags))?;
        let sizes = word64(bytes, offset_of!(vfio_iommu_type1_info, iova_pgsizes))?;
        let mut info = Self {
            page_sizes: if flags & VFIO_IOMMU_INFO_PGSIZES != 0 { sizes } else { 0 },
            ranges: None,
            mappings_left: None,
        };
        if flags & VFIO_IOMMU_INFO_CAPS != 0 {
            let first = word32(bytes, offset_of!(vfio_iommu_type1_info, cap_offset))?;
            for (id, at) in chain(bytes, first) {
                match u32::from(id) {
                    VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE => info.ranges = Some(iova_ranges(bytes, at)?),
                    VFIO_IOMMU_TYPE1_INFO_DMA_AVAIL => {
                        info.mappings_left = word32(bytes, at + offset_of!(vfio_iommu_type1_info_dma_avail, avail));
                    }
                    _ => {}
                }
            }
        }
        Some(info)
    }
}

/// Ids and places of the capabilities from `first` on. It ends where the chain does, leaves the bytes, or loops.
fn chain(bytes: &[u8], first: u32) -> impl Iterator<Item = (u16, usize)> {
    let mut next = first as usize;
    core::iter::from_fn(move || {
        let at = core::mem::take(&mut next);
        if at == 0 {
            return None;
        }
        let id = word16(bytes, at.checked_add(offset_of!(vfio_info_cap_header, id))?)?;
        next = word32(bytes, at.checked_add(offset_of!(vfio_info_cap_header, next))?)? as usize;
        Some((id, at))
    })
    .take(CHAIN_LIMIT)
}

fn sparse_areas(bytes: &[u8], at: usize) -> Option<Vec<(u64, u64)>> {
    let count = word32(bytes, at + offset_of!(vfio_region_info_cap_sparse_mmap, nr_areas))?;
    let first = at + offset_of!(vfio_region_info_cap_sparse_mmap, areas);
    array(bytes, first, count, size_of::<vfio_region_sparse_mmap_area>(), |area| {
        Some((
            word64(area, offset_of!(vfio_region_sparse_mmap_area, offset))?,
            word64(area, offset_of!(vfio_region_sparse_mmap_area, size))?,
        ))
    })
}

fn iova_ranges(bytes: &[u8], at: usize) -> Option<Vec<IovaRange>> {
    let count = word32(bytes, at + offset_of!(vfio_iommu_type1_info_cap_iova_range, nr_iovas))?;
    let first = at + offset_of!(vfio_iommu_type1_info_cap_iova_range, iova_ranges);
    array(bytes, first, count, size_of::<vfio_iova_range>(), |range| {
        Some(IovaRange {
            start: word64(range, offset_of!(vfio_iova_range, start))?,
            last: word64(range, offset_of!(vfio_iova_range, end))?,
        })
    })
}

/// Reads `count` elements of `each` bytes; the count is believed only as far as there are bytes.
fn array<T>(bytes: &[u8], first: usize, count: u32, each: usize, read: impl Fn(&[u8]) -> Option<T>) -> Option<Vec<T>> {
    let length = (count as usize).checked_mul(each)?;
    let elements = bytes.get(first..first.checked_add(length)?)?;
    elements.chunks_exact(each).map(read).collect()
}

fn word16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

fn word32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

fn word64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use vfio_bindings::bindings::vfio::{VFIO_REGION_INFO_FLAG_MMAP, VFIO_REGION_INFO_FLAG_READ};

    /// Words of 32 bits, as the kernel would have written them.
    fn bytes(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn header(id: u32, next: u32) -> [u32; 2] {
        // id and version share a word; on a little-endian machine the id is its low half.
        [u32::from_ne_bytes([id.to_ne_bytes()[0], id.to_ne_bytes()[1], 1, 0]), next]
    }

    #[test]
    fn d20_sparse_areas_of_a_region_are_read() {
        let flags = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_MMAP | VFIO_REGION_INFO_FLAG_CAPS;
        let mut words = vec![96, flags, 0, 32, 0x1_0000, 0, 0, 0];
        words.extend(header(VFIO_REGION_INFO_CAP_SPARSE_MMAP, 0));
        words.extend([2, 0, 0, 0, 0x5000, 0, 0x6000, 0, 0xa000, 0]);
        let info = RegionInfo::parse(&bytes(&words)).expect("whole");
        assert_eq!(info.bytes, 0x1_0000);
        assert_eq!(info.sparse, Some(vec![(0, 0x5000), (0x6000, 0xa000)]));
        assert!(!info.msix_mappable);
    }

    #[test]
    fn a_mappable_msix_table_is_seen_behind_another_capability() {
        let mut words = vec![96, VFIO_REGION_INFO_FLAG_CAPS, 0, 32, 0x4000, 0, 0, 0];
        words.extend(header(77, 40));
        words.extend(header(VFIO_REGION_INFO_CAP_MSIX_MAPPABLE, 0));
        let info = RegionInfo::parse(&bytes(&words)).expect("whole");
        assert!(info.msix_mappable);
        assert_eq!(info.sparse, None);
    }

    #[test]
    fn d16_the_ranges_of_a_39_bit_iommu_are_read() {
        let mut words = vec![96, VFIO_IOMMU_INFO_CAPS | VFIO_IOMMU_INFO_PGSIZES, 0x4020_1000, 0, 24, 0];
        words.extend(header(VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE, 72));
        words.extend([2, 0, 0, 0, 0xfedf_ffff, 0, 0xfef0_0000, 0, 0xffff_ffff, 0x7f]);
        words.extend(header(VFIO_IOMMU_TYPE1_INFO_DMA_AVAIL, 0));
        words.push(65535);
        let info = Type1Info::parse(&bytes(&words)).expect("whole");
        assert_eq!(info.page_sizes, 0x4020_1000);
        assert_eq!(info.mappings_left, Some(65535));
        assert_eq!(
            info.ranges,
            Some(vec![
                IovaRange { start: 0, last: 0xfedf_ffff },
                IovaRange { start: 0xfef0_0000, last: (1 << 39) - 1 },
            ])
        );
    }

    #[test]
    fn a_count_beyond_the_bytes_is_not_believed() {
        let mut words = vec![96, VFIO_REGION_INFO_FLAG_CAPS, 0, 32, 0x4000, 0, 0, 0];
        words.extend(header(VFIO_REGION_INFO_CAP_SPARSE_MMAP, 0));
        words.extend([u32::MAX, 0]);
        assert_eq!(RegionInfo::parse(&bytes(&words)), None);
    }

    #[test]
    fn a_chain_that_loops_ends() {
        let mut words = vec![96, VFIO_REGION_INFO_FLAG_CAPS, 0, 32, 0x4000, 0, 0, 0];
        words.extend(header(77, 32));
        assert!(RegionInfo::parse(&bytes(&words)).is_some());
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_readers_panic(bytes in proptest::collection::vec(any::<u8>(), 0..160)) {
            let _ = RegionInfo::parse(&bytes);
            let _ = Type1Info::parse(&bytes);
        }
    }
}
