//! Whether this machine's IOMMU is on.
#![forbid(unsafe_code)]

use serde::Serialize;

use super::Sysfs;

/// The state of the machine's IOMMU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// It is off, or there is none: no unit and no group.
    Off,
    /// It is on.
    On {
        /// Its units by the kernel's names (`dmar0`, `ivhd0`, ...); some platforms show none.
        units: Vec<String>,
        /// How many groups there are.
        groups: usize,
    },
}

impl State {
    /// Looks at the units and groups that the kernel shows.
    ///
    /// Groups that VFIO made up in its no-IOMMU mode do not count.
    pub fn read(sysfs: &Sysfs) -> Self {
        let units = sysfs.names_or_none(sysfs.sys("class/iommu"));
        let directory = sysfs.sys("kernel/iommu_groups");
        let is_real = |group: &&String| {
            sysfs.attribute(directory.join(group).join("name")).is_none_or(|name| name != "vfio-noiommu")
        };
        let groups = sysfs.names_or_none(&directory).iter().filter(is_real).count();
        if units.is_empty() && groups == 0 { Self::Off } else { Self::On { units, groups } }
    }
}
