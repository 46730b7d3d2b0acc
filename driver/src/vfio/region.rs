//! Where a function's registers are, and which of them may be mapped.
//!
//! BAR0 of an NVMe controller has the registers, the doorbells from 1000h on, and often the MSI-X table and pending bits
//! as well. The kernel says what of it may be mapped: all of it (`MSIX_MAPPABLE`), a list of areas (older kernels leave
//! the MSI-X table out), or nothing. What may not be mapped is reached through reads and writes of the device's file,
//! slower and just as good for registers. The MSI-X table belongs to the kernel either way: an access to it is refused
//! here whatever is mapped, because a doorbell that hits it would forge an interrupt.
#![forbid(unsafe_code)]

use core::ops::Range;

use vfio_bindings::bindings::vfio::{
    VFIO_PCI_BAR0_REGION_INDEX, VFIO_PCI_CONFIG_REGION_INDEX, VFIO_REGION_INFO_FLAG_MMAP, VFIO_REGION_INFO_FLAG_READ,
    VFIO_REGION_INFO_FLAG_WRITE,
};

use super::capability::RegionInfo;

/// BAR0.
pub(super) const REGISTERS: u32 = VFIO_PCI_BAR0_REGION_INDEX;
/// Configuration space.
pub(super) const CONFIGURATION: u32 = VFIO_PCI_CONFIG_REGION_INDEX;

/// A region: what is where in it, and how it may be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Its length in bytes.
    pub bytes: u64,
    /// Where it begins in the device's file.
    pub file_offset: u64,
    /// Whether it may be read and written through the file.
    pub file_access: bool,
    /// The areas that may be mapped, whole pages, in ascending order.
    pub mappable: Vec<Range<u64>>,
    /// Parts that must not be touched: the MSI-X table and its pending bits.
    pub forbidden: Vec<Range<u64>>,
}

impl Region {
    /// What the kernel's answer comes to, with the parts in `forbidden` left out of every access.
    pub(crate) fn new(info: &RegionInfo, page_bytes: u64, forbidden: Vec<Range<u64>>) -> Self {
        let both = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
        let mappable = if info.flags & VFIO_REGION_INFO_FLAG_MMAP == 0 { Vec::new() } else { areas(info, page_bytes) };
        Self {
            bytes: info.bytes,
            file_offset: info.file_offset,
            file_access: info.flags & both == both,
            mappable,
            forbidden,
        }
    }

    /// Whether `bytes` bytes at `offset` are registers that may be accessed.
    pub fn allows(&self, offset: u64, bytes: u64) -> bool {
        let Some(end) = offset.checked_add(bytes) else { return false };
        end <= self.bytes && !self.forbidden.iter().any(|part| offset < part.end && part.start < end)
    }
}

/// The areas that may be mapped: whole pages inside the region, or the one page that a region smaller than a page has
/// to itself when the kernel lets it be mapped at all.
fn areas(info: &RegionInfo, page_bytes: u64) -> Vec<Range<u64>> {
    let end = info.bytes.checked_next_multiple_of(page_bytes).unwrap_or(0);
    let whole = [(0, end)];
    let listed = info.sparse.as_deref().unwrap_or(&whole);
    let mut areas: Vec<Range<u64>> = listed
        .iter()
        .filter_map(|(offset, bytes)| {
            let start = offset.checked_next_multiple_of(page_bytes)?;
            let last = offset.checked_add(*bytes)?.min(end);
            let last = last - last % page_bytes;
            (start < last).then_some(start..last)
        })
        .collect();
    areas.sort_by_key(|area| area.start);
    areas
}

#[cfg(test)]
mod tests {
    #![allow(clippy::single_range_in_vec_init)] // A list of one area is what is meant.

    use super::*;

    const PAGE: u64 = 4096;
    const ALL: u32 = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE | VFIO_REGION_INFO_FLAG_MMAP;

    fn info(bytes: u64, sparse: Option<Vec<(u64, u64)>>) -> RegionInfo {
        RegionInfo { flags: ALL, bytes, file_offset: 0, sparse, msix_mappable: false }
    }

    #[test]
    fn d20_a_64_kib_bar_with_its_table_at_5200h_maps_whole_but_keeps_the_table_out() {
        let table = 0x5200..0x5200 + 16 * 33;
        let region = Region::new(&info(0x1_0000, None), PAGE, vec![table, 0x5600..0x5608]);
        assert_eq!(region.mappable, vec![0..0x1_0000]);
        assert!(region.allows(0, 8) && region.allows(0x51fc, 4) && region.allows(0x5608, 4));
        assert!(!region.allows(0x51fc, 8) && !region.allows(0x5200, 4) && !region.allows(0x5604, 8));
    }

    #[test]
    fn d20_sparse_areas_leave_the_table_unmapped() {
        let region = Region::new(&info(0x1_0000, Some(vec![(0x6000, 0xa000), (0, 0x5000)])), PAGE, Vec::new());
        assert_eq!(region.mappable, [0..0x5000, 0x6000..0x1_0000]);
    }

    #[test]
    fn d20_an_area_that_is_not_whole_pages_shrinks_to_those() {
        let region = Region::new(&info(0x1_0000, Some(vec![(0x1800, 0x1800), (0x3004, 0x800)])), PAGE, Vec::new());
        assert_eq!(region.mappable, vec![0x2000..0x3000]);
    }

    #[test]
    fn d20_a_bar_smaller_than_a_page_maps_its_page_and_is_used_no_further_than_it_is_long() {
        let region = Region::new(&info(0x400, None), PAGE, Vec::new());
        assert_eq!(region.mappable, vec![0..PAGE]);
        assert!(region.allows(0x3fc, 4));
        assert!(!region.allows(0x400, 4));
    }

    #[test]
    fn areas_outside_of_the_region_are_cut_off() {
        let region = Region::new(&info(0x4000, Some(vec![(0x2000, 0x1_0000), (u64::MAX - 5, 9)])), PAGE, Vec::new());
        assert_eq!(region.mappable, vec![0x2000..0x4000]);
    }

    #[test]
    fn without_the_flag_nothing_is_mapped() {
        let info = RegionInfo { flags: VFIO_REGION_INFO_FLAG_READ, ..info(0x4000, None) };
        let region = Region::new(&info, PAGE, Vec::new());
        assert!(region.mappable.is_empty() && !region.file_access);
    }

    #[test]
    fn an_offset_that_wraps_is_refused() {
        let region = Region::new(&info(0x4000, None), PAGE, Vec::new());
        assert!(!region.allows(u64::MAX - 1, 4));
    }
}
