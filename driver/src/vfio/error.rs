//! Why a function could not be opened through VFIO, and what to do about it.
#![forbid(unsafe_code)]

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;

use super::IommuKind;
use crate::pci::PciAddress;

/// Why a function could not be opened or used through VFIO. Every message names the function and ends in what to do.
#[derive(Debug, thiserror::Error)]
pub enum VfioError {
    /// There is no such function.
    #[error("{address}: no such PCI function on this machine")]
    NoSuchDevice {
        /// Its address.
        address: PciAddress,
    },
    /// The function is not in vfio-pci's hands.
    #[error(
        "{address}: bound to {}, not to vfio-pci; hand it over first (nvmetal bind {address})",
        driver.as_deref().unwrap_or("no driver")
    )]
    NotBound {
        /// Its address.
        address: PciAddress,
        /// The driver that has it.
        driver: Option<String>,
    },
    /// The machine runs without IOMMU.
    #[error(
        "{address}: the IOMMU is off: no function of this machine is in an IOMMU group. Switch it on in the firmware \
         (VT-d, AMD-Vi, SMMU) and, on Intel, add intel_iommu=on to the kernel's command line"
    )]
    IommuOff {
        /// Its address.
        address: PciAddress,
    },
    /// Other functions are in IOMMU groups, this one is not.
    #[error(
        "{address}: this function is in no IOMMU group, although others are: its IOMMU is not in use (a firmware table \
         that leaves it out, or a passthrough setting)"
    )]
    NoGroup {
        /// Its address.
        address: PciAddress,
    },
    /// The group has no device file.
    #[error("{address}: {} does not exist; is the module vfio-pci loaded and the function bound to it?", node.display())]
    NoNode {
        /// Its address.
        address: PciAddress,
        /// The file.
        node: PathBuf,
    },
    /// The container knows no type1.
    #[error("{address}: the module vfio_iommu_type1 is missing (modprobe vfio_iommu_type1)")]
    NoType1 {
        /// Its address.
        address: PciAddress,
    },
    /// The group was opened without an IOMMU behind it.
    #[error(
        "{address}: its group is in no-IOMMU mode: nothing would keep the drive from writing anywhere in memory, so it is \
         not used. Switch the IOMMU on in the firmware; on a machine that has none, and with nothing to lose, \
         --unsafe-no-iommu takes the risk"
    )]
    NoIommuMode {
        /// Its address.
        address: PciAddress,
    },
    /// iommufd was asked for and is not to be had.
    #[error(
        "{address}: no iommufd: {reason}. It needs Linux 6.6 with CONFIG_IOMMUFD and CONFIG_VFIO_DEVICE_CDEV; --iommu type1 does without"
    )]
    NoIommufd {
        /// Its address.
        address: PciAddress,
        /// What is missing.
        reason: String,
    },
    /// Somebody has it already.
    #[error("{address}: {} is already opened by a process{}; end that first", node.display(), holders_text(holders))]
    Busy {
        /// Its address.
        address: PciAddress,
        /// The file that is held.
        node: PathBuf,
        /// Who holds it, as far as that can be seen.
        holders: Vec<String>,
    },
    /// This user may not.
    #[error(
        "{address}: no permission to open {} for {right}; that file is all that is needed (a udev rule that gives it to a \
         group, or chown), not root",
        node.display()
    )]
    Permission {
        /// Its address.
        address: PciAddress,
        /// The file.
        node: PathBuf,
        /// The right that is missing.
        right: &'static str,
    },
    /// Not all functions of the group are in safe hands.
    #[error(
        "{address}: IOMMU group {group} is not viable: another function in it is bound to a driver that is not vfio-pci. \
         Hand that over, too, or move the drive to a slot with a group of its own"
    )]
    NotViable {
        /// Its address.
        address: PciAddress,
        /// The group's number.
        group: String,
    },
    /// A step of the way failed.
    #[error("{address}: {step}: {source}{}", explanation(*errno, step))]
    Step {
        /// Its address.
        address: PciAddress,
        /// What was tried, with the request's name.
        step: &'static str,
        /// The number of the error, for the explanation.
        errno: Errno,
        /// The system's answer.
        source: io::Error,
    },
    /// The kernel answered with something that cannot be.
    #[error("{address}: {step}: {detail}")]
    Answer {
        /// Its address.
        address: PciAddress,
        /// What was tried, with the request's name.
        step: &'static str,
        /// What is wrong with the answer.
        detail: String,
    },
    /// The group is in use through the other interface.
    #[error("{address}: its IOMMU group is open in this process through {kind} already; one interface at a time")]
    OtherInterface {
        /// Its address.
        address: PciAddress,
        /// The one in use.
        kind: IommuKind,
    },
}

impl VfioError {
    /// A failed step. `step` names the request.
    pub(super) fn step(address: PciAddress, step: &'static str, errno: Errno) -> Self {
        Self::Step { address, step, errno, source: errno.into() }
    }

    /// Whether the cause is the machine or the user's rights, not the device.
    pub fn is_environment(&self) -> bool {
        !matches!(self, Self::NoSuchDevice { .. } | Self::Answer { .. } | Self::Busy { .. })
    }
}

fn holders_text(holders: &[String]) -> String {
    if holders.is_empty() { String::new() } else { format!(" ({})", holders.join(", ")) }
}

/// What an error number means at a step, beyond its name.
fn explanation(errno: Errno, step: &str) -> &'static str {
    match (errno, step) {
        (Errno::INVAL, "VFIO_SET_IOMMU") => " (only possible once a group is in the container)",
        (Errno::INVAL, "VFIO_GROUP_SET_CONTAINER") => {
            " (the group is in a container already, or has been opened without IOMMU)"
        }
        (Errno::INVAL, "VFIO_GROUP_GET_DEVICE_FD") => {
            " (only possible once the container's IOMMU type is set; the group may also have become not viable)"
        }
        (Errno::INVAL, "VFIO_IOMMU_GET_INFO") => " (only possible once the container's IOMMU type is set)",
        (Errno::INVAL, "VFIO_DEVICE_BIND_IOMMUFD") => {
            " (the device is bound already, or another device of its group to another iommufd)"
        }
        (Errno::INVAL, "VFIO_DEVICE_ATTACH_IOMMUFD_PT") => {
            " (another device of the IOMMU group is attached to another address space)"
        }
        (Errno::PERM, "VFIO_SET_IOMMU" | "VFIO_DEVICE_BIND_IOMMUFD" | "VFIO_DEVICE_ATTACH_IOMMUFD_PT") => {
            " (this IOMMU cannot remap interrupts, so a device could forge them; the kernel takes it only with \
             allow_unsafe_interrupts=1 of vfio_iommu_type1 or iommufd)"
        }
        (Errno::NODEV, "VFIO_GROUP_GET_DEVICE_FD") => " (the function is not bound to vfio-pci)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address() -> PciAddress {
        "0000:01:00.0".parse().expect("an address")
    }

    #[test]
    fn d17_an_einval_names_the_step_and_what_it_needs() {
        let error = VfioError::step(address(), "VFIO_SET_IOMMU", Errno::INVAL).to_string();
        assert!(error.starts_with("0000:01:00.0: VFIO_SET_IOMMU: Invalid argument"), "{error}");
        assert!(error.ends_with("(only possible once a group is in the container)"), "{error}");
    }

    #[test]
    fn d03_busy_says_already_opened_and_by_whom() {
        let error =
            VfioError::Busy { address: address(), node: "/dev/vfio/7".into(), holders: vec!["fio (PID 41)".into()] };
        assert_eq!(
            error.to_string(),
            "0000:01:00.0: /dev/vfio/7 is already opened by a process (fio (PID 41)); end that first"
        );
    }

    #[test]
    fn d27_a_missing_right_names_the_file_and_does_not_ask_for_root() {
        let error =
            VfioError::Permission { address: address(), node: "/dev/vfio/7".into(), right: "reading and writing" };
        let message = error.to_string();
        assert!(message.contains("no permission to open /dev/vfio/7 for reading and writing"), "{message}");
        assert!(message.ends_with("not root"), "{message}");
    }

    #[test]
    fn d11_the_three_kinds_of_no_iommu_have_three_messages() {
        let messages = [
            VfioError::IommuOff { address: address() }.to_string(),
            VfioError::NoType1 { address: address() }.to_string(),
            VfioError::NoGroup { address: address() }.to_string(),
        ];
        for (index, part) in ["intel_iommu=on", "modprobe vfio_iommu_type1", "in no IOMMU group"].iter().enumerate() {
            for (other, message) in messages.iter().enumerate() {
                assert_eq!(message.contains(part), index == other, "{message}");
            }
        }
    }
}
