//! One IOMMU group's address space.
//!
//! There is one for each *group*, not one for the process and not one for each device. Not for the process: two drives
//! on two IOMMUs would then be limited to the addresses that both can use, every mapping would cost an entry in both, and
//! closing one would have to sort out what belongs to whom. Not for each device: the kernel lets a group be opened once
//! and lets all its devices be in one address space only. So the devices of one group share one, found again through a
//! list of what this process has open, and closing a device leaves the others mapped.
#![forbid(unsafe_code)]

use std::collections::{BTreeSet, HashMap};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::io::Errno;

use super::iommufd::Iommufd;
use super::iova::IovaAllocator;
use super::memlock::{Accounting, LockedMemory};
use super::no_iommu::NoIommu;
use super::nodes::Nodes;
use super::type1::Type1;
use super::{Geometry, Iommu, IommuChoice, IommuKind, VfioError};
use crate::pci::PciAddress;
use crate::transport::{TransportError, Unmapped};

/// The address spaces that this process has open, by group node.
static OPEN: Mutex<Option<HashMap<PathBuf, Weak<Inner>>>> = Mutex::new(None);

/// A device's handle on the address space of its IOMMU group.
#[derive(Debug)]
pub struct AddressSpace {
    /// Whose handle it is.
    address: PciAddress,
    kind: IommuKind,
    /// `None` only while it is dropped.
    inner: Option<Arc<Inner>>,
}

#[derive(Debug)]
struct Inner {
    iommu: Box<dyn Iommu>,
    allocator: Mutex<IovaAllocator>,
    /// The devices that are in it.
    devices: Mutex<BTreeSet<PciAddress>>,
}

impl AddressSpace {
    /// Opens the function at `address`, putting it into its group's address space, which is made if this process does
    /// not have it yet.
    pub fn open_device(address: PciAddress, nodes: &Nodes, choice: IommuChoice) -> Result<(Self, OwnedFd), VfioError> {
        let mut open = lock(&OPEN);
        let open = open.get_or_insert_default();
        let inner = match open.get(&nodes.group_node).and_then(Weak::upgrade) {
            Some(inner) if choice.allows(inner.iommu.kind()) => inner,
            Some(inner) => {
                return Err(VfioError::OtherInterface { address, kind: inner.iommu.kind() });
            }
            None => Arc::new(Inner {
                iommu: open_iommu(address, nodes, choice)?,
                allocator: Mutex::new(IovaAllocator::new(&[], rustix::param::page_size() as u64)),
                devices: Mutex::default(),
            }),
        };
        // type1 would open it a second time, and two drivers of one controller would undo each other's work.
        if lock(&inner.devices).contains(&address) {
            let holders = vec!["this process".to_owned()];
            return Err(VfioError::Busy { address, node: nodes.group_node.clone(), holders });
        }
        let device = inner.iommu.open_device(address, nodes)?;
        // Only now does the kernel know what this device can address; with a second one it may be less than before.
        let Geometry { ranges, page_bytes } = inner.iommu.geometry(address)?;
        let kind = inner.iommu.kind();
        log::debug!("{address}: {kind}, mappings are multiples of {page_bytes} bytes, usable addresses {ranges:x?}");
        lock(&inner.allocator).set_usable(&ranges, page_bytes);
        lock(&inner.devices).insert(address);
        open.insert(nodes.group_node.clone(), Arc::downgrade(&inner));
        Ok((Self { address, kind, inner: Some(inner) }, device))
    }

    /// Which interface it uses.
    pub fn kind(&self) -> IommuKind {
        self.kind
    }

    /// The locked memory that counts here, as it is now.
    pub fn locked_memory(&self) -> LockedMemory {
        LockedMemory::now(match self.kind {
            IommuKind::Iommufd => Accounting::User,
            IommuKind::Type1 | IommuKind::NoIommu => Accounting::Process,
        })
    }

    /// Bytes that are mapped.
    pub fn mapped_bytes(&self) -> u64 {
        self.inner.as_ref().map_or(0, |inner| lock(&inner.allocator).taken_bytes())
    }

    /// Makes `bytes` bytes at `pointer` visible to the group's devices and gives their IOVA.
    pub(crate) fn map(&self, pointer: usize, bytes: u64) -> Result<u64, TransportError> {
        let failed = |detail: String| TransportError::Map { address: self.address.to_string(), bytes, detail };
        let Some(inner) = &self.inner else { return Err(failed("the address space is closed".to_owned())) };
        if let Some(physical) = inner.iommu.fixed_address(pointer, bytes).map_err(failed)? {
            return Ok(physical);
        }
        let shortage = |state: LockedMemory| state.check(bytes).err().map(|shortage| shortage.to_string());
        if let Some(shortage) = shortage(self.locked_memory()) {
            return Err(failed(shortage));
        }
        let iova = lock(&inner.allocator)
            .allocate(bytes)
            .ok_or_else(|| failed("no free range of usable addresses is long enough".to_owned()))?;
        inner.iommu.map(pointer, iova, bytes).map_err(|errno| {
            // Nothing was mapped, so the address can be used again.
            let _ = lock(&inner.allocator).free(iova, bytes);
            let meaning = match errno {
                Errno::NOMEM => Some(
                    shortage(LockedMemory { exempt: false, ..self.locked_memory() })
                        .unwrap_or_else(|| "the kernel has no memory for the pages or the IOMMU's tables".to_owned()),
                ),
                other => inner.iommu.explain(other),
            };
            let error = std::io::Error::from(errno);
            failed(format!("IOVA {iova:#x}: {error}{}", meaning.map_or(String::new(), |text| format!(": {text}"))))
        })?;
        Ok(iova)
    }

    /// Takes back one mapping, whole.
    pub(crate) fn unmap(&self, iova: u64, bytes: u64) -> Result<Unmapped, TransportError> {
        let system = |source: std::io::Error| TransportError::System {
            address: self.address.to_string(),
            what: format!("unmapping {bytes} bytes at IOVA {iova:#x}"),
            source,
        };
        let Some(inner) = &self.inner else { return Err(system(Errno::BADF.into())) };
        if self.kind == IommuKind::NoIommu {
            return Ok(Unmapped::MayBeWritten);
        }
        lock(&inner.allocator)
            .is_taken(iova, bytes)
            .map_err(|error| system(std::io::Error::new(std::io::ErrorKind::InvalidInput, error)))?;
        let unmapped = inner.iommu.unmap(iova, bytes).map_err(|errno| system(errno.into()))?;
        if unmapped != bytes {
            // The address stays taken: part of it may still be mapped.
            let detail = format!("the kernel unmapped {unmapped} bytes instead");
            return Err(system(std::io::Error::other(detail)));
        }
        let _ = lock(&inner.allocator).free(iova, bytes);
        Ok(Unmapped::Quiet)
    }
}

impl Drop for AddressSpace {
    fn drop(&mut self) {
        // Under the lock, so that nobody finds the group's entry gone while its file is still open and gets EBUSY.
        let mut open = lock(&OPEN);
        if let Some(inner) = self.inner.take() {
            lock(&inner.devices).remove(&self.address);
        }
        if let Some(open) = open.as_mut() {
            open.retain(|_, space| space.strong_count() > 0);
        }
    }
}

impl IommuChoice {
    fn allows(self, kind: IommuKind) -> bool {
        match self {
            // Without an IOMMU there is nothing to choose from.
            _ if kind == IommuKind::NoIommu => true,
            Self::Auto => true,
            Self::Iommufd => kind == IommuKind::Iommufd,
            Self::Type1 => kind == IommuKind::Type1,
        }
    }
}

/// Opens the interface that was chosen, or the better one of those that are there.
fn open_iommu(address: PciAddress, nodes: &Nodes, choice: IommuChoice) -> Result<Box<dyn Iommu>, VfioError> {
    if nodes.no_iommu {
        return Ok(Box::new(NoIommu::open(address, nodes)?));
    }
    let iommufd = || Iommufd::usable(address, nodes).and_then(|()| Iommufd::open(address, nodes));
    match choice {
        IommuChoice::Iommufd => Ok(Box::new(iommufd()?)),
        IommuChoice::Type1 => Ok(Box::new(Type1::open(address, nodes)?)),
        IommuChoice::Auto => match iommufd() {
            Ok(iommufd) => Ok(Box::new(iommufd)),
            Err(reason) => {
                log::debug!("{address}: type1 is tried: {reason}");
                Ok(Box::new(Type1::open(address, nodes)?))
            }
        },
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a panicking thread left behind is still whole: every change of these is one call.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfio::iova::IovaRange;

    /// An IOMMU that keeps books and can be told to refuse.
    #[derive(Debug, Default)]
    struct Books {
        refuse: Option<Errno>,
        unmaps_short: bool,
    }

    impl Iommu for Books {
        fn kind(&self) -> IommuKind {
            IommuKind::Type1
        }

        fn open_device(&self, address: PciAddress, _nodes: &Nodes) -> Result<OwnedFd, VfioError> {
            Err(VfioError::NoType1 { address })
        }

        fn geometry(&self, _address: PciAddress) -> Result<Geometry, VfioError> {
            Ok(Geometry { ranges: Vec::new(), page_bytes: 4096 })
        }

        fn map(&self, _pointer: usize, _iova: u64, _bytes: u64) -> Result<(), Errno> {
            self.refuse.map_or(Ok(()), Err)
        }

        fn unmap(&self, _iova: u64, bytes: u64) -> Result<u64, Errno> {
            Ok(if self.unmaps_short { bytes / 2 } else { bytes })
        }

        fn explain(&self, _error: Errno) -> Option<String> {
            Some("as explained".to_owned())
        }
    }

    fn address() -> PciAddress {
        "0000:01:00.0".parse().expect("an address")
    }

    fn space(books: Books) -> AddressSpace {
        let ranges = [IovaRange { start: 0, last: (1 << 30) - 1 }];
        let allocator = Mutex::new(IovaAllocator::new(&ranges, 4096));
        let inner = Inner { iommu: Box::new(books), allocator, devices: Mutex::default() };
        AddressSpace { address: address(), kind: IommuKind::Type1, inner: Some(Arc::new(inner)) }
    }

    #[test]
    fn an_address_is_used_again_after_its_mapping_went() {
        let space = space(Books::default());
        let iova = space.map(0, 8192).expect("room");
        assert_eq!(space.mapped_bytes(), 8192);
        assert!(space.unmap(iova, 4096).is_err(), "a mapping goes whole or not at all");
        assert!(matches!(space.unmap(iova, 8192), Ok(Unmapped::Quiet)));
        assert_eq!(space.map(0, 8192).expect("room"), iova);
    }

    #[test]
    fn a_refused_mapping_leaves_no_address_taken_and_is_explained() {
        let space = space(Books { refuse: Some(Errno::NOSPC), ..Books::default() });
        let error = space.map(0, 8192).expect_err("refused").to_string();
        assert!(error.contains("as explained"), "{error}");
        assert_eq!(space.mapped_bytes(), 0);
    }

    #[test]
    fn a_partial_unmap_is_an_error_and_the_address_stays_taken() {
        let space = space(Books { unmaps_short: true, ..Books::default() });
        let iova = space.map(0, 8192).expect("room");
        let error = space.unmap(iova, 8192).expect_err("half of it is still mapped").to_string();
        assert!(error.contains("4096 bytes instead"), "{error}");
        assert_eq!(space.mapped_bytes(), 8192);
    }
}
