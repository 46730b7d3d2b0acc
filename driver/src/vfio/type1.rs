//! The older interface: containers and groups.
//!
//! A *group* is what the IOMMU can tell apart, often one function, sometimes several. A *container* is an address space
//! that groups are put into. The order is fixed, and every step out of order is answered with a bare EINVAL: open the
//! container, open the group, put the group into the container, set the container's IOMMU type, ask for its ranges, open
//! the device, map.
//!
//! One container holds one group here, and all devices of ours in that group share it (see [`super::space`]).
//!
//! What it is strict about: a mapping is unmapped whole or not at all (that is the "v2" of type1v2), and a container has
//! room for 65,535 mappings (the module's parameter `dma_entry_limit`), which is why pools are mapped at once.
#![forbid(unsafe_code)]

use std::ffi::CString;
use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use vfio_bindings::bindings::vfio::{VFIO_API_VERSION, VFIO_GROUP_FLAGS_VIABLE, VFIO_TYPE1_IOMMU, VFIO_TYPE1v2_IOMMU};

use super::capability::Type1Info;
use super::nodes::{self, Nodes};
use super::{Geometry, Iommu, IommuKind, VfioError, fd, ioctl};
use crate::pci::PciAddress;

/// A container with one group in it.
#[derive(Debug)]
pub(super) struct Type1 {
    container: Container,
}

/// A container, the group in it, and what is done with both whatever the IOMMU type.
#[derive(Debug)]
pub(super) struct Container {
    // In the order in which they have to be closed.
    group: File,
    container: File,
}

impl Container {
    /// Opens both, puts the group into the container, and sets the first of `kinds` that the container knows.
    pub(super) fn open(address: PciAddress, nodes: &Nodes, kinds: &[u32]) -> Result<Self, VfioError> {
        let step = |step| move |errno| VfioError::step(address, step, errno);
        let container = nodes::open(address, &nodes.container_node)?;
        let version = ioctl::api_version(fd(&container)).map_err(step("VFIO_GET_API_VERSION"))?;
        if version != VFIO_API_VERSION.cast_signed() {
            return Err(VfioError::Answer {
                address,
                step: "VFIO_GET_API_VERSION",
                detail: format!(
                    "the kernel speaks version {version} of VFIO, version {VFIO_API_VERSION} is understood"
                ),
            });
        }
        let mut known = None;
        for kind in kinds {
            let knows = ioctl::check_extension(fd(&container), *kind).map_err(step("VFIO_CHECK_EXTENSION"))?;
            known = known.or(knows.then_some(*kind));
        }
        let kind = known.ok_or(VfioError::NoType1 { address })?;
        let group = nodes::open(address, &nodes.group_node)?;
        let flags = ioctl::group_flags(fd(&group)).map_err(step("VFIO_GROUP_GET_STATUS"))?;
        if flags & VFIO_GROUP_FLAGS_VIABLE == 0 {
            return Err(VfioError::NotViable { address, group: nodes.group.clone() });
        }
        ioctl::set_container(fd(&group), fd(&container)).map_err(step("VFIO_GROUP_SET_CONTAINER"))?;
        ioctl::set_iommu(fd(&container), kind).map_err(step("VFIO_SET_IOMMU"))?;
        Ok(Self { group, container })
    }

    /// Opens the function at `address`.
    pub(super) fn device(&self, address: PciAddress) -> Result<OwnedFd, VfioError> {
        let name = CString::new(address.to_string()).map_err(|_| VfioError::NoSuchDevice { address })?;
        ioctl::device_of_group(fd(&self.group), &name)
            .map_err(|errno| VfioError::step(address, "VFIO_GROUP_GET_DEVICE_FD", errno))
    }
}

impl Type1 {
    /// Opens the group and gives it a container of its own.
    pub(super) fn open(address: PciAddress, nodes: &Nodes) -> Result<Self, VfioError> {
        let container = Container::open(address, nodes, &[VFIO_TYPE1v2_IOMMU, VFIO_TYPE1_IOMMU])?;
        Ok(Self { container })
    }

    fn info(&self) -> Result<Option<Type1Info>, Errno> {
        ioctl::iommu_info(fd(&self.container.container)).map(|bytes| Type1Info::parse(&bytes))
    }
}

impl Iommu for Type1 {
    fn kind(&self) -> IommuKind {
        IommuKind::Type1
    }

    fn open_device(&self, address: PciAddress, _nodes: &Nodes) -> Result<OwnedFd, VfioError> {
        self.container.device(address)
    }

    fn geometry(&self, address: PciAddress) -> Result<Geometry, VfioError> {
        let step = "VFIO_IOMMU_GET_INFO";
        let answer = |detail: &str| VfioError::Answer { address, step, detail: detail.to_owned() };
        let info = self
            .info()
            .map_err(|errno| VfioError::step(address, step, errno))?
            .ok_or_else(|| answer("the kernel's answer is cut short"))?;
        let ranges = info
            .ranges
            .ok_or_else(|| answer("the kernel does not say which addresses are usable; Linux 5.4 and later do"))?;
        // The smallest page that the IOMMU knows; no bit at all means that the kernel does not say.
        let smallest = info.page_sizes & info.page_sizes.wrapping_neg();
        Ok(Geometry { ranges, page_bytes: smallest.max(rustix::param::page_size() as u64) })
    }

    fn map(&self, pointer: usize, iova: u64, bytes: u64) -> Result<(), Errno> {
        ioctl::map_dma(fd(&self.container.container), pointer, iova, bytes)
    }

    fn unmap(&self, iova: u64, bytes: u64) -> Result<u64, Errno> {
        ioctl::unmap_dma(fd(&self.container.container), iova, bytes)
    }

    fn explain(&self, error: Errno) -> Option<String> {
        match error {
            Errno::NOSPC => {
                let left = self.info().ok().flatten().and_then(|info| info.mappings_left);
                Some(format!(
                    "the container's mappings are used up ({} left; the limit is the parameter dma_entry_limit of \
                     vfio_iommu_type1, 65535 if nobody changed it); use fewer, larger pools",
                    left.map_or("none".to_owned(), |left| left.to_string())
                ))
            }
            Errno::EXIST => Some("the address is mapped already".to_owned()),
            Errno::INVAL => Some(
                "the address or length is outside the usable ranges or not a multiple of the IOMMU's page".to_owned(),
            ),
            _ => None,
        }
    }
}
