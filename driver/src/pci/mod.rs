//! The PCI side of a drive: finding it, its links, who uses it, taking it from the kernel and giving it back.
//!
//! Nothing here touches the drive's registers: everything is done through the host's own files, and all of them are
//! reached through [`Sysfs`], which in tests is a directory of plain files. In the reader's order:
//!
//! - [`PciAddress`], and [`device_spec`] that finds the address behind any name a person may type;
//! - [`enumerate`]: every NVMe function of the machine, without asking the drive;
//! - [`config`]: configuration space, decoded from bytes wherever they come from;
//! - [`link`]: the links between a drive and the root, and the most they can carry;
//! - [`usage`]: who uses a drive, and holding one that nobody uses;
//! - [`binding`]: handing a drive to vfio-pci and giving it back, and [`iommu`], without which that is no use;
//! - [`environment`]: what stands between this machine and a run, and what to do about it.
#![forbid(unsafe_code)]

mod address;
pub mod binding;
pub mod config;
pub mod device_spec;
pub mod enumerate;
pub mod environment;
mod host;
pub mod iommu;
pub mod link;
mod sysfs;
#[cfg(test)]
pub(crate) mod testing;
pub mod usage;

pub use address::{AddressError, AddressFault, PciAddress};
pub use host::{DeviceNode, DeviceNumber, DeviceNumberError, ExclusiveOpen, HostActions, ThisHost};
pub use sysfs::{Process, Sysfs, SysfsError};
