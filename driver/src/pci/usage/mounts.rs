//! Mounts of every mount namespace, swap space, and members of mounted btrfs file systems.
//!
//! Each process may have mounts of its own, so `mountinfo` is read once for each mount namespace that some process is
//! in. A mount is matched by its device number. btrfs has a made-up number there and names one of its devices only; its
//! members are listed in `/sys/fs/btrfs`. (A namespace that no process is in cannot be read; the exclusive open of the
//! drive finds its mounts without their names.)
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::layers::Node;
use super::{Doubt, Usage, User};
use crate::pci::host::{DeviceNode, DeviceNumber};
use crate::pci::sysfs::{Process, Sysfs, SysfsError, is_gone, printable};

/// One line of a `mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    pub device: Option<DeviceNumber>,
    pub at: String,
    pub filesystem: String,
    pub source: String,
    pub namespace_of: Option<Process>,
}

/// Everything that is mounted or swapped to.
#[derive(Debug, Default)]
pub(super) struct Mounts {
    /// Each mount, and the device of its source where the number is made up.
    entries: Vec<(Mount, Option<DeviceNode>)>,
    /// Name and number of each swap device.
    swaps: Vec<(String, Option<DeviceNode>)>,
    /// UUID and the names of its devices, of each btrfs.
    btrfs: Vec<(String, Vec<String>)>,
}

impl Mounts {
    pub fn read(sysfs: &Sysfs, usage: &mut Usage) -> Self {
        let mut all = Self { btrfs: read_btrfs(sysfs), ..Self::default() };
        all.read_mounts(sysfs, usage);
        all.read_swaps(sysfs, usage);
        all
    }

    /// Who uses a device by mounting it or swapping to it.
    pub fn users_of(&self, node: &Node) -> Vec<User> {
        let mut users = Vec::new();
        let number = node.block_number();
        for (mount, source) in &self.entries {
            let same_number = mount.device.is_some() && mount.device == number;
            let same_source = source.is_some() && *source == node.device;
            if number.is_some() && (same_number || same_source) {
                users.push(User::Mount {
                    at: mount.at.clone(),
                    filesystem: mount.filesystem.clone(),
                    namespace_of: mount.namespace_of.clone(),
                });
            }
        }
        let is_swap = |(name, device): &(String, Option<DeviceNode>)| {
            (device.is_some() && *device == node.device) || *name == node.name
        };
        if self.swaps.iter().any(is_swap) {
            users.push(User::Swap);
        }
        for (uuid, devices) in &self.btrfs {
            if devices.contains(&node.name) {
                users.push(User::Btrfs { uuid: uuid.clone() });
            }
        }
        users
    }

    fn read_mounts(&mut self, sysfs: &Sysfs, usage: &mut Usage) {
        let own = namespace(sysfs, "self").ok().flatten();
        let mut seen: BTreeSet<PathBuf> = own.iter().cloned().collect();
        self.take(sysfs, &sysfs.proc("self/mountinfo"), None, usage);
        let processes = sysfs.names(sysfs.proc("")).unwrap_or_else(|error| {
            usage.doubt(Doubt::unreadable(&error));
            Vec::new()
        });
        // Processes that may not be looked into are counted by the search for open handles.
        for pid in processes.iter().filter_map(|name| name.parse::<u32>().ok()) {
            let Ok(namespace) = namespace(sysfs, &pid.to_string()) else { continue };
            if namespace.is_some_and(|namespace| !seen.insert(namespace)) {
                continue;
            }
            let process = own.is_some().then(|| sysfs.process(pid));
            self.take(sysfs, &sysfs.proc(format!("{pid}/mountinfo")), process.as_ref(), usage);
        }
    }

    fn take(&mut self, sysfs: &Sysfs, path: &Path, process: Option<&Process>, usage: &mut Usage) {
        let bytes = match sysfs.read_bytes(path) {
            Ok(bytes) => bytes,
            Err(error) if has_left(&error) || error.is_permission_denied() => return,
            Err(error) => return usage.doubt(Doubt::unreadable(&error)),
        };
        for line in bytes.split(|&byte| byte == b'\n') {
            let Some(mut mount) = parse_mount(line) else { continue };
            // The number is that of the device for all file systems but those that make one up (major 0).
            let source = match mount.device {
                Some(DeviceNumber { major: 0, .. }) if mount.source.starts_with("/dev/") => {
                    sysfs.actions().device_node(&sysfs.node(&mount.source)).ok().flatten()
                }
                _ => None,
            };
            mount.namespace_of = process.cloned();
            self.entries.push((mount, source));
        }
    }

    fn read_swaps(&mut self, sysfs: &Sysfs, usage: &mut Usage) {
        let bytes = match sysfs.read_bytes(sysfs.proc("swaps")) {
            Ok(bytes) => bytes,
            // A kernel without swap has no such file.
            Err(error) if error.is_not_found() => return,
            Err(error) => return usage.doubt(Doubt::unreadable(&error)),
        };
        for line in bytes.split(|&byte| byte == b'\n').skip(1) {
            let Some(path) = line.split(u8::is_ascii_whitespace).next().filter(|path| !path.is_empty()) else {
                continue;
            };
            let path = unescaped(path);
            let device = sysfs.actions().device_node(&sysfs.node(&path)).ok().flatten();
            let name = Path::new(&path).file_name().map(|name| name.to_string_lossy().into_owned());
            self.swaps.push((name.unwrap_or_default(), device));
        }
    }
}

/// The mount namespace of a process; `None` when the kernel does not tell of namespaces at all.
fn namespace(sysfs: &Sysfs, process: &str) -> Result<Option<PathBuf>, SysfsError> {
    let path = sysfs.proc(format!("{process}/ns/mnt"));
    match std::fs::read_link(&path) {
        Ok(target) => Ok(Some(target)),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(SysfsError::new(path, error)),
    }
}

/// Whether an error says that the process has ended. The mounts of one that waits for its parent answer EINVAL.
fn has_left(error: &SysfsError) -> bool {
    error.is_not_found() || error.source.kind() == std::io::ErrorKind::InvalidInput
}

fn read_btrfs(sysfs: &Sysfs) -> Vec<(String, Vec<String>)> {
    let root = sysfs.sys("fs/btrfs");
    sysfs
        .names_or_none(&root)
        .into_iter()
        .map(|uuid| {
            let devices = sysfs.names_or_none(root.join(&uuid).join("devices"));
            (uuid, devices)
        })
        .filter(|(_, devices)| !devices.is_empty())
        .collect()
}

/// One line of `mountinfo` (proc(5)): fields 3 and 5, and after a lone `-` file system and source.
pub(super) fn parse_mount(line: &[u8]) -> Option<Mount> {
    let fields: Vec<_> = line.split(|&byte| byte == b' ').collect();
    let separator = fields.iter().position(|field| *field == b"-")?;
    Some(Mount {
        device: core::str::from_utf8(fields.get(2)?).ok()?.parse().ok(),
        at: unescaped(fields.get(4)?),
        filesystem: unescaped(fields.get(separator + 1)?),
        source: unescaped(fields.get(separator + 2)?),
        namespace_of: None,
    })
}

/// A path in which the kernel wrote blanks and backslashes as `\040` and the like. What is not printable stays escaped.
pub(super) fn unescaped(text: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|digits| digits.iter().all(|digit| (b'0'..=b'7').contains(digit)));
        match octal {
            Some(digits) if byte == b'\\' => {
                let value = digits.iter().fold(0u32, |value, digit| value * 8 + u32::from(digit - b'0'));
                bytes.push(value as u8);
                rest = after.get(3..).unwrap_or_default();
            }
            _ => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    // A path may begin or end with a blank, which `printable` would trim.
    bytes.split(|&byte| byte == b' ').map(printable).collect::<Vec<_>>().join(" ")
}
