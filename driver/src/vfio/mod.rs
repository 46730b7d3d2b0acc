//! Linux VFIO: a PCI function in the hands of this process, behind the IOMMU.
//!
//! In the order in which a device is opened:
//!
//! | module | what it answers |
//! |---|---|
//! | [`nodes`] | which files in `/dev` belong to the function, and may we open them? |
//! | `type1`, `iommufd` | the two kernel interfaces that put it behind the IOMMU; `Iommu` is what they have in common |
//! | `no_iommu` | and what is left where there is no IOMMU |
//! | [`iova`] | which addresses the device may see, and which are free |
//! | [`memlock`] | whether the process may pin as much memory as is wanted |
//! | [`space`] | one IOMMU group's address space: the three above together |
//! | [`device`] | the function itself: regions, interrupts, reset |
//! | [`region`], [`window`] | where the registers are, and the mapping of them |
//! | [`sigbus`] | what happens when that mapping faults because the drive is gone |
//! | [`interrupt`] | MSI-X, MSI or INTx as eventfds; error and removal requests |
//!
//! Everything unsafe is in `ioctl`, `window` and `sigbus`. [`crate::transport::vfio`] makes a transport of it.
#![deny(unsafe_code)]

pub(crate) mod capability;
pub mod device;
pub mod error;
pub mod interrupt;
mod ioctl;
mod iommufd;
pub mod iova;
pub mod memlock;
mod no_iommu;
pub mod nodes;
pub mod region;
pub mod sigbus;
pub mod space;
mod type1;
pub mod window;

pub use device::{VfioDevice, VfioOptions};
pub use error::VfioError;

use core::fmt;
use std::os::fd::BorrowedFd;

use iova::IovaRange;
use rustix::io::Errno;

use crate::pci::PciAddress;

/// Which of the kernel's two interfaces to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IommuChoice {
    /// iommufd where this kernel and this user have it, type1 else.
    #[default]
    Auto,
    /// `/dev/iommu` and `/dev/vfio/devices/vfioN` (Linux 6.6 and later).
    Iommufd,
    /// `/dev/vfio/vfio` and `/dev/vfio/GROUP`.
    Type1,
}

/// Which of the kernel's two interfaces is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IommuKind {
    /// Device files and I/O address spaces.
    Iommufd,
    /// Containers and groups.
    Type1,
    /// A group without an IOMMU: the device reaches all of memory.
    NoIommu,
}

impl fmt::Display for IommuKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Iommufd => "iommufd",
            Self::Type1 => "type1",
            Self::NoIommu => "no-iommu",
        })
    }
}

/// Usable addresses, and what a mapping has to be aligned to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub ranges: Vec<IovaRange>,
    pub page_bytes: u64,
}

/// What type1 and iommufd have in common: an address space that devices of one IOMMU group are in.
pub(crate) trait Iommu: Send + Sync + fmt::Debug {
    /// Which interface it is.
    fn kind(&self) -> IommuKind;

    /// Opens the function at `address` and puts it into this address space.
    fn open_device(&self, address: PciAddress, nodes: &nodes::Nodes) -> Result<std::os::fd::OwnedFd, VfioError>;

    /// The usable addresses of all devices that are in it now.
    fn geometry(&self, address: PciAddress) -> Result<Geometry, VfioError>;

    /// The address at which the device sees memory whether we want or not; `None` where there is an IOMMU and the
    /// address can be chosen. Without one, why not may be the answer.
    fn fixed_address(&self, _pointer: usize, _bytes: u64) -> Result<Option<u64>, String> {
        Ok(None)
    }

    /// Makes `bytes` bytes at `pointer` of this process visible at `iova`, for reading and writing. They stay pinned
    /// until they are unmapped.
    fn map(&self, pointer: usize, iova: u64, bytes: u64) -> Result<(), Errno>;

    /// Takes one whole mapping away, and gives how many bytes that were. Afterwards no device in this address space can
    /// reach them.
    fn unmap(&self, iova: u64, bytes: u64) -> Result<u64, Errno>;

    /// What an error of [`Iommu::map`] means here beyond what its name says.
    fn explain(&self, error: Errno) -> Option<String>;
}

/// Borrows a descriptor; a name for the reader.
pub(crate) fn fd(descriptor: &impl std::os::fd::AsFd) -> BorrowedFd<'_> {
    descriptor.as_fd()
}
