//! From what a person types to the PCI function that is meant.
//!
//! A drive has many names: its address, the kernel's controller (`nvme1`), a namespace (`nvme1n1`), a partition
//! (`nvme1n1p2`), the generic node (`ng1n1`), and links such as `/dev/disk/by-id/nvme-...`. All of them mean the one
//! PCI function that is taken or tested in the end, and the [`Resolved`] says which that is and how it was found, since
//! the kernel's numbers change from boot to boot.
#![forbid(unsafe_code)]

use core::fmt;
use core::str::FromStr;
use std::path::Path;

use serde::Serialize;

use super::enumerate::{NvmeFunction, class_of};
use super::sysfs::Sysfs;
use super::{AddressError, PciAddress};

/// The name of a namespace's block device: `nvme1n1`, or `nvme1c0n1` for one path of a multipath namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct NamespaceName {
    /// The number after `nvme`: of the controller, or with multipath of the subsystem.
    pub instance: u32,
    /// The controller's number within a multipath name.
    pub path: Option<u32>,
    /// The number after `n`. Counted by the kernel; most often, but not always, the NSID.
    pub index: u32,
}

impl NamespaceName {
    /// The name of the device that has a node: without the path.
    pub fn head_name(&self) -> String {
        format!("nvme{}n{}", self.instance, self.index)
    }

    /// The name of the generic character device beside it.
    pub fn generic_name(&self) -> String {
        format!("ng{}n{}", self.instance, self.index)
    }
}

/// A name that the kernel's NVMe driver gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NvmeName {
    /// A controller: `nvme1`.
    Controller {
        /// Its number.
        instance: u32,
    },
    /// A namespace: `nvme1n1`.
    Namespace(NamespaceName),
    /// A partition of a namespace: `nvme1n1p2`.
    Partition {
        /// The namespace.
        namespace: NamespaceName,
        /// The partition's number.
        number: u32,
    },
    /// The generic node of a namespace: `ng1n1`.
    Generic(NamespaceName),
}

/// A text that is no name of the kernel's NVMe driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a name like nvme1, nvme1n1, nvme1n1p2 or ng1n1")]
pub struct NameError;

impl FromStr for NvmeName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let (rest, is_generic) = match (text.strip_prefix("nvme"), text.strip_prefix("ng")) {
            (Some(rest), _) => (rest, false),
            (None, Some(rest)) => (rest, true),
            (None, None) => return Err(NameError),
        };
        let (instance, rest) = leading_number(rest).ok_or(NameError)?;
        if rest.is_empty() && !is_generic {
            return Ok(Self::Controller { instance });
        }
        let (path, rest) = match rest.strip_prefix('c') {
            Some(rest) if !is_generic => {
                leading_number(rest).map(|(path, rest)| (Some(path), rest)).ok_or(NameError)?
            }
            Some(_) => return Err(NameError),
            None => (None, rest),
        };
        let (index, rest) = rest.strip_prefix('n').and_then(leading_number).ok_or(NameError)?;
        let namespace = NamespaceName { instance, path, index };
        if rest.is_empty() {
            return Ok(if is_generic { Self::Generic(namespace) } else { Self::Namespace(namespace) });
        }
        match rest.strip_prefix('p').and_then(leading_number) {
            Some((number, "")) if !is_generic => Ok(Self::Partition { namespace, number }),
            _ => Err(NameError),
        }
    }
}

/// The decimal number at the start of a text, and the rest. The kernel writes no leading zeros.
fn leading_number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.len() > 1 && digits.starts_with('0') {
        return None;
    }
    Some((digits.parse().ok()?, rest))
}

impl fmt::Display for NvmeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Controller { instance } => write!(f, "nvme{instance}"),
            Self::Namespace(namespace) => write!(f, "{namespace}"),
            Self::Partition { namespace, number } => write!(f, "{namespace}p{number}"),
            Self::Generic(namespace) => f.write_str(&namespace.generic_name()),
        }
    }
}

impl fmt::Display for NamespaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path {
            Some(path) => write!(f, "nvme{}c{path}n{}", self.instance, self.index),
            None => f.write_str(&self.head_name()),
        }
    }
}

/// The PCI function that was meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Resolved {
    /// Where it is.
    pub address: PciAddress,
    /// The kernel's name that led to it, when it was not the address.
    pub name: Option<NvmeName>,
    /// The NSID of the namespace that was named.
    pub nsid: Option<u32>,
}

impl fmt::Display for Resolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, self.nsid) {
            (None, _) => write!(f, "{}", self.address),
            (Some(name), Some(nsid)) => write!(f, "{name} is on {} (namespace {nsid})", self.address),
            (Some(name), None) => write!(f, "{name} is on {}", self.address),
        }
    }
}

/// A device that could not be found.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// It looks like an address and is none.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// There is no function at this address.
    #[error("there is no PCI function at {address}{}", known(candidates))]
    NoSuchFunction {
        /// What was asked for.
        address: PciAddress,
        /// The NVMe functions that there are.
        candidates: Vec<PciAddress>,
    },
    /// The function is something else.
    #[error("{address} is not an NVMe controller (class {class:06x}h){}", known(candidates))]
    NotNvme {
        /// What was asked for.
        address: PciAddress,
        /// What it is.
        class: u32,
        /// The NVMe functions that there are.
        candidates: Vec<PciAddress>,
    },
    /// No NVMe device has this name.
    #[error("there is no NVMe device `{name}`{}", known(candidates))]
    NoSuchName {
        /// What was asked for.
        name: String,
        /// The NVMe functions that there are.
        candidates: Vec<PciAddress>,
    },
    /// It is neither an address nor a name of the kernel's NVMe driver.
    #[error(
        "`{text}` is neither a PCI address (0000:03:00.0) nor an NVMe device (/dev/nvme1, nvme1n1){}",
        known(candidates)
    )]
    NotADevice {
        /// What was given.
        text: String,
        /// The NVMe functions that there are.
        candidates: Vec<PciAddress>,
    },
    /// It is an NVMe device, but not one on PCI.
    #[error("`{name}` is not on PCI (transport {transport}): only a PCI function can be driven from user space")]
    NotOnPci {
        /// What was asked for.
        name: String,
        /// How it is attached.
        transport: String,
    },
    /// The namespace is reached through several controllers.
    #[error("`{name}` is reached through several controllers ({}): name one by its address", list(paths))]
    SeveralPaths {
        /// What was asked for.
        name: String,
        /// The controllers' functions.
        paths: Vec<PciAddress>,
    },
}

fn list(addresses: &[PciAddress]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn known(candidates: &[PciAddress]) -> String {
    if candidates.is_empty() {
        "; this machine shows no NVMe controller".to_owned()
    } else {
        format!("; NVMe controllers: {}", list(candidates))
    }
}

/// Finds the PCI function that a text means.
pub fn resolve(sysfs: &Sysfs, text: &str) -> Result<Resolved, ResolveError> {
    let candidates = || {
        let functions = NvmeFunction::all(sysfs).unwrap_or_default();
        functions.iter().map(|function| function.address).collect::<Vec<_>>()
    };
    let name = name_of(sysfs, text);
    if let Ok(name) = name.parse::<NvmeName>() {
        return by_name(sysfs, name, candidates);
    }
    if text.contains(':') && !text.contains('/') {
        let address = text.parse()?;
        return match class_of(sysfs, address) {
            _ if NvmeFunction::read(sysfs, address).is_some() => Ok(Resolved { address, name: None, nsid: None }),
            Some(class) => Err(ResolveError::NotNvme { address, class, candidates: candidates() }),
            None => Err(ResolveError::NoSuchFunction { address, candidates: candidates() }),
        };
    }
    Err(ResolveError::NotADevice { text: text.to_owned(), candidates: candidates() })
}

/// The kernel's name in a path of a node; a link such as those in `/dev/disk/by-id` is followed.
fn name_of(sysfs: &Sysfs, text: &str) -> String {
    let Some(below) = text.strip_prefix("/dev/") else { return text.to_owned() };
    let followed = sysfs.canonical(sysfs.dev(below)).ok();
    let path = followed.as_deref().unwrap_or(Path::new(below));
    path.file_name().map_or_else(|| text.to_owned(), |name| name.to_string_lossy().into_owned())
}

fn by_name(sysfs: &Sysfs, name: NvmeName, candidates: impl Fn() -> Vec<PciAddress>) -> Result<Resolved, ResolveError> {
    let missing = || ResolveError::NoSuchName { name: name.to_string(), candidates: candidates() };
    let class = match name {
        NvmeName::Controller { .. } => "class/nvme",
        NvmeName::Namespace(_) | NvmeName::Partition { .. } => "class/block",
        NvmeName::Generic(_) => "class/nvme-generic",
    };
    // A path of a multipath namespace is in the class, too, though it has no node.
    let link = sysfs.sys(class).join(name.to_string());
    let directory = sysfs.canonical(&link).map_err(|_| missing())?;
    let nsid = match name {
        NvmeName::Controller { .. } => None,
        NvmeName::Namespace(namespace) | NvmeName::Partition { namespace, .. } | NvmeName::Generic(namespace) => {
            nsid_of(sysfs, namespace)
        }
    };
    let found = |address| Resolved { address, name: Some(name), nsid };
    if let Some(address) = function_above(&directory) {
        return Ok(found(address));
    }
    let paths = controllers_of_subsystem(sysfs, &directory);
    match paths.as_slice() {
        [] => {
            let transport = sysfs.attribute(directory.join("transport")).unwrap_or_else(|| "unknown".to_owned());
            Err(ResolveError::NotOnPci { name: name.to_string(), transport })
        }
        [address] => Ok(found(*address)),
        _ => Err(ResolveError::SeveralPaths { name: name.to_string(), paths }),
    }
}

fn nsid_of(sysfs: &Sysfs, namespace: NamespaceName) -> Option<u32> {
    let block = sysfs.sys("class/block").join(namespace.head_name());
    sysfs.number(block.join("nsid")).and_then(|nsid| u32::try_from(nsid).ok())
}

/// The nearest PCI function above a device's directory.
fn function_above(directory: &Path) -> Option<PciAddress> {
    directory.iter().rev().find_map(|name| name.to_string_lossy().parse().ok())
}

/// The PCI functions of the controllers of the subsystem that a multipath namespace belongs to.
fn controllers_of_subsystem(sysfs: &Sysfs, namespace: &Path) -> Vec<PciAddress> {
    let subsystem = namespace
        .ancestors()
        .find(|directory| directory.file_name().is_some_and(|name| name.to_string_lossy().starts_with("nvme-subsys")));
    let Some(subsystem) = subsystem else { return Vec::new() };
    let is_controller = |name: &&String| matches!(name.parse(), Ok(NvmeName::Controller { .. }));
    sysfs
        .names_or_none(subsystem)
        .iter()
        .filter(is_controller)
        .filter_map(|name| function_above(&sysfs.canonical(subsystem.join(name)).ok()?))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pci::testing::FakeHost;

    fn resolved(host: &FakeHost, text: &str) -> Resolved {
        resolve(&host.sysfs, text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn every_name_of_a_drive_leads_to_its_function() {
        let (host, drive) = FakeHost::with_drive();
        for text in [
            "0000:01:00.0",
            "01:00.0",
            "/dev/nvme0",
            "nvme0",
            "nvme0n1",
            "/dev/nvme0n1",
            "/dev/nvme0n1p2",
            "/dev/ng0n1",
            "ng0n1",
        ] {
            assert_eq!(resolved(&host, text).address, drive, "{text}");
        }
        assert_eq!(resolved(&host, "/dev/nvme0n1p2").to_string(), "nvme0n1p2 is on 0000:01:00.0 (namespace 1)");
        assert_eq!(resolved(&host, "nvme0").to_string(), "nvme0 is on 0000:01:00.0");
        assert_eq!(resolved(&host, "01:00.0").to_string(), "0000:01:00.0");
    }

    #[test]
    fn a_link_in_dev_disk_is_followed() {
        let (host, drive) = FakeHost::with_drive();
        host.link("dev/disk/by-id/nvme-Samsung_SSD_980_S649NX0T000001", "../../nvme0n1");
        let found = resolved(&host, "/dev/disk/by-id/nvme-Samsung_SSD_980_S649NX0T000001");
        assert_eq!((found.address, found.nsid), (drive, Some(1)));
    }

    #[test]
    fn d24_an_address_that_cannot_be_is_refused_before_looking() {
        let (host, _) = FakeHost::with_drive();
        assert!(matches!(resolve(&host.sysfs, "00:20.0"), Err(ResolveError::Address(_))));
    }

    #[test]
    fn d23_an_address_in_another_domain_is_not_this_drive() {
        let (host, _) = FakeHost::with_drive();
        let error = resolve(&host.sysfs, "10000:01:00.0").unwrap_err();
        assert!(matches!(error, ResolveError::NoSuchFunction { .. }));
        assert_eq!(error.to_string(), "there is no PCI function at 10000:01:00.0; NVMe controllers: 0000:01:00.0");
    }

    #[test]
    fn what_is_no_drive_is_named_as_what_it_is() {
        let (host, _) = FakeHost::with_drive();
        let error = resolve(&host.sysfs, "00:1c.4").unwrap_err();
        assert!(matches!(error, ResolveError::NotNvme { class: 0x060400, .. }), "{error}");
        assert!(matches!(resolve(&host.sysfs, "/dev/sda"), Err(ResolveError::NotADevice { .. })));
        assert!(matches!(resolve(&host.sysfs, "nvme7"), Err(ResolveError::NoSuchName { .. })));
        assert!(matches!(resolve(&host.sysfs, "nvme0n1p9"), Err(ResolveError::NoSuchName { .. })));
    }

    #[test]
    fn a_fabrics_controller_is_not_on_pci() {
        let host = FakeHost::new();
        host.file("sys/devices/virtual/nvme-fabrics/ctl/nvme3/transport", "tcp\n");
        host.link("sys/class/nvme/nvme3", host.path("sys/devices/virtual/nvme-fabrics/ctl/nvme3"));
        let error = resolve(&host.sysfs, "nvme3").unwrap_err();
        assert!(error.to_string().contains("transport tcp"), "{error}");
    }

    #[test]
    fn a_multipath_namespace_with_one_controller_is_that_controllers() {
        let (host, drive) = FakeHost::with_drive();
        host.file("sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n5/nsid", "5\n");
        host.link("sys/class/block/nvme0n5", host.path("sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n5"));
        let controller = host.sysfs.pci_device(drive).join("nvme/nvme0");
        host.link("sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0", controller);
        assert_eq!(resolved(&host, "nvme0n5").address, drive);
        let other = host.function(&["0000:02:00.0"], "0x010802");
        host.controller(other, "nvme1", 1);
        let controller = host.sysfs.pci_device(other).join("nvme/nvme1");
        host.link("sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme1", controller);
        let error = resolve(&host.sysfs, "nvme0n5").unwrap_err();
        assert!(matches!(error, ResolveError::SeveralPaths { ref paths, .. } if paths == &[drive, other]), "{error}");
    }

    #[test]
    fn names_are_parsed_to_the_last_letter() {
        let namespace = NamespaceName { instance: 1, path: None, index: 12 };
        assert_eq!("nvme1".parse(), Ok(NvmeName::Controller { instance: 1 }));
        assert_eq!("nvme1n12".parse(), Ok(NvmeName::Namespace(namespace)));
        assert_eq!("nvme1n12p3".parse(), Ok(NvmeName::Partition { namespace, number: 3 }));
        assert_eq!("ng1n12".parse(), Ok(NvmeName::Generic(namespace)));
        let path = NamespaceName { path: Some(0), ..namespace };
        assert_eq!("nvme1c0n12".parse(), Ok(NvmeName::Namespace(path)));
        for wrong in [
            "",
            "nvme",
            "nvmen1",
            "ng1",
            "nvme1n",
            "nvme1n1p",
            "nvme1n1p2x",
            "nvme1x",
            "ng1n1p1",
            "nvme01",
            "ng1c0n1",
            "nvme-fabrics",
            "nvme-subsys0",
            "nvme99999999999",
        ] {
            assert_eq!(wrong.parse::<NvmeName>(), Err(NameError), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_name_parser_panic(text in "(nvme|ng)?[0-9cnpx]{0,24}") {
            if let Ok(name) = text.parse::<NvmeName>() {
                prop_assert_eq!(name.to_string(), text);
            }
        }
    }
}
