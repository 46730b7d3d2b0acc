//! Which processes hold a function through VFIO.
//!
//! Unbinding a function that a process holds blocks until that process lets go, so this is asked before. A process holds
//! it by its group's node, by its own node (`/dev/vfio/devices/vfioN`), or by a descriptor that it got from one of them;
//! that one has no path, but newer kernels name the function in `fdinfo` (`vfio-device-syspath`). A holder that none of
//! this shows is caught by the deadline of the write.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use crate::pci::PciAddress;
use crate::pci::enumerate::IommuGroup;
use crate::pci::host::DeviceNode;
use crate::pci::sysfs::Sysfs;
use crate::pci::usage::{OpenHandle, open_handles};

/// The nodes through which VFIO gives a function to a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VfioNodes {
    /// The group's: `/dev/vfio/14`.
    pub group: Option<PathBuf>,
    /// The function's own, on kernels that have it: `/dev/vfio/devices/vfio0`.
    pub device: Option<PathBuf>,
}

impl VfioNodes {
    /// The nodes of a function; those that do not exist are `None`.
    pub fn of(sysfs: &Sysfs, address: PciAddress) -> Self {
        let group = IommuGroup::of(sysfs, address).map(|group| sysfs.dev("vfio").join(group.node_name()));
        let name = sysfs.names_or_none(sysfs.pci_device(address).join("vfio-dev")).into_iter().next();
        let device = name.map(|name| sysfs.dev("vfio/devices").join(name));
        // The name in sysfs is there on kernels without the node, too.
        let existing = |path: Option<PathBuf>| path.filter(|path| path.exists());
        Self { group: existing(group), device: existing(device) }
    }
}

/// Who holds a function through VFIO, this process included.
pub fn holders(sysfs: &Sysfs, address: PciAddress) -> Vec<OpenHandle> {
    let nodes = VfioNodes::of(sysfs, address);
    let with_number = |path: PathBuf| {
        let device = sysfs.actions().device_node(&path).ok().flatten();
        (path, device)
    };
    let nodes: Vec<(PathBuf, Option<DeviceNode>)> =
        [nodes.group, nodes.device].into_iter().flatten().map(with_number).collect();
    let mut found = open_handles(sysfs, &nodes, &[]).handles;
    for pid in sysfs.names_or_none(sysfs.proc("")).iter().filter_map(|name| name.parse::<u32>().ok()) {
        let is_known = found.iter().any(|handle| handle.process.pid == pid);
        if !is_known && let Some(node) = device_descriptor(sysfs, pid, address) {
            found.push(OpenHandle { process: sysfs.process(pid), node });
        }
    }
    found
}

/// A descriptor of a process whose `fdinfo` names the function.
fn device_descriptor(sysfs: &Sysfs, pid: u32, address: PciAddress) -> Option<PathBuf> {
    let directory = sysfs.proc(format!("{pid}/fd"));
    sysfs.names_or_none(&directory).into_iter().find_map(|number| {
        let target = directory.join(&number).read_link().ok()?;
        if !target.to_string_lossy().contains("vfio-device") {
            return None;
        }
        let lines = sysfs.lines(sysfs.proc(format!("{pid}/fdinfo/{number}")));
        let path = lines.iter().find_map(|line| line.strip_prefix("vfio-device-syspath:"))?;
        (path.trim().rsplit('/').next()?.parse() == Ok(address)).then_some(target)
    })
}
