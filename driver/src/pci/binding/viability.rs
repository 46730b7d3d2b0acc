//! Whether a function's IOMMU group can be used from user space.
//!
//! The IOMMU keeps groups apart, not the functions within one: what one member does by DMA, all could have done. So the
//! kernel gives a group to a process only when no member is on a driver of its own. Members without a driver are fine,
//! and so are bridges, whose driver does no DMA. What is in the way is never unbound here: it is somebody's disk or
//! network. It is listed, and the choice is the user's.
#![forbid(unsafe_code)]

use core::fmt;

use serde::Serialize;

use crate::pci::PciAddress;
use crate::pci::enumerate::{GroupMember, IommuGroup};

/// Drivers that share a group with user space: the bridges' one, and the one that only keeps others away.
const HARMLESS: [&str; 2] = ["pcieport", "pci-stub"];

/// What stands in the way of using a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Viability {
    /// The group's number.
    pub group: u32,
    /// Other members on drivers of their own.
    pub in_the_way: Vec<GroupMember>,
    /// Other members that may stay as they are.
    pub harmless: Vec<GroupMember>,
}

impl Viability {
    /// Judges the members of a group other than `address`.
    pub fn of(group: &IommuGroup, address: PciAddress) -> Self {
        let others = group.members.iter().filter(|member| member.address != address).cloned();
        let (harmless, in_the_way) = others.partition(|member| member.driver.as_deref().is_none_or(is_harmless));
        Self { group: group.number, in_the_way, harmless }
    }

    /// Whether the kernel will give the group to user space.
    pub fn is_viable(&self) -> bool {
        self.in_the_way.is_empty()
    }
}

/// VFIO's own drivers go by `vfio-pci` and, for particular devices, by names that end in `vfio_pci` or `vfio-pci`.
fn is_harmless(driver: &str) -> bool {
    HARMLESS.contains(&driver) || driver.ends_with("vfio-pci") || driver.ends_with("vfio_pci")
}

impl fmt::Display for Viability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, member) in self.in_the_way.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            let driver = member.driver.as_deref().unwrap_or("no driver");
            write!(f, "{separator}{} ({driver})", member.address)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pci::testing::FakeHost;

    #[test]
    fn d01_other_members_on_drivers_are_listed_and_bridges_and_unbound_ones_are_fine() {
        let (host, _) = FakeHost::with_drive();
        let port = host.function(&["0000:00:02.0"], "0x060400");
        let drive = host.function(&["0000:00:02.0", "0000:05:00.0"], "0x010802");
        let sound = host.function(&["0000:00:02.0", "0000:05:00.1"], "0x040300");
        let unbound = host.function(&["0000:00:02.0", "0000:05:00.2"], "0x020000");
        let network = host.function(&["0000:00:02.0", "0000:05:00.3"], "0x020000");
        host.bind(port, "pcieport");
        host.bind(drive, "nvme");
        host.bind(sound, "snd_hda_intel");
        host.bind(network, "mlx5_vfio_pci");
        host.group(7, &[port, drive, sound, unbound, network]);
        let viability = Viability::of(&IommuGroup::of(&host.sysfs, drive).unwrap(), drive);
        assert!(!viability.is_viable());
        assert_eq!(viability.to_string(), "0000:05:00.1 (snd_hda_intel)");
        let harmless: Vec<_> = viability.harmless.iter().map(|member| member.address).collect();
        assert_eq!(harmless, [port, unbound, network]);
    }

    #[test]
    fn d01_a_drive_alone_in_its_group_is_viable() {
        let (host, drive) = FakeHost::with_drive();
        assert!(Viability::of(&IommuGroup::of(&host.sysfs, drive).unwrap(), drive).is_viable());
    }
}
