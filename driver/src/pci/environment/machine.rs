//! The kernel: its version, its IOMMU, VFIO's modules, lockdown, and what hides drives.
#![forbid(unsafe_code)]

use super::Finding;
use crate::pci::Sysfs;
use crate::pci::enumerate::{Obstacle, obstacles};
use crate::pci::iommu::State;

/// The first kernel whose VFIO hands out single functions (`/dev/vfio/devices`), which iommufd needs.
const FIRST_WITH_DEVICE_NODES: (u32, u32) = (6, 6);

pub(super) fn findings(sysfs: &Sysfs) -> Vec<Finding> {
    let mut findings = vec![kernel(sysfs), iommu(sysfs)];
    findings.extend(no_iommu(sysfs));
    findings.push(vfio_pci(sysfs));
    findings.push(interface(sysfs));
    findings.extend(lockdown(sysfs));
    findings.extend(hidden_drives(sysfs));
    findings
}

fn release(sysfs: &Sysfs) -> String {
    sysfs.attribute(sysfs.proc("sys/kernel/osrelease")).unwrap_or_default()
}

/// The first two numbers of a kernel release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn kernel(sysfs: &Sysfs) -> Finding {
    let release = release(sysfs);
    match version(&release) {
        Some(version) if version < FIRST_WITH_DEVICE_NODES => {
            Finding::ok("kernel", format!("{release}: VFIO by groups (type1); iommufd comes with 6.6"))
        }
        Some(_) => Finding::ok("kernel", release),
        None => Finding::warn("kernel", "its version cannot be read", "mount /proc"),
    }
}

fn iommu(sysfs: &Sysfs) -> Finding {
    let command_line = sysfs.attribute(sysfs.proc("cmdline")).unwrap_or_default();
    let words: Vec<_> = command_line.split(' ').filter(|word| word.contains("iommu")).collect();
    let told = if words.is_empty() { String::new() } else { format!(" (kernel command line: {})", words.join(" ")) };
    match State::read(sysfs) {
        State::On { units, groups } => {
            let units = if units.is_empty() { "no unit shown".to_owned() } else { units.join(", ") };
            Finding::ok("iommu", format!("on: {units}; {groups} groups{told}"))
        }
        State::Off => {
            let remedy = if words.iter().any(|word| word.ends_with("=off")) {
                "remove the word that switches it off from the kernel command line"
            } else {
                "switch on VT-d (Intel) or AMD-Vi/IOMMU (AMD) in the firmware setup; where it stays off, boot with \
                 intel_iommu=on. Without it: `nvmetal validate DEVICE --via kernel`"
            };
            Finding::blocker("iommu", format!("off: no unit and no group{told}"), remedy)
        }
    }
}

fn no_iommu(sysfs: &Sysfs) -> Option<Finding> {
    let parameter = sysfs.attribute(sysfs.sys("module/vfio/parameters/enable_unsafe_noiommu_mode"))?;
    (parameter == "Y").then(|| {
        Finding::warn(
            "iommu.none",
            "VFIO's no-IOMMU mode is on: it would give a drive to user space with nothing to confine its DMA",
            "switch it off: echo N > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode",
        )
    })
}

/// Where a kernel module is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Module {
    /// In the kernel.
    Loaded,
    /// On disk, or built in without showing itself.
    Available,
    /// Nowhere.
    Missing,
}

impl Module {
    /// Looks for a module, whose name has `-` or `_` as its file has.
    fn find(sysfs: &Sysfs, name: &str) -> Self {
        if sysfs.sys("module").join(name.replace('-', "_")).is_dir() {
            return Self::Loaded;
        }
        let directory = sysfs.modules(release(sysfs));
        let files = ["modules.builtin", "modules.dep"];
        let is_here = |line: &String| {
            let file = line.split(':').next().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
            // Compressed modules are called vfio-pci.ko.zst and the like.
            file.split_once(".ko").is_some_and(|(stem, _)| stem.replace('-', "_") == name.replace('-', "_"))
        };
        let found = files.iter().any(|file| sysfs.lines(directory.join(file)).iter().any(is_here));
        if found { Self::Available } else { Self::Missing }
    }
}

fn vfio_pci(sysfs: &Sysfs) -> Finding {
    let has_driver = sysfs.sys("bus/pci/drivers/vfio-pci").is_dir();
    match Module::find(sysfs, "vfio-pci") {
        _ if has_driver => Finding::ok("module.vfio-pci", "loaded"),
        Module::Loaded | Module::Available => Finding::ok("module.vfio-pci", "available; it is loaded when needed"),
        Module::Missing => Finding::blocker(
            "module.vfio-pci",
            format!("neither loaded nor among the modules of {}", release(sysfs)),
            "install the kernel's module package (linux-modules-extra on Ubuntu), or a kernel with CONFIG_VFIO_PCI",
        ),
    }
}

/// The interfaces to the IOMMU: one of the two is enough.
fn interface(sysfs: &Sysfs) -> Finding {
    let iommufd = if sysfs.dev("iommu").exists() { Module::Loaded } else { Module::find(sysfs, "iommufd") };
    let type1 = Module::find(sysfs, "vfio_iommu_type1");
    let name = |module, name: &str| match module {
        Module::Loaded => Some(format!("{name} loaded")),
        Module::Available => Some(format!("{name} available")),
        Module::Missing => None,
    };
    let present: Vec<_> = [name(iommufd, "iommufd"), name(type1, "type1")].into_iter().flatten().collect();
    if present.is_empty() {
        return Finding::blocker(
            "module.interface",
            "neither iommufd nor vfio_iommu_type1 is loaded or available",
            "modprobe vfio_iommu_type1; if that fails, install the kernel's module package",
        );
    }
    Finding::ok("module.interface", present.join(", "))
}

fn lockdown(sysfs: &Sysfs) -> Option<Finding> {
    let modes = sysfs.attribute(sysfs.sys("kernel/security/lockdown"))?;
    let mode = modes.split(['[', ']']).nth(1)?.to_owned();
    Some(match mode.as_str() {
        "none" => Finding::ok("lockdown", "none"),
        _ => {
            Finding::ok("lockdown", format!("{mode}: VFIO is not restricted by it, only signed modules can be loaded"))
        }
    })
}

fn hidden_drives(sysfs: &Sysfs) -> Vec<Finding> {
    let obstacles = match obstacles(sysfs) {
        Ok(obstacles) => obstacles,
        Err(error) => return vec![Finding::warn("drives", error.to_string(), "mount /sys")],
    };
    let finding = |obstacle: Obstacle| {
        let evidence = obstacle.to_string();
        match obstacle {
            Obstacle::Vmd { has_driver: true, .. } => Finding::warn(
                "vmd",
                evidence,
                "drives behind it share its IOMMU group and interrupts: to take one, switch VMD off for its slot in the \
                 firmware setup",
            ),
            Obstacle::Vmd { has_driver: false, .. } => {
                Finding::warn("vmd", evidence, "modprobe vmd, or switch VMD off in the firmware setup")
            }
            Obstacle::Remapped { .. } | Obstacle::RaidMode { .. } => Finding::warn(
                "raid",
                evidence,
                "switch the storage controller from RAID to AHCI in the firmware setup; an installed system may need \
                 changes before it boots that way",
            ),
        }
    };
    obstacles.into_iter().map(finding).collect()
}
