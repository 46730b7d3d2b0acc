//! Who uses a drive: the question that decides whether it may be taken away.
//!
//! A drive that is not mounted may still be in use: a partition of it is, or a volume on top of a partition, or another
//! process has it open, in a mount namespace that this process does not see. There is one question that the kernel
//! answers for all of this at once: an *exclusive open* of the whole disk fails with EBUSY when anything has claimed the
//! disk or one of its partitions (mounts in any namespace, swap, device mapper, md, bcache, ZFS, btrfs). And while it is
//! held, nobody else can claim the disk or any partition, those that are yet to be made included; so a [`Claim`] holds it
//! until the drive has left the kernel's driver, and no mount can slip in between. (Partitions are not opened as well:
//! within one disk the kernel gives either the whole or the parts, so holding both is impossible, and not needed.)
//!
//! What an exclusive open does not see is looked for by name: other processes' open descriptors, targets that export
//! the drive, loop devices. And since "EBUSY" tells a person nothing, the layers above are walked for the chain to show:
//! `namespace 1 -> partition 2 -> dm "vg-root" -> mounted at /`.
//!
//! What cannot be found out is a [`Doubt`], and a doubt refuses just as a use does.
#![forbid(unsafe_code)]

mod claim;
mod handles;
mod layers;
mod mounts;
mod targets;
#[cfg(test)]
mod tests;

use core::fmt;
use std::path::PathBuf;

use serde::Serialize;

use super::enumerate::{KernelController, NvmeFunction};
use super::sysfs::{Process, Sysfs, SysfsError};

pub use claim::{Claim, InUse};
pub use handles::{HandleScan, OpenHandle, open_handles};

/// A layer between the drive and its user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "layer", rename_all = "snake_case")]
pub enum Layer {
    /// The controller itself.
    Controller {
        /// Its name.
        name: String,
    },
    /// A namespace of the drive.
    Namespace {
        /// Its block device.
        name: String,
        /// Its identifier.
        nsid: Option<u32>,
    },
    /// A partition.
    Partition {
        /// Its number.
        number: u64,
        /// Its block device.
        name: String,
    },
    /// A device mapper volume: LVM, LUKS, multipath and others.
    DeviceMapper {
        /// Its name (`vg-root`).
        name: String,
        /// Its block device (`dm-0`).
        device: String,
    },
    /// A software RAID.
    Md {
        /// Its block device.
        device: String,
    },
    /// Another block device that stands on the one before.
    Block {
        /// Its name.
        device: String,
    },
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Controller { name } => write!(f, "controller {name}"),
            Self::Namespace { nsid: Some(nsid), .. } => write!(f, "namespace {nsid}"),
            Self::Namespace { name, nsid: None } => write!(f, "namespace {name}"),
            Self::Partition { number, .. } => write!(f, "partition {number}"),
            Self::DeviceMapper { name, .. } => write!(f, "dm \"{name}\""),
            Self::Md { device } => write!(f, "md {device}"),
            Self::Block { device } => f.write_str(device),
        }
    }
}

/// Who is at the end of a chain of layers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "user", rename_all = "snake_case")]
pub enum User {
    /// It is mounted.
    Mount {
        /// Where.
        at: String,
        /// The file system.
        filesystem: String,
        /// A process of the mount namespace, when that is not the own one.
        namespace_of: Option<Process>,
    },
    /// It is swap space.
    Swap,
    /// It belongs to a mounted btrfs.
    Btrfs {
        /// The file system's UUID.
        uuid: String,
    },
    /// A process has it open.
    Handle {
        /// Who.
        process: Process,
        /// Which node.
        node: String,
    },
    /// A loop device stands on it.
    Loop {
        /// The loop device.
        device: String,
    },
    /// The NVMe target exports it as a namespace.
    NvmetNamespace {
        /// The NQN of the subsystem.
        subsystem: String,
        /// The exported namespace.
        nsid: String,
    },
    /// The NVMe target passes commands through to it.
    NvmetPassthrough {
        /// The NQN of the subsystem.
        subsystem: String,
    },
    /// The kernel has claimed it, and nothing tells for whom. ZFS does this.
    Unnamed,
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mount { at, namespace_of: None, .. } => write!(f, "mounted at {at}"),
            Self::Mount { at, namespace_of: Some(process), .. } => {
                write!(f, "mounted at {at} in the mount namespace of {process}")
            }
            Self::Swap => f.write_str("swap"),
            Self::Btrfs { uuid } => write!(f, "btrfs {uuid}"),
            Self::Handle { process, node } => write!(f, "{node} open in {process}"),
            Self::Loop { device } => write!(f, "loop device {device}"),
            Self::NvmetNamespace { subsystem, nsid } => write!(f, "NVMe target {subsystem} namespace {nsid}"),
            Self::NvmetPassthrough { subsystem } => write!(f, "NVMe target {subsystem} (passthrough)"),
            Self::Unnamed => {
                f.write_str("claimed within the kernel (nothing tells for whom; ZFS shows itself this way)")
            }
        }
    }
}

/// One use: the layers from the drive up, and who is at the top.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UseChain {
    /// From the drive upwards.
    pub layers: Vec<Layer>,
    /// The user; `None` when the uppermost layer holds those below it, but nobody uses it at present.
    pub user: Option<User>,
}

impl fmt::Display for UseChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, layer) in self.layers.iter().enumerate() {
            let separator = if index == 0 { "" } else { " -> " };
            write!(f, "{separator}{layer}")?;
        }
        match &self.user {
            Some(user) => write!(f, " -> {user}"),
            None => Ok(()),
        }
    }
}

/// Something that could not be found out. It counts as a use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "doubt", rename_all = "snake_case")]
pub enum Doubt {
    /// Other processes' descriptors or mounts could not be read.
    HiddenProcesses {
        /// How many.
        count: usize,
    },
    /// This process is in a process namespace of its own (a container), and does not see the machine's processes.
    ProcessNamespace,
    /// A file that decides could not be read.
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What the system said.
        error: String,
    },
    /// A node could not be opened exclusively, for another reason than being in use.
    NotOpened {
        /// Which.
        node: PathBuf,
        /// What the system said.
        error: String,
        /// Whether the caller lacks the right.
        permission: bool,
    },
    /// A node is not the device that it is named for.
    WrongNode {
        /// Which.
        node: PathBuf,
    },
    /// The kernel is changing the controller's state: its namespaces may not all be listed.
    Unsettled {
        /// The state.
        state: String,
    },
    /// The NVMe target is loaded, but its configuration cannot be seen.
    TargetHidden,
    /// Layers stand on each other without end.
    TooDeep {
        /// The device at which the walk ended.
        device: String,
    },
}

impl Doubt {
    fn unreadable(error: &SysfsError) -> Self {
        Self::Unreadable { path: error.path.clone(), error: error.source.to_string() }
    }

    /// Whether root would know.
    pub fn is_permission(&self) -> bool {
        matches!(self, Self::HiddenProcesses { .. } | Self::NotOpened { permission: true, .. })
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HiddenProcesses { count } => {
                write!(f, "{count} process(es) of other users could not be looked into; run as root")
            }
            Self::ProcessNamespace => f.write_str(
                "this is a container with processes of its own: who else uses the drive cannot be seen from here; \
                 run on the host, or share its process namespace",
            ),
            Self::Unreadable { path, error } => write!(f, "{} could not be read: {error}", path.display()),
            Self::NotOpened { node, error, permission: true } => {
                write!(f, "{} could not be opened exclusively: {error}; run as root", node.display())
            }
            Self::NotOpened { node, error, permission: false } => {
                write!(f, "{} could not be opened exclusively: {error}", node.display())
            }
            Self::WrongNode { node } => write!(f, "{} is not the device that it is named for", node.display()),
            Self::Unsettled { state } => write!(f, "the kernel's controller is {state}; wait and try again"),
            Self::TargetHidden => f.write_str(
                "the NVMe target is loaded but its configuration is not mounted: \
                 mount -t configfs none /sys/kernel/config",
            ),
            Self::TooDeep { device } => write!(f, "the layers above {device} do not end"),
        }
    }
}

/// Everything that was found about who uses a drive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// The uses.
    pub chains: Vec<UseChain>,
    /// What could not be found out.
    pub doubts: Vec<Doubt>,
}

impl Usage {
    /// Whether nobody uses the drive, beyond doubt.
    pub fn is_free(&self) -> bool {
        self.chains.is_empty() && self.doubts.is_empty()
    }

    /// Looks who uses a drive, without opening anything. For showing; to take a drive, see [`Claim`].
    ///
    /// A drive that the kernel's driver does not hold has no users here; who holds its VFIO nodes is
    /// [`binding`](crate::pci::binding)'s question.
    pub fn survey(sysfs: &Sysfs, function: &NvmeFunction) -> Self {
        match &function.controller {
            Some(controller) => Survey::new(sysfs, controller, &[]).run(),
            None => Self::default(),
        }
    }

    fn doubt(&mut self, doubt: Doubt) {
        if !self.doubts.contains(&doubt) {
            self.doubts.push(doubt);
        }
    }

    fn add(&mut self, chain: UseChain) {
        if !self.chains.contains(&chain) {
            self.chains.push(chain);
        }
    }
}

/// One look at everything above a controller.
struct Survey<'a> {
    sysfs: &'a Sysfs,
    controller: &'a KernelController,
    /// Our own descriptors that do not count.
    own: &'a [i32],
    usage: Usage,
}

impl<'a> Survey<'a> {
    fn new(sysfs: &'a Sysfs, controller: &'a KernelController, own: &'a [i32]) -> Self {
        Self { sysfs, controller, own, usage: Usage::default() }
    }

    fn run(mut self) -> Usage {
        if let Some(state) = self.controller.state.as_deref()
            && !matches!(state, "live" | "dead")
        {
            self.usage.doubt(Doubt::Unsettled { state: state.to_owned() });
        }
        let tree = layers::Tree::above(self.sysfs, self.controller, &mut self.usage);
        let mounts = mounts::Mounts::read(self.sysfs, &mut self.usage);
        let targets = targets::Targets::read(self.sysfs, &mut self.usage);
        let scan = open_handles(self.sysfs, &tree.own_nodes(), self.own);
        self.usage.add_scan_doubts(&scan);
        for node in &tree.nodes {
            let mut users = mounts.users_of(node);
            users.extend(targets.users_of(self.sysfs, node));
            if node.is_own {
                users.extend(scan.handles.iter().filter(|handle| handle.node == node.path).map(|handle| {
                    User::Handle { process: handle.process.clone(), node: handle.node.display().to_string() }
                }));
            }
            // A holder keeps what is below it busy even when nobody uses the holder itself.
            if users.is_empty() && node.is_uppermost_holder {
                self.usage.add(UseChain { layers: node.layers.clone(), user: None });
            }
            for user in users {
                self.usage.add(UseChain { layers: node.layers.clone(), user: Some(user) });
            }
        }
        self.usage
    }
}

impl Usage {
    fn add_scan_doubts(&mut self, scan: &HandleScan) {
        if scan.hidden_processes > 0 {
            self.doubt(Doubt::HiddenProcesses { count: scan.hidden_processes });
        }
        if scan.in_process_namespace {
            self.doubt(Doubt::ProcessNamespace);
        }
    }
}
