//! No IOMMU at all: the kernel's no-IOMMU mode, refused unless it was asked for by name.
//!
//! Without an IOMMU a device reaches whatever physical address it is told, and whatever else it likes. The kernel offers
//! that mode to who loads `vfio` with `enable_unsafe_noiommu_mode=1`, taints itself, and gives out no mappings: the
//! addresses that a command carries are physical ones. Small boards and nested virtual machines have nothing better.
//!
//! What is done about it here is little, and it is all that can be done. Memory has to be made of huge pages, because the
//! kernel moves ordinary pages about, pinned by `mlock` or not, and the device would write to where they were. Physical
//! addresses are read from `/proc/self/pagemap`, and a range is refused if it is not in one piece. And nothing is ever
//! called quiet, so no memory goes back while the process lives ([`crate::dma::leaked_bytes`]).
#![forbid(unsafe_code)]

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use rustix::io::Errno;
use vfio_bindings::bindings::vfio::VFIO_NOIOMMU_IOMMU;

use super::nodes::Nodes;
use super::type1::Container;
use super::{Geometry, Iommu, IommuKind, VfioError};
use crate::pci::PciAddress;

/// Bytes of an entry of pagemap.
const ENTRY_BYTES: u64 = 8;
/// The entry's bit that says that the page is in memory.
const PRESENT: u64 = 1 << 63;
/// The entry's bits that hold the page's number.
const PAGE_NUMBER: u64 = (1 << 55) - 1;

/// A group without an IOMMU.
#[derive(Debug)]
pub(super) struct NoIommu {
    container: Container,
}

impl NoIommu {
    /// Opens the group.
    pub(super) fn open(address: PciAddress, nodes: &Nodes) -> Result<Self, VfioError> {
        log::warn!("{address}: no IOMMU: nothing keeps this drive from writing anywhere in memory");
        Ok(Self { container: Container::open(address, nodes, &[VFIO_NOIOMMU_IOMMU])? })
    }
}

impl Iommu for NoIommu {
    fn kind(&self) -> IommuKind {
        IommuKind::NoIommu
    }

    fn open_device(&self, address: PciAddress, _nodes: &Nodes) -> Result<OwnedFd, VfioError> {
        self.container.device(address)
    }

    fn geometry(&self, _address: PciAddress) -> Result<Geometry, VfioError> {
        // No address is ours to choose.
        Ok(Geometry { ranges: Vec::new(), page_bytes: rustix::param::page_size() as u64 })
    }

    fn fixed_address(&self, pointer: usize, bytes: u64) -> Result<Option<u64>, String> {
        let page_bytes = rustix::param::page_size() as u64;
        let pages = usize::try_from(bytes.div_ceil(page_bytes)).map_err(|error| error.to_string())?;
        let mut entries = vec![0; pages * ENTRY_BYTES as usize];
        let at = pointer as u64 / page_bytes * ENTRY_BYTES;
        File::open("/proc/self/pagemap")
            .and_then(|pagemap| pagemap.read_exact_at(&mut entries, at))
            .map_err(|error| format!("/proc/self/pagemap: {error}"))?;
        physical_address(&entries, page_bytes).map(Some)
    }

    fn map(&self, _pointer: usize, _iova: u64, _bytes: u64) -> Result<(), Errno> {
        Err(Errno::OPNOTSUPP)
    }

    fn unmap(&self, _iova: u64, _bytes: u64) -> Result<u64, Errno> {
        Err(Errno::OPNOTSUPP)
    }

    fn explain(&self, _error: Errno) -> Option<String> {
        None
    }
}

/// The physical address of pages that follow each other, from their entries in pagemap.
fn physical_address(entries: &[u8], page_bytes: u64) -> Result<u64, String> {
    let (words, _) = entries.as_chunks::<{ ENTRY_BYTES as usize }>();
    let mut numbers = words.iter().map(|word| u64::from_ne_bytes(*word)).map(|entry| {
        let number = entry & PAGE_NUMBER;
        if entry & PRESENT == 0 {
            Err("a page is not in memory")
        } else if number == 0 {
            Err("physical addresses are shown only to who has CAP_SYS_ADMIN")
        } else {
            Ok(number)
        }
    });
    let first = numbers.next().ok_or("there is no page")??;
    for (index, number) in (first + 1..).zip(numbers) {
        if number? != index {
            return Err("its huge pages do not lie next to each other in memory; use pools of at most 2 MiB".to_owned());
        }
    }
    Ok(first * page_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn d21_pages_in_a_row_have_the_address_of_the_first() {
        let row = entries(&[PRESENT | 0x200, PRESENT | 1 << 61 | 0x201, PRESENT | 0x202]);
        assert_eq!(physical_address(&row, 4096), Ok(0x20_0000));
    }

    #[test]
    fn d21_scattered_hidden_and_absent_pages_are_refused() {
        for (words, reason) in [
            (&[PRESENT | 0x200, PRESENT | 0x203][..], "next to each other"),
            (&[PRESENT][..], "CAP_SYS_ADMIN"),
            (&[0x200][..], "not in memory"),
            (&[][..], "no page"),
        ] {
            let refused = physical_address(&entries(words), 4096).expect_err(reason);
            assert!(refused.contains(reason), "{refused}");
        }
    }
}
