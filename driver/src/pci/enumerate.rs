//! Every NVMe function of the machine, and what sysfs knows about it.
//!
//! All of it can be read by an ordinary user and without touching the drive. What only the kernel's own driver can
//! tell (model, serial number, namespaces) is there as long as that driver holds the drive, and absent otherwise.
//!
//! A machine can also have NVMe drives that no PCI function shows: behind an Intel controller in RAID mode they are
//! hidden, and behind Intel VMD they live in a domain of their own. [`obstacles`] finds these.
#![forbid(unsafe_code)]

use core::fmt;

use serde::Serialize;

use super::PciAddress;
use super::device_spec::NvmeName;
use super::host::DeviceNumber;
use super::sysfs::{Sysfs, SysfsError};

/// Class code of an NVM Express I/O controller.
const CLASS_NVME_IO: u32 = 0x01_0802;
/// Class code of an NVM Express administrative controller.
const CLASS_NVME_ADMINISTRATIVE: u32 = 0x01_0803;
/// Class code of a RAID controller, which both VMD and Intel's RAID mode use.
const CLASS_RAID: u32 = 0x01_0400;
/// Apple's vendor ID. Its controllers do not all carry the class code of NVMe.
const VENDOR_APPLE: u16 = 0x106b;
/// Apple's NVMe controllers, as the kernel's driver lists them.
const APPLE_NVME: [u16; 3] = [0x2001, 0x2003, 0x2005];
/// Intel's vendor ID.
const VENDOR_INTEL: u16 = 0x8086;
/// Sizes of block devices are in units of 512 bytes in sysfs, whatever the LBA format.
const SYSFS_SECTOR_BYTES: u64 = 512;

/// What kind of NVMe function this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// An I/O controller (class 010802h): a drive.
    Io,
    /// An administrative controller (class 010803h): it manages, and has no namespaces to read.
    Administrative,
    /// An Apple controller, some of which need entries of 128 bytes and other quirks.
    Apple,
}

/// The IOMMU group of a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IommuGroup {
    /// Its number.
    pub number: u32,
    /// Whether VFIO made it up because there is no IOMMU.
    pub no_iommu: bool,
    /// Every function in it, this one included.
    pub members: Vec<GroupMember>,
}

/// A function of an IOMMU group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupMember {
    /// Where it is.
    pub address: PciAddress,
    /// The driver that holds it.
    pub driver: Option<String>,
    /// Its class code.
    pub class: Option<u32>,
}

/// The kernel's controller for a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KernelController {
    /// Its name: `nvme0`.
    pub name: String,
    /// The number of its node.
    pub device: Option<DeviceNumber>,
    /// Model number.
    pub model: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// What the kernel is doing with it: `live`, `resetting`, `dead`, ...
    pub state: Option<String>,
    /// Its namespaces.
    pub namespaces: Vec<KernelNamespace>,
}

/// A namespace as the kernel shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KernelNamespace {
    /// The block device, `nvme0n1`. With multipath the one that joins all paths.
    pub name: String,
    /// The namespace identifier.
    pub nsid: Option<u32>,
    /// Its size.
    pub size_bytes: Option<u64>,
    /// The size of a logical block.
    pub lba_bytes: Option<u32>,
}

/// One NVMe function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NvmeFunction {
    /// Where it is.
    pub address: PciAddress,
    /// I/O or administrative.
    pub kind: Kind,
    /// Vendor ID.
    pub vendor: u16,
    /// Device ID.
    pub device: u16,
    /// Subsystem vendor ID.
    pub subsystem_vendor: Option<u16>,
    /// Subsystem ID.
    pub subsystem_device: Option<u16>,
    /// Class code.
    pub class: u32,
    /// The driver that holds it.
    pub driver: Option<String>,
    /// The only driver that may take it, where one is set.
    pub driver_override: Option<String>,
    /// Its IOMMU group; `None` without an IOMMU.
    pub iommu_group: Option<IommuGroup>,
    /// The memory node it is nearest to.
    pub numa_node: Option<u32>,
    /// The size of base address register 0: the controller's registers.
    pub bar0_bytes: Option<u64>,
    /// The VMD device whose domain it lives in.
    pub behind_vmd: Option<PciAddress>,
    /// The kernel's controller, while the kernel's driver holds it.
    pub controller: Option<KernelController>,
}

impl NvmeFunction {
    /// All NVMe functions of the machine, in the order of their addresses. None is a fine answer.
    pub fn all(sysfs: &Sysfs) -> Result<Vec<Self>, SysfsError> {
        let names = sysfs.names(sysfs.sys("bus/pci/devices"))?;
        let mut functions: Vec<_> = names.iter().filter_map(|name| Self::read(sysfs, name.parse().ok()?)).collect();
        functions.sort_by_key(|function| function.address);
        Ok(functions)
    }

    /// The NVMe function at an address; `None` when there is none or it is something else.
    pub fn read(sysfs: &Sysfs, address: PciAddress) -> Option<Self> {
        let directory = sysfs.pci_device(address);
        let identifier = |name: &str| sysfs.number(directory.join(name)).and_then(|value| u16::try_from(value).ok());
        let (vendor, device) = (identifier("vendor")?, identifier("device")?);
        let class = class_of(sysfs, address)?;
        let kind = match class {
            _ if vendor == VENDOR_APPLE && APPLE_NVME.contains(&device) => Kind::Apple,
            CLASS_NVME_IO => Kind::Io,
            CLASS_NVME_ADMINISTRATIVE => Kind::Administrative,
            _ => return None,
        };
        Some(Self {
            address,
            kind,
            vendor,
            device,
            subsystem_vendor: identifier("subsystem_vendor"),
            subsystem_device: identifier("subsystem_device"),
            class,
            driver: sysfs.link_name(directory.join("driver")),
            driver_override: driver_override(sysfs, address),
            iommu_group: IommuGroup::of(sysfs, address),
            // -1 says that the machine has no such notion.
            numa_node: sysfs.number(directory.join("numa_node")).and_then(|node| u32::try_from(node).ok()),
            bar0_bytes: bar0_bytes(&sysfs.lines(directory.join("resource"))),
            behind_vmd: vmd_above(sysfs, address),
            controller: KernelController::of(sysfs, address),
        })
    }
}

/// The class code of a function.
pub(crate) fn class_of(sysfs: &Sysfs, address: PciAddress) -> Option<u32> {
    u32::try_from(sysfs.number(sysfs.pci_device(address).join("class"))?).ok()
}

/// The driver override of a function; `None` when none is set, which sysfs prints as `(null)`.
pub(crate) fn driver_override(sysfs: &Sysfs, address: PciAddress) -> Option<String> {
    sysfs.attribute(sysfs.pci_device(address).join("driver_override")).filter(|driver| driver != "(null)")
}

/// The size of the first resource: `start end flags`, in hexadecimal, all zero when there is none.
fn bar0_bytes(resource: &[String]) -> Option<u64> {
    let mut fields = resource.first()?.split_whitespace().map(|field| {
        let digits = field.strip_prefix("0x")?;
        u64::from_str_radix(digits, 16).ok()
    });
    let (start, end) = (fields.next()??, fields.next()??);
    let flags = fields.next()??;
    if flags == 0 { None } else { end.checked_sub(start)?.checked_add(1) }
}

/// The VMD device in whose domain a function lives: the one whose directory holds a host bridge above it.
fn vmd_above(sysfs: &Sysfs, address: PciAddress) -> Option<PciAddress> {
    let path = sysfs.canonical(sysfs.pci_device(address)).ok()?;
    let names: Vec<_> = path.iter().map(|name| name.to_string_lossy()).collect();
    names.windows(2).rev().find_map(|pair| match pair {
        [above, bridge] if bridge.starts_with("pci") => above.parse().ok(),
        _ => None,
    })
}

impl IommuGroup {
    /// The group of a function; `None` when it has none.
    pub fn of(sysfs: &Sysfs, address: PciAddress) -> Option<Self> {
        let number = sysfs.link_name(sysfs.pci_device(address).join("iommu_group"))?.parse().ok()?;
        let directory = sysfs.sys(format!("kernel/iommu_groups/{number}"));
        let members = sysfs
            .names_or_none(directory.join("devices"))
            .iter()
            .filter_map(|name| {
                let address = name.parse().ok()?;
                let driver = sysfs.link_name(sysfs.pci_device(address).join("driver"));
                Some(GroupMember { address, driver, class: class_of(sysfs, address) })
            })
            .collect();
        let no_iommu = sysfs.attribute(directory.join("name")).is_some_and(|name| name == "vfio-noiommu");
        Some(Self { number, no_iommu, members })
    }

    /// The name of its node below `/dev/vfio`.
    pub fn node_name(&self) -> String {
        if self.no_iommu { format!("noiommu-{}", self.number) } else { self.number.to_string() }
    }
}

impl KernelController {
    /// The kernel's controller for a function; `None` when its driver does not hold it.
    pub fn of(sysfs: &Sysfs, address: PciAddress) -> Option<Self> {
        let parent = sysfs.pci_device(address).join("nvme");
        let name = sysfs.names_or_none(&parent).into_iter().find(|name| name.starts_with("nvme"))?;
        let directory = parent.join(&name);
        let namespaces = sysfs
            .names_or_none(&directory)
            .iter()
            .filter_map(|entry| match entry.parse().ok()? {
                // A path of a multipath namespace has no node; its head has, and stands for it.
                NvmeName::Namespace(namespace) => Some(KernelNamespace::read(sysfs, &namespace.head_name())),
                _ => None,
            })
            .collect();
        Some(Self {
            device: sysfs.attribute(directory.join("dev")).and_then(|text| text.parse().ok()),
            model: sysfs.attribute(directory.join("model")),
            serial: sysfs.attribute(directory.join("serial")),
            firmware: sysfs.attribute(directory.join("firmware_rev")),
            state: sysfs.attribute(directory.join("state")),
            namespaces,
            name,
        })
    }
}

impl KernelNamespace {
    fn read(sysfs: &Sysfs, name: &str) -> Self {
        let block = sysfs.sys("class/block").join(name);
        let number = |attribute: &str| sysfs.number(block.join(attribute));
        Self {
            name: name.to_owned(),
            nsid: number("nsid").and_then(|nsid| u32::try_from(nsid).ok()),
            size_bytes: number("size").and_then(|sectors| sectors.checked_mul(SYSFS_SECTOR_BYTES)),
            lba_bytes: number("queue/logical_block_size").and_then(|bytes| u32::try_from(bytes).ok()),
        }
    }
}

/// Why a drive that is in the machine may not be in the list, or stands behind something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "obstacle", rename_all = "snake_case")]
pub enum Obstacle {
    /// An Intel Volume Management Device: its drives are in a PCI domain of their own.
    Vmd {
        /// The VMD device.
        address: PciAddress,
        /// Whether its driver is bound, which is what makes the drives behind it appear.
        has_driver: bool,
        /// NVMe functions seen behind it.
        drives: Vec<PciAddress>,
    },
    /// A SATA controller in Intel's RAID mode that hides NVMe drives behind its own registers.
    Remapped {
        /// The SATA controller.
        address: PciAddress,
        /// How many drives it hides.
        drives: u64,
    },
    /// An Intel RAID controller whose driver does not tell what it hides.
    RaidMode {
        /// The controller.
        address: PciAddress,
    },
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vmd { address, has_driver: true, drives } => {
                write!(f, "Intel VMD at {address}: {} NVMe drive(s) in its own PCI domain", drives.len())
            }
            Self::Vmd { address, has_driver: false, .. } => {
                write!(f, "Intel VMD at {address} without its driver `vmd`: drives behind it are not seen")
            }
            Self::Remapped { address, drives } => write!(
                f,
                "{drives} NVMe drive(s) are hidden behind the SATA controller {address} (RAID mode): set the firmware \
                 to AHCI or NVMe mode to see them; an installed system may need changes before it boots that way"
            ),
            Self::RaidMode { address } => {
                write!(f, "Intel RAID controller at {address}: NVMe drives in RAID mode are not seen as PCI functions")
            }
        }
    }
}

/// Everything that hides NVMe drives, or puts them into a domain of their own.
pub fn obstacles(sysfs: &Sysfs) -> Result<Vec<Obstacle>, SysfsError> {
    let functions = NvmeFunction::all(sysfs)?;
    let mut found = Vec::new();
    for name in sysfs.names(sysfs.sys("bus/pci/devices"))? {
        let Ok(address) = name.parse::<PciAddress>() else { continue };
        let directory = sysfs.pci_device(address);
        if let Some(drives) = sysfs.number(directory.join("remapped_nvme")).filter(|&drives| drives > 0) {
            found.push(Obstacle::Remapped { address, drives });
            continue;
        }
        let driver = sysfs.link_name(directory.join("driver"));
        let vendor = sysfs.number(directory.join("vendor"));
        if vendor != Some(u64::from(VENDOR_INTEL)) || class_of(sysfs, address) != Some(CLASS_RAID) {
            continue;
        }
        let device = sysfs.number(directory.join("device")).and_then(|device| u16::try_from(device).ok());
        if driver.as_deref() == Some("vmd") || device.is_some_and(|device| VMD_DEVICES.contains(&device)) {
            let drives = functions
                .iter()
                .filter(|function| function.behind_vmd == Some(address))
                .map(|function| function.address)
                .collect();
            found.push(Obstacle::Vmd { address, has_driver: driver.as_deref() == Some("vmd"), drives });
        } else {
            found.push(Obstacle::RaidMode { address });
        }
    }
    Ok(found)
}

/// Device IDs of Intel's Volume Management Devices, as the kernel's driver `vmd` lists them.
const VMD_DEVICES: [u16; 10] = [0x201d, 0x28c0, 0x467f, 0x4c3d, 0x7d0b, 0x9a0b, 0xa77f, 0xad0b, 0xb06f, 0xb60b];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pci::testing::FakeHost;

    #[test]
    fn a_machine_without_a_drive_has_an_empty_list() {
        let host = FakeHost::new();
        host.function(&["0000:00:1f.2"], "0x010601");
        assert_eq!(NvmeFunction::all(&host.sysfs).unwrap(), []);
        assert_eq!(obstacles(&host.sysfs).unwrap(), []);
    }

    #[test]
    fn a_machine_without_a_pci_bus_has_an_empty_list() {
        let host = FakeHost::new();
        host.remove("sys/bus/pci");
        assert_eq!(NvmeFunction::all(&host.sysfs).unwrap(), []);
    }

    #[test]
    fn a_drive_that_the_kernel_holds_is_told_in_full() {
        let (host, drive) = FakeHost::with_drive();
        host.attribute(drive, "numa_node", "-1\n");
        host.attribute(drive, "resource", "0x00000000a1100000 0x00000000a1103fff 0x0000000000140204\n0x0 0x0 0x0\n");
        let function = NvmeFunction::read(&host.sysfs, drive).unwrap();
        assert_eq!((function.vendor, function.device, function.kind), (0x144d, 0xa80a, Kind::Io));
        assert_eq!(function.driver.as_deref(), Some("nvme"));
        assert_eq!(function.driver_override, None);
        assert_eq!(function.numa_node, None);
        assert_eq!(function.bar0_bytes, Some(16384));
        let group = function.iommu_group.unwrap();
        assert_eq!((group.number, group.members.len(), group.no_iommu), (14, 1, false));
        let controller = function.controller.unwrap();
        assert_eq!(controller.name, "nvme0");
        assert_eq!(controller.model.as_deref(), Some("Samsung SSD 980 1TB"));
        assert_eq!(controller.serial.as_deref(), Some("S649NX0T000001"));
        assert_eq!(controller.firmware.as_deref(), Some("1B4QFXO7"));
        let namespace = &controller.namespaces[0];
        assert_eq!((namespace.name.as_str(), namespace.nsid), ("nvme0n1", Some(1)));
        assert_eq!(namespace.size_bytes, Some(1_000_204_886_016));
        assert_eq!(namespace.lba_bytes, Some(512));
        assert_eq!(controller.namespaces.len(), 1);
    }

    #[test]
    fn b09_text_from_the_drive_is_escaped() {
        let (host, drive) = FakeHost::with_drive();
        host.file("sys/class/nvme/nvme0/model", b"SSD\x1b[2J\xff   \n");
        let model = NvmeFunction::read(&host.sysfs, drive).unwrap().controller.unwrap().model;
        assert_eq!(model.as_deref(), Some("SSD\\x1b[2J\\xff"));
    }

    #[test]
    fn d12_the_driver_is_that_of_this_function_whatever_modules_are_loaded() {
        let (host, drive) = FakeHost::with_drive();
        host.directory("sys/module/vfio_pci");
        assert_eq!(NvmeFunction::read(&host.sysfs, drive).unwrap().driver.as_deref(), Some("nvme"));
    }

    #[test]
    fn c33_two_drives_with_the_same_identity_are_two_functions() {
        let (host, _) = FakeHost::with_drive();
        let other = host.function(&["0000:00:1c.4", "0000:01:00.1"], "0x010802");
        host.bind(other, "nvme");
        host.controller(other, "nvme1", 1);
        let addresses: Vec<_> =
            NvmeFunction::all(&host.sysfs).unwrap().iter().map(|one| one.address.to_string()).collect();
        assert_eq!(addresses, ["0000:01:00.0", "0000:01:00.1"]);
    }

    #[test]
    fn an_administrative_controller_is_listed_as_such() {
        let host = FakeHost::new();
        let address = host.function(&["0000:03:00.0"], "0x010803");
        assert_eq!(NvmeFunction::read(&host.sysfs, address).unwrap().kind, Kind::Administrative);
    }

    #[test]
    fn an_apple_controller_is_found_in_spite_of_its_class() {
        let host = FakeHost::new();
        let address = host.function(&["0000:04:00.0"], "0x018002");
        host.attribute(address, "vendor", "0x106b\n");
        host.attribute(address, "device", "0x2001\n");
        assert_eq!(NvmeFunction::read(&host.sysfs, address).unwrap().kind, Kind::Apple);
    }

    #[test]
    fn d23_a_drive_behind_vmd_keeps_its_wide_domain_and_names_the_vmd() {
        let host = FakeHost::new();
        let vmd = host.function(&["0000:00:0e.0"], "0x010400");
        host.attribute(vmd, "vendor", "0x8086\n");
        host.attribute(vmd, "device", "0x9a0b\n");
        let drive =
            host.function_at("sys/devices/pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:06.0/10000:e1:00.0", "0x010802");
        let function = NvmeFunction::read(&host.sysfs, drive).unwrap();
        assert_eq!(function.behind_vmd, Some(vmd));
        assert_eq!(function.address.to_string(), "10000:e1:00.0");
        assert_eq!(
            obstacles(&host.sysfs).unwrap(),
            [Obstacle::Vmd { address: vmd, has_driver: false, drives: vec![drive] }]
        );
    }

    #[test]
    fn drives_hidden_by_raid_mode_are_counted() {
        let host = FakeHost::new();
        let sata = host.function(&["0000:00:17.0"], "0x010601");
        host.attribute(sata, "remapped_nvme", "2\n");
        assert_eq!(obstacles(&host.sysfs).unwrap(), [Obstacle::Remapped { address: sata, drives: 2 }]);
    }

    #[test]
    fn d21_a_group_that_vfio_made_up_is_recognised() {
        let (host, drive) = FakeHost::with_drive();
        host.file("sys/kernel/iommu_groups/14/name", "vfio-noiommu\n");
        let group = IommuGroup::of(&host.sysfs, drive).unwrap();
        assert!(group.no_iommu);
        assert_eq!(group.node_name(), "noiommu-14");
    }

    #[test]
    fn a_multipath_namespace_is_listed_under_the_name_that_has_a_node() {
        let (host, drive) = FakeHost::with_drive();
        let directory = host.sysfs.pci_device(drive).join("nvme/nvme0");
        std::fs::rename(directory.join("nvme0n1"), directory.join("nvme0c0n1")).unwrap();
        let controller = KernelController::of(&host.sysfs, drive).unwrap();
        assert_eq!(controller.namespaces.len(), 1);
        assert_eq!(controller.namespaces[0].name, "nvme0n1");
    }
}
