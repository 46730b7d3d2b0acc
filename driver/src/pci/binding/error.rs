//! What can go wrong when a drive is taken or given back, and what to do then.
#![forbid(unsafe_code)]

use super::lock::LockError;
use super::viability::Viability;
use super::write::WriteError;
use crate::pci::PciAddress;
use crate::pci::sysfs::SysfsError;
use crate::pci::usage::{InUse, OpenHandle};

/// Which kind of trouble an error is; the command line makes its exit code from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindErrorKind {
    /// Refused because something could be harmed.
    Refused,
    /// The machine is not set up for it.
    Environment,
    /// The device is not there, or no longer.
    Gone,
    /// Anything else that failed.
    Failed,
}

/// A drive that could not be taken or given back.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// There is no NVMe function at this address.
    #[error("there is no NVMe controller at {address}")]
    NotNvme {
        /// The address.
        address: PciAddress,
    },
    /// Another process works on it.
    #[error(transparent)]
    Locked(#[from] LockError),
    /// It is in use, or may be.
    #[error(transparent)]
    InUse(#[from] InUse),
    /// Another driver has it, of which it is not known how to tell whether it is in use.
    #[error("{address} is on the driver {driver}, which is neither the kernel's nvme nor vfio-pci")]
    OtherDriver {
        /// The drive.
        address: PciAddress,
        /// Its driver.
        driver: String,
    },
    /// A process holds it through VFIO.
    #[error("{address} is held by {}", list(holders))]
    Held {
        /// The drive.
        address: PciAddress,
        /// By whom, and through which node.
        holders: Vec<OpenHandle>,
    },
    /// The machine's IOMMU is off, or it has none.
    #[error("{address}: the IOMMU is off (this machine shows no IOMMU group at all)")]
    IommuOff {
        /// The drive.
        address: PciAddress,
    },
    /// The IOMMU is on, but not for this function.
    #[error("{address} is in no IOMMU group, though the machine's IOMMU is on")]
    NoGroup {
        /// The drive.
        address: PciAddress,
    },
    /// Its group is one that VFIO made up without an IOMMU.
    #[error("{address} is in the group {group} of VFIO's no-IOMMU mode: nothing would confine the drive's DMA")]
    NoIommuMode {
        /// The drive.
        address: PciAddress,
        /// The group's node name.
        group: String,
    },
    /// Other members of its group are on drivers of their own.
    #[error("{address} shares IOMMU group {} with {viability}", viability.group)]
    NotViable {
        /// The drive.
        address: PciAddress,
        /// Its group.
        viability: Viability,
    },
    /// A driver is neither there nor can it be loaded.
    #[error("the kernel module {module} is not loaded and could not be loaded: {reason}")]
    ModuleMissing {
        /// Which.
        module: String,
        /// What the loader said.
        reason: String,
    },
    /// An attribute could not be written.
    #[error("{address}: {source}")]
    Write {
        /// The drive.
        address: PciAddress,
        /// What happened.
        source: WriteError,
    },
    /// vfio-pci did not take the drive.
    #[error("{address}: vfio-pci did not take the drive{}; {}", because(reason.as_deref()), on_driver(driver.as_deref()))]
    NotTaken {
        /// The drive.
        address: PciAddress,
        /// What the kernel said to the probe.
        reason: Option<String>,
        /// The driver that has it after it was put back.
        driver: Option<String>,
    },
    /// No driver took the drive back.
    #[error("{address}: no driver took the drive back{}", because(reason.as_deref()))]
    NotTakenBack {
        /// The drive.
        address: PciAddress,
        /// What the kernel said to the probe.
        reason: Option<String>,
    },
    /// vfio-pci takes the drive again by its vendor and device ID.
    #[error("{address}: vfio-pci takes the drive again, by an ID that it was told of")]
    TakenAgain {
        /// The drive.
        address: PciAddress,
    },
    /// A file of the host could not be read.
    #[error(transparent)]
    Sysfs(#[from] SysfsError),
}

fn list(holders: &[OpenHandle]) -> String {
    let holder = |handle: &OpenHandle| format!("{} through {}", handle.process, handle.node.display());
    holders.iter().map(holder).collect::<Vec<_>>().join(", ")
}

fn because(reason: Option<&str>) -> String {
    reason.map_or_else(String::new, |reason| format!(" ({reason})"))
}

fn on_driver(driver: Option<&str>) -> String {
    match driver {
        Some(driver) => format!("it is back on {driver}"),
        None => "it has no driver now".to_owned(),
    }
}

impl BindError {
    /// Which kind of trouble this is.
    pub fn kind(&self) -> BindErrorKind {
        match self {
            Self::Locked(LockError::Held { .. })
            | Self::InUse(_)
            | Self::OtherDriver { .. }
            | Self::Held { .. }
            | Self::NoIommuMode { .. } => BindErrorKind::Refused,
            Self::Locked(LockError::NoFile(_))
            | Self::IommuOff { .. }
            | Self::NoGroup { .. }
            | Self::NotViable { .. }
            | Self::ModuleMissing { .. } => BindErrorKind::Environment,
            Self::NotNvme { .. } => BindErrorKind::Gone,
            Self::Write { source: WriteError::Refused(error), .. } | Self::Sysfs(error) if error.is_not_found() => {
                BindErrorKind::Gone
            }
            Self::Write { source: WriteError::Refused(error), .. } | Self::Sysfs(error)
                if error.is_permission_denied() =>
            {
                BindErrorKind::Environment
            }
            Self::Write { .. }
            | Self::NotTaken { .. }
            | Self::NotTakenBack { .. }
            | Self::TakenAgain { .. }
            | Self::Sysfs(_) => BindErrorKind::Failed,
        }
    }

    /// What to do next.
    pub fn remedy(&self) -> String {
        match self {
            Self::NotNvme { .. } => "`nvmetal list` shows the NVMe controllers of this machine".into(),
            Self::Locked(LockError::Held { .. }) => "wait for that process to end, or stop it".into(),
            Self::Locked(LockError::NoFile(_)) => {
                "run it as root, or make /run/lock or the temporary directory writable for this user".into()
            }
            Self::InUse(in_use) if in_use.usage.chains.is_empty() => {
                "settle what is in doubt, or use `nvmetal validate DEVICE --via kernel`".into()
            }
            Self::InUse(_) => {
                "unmount, swap off or close what is named; or look at the drive without taking it: \
                 `nvmetal validate DEVICE --via kernel`"
                    .into()
            }
            Self::OtherDriver { address, driver } => {
                format!("stop what uses it, then: echo {address} > /sys/bus/pci/drivers/{driver}/unbind")
            }
            Self::Held { .. } => "end that process first: a held drive cannot be unbound".into(),
            Self::IommuOff { .. } => {
                "switch on VT-d or AMD-Vi in the firmware setup, and boot with intel_iommu=on where the kernel needs it; \
                 or use `nvmetal validate DEVICE --via kernel`"
                    .into()
            }
            Self::NoGroup { .. } => {
                "this slot, or this kernel's settings, keep the device out of the IOMMU (iommu=off, a platform quirk): try \
                 another slot, or use `nvmetal validate DEVICE --via kernel`"
                    .into()
            }
            Self::NoIommuMode { .. } => "switch the IOMMU on; `--unsafe-no-iommu` only on a machine that may crash".into(),
            Self::NotViable { viability, .. } => {
                let members: Vec<_> = viability.in_the_way.iter().map(|member| member.address.to_string()).collect();
                format!(
                    "unbind {} from its driver if nothing needs it, move the card to another slot, or use \
                     `nvmetal validate DEVICE --via kernel`; other members are never unbound for you",
                    members.join(" and ")
                )
            }
            Self::ModuleMissing { module, .. } => {
                format!("install the kernel's module package (linux-modules-extra on Ubuntu), then: modprobe {module}")
            }
            Self::Write { address, source: WriteError::Blocked { .. } } => format!(
                "the kernel is still at it: a process holds the drive, or the drive does not answer. When it is done: \
                 nvmetal release {address}"
            ),
            Self::Write { source: WriteError::Refused(error), .. } | Self::Sysfs(error) if error.is_permission_denied() => {
                "binding takes root: run it with sudo, or let root run `nvmetal bind` once".into()
            }
            Self::NotTaken { .. } => "`dmesg` tells why vfio-pci refused; `nvmetal doctor` shows what is missing".into(),
            Self::NotTakenBack { address, .. } => {
                format!("`dmesg` tells why; then: modprobe nvme; echo {address} > /sys/bus/pci/drivers_probe")
            }
            Self::TakenAgain { .. } => {
                "remove the ID: from vfio-pci.ids= on the kernel command line or in /etc/modprobe.d, or by \
                 /sys/bus/pci/drivers/vfio-pci/remove_id"
                    .into()
            }
            Self::Write { .. } | Self::Sysfs(_) => "`nvmetal doctor` shows what stands in the way".into(),
        }
    }
}
