//! Where a result comes from: the drive, the way to it, the machine and the moment.
//!
//! Every saved result carries it, because figures outlive the memory of how they came about, and kernel names of drives
//! change from boot to boot.
#![forbid(unsafe_code)]

use std::time::SystemTime;

use nvmetal_core::identify;
use nvmetal_driver::Namespace;
use nvmetal_driver::pci::link::LinkPath;
use nvmetal_driver::transport::{TransportInfo, TransportKind};
use serde::Serialize;

use crate::drive::Drive;

/// The drive under test.
#[derive(Debug, Clone, Serialize)]
pub struct DeviceFacts {
    /// Model number.
    pub model: String,
    /// Serial number.
    pub serial: String,
    /// Firmware revision.
    pub firmware: String,
    /// PCI address, or how the emulator was asked for.
    pub address: String,
    /// The path to it.
    pub transport: TransportKind,
    /// More about the path: `iommufd`, `type1`, `stepped`, `threaded`; the kernel's name of the drive.
    pub transport_detail: String,
    /// PCI vendor and device id, as in `144d:a80c`.
    pub pci_id: Option<String>,
    /// The version of the specification that it claims; `None` where it claims none.
    pub nvme_version: Option<String>,
    /// The namespace that was worked on.
    pub namespace: Option<NamespaceFacts>,
    /// The drive's link in words.
    pub link: String,
}

/// A namespace and the format of its blocks.
#[derive(Debug, Clone, Serialize)]
pub struct NamespaceFacts {
    /// Its identifier.
    pub nsid: u32,
    /// Its size in bytes of data.
    pub bytes: u128,
    /// Bytes of data in a logical block.
    pub lba_bytes: u64,
    /// Bytes of metadata in a logical block.
    pub metadata_bytes: u16,
    /// Protection information type; 0 is none.
    pub protection_type: u8,
}

impl From<&Namespace> for NamespaceFacts {
    fn from(namespace: &Namespace) -> Self {
        Self {
            nsid: namespace.nsid,
            bytes: namespace.bytes(),
            lba_bytes: namespace.lba_bytes(),
            metadata_bytes: namespace.metadata_bytes,
            protection_type: namespace.protection_type,
        }
    }
}

/// The machine and the moment.
#[derive(Debug, Clone, Serialize)]
pub struct HostFacts {
    /// Its name.
    pub name: String,
    /// Kernel name and release.
    pub kernel: String,
    /// Processor architecture.
    pub machine: String,
    /// The processor's name, where the system tells it.
    pub processor: Option<String>,
}

impl DeviceFacts {
    /// What is known of an open drive.
    pub fn of(drive: &Drive, namespace: Option<&Namespace>, path: Option<&LinkPath>) -> Self {
        let version = drive.admin().version();
        Self {
            namespace: namespace.map(NamespaceFacts::from),
            link: crate::command::list::link(path),
            nvme_version: (version.into_bits() != 0)
                .then(|| format!("{}.{}.{}", version.major(), version.minor(), version.tertiary())),
            ..Self::identified(drive.admin().identify(), drive.info())
        }
    }

    fn identified(identify: &identify::Controller, info: &TransportInfo) -> Self {
        Self {
            model: text(&identify.mn),
            serial: text(&identify.sn),
            firmware: text(&identify.fr),
            address: info.address.clone(),
            transport: info.kind,
            transport_detail: info.detail.clone(),
            pci_id: info.pci_id.map(|(vendor, device)| format!("{vendor:04x}:{device:04x}")),
            nvme_version: None,
            namespace: None,
            link: String::new(),
        }
    }
}

impl HostFacts {
    /// This machine.
    pub fn here() -> Self {
        let system = rustix::system::uname();
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let processor = cpuinfo
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim().to_owned()));
        Self {
            name: system.nodename().to_string_lossy().into_owned(),
            kernel: format!("{} {}", system.sysname().to_string_lossy(), system.release().to_string_lossy()),
            machine: system.machine().to_string_lossy().into_owned(),
            processor,
        }
    }
}

/// The moment, in UTC: `2026-11-30T20:15:00Z`.
pub fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

/// A text field of an identify structure: cut at the first NUL, without blanks at both ends, and with every byte outside
/// 20h to 7Eh written as `\xNN`, since it may go to a terminal.
pub fn text(field: &[u8]) -> String {
    let field = field.split(|&byte| byte == 0).next().unwrap_or_default();
    let shown: String = field
        .iter()
        .map(|&byte| match byte {
            0x20..=0x7e => char::from(byte).to_string(),
            other => format!("\\x{other:02x}"),
        })
        .collect();
    shown.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b01_blanks_are_trimmed_at_both_ends() {
        assert_eq!(text(b"        TESTSERIAL01"), "TESTSERIAL01");
        assert_eq!(text(b"THNSN5512GPU7 TOSHIBA                   "), "THNSN5512GPU7 TOSHIBA");
    }

    #[test]
    fn b07_a_field_without_terminator_ends_with_the_field() {
        assert_eq!(text(b"12345678"), "12345678");
    }

    #[test]
    fn b08_nul_ends_the_text_and_nothing_is_nothing() {
        assert_eq!(text(&[0; 40]), "");
        assert_eq!(text(b"MPKD0P1\0"), "MPKD0P1");
        assert_eq!(text(b"AB\0CD"), "AB");
    }

    #[test]
    fn b09_bytes_that_are_no_printable_ascii_are_escaped() {
        assert_eq!(text(b"bad\x1b[31m\xff"), "bad\\x1b[31m\\xff");
    }

    #[test]
    fn the_moment_is_written_in_utc() {
        let now = now();
        assert!(now.ends_with('Z') && now.len() == "2026-11-30T20:15:00Z".len(), "{now}");
    }
}
