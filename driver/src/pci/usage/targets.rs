//! Users within the kernel that do not claim what they use: the NVMe target and loop devices.
//!
//! Both open a drive like a process does, without being one: neither an exclusive open nor a look into `/proc` finds
//! them. The NVMe target tells in configfs what it exports, a loop device in sysfs what it stands on.
#![forbid(unsafe_code)]

use super::layers::Node;
use super::{Doubt, Usage, User};
use crate::pci::sysfs::Sysfs;

/// What the kernel itself has open, by the path it was given.
#[derive(Debug, Default)]
pub(super) struct Targets {
    uses: Vec<(String, User)>,
}

impl Targets {
    pub fn read(sysfs: &Sysfs, usage: &mut Usage) -> Self {
        let mut targets = Self::default();
        targets.read_nvmet(sysfs, usage);
        for name in sysfs.names_or_none(sysfs.sys("class/block")) {
            let backing = sysfs.sys("class/block").join(&name).join("loop/backing_file");
            if let Some(path) = sysfs.attribute(backing) {
                targets.uses.push((path, User::Loop { device: name }));
            }
        }
        targets
    }

    /// Who of them uses a device.
    pub fn users_of(&self, sysfs: &Sysfs, node: &Node) -> Vec<User> {
        let is_node = |path: &str| {
            let path = sysfs.node(path);
            let same_device = match sysfs.actions().device_node(&path) {
                Ok(Some(device)) => Some(device) == node.device,
                _ => false,
            };
            same_device || path == node.path
        };
        self.uses.iter().filter(|(path, _)| is_node(path)).map(|(_, user)| user.clone()).collect()
    }

    fn read_nvmet(&mut self, sysfs: &Sysfs, usage: &mut Usage) {
        let root = sysfs.sys("kernel/config/nvmet/subsystems");
        if sysfs.sys("module/nvmet").is_dir() && !root.is_dir() {
            usage.doubt(Doubt::TargetHidden);
        }
        let subsystems = sysfs.names(&root).unwrap_or_else(|error| {
            usage.doubt(Doubt::unreadable(&error));
            Vec::new()
        });
        let is_enabled =
            |directory: &std::path::Path| sysfs.attribute(directory.join("enable")).as_deref() != Some("0");
        for subsystem in subsystems {
            let directory = root.join(&subsystem);
            let passthrough = directory.join("passthru");
            if let Some(path) = sysfs.attribute(passthrough.join("device_path"))
                && is_enabled(&passthrough)
            {
                self.uses.push((path, User::NvmetPassthrough { subsystem: subsystem.clone() }));
            }
            for nsid in sysfs.names_or_none(directory.join("namespaces")) {
                let namespace = directory.join("namespaces").join(&nsid);
                if let Some(path) = sysfs.attribute(namespace.join("device_path"))
                    && is_enabled(&namespace)
                {
                    self.uses.push((path, User::NvmetNamespace { subsystem: subsystem.clone(), nsid }));
                }
            }
        }
    }
}
