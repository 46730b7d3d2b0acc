//! Which files in `/dev` belong to a function.
//!
//! type1 knows *groups* (`/dev/vfio/7`, all functions that the IOMMU cannot tell apart), iommufd knows *devices*
//! (`/dev/vfio/devices/vfio0`). Two traps: kernels without the device interface still have `vfio-dev/vfio0` in sysfs, so
//! only the file in `/dev` counts; and a group without an IOMMU looks like any other except for its name.
#![forbid(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::VfioError;
use crate::pci::enumerate::IommuGroup;
use crate::pci::{PciAddress, Sysfs, iommu};

/// A function's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nodes {
    /// The number of its IOMMU group.
    pub group: String,
    /// Whether the group has no IOMMU behind it.
    pub no_iommu: bool,
    /// `/dev/vfio/GROUP`.
    pub group_node: PathBuf,
    /// `/dev/vfio/devices/vfioN`, whether it exists or not; `None` where sysfs has no such name.
    pub device_node: Option<PathBuf>,
    /// `/dev/vfio/vfio`.
    pub container_node: PathBuf,
    /// `/dev/iommu`.
    pub iommufd_node: PathBuf,
}

impl Nodes {
    /// Finds the files of the function at `address`, which must be in vfio-pci's hands, and behind an IOMMU unless
    /// `unsafe_no_iommu`.
    pub fn find(sysfs: &Sysfs, address: PciAddress, unsafe_no_iommu: bool) -> Result<Self, VfioError> {
        let function = sysfs.pci_device(address);
        if !function.is_dir() {
            return Err(VfioError::NoSuchDevice { address });
        }
        let driver = sysfs.link_name(function.join("driver"));
        if driver.as_deref() != Some("vfio-pci") {
            return Err(VfioError::NotBound { address, driver });
        }
        let Some(group) = IommuGroup::of(sysfs, address) else {
            return Err(match iommu::State::read(sysfs) {
                iommu::State::Off => VfioError::IommuOff { address },
                iommu::State::On { .. } => VfioError::NoGroup { address },
            });
        };
        // Only its name counts: kernels without device files have it, too.
        let device = sysfs.names_or_none(function.join("vfio-dev")).into_iter().next();
        let no_iommu = group.no_iommu || device.as_deref().is_some_and(|name| name.starts_with("noiommu-"));
        if no_iommu && !unsafe_no_iommu {
            return Err(VfioError::NoIommuMode { address });
        }
        Ok(Self {
            group_node: sysfs.dev("vfio").join(group.node_name()),
            device_node: device.map(|name| sysfs.dev("vfio/devices").join(name)),
            container_node: sysfs.dev("vfio/vfio"),
            iommufd_node: sysfs.dev("iommu"),
            group: group.number.to_string(),
            no_iommu,
        })
    }
}

/// Opens a file of `/dev` for reading and writing, and says what stands in the way.
pub(super) fn open(address: PciAddress, node: &Path) -> Result<File, VfioError> {
    OpenOptions::new().read(true).write(true).open(node).map_err(|source| {
        let node = node.to_owned();
        match source.kind() {
            ErrorKind::NotFound => VfioError::NoNode { address, node },
            ErrorKind::PermissionDenied => VfioError::Permission { address, node, right: "reading and writing" },
            ErrorKind::ResourceBusy => VfioError::Busy { holders: Vec::new(), address, node },
            _ => VfioError::Step {
                address,
                step: "open",
                errno: rustix::io::Errno::from_io_error(&source).unwrap_or(rustix::io::Errno::IO),
                source,
            },
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pci::ThisHost;
    use std::fs::{create_dir_all, write};
    use std::os::unix::fs::symlink;
    use std::sync::Arc;

    fn address() -> PciAddress {
        "0000:01:00.0".parse().expect("an address")
    }

    /// A machine with one function, its driver and IOMMU group as given.
    fn machine(driver: Option<&str>, group: Option<&str>) -> (tempfile::TempDir, Sysfs) {
        let root = tempfile::tempdir().expect("a directory");
        let sysfs = Sysfs::at(root.path(), Arc::new(ThisHost));
        let function = sysfs.pci_device(address());
        create_dir_all(&function).expect("a directory");
        create_dir_all(sysfs.sys("kernel/iommu_groups")).expect("a directory");
        create_dir_all(sysfs.dev("vfio")).expect("a directory");
        if let Some(driver) = driver {
            symlink(sysfs.sys("bus/pci/drivers").join(driver), function.join("driver")).expect("a link");
        }
        if let Some(group) = group {
            let directory = sysfs.sys("kernel/iommu_groups").join(group);
            create_dir_all(&directory).expect("a directory");
            symlink(directory, function.join("iommu_group")).expect("a link");
        }
        (root, sysfs)
    }

    #[test]
    fn a_bound_function_has_its_groups_node() {
        let (_root, sysfs) = machine(Some("vfio-pci"), Some("7"));
        let nodes = Nodes::find(&sysfs, address(), false).expect("nodes");
        assert_eq!(nodes.group, "7");
        assert_eq!(nodes.group_node, sysfs.dev("vfio/7"));
        assert_eq!(nodes.device_node, None);
    }

    #[test]
    fn d11_without_any_group_the_iommu_is_off_and_with_others_this_one_is_missing() {
        let (_root, sysfs) = machine(Some("vfio-pci"), None);
        assert!(matches!(Nodes::find(&sysfs, address(), false), Err(VfioError::IommuOff { .. })));
        create_dir_all(sysfs.sys("kernel/iommu_groups/3")).expect("a directory");
        assert!(matches!(Nodes::find(&sysfs, address(), false), Err(VfioError::NoGroup { .. })));
    }

    #[test]
    fn d12_the_functions_own_driver_decides() {
        let (_root, sysfs) = machine(Some("nvme"), Some("7"));
        match Nodes::find(&sysfs, address(), false) {
            Err(VfioError::NotBound { driver, .. }) => assert_eq!(driver.as_deref(), Some("nvme")),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn d21_a_group_without_iommu_is_recognised_and_refused() {
        let (_root, sysfs) = machine(Some("vfio-pci"), Some("0"));
        write(sysfs.sys("kernel/iommu_groups/0/name"), "vfio-noiommu\n").expect("a file");
        assert!(matches!(Nodes::find(&sysfs, address(), false), Err(VfioError::NoIommuMode { .. })));
        let nodes = Nodes::find(&sysfs, address(), true).expect("allowed by name only");
        assert!(nodes.no_iommu);
        assert_eq!(nodes.group_node, sysfs.dev("vfio/noiommu-0"));
    }

    #[test]
    fn d21_a_device_file_without_iommu_is_recognised_and_refused() {
        let (_root, sysfs) = machine(Some("vfio-pci"), Some("0"));
        create_dir_all(sysfs.pci_device(address()).join("vfio-dev/noiommu-vfio0")).expect("a directory");
        assert!(matches!(Nodes::find(&sysfs, address(), false), Err(VfioError::NoIommuMode { .. })));
    }

    #[test]
    fn d27_a_missing_node_and_other_reasons_are_told_apart() {
        let (_root, sysfs) = machine(Some("vfio-pci"), Some("7"));
        let node = sysfs.dev("vfio/7");
        assert!(matches!(open(address(), &node), Err(VfioError::NoNode { .. })));
        // A directory can be opened by nobody for writing, not even by root.
        create_dir_all(&node).expect("a directory");
        assert!(matches!(open(address(), &node), Err(VfioError::Step { step: "open", .. })));
    }

    #[test]
    fn an_unknown_function_is_said_to_be_unknown() {
        let (_root, sysfs) = machine(None, None);
        let other = "0000:02:00.0".parse().expect("an address");
        assert!(matches!(Nodes::find(&sysfs, other, false), Err(VfioError::NoSuchDevice { .. })));
    }
}
