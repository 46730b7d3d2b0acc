//! The newer interface: device files and I/O address spaces (Linux 6.6 and later).
//!
//! Here the device itself is a file, and the address space is an object of `/dev/iommu`: open both, bind the device to
//! the iommufd (only now may it be touched), allocate an address space (IOAS), attach the device to it, ask for the
//! usable ranges, which become known with the attachment, and map. All devices of one IOMMU group have to be in the same
//! address space of the same iommufd, so here, too, there is one for each group (see [`super::space`]).
//!
//! Contiguous pages are joined into the IOMMU's large ones by the kernel, unless the address is badly aligned, which
//! [`super::iova`] sees to.
#![forbid(unsafe_code)]

use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::nodes::{self, Nodes};
use super::{Geometry, Iommu, IommuKind, VfioError, fd, ioctl};
use crate::pci::PciAddress;

/// An iommufd with one address space.
#[derive(Debug)]
pub(super) struct Iommufd {
    iommufd: File,
    ioas: u32,
}

impl Iommufd {
    /// Opens `/dev/iommu` and allocates an address space.
    pub(super) fn open(address: PciAddress, nodes: &Nodes) -> Result<Self, VfioError> {
        let iommufd = nodes::open(address, &nodes.iommufd_node).map_err(|error| missing(address, error))?;
        let ioas =
            ioctl::allocate_ioas(fd(&iommufd)).map_err(|errno| VfioError::step(address, "IOMMU_IOAS_ALLOC", errno))?;
        Ok(Self { iommufd, ioas })
    }

    /// Whether this kernel has both files and this user may open them, without keeping them open.
    pub(super) fn usable(address: PciAddress, nodes: &Nodes) -> Result<(), VfioError> {
        use rustix::fs::{Access, AtFlags, CWD, accessat};
        for node in [Some(&nodes.iommufd_node), nodes.device_node.as_ref()] {
            let Some(node) = node else {
                return Err(VfioError::NoIommufd {
                    address,
                    reason: "this kernel has no device files for VFIO".to_owned(),
                });
            };
            let wanted = Access::READ_OK | Access::WRITE_OK;
            // EACCESS: the effective user decides, as it does for an open.
            accessat(CWD, node.as_path(), wanted, AtFlags::EACCESS).map_err(|errno| match errno {
                Errno::ACCESS | Errno::PERM => {
                    VfioError::Permission { address, node: node.clone(), right: "reading and writing" }
                }
                _ => VfioError::NoIommufd { address, reason: format!("{} does not exist", node.display()) },
            })?;
        }
        Ok(())
    }
}

/// A missing file means a kernel without iommufd.
fn missing(address: PciAddress, error: VfioError) -> VfioError {
    match error {
        VfioError::NoNode { node, .. } => {
            VfioError::NoIommufd { address, reason: format!("{} does not exist", node.display()) }
        }
        other => other,
    }
}

impl Iommu for Iommufd {
    fn kind(&self) -> IommuKind {
        IommuKind::Iommufd
    }

    fn open_device(&self, address: PciAddress, nodes: &Nodes) -> Result<OwnedFd, VfioError> {
        let step = |step| move |errno| VfioError::step(address, step, errno);
        let node = nodes.device_node.as_ref().ok_or_else(|| VfioError::NoIommufd {
            address,
            reason: "this kernel has no device files for VFIO".to_owned(),
        })?;
        let device = nodes::open(address, node).map_err(|error| missing(address, error))?;
        ioctl::bind_iommufd(fd(&device), fd(&self.iommufd)).map_err(|errno| match errno {
            Errno::BUSY => VfioError::Busy { address, node: node.clone(), holders: Vec::new() },
            _ => VfioError::step(address, "VFIO_DEVICE_BIND_IOMMUFD", errno),
        })?;
        ioctl::attach_ioas(fd(&device), self.ioas).map_err(step("VFIO_DEVICE_ATTACH_IOMMUFD_PT"))?;
        Ok(device.into())
    }

    fn geometry(&self, address: PciAddress) -> Result<Geometry, VfioError> {
        let (ranges, alignment) = ioctl::ioas_ranges(fd(&self.iommufd), self.ioas)
            .map_err(|errno| VfioError::step(address, "IOMMU_IOAS_IOVA_RANGES", errno))?;
        Ok(Geometry { ranges, page_bytes: alignment.max(rustix::param::page_size() as u64) })
    }

    fn map(&self, pointer: usize, iova: u64, bytes: u64) -> Result<(), Errno> {
        ioctl::map_ioas(fd(&self.iommufd), self.ioas, pointer, iova, bytes)
    }

    fn unmap(&self, iova: u64, bytes: u64) -> Result<u64, Errno> {
        ioctl::unmap_ioas(fd(&self.iommufd), self.ioas, iova, bytes)
    }

    fn explain(&self, error: Errno) -> Option<String> {
        match error {
            Errno::EXIST | Errno::ADDRINUSE => Some("the address is mapped already".to_owned()),
            Errno::INVAL => Some("the address is outside the usable ranges or badly aligned".to_owned()),
            _ => None,
        }
    }
}
