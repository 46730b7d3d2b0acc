//! The one door to the host: where `/sys`, `/proc` and `/dev` are, and how their files are read.
//!
//! Everything in [`pci`](crate::pci) reads the host through a [`Sysfs`], so that a test can hand it a directory full of
//! plain files instead. What is more than reading stands in [`HostActions`].
//!
//! Two ways of reading: [`Sysfs::attribute`] for what is nice to know (a missing or unreadable attribute is `None`), and
//! [`Sysfs::read_bytes`] with its error for what decides about safety, where "could not be read" must not look like
//! "is not there".
#![forbid(unsafe_code)]

use core::fmt::{self, Write as _};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use super::PciAddress;
use super::host::{HostActions, ThisHost};

/// A process, as a person wants to be told of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its command name.
    pub command: String,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PID {} ({})", self.pid, self.command)
    }
}

/// A file of the host that could not be read, listed or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct SysfsError {
    /// Which file.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl SysfsError {
    /// The error `source` met at `path`.
    pub fn new(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self { path: path.into(), source }
    }

    /// Whether the file was not there.
    pub fn is_not_found(&self) -> bool {
        is_gone(&self.source)
    }

    /// Whether the caller lacks the right.
    pub fn is_permission_denied(&self) -> bool {
        self.source.kind() == io::ErrorKind::PermissionDenied
    }
}

/// Whether an error says that the thing asked about does not exist (any more).
///
/// A process that ends while its `/proc` directory is being read answers ESRCH, a device that leaves answers ENODEV.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || matches!(
            rustix::io::Errno::from_io_error(error),
            Some(rustix::io::Errno::SRCH | rustix::io::Errno::NODEV | rustix::io::Errno::NXIO)
        )
}

/// Where the host's file systems are, and who acts on them.
///
/// Cheap to clone. [`Sysfs::host`] is this machine; [`Sysfs::at`] is a directory that looks like one.
#[derive(Clone, Debug)]
pub struct Sysfs {
    sys: PathBuf,
    proc: PathBuf,
    dev: PathBuf,
    modules: PathBuf,
    lock_directories: Vec<PathBuf>,
    actions: Arc<dyn HostActions>,
}

impl Sysfs {
    /// The machine that this process runs on.
    pub fn host() -> Self {
        Self {
            sys: "/sys".into(),
            proc: "/proc".into(),
            dev: "/dev".into(),
            modules: "/lib/modules".into(),
            lock_directories: vec!["/run/lock".into(), std::env::temp_dir()],
            actions: Arc::new(ThisHost),
        }
    }

    /// A tree at `root` with `sys`, `proc`, `dev`, `lib/modules` and `run/lock` below it.
    pub fn at(root: &Path, actions: Arc<dyn HostActions>) -> Self {
        Self {
            sys: root.join("sys"),
            proc: root.join("proc"),
            dev: root.join("dev"),
            modules: root.join("lib/modules"),
            lock_directories: vec![root.join("run/lock"), root.join("tmp")],
            actions,
        }
    }

    /// A path below `/sys`.
    pub fn sys(&self, path: impl AsRef<Path>) -> PathBuf {
        self.sys.join(path)
    }

    /// A path below `/proc`.
    pub fn proc(&self, path: impl AsRef<Path>) -> PathBuf {
        self.proc.join(path)
    }

    /// A path below `/dev`.
    pub fn dev(&self, path: impl AsRef<Path>) -> PathBuf {
        self.dev.join(path)
    }

    /// Where a path that the kernel prints (`/dev/dm-0`) is: below this tree when it starts with `/dev`.
    pub(crate) fn node(&self, printed: &str) -> PathBuf {
        printed.strip_prefix("/dev/").map_or_else(|| PathBuf::from(printed), |below| self.dev(below))
    }

    /// A path below `/lib/modules`.
    pub fn modules(&self, path: impl AsRef<Path>) -> PathBuf {
        self.modules.join(path)
    }

    /// The directories in which a lock file may be made, best first.
    pub fn lock_directories(&self) -> &[PathBuf] {
        &self.lock_directories
    }

    /// Who acts on this host.
    pub fn actions(&self) -> &Arc<dyn HostActions> {
        &self.actions
    }

    /// The directory of a PCI function, as the bus lists it.
    pub fn pci_device(&self, address: PciAddress) -> PathBuf {
        self.sys("bus/pci/devices").join(address.to_string())
    }

    /// The text of an attribute, trimmed and made printable; `None` when it is missing, unreadable or empty.
    pub fn attribute(&self, path: impl AsRef<Path>) -> Option<String> {
        let path = path.as_ref();
        match fs::read(path) {
            Ok(bytes) => Some(printable(&bytes)).filter(|text| !text.is_empty()),
            Err(error) => {
                if !is_gone(&error) {
                    log::debug!("{}: {error}", path.display());
                }
                None
            }
        }
    }

    /// The lines of an attribute that has several; none when it is missing or unreadable.
    pub fn lines(&self, path: impl AsRef<Path>) -> Vec<String> {
        let bytes = fs::read(path).unwrap_or_default();
        bytes.split(|&byte| byte == b'\n').map(printable).filter(|line| !line.is_empty()).collect()
    }

    /// An attribute that holds a decimal number, or a hexadecimal one with `0x` before it.
    pub fn number(&self, path: impl AsRef<Path>) -> Option<u64> {
        let text = self.attribute(path)?;
        match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        }
    }

    /// The last part of where a link leads (`driver` to `nvme`, `iommu_group` to `14`).
    pub fn link_name(&self, path: impl AsRef<Path>) -> Option<String> {
        let target = fs::read_link(path).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    /// The names in a directory, sorted; empty when there is no such directory.
    pub fn names(&self, path: impl AsRef<Path>) -> Result<Vec<String>, SysfsError> {
        let path = path.as_ref();
        let fail = |source| SysfsError::new(path, source);
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) if is_gone(&error) => return Ok(Vec::new()),
            Err(error) => return Err(fail(error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            match entry {
                Ok(entry) => names.push(entry.file_name().to_string_lossy().into_owned()),
                Err(error) if is_gone(&error) => break,
                Err(error) => return Err(fail(error)),
            }
        }
        names.sort();
        Ok(names)
    }

    /// The names in a directory, sorted; empty when it cannot be listed.
    pub fn names_or_none(&self, path: impl AsRef<Path>) -> Vec<String> {
        self.names(path).unwrap_or_else(|error| {
            log::debug!("{error}");
            Vec::new()
        })
    }

    /// All bytes of a file, with the reason when that cannot be had.
    pub fn read_bytes(&self, path: impl AsRef<Path>) -> Result<Vec<u8>, SysfsError> {
        let path = path.as_ref();
        fs::read(path).map_err(|source| SysfsError::new(path, source))
    }

    /// The directory that links lead to at the end, as `/sys/devices/...` has it.
    pub fn canonical(&self, path: impl AsRef<Path>) -> Result<PathBuf, SysfsError> {
        let path = path.as_ref();
        fs::canonicalize(path).map_err(|source| SysfsError::new(path, source))
    }

    /// The command name of a process, or `?` when it cannot be read.
    pub fn command_of(&self, pid: u32) -> String {
        self.attribute(self.proc(format!("{pid}/comm"))).unwrap_or_else(|| "?".to_owned())
    }

    /// A process by its number.
    pub fn process(&self, pid: u32) -> Process {
        Process { pid, command: self.command_of(pid) }
    }

    /// Whether a process of this number lives.
    pub fn is_alive(&self, pid: u32) -> bool {
        self.proc(pid.to_string()).exists()
    }
}

/// A device's text without surrounding blanks and NULs, and with every byte outside 20h to 7Eh written as `\xNN`.
///
/// These strings come from the drive by way of the kernel: they must reach neither a terminal nor JSON unescaped.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let is_blank = |byte: &u8| matches!(byte, 0 | b' ' | b'\t' | b'\n' | b'\r');
    let start = bytes.iter().position(|byte| !is_blank(byte)).unwrap_or(bytes.len());
    let end = bytes.iter().rposition(|byte| !is_blank(byte)).map_or(start, |last| last + 1);
    let mut text = String::new();
    for &byte in bytes.get(start..end).unwrap_or_default() {
        match byte {
            0x20..=0x7e => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "\\x{byte:02x}");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b09_bytes_that_are_not_printable_are_escaped() {
        assert_eq!(printable(b"  Samsung \xff\x1b[31m SSD \0\0\n"), "Samsung \\xff\\x1b[31m SSD");
        assert_eq!(printable(b"\0\0  \n"), "");
    }
}
