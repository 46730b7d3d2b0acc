//! The one door to the host: where `/sys`, `/proc` and `/dev` are, and the few acts that change something.
//!
//! Everything in [`pci`](crate::pci) reads the host through a [`Sysfs`], so that a test can hand it a directory full of
//! plain files instead. Reading files is the same thing in both; what a directory of plain files cannot do (a write that
//! makes the kernel bind a driver, an exclusive open, a device number, loading a module) stands in the trait
//! [`HostActions`], which is also the complete list of what this part of the driver ever does to a machine.
//!
//! Two ways of reading: [`Sysfs::attribute`] for what is nice to know (a missing or unreadable attribute is `None`), and
//! [`Sysfs::read_bytes`] with its error for what decides about safety, where "could not be read" must not look like
//! "is not there".
#![forbid(unsafe_code)]

use core::fmt::{self, Write as _};
use core::str::FromStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, OFlags, StatxFlags};
use serde::{Serialize, Serializer};

use super::PciAddress;

/// The number of a device node, as `dev` attributes and `mountinfo` print it: `major:minor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceNumber {
    /// Which driver.
    pub major: u32,
    /// Which of its devices.
    pub minor: u32,
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl Serialize for DeviceNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What kind of node a device number belongs to: block and character devices are numbered apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeviceNode {
    /// A block device.
    Block(DeviceNumber),
    /// A character device.
    Character(DeviceNumber),
}

/// A text that is not `major:minor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected major:minor")]
pub struct DeviceNumberError;

impl FromStr for DeviceNumber {
    type Err = DeviceNumberError;

    fn from_str(text: &str) -> Result<Self, DeviceNumberError> {
        let (major, minor) = text.split_once(':').ok_or(DeviceNumberError)?;
        let number = |digits: &str| digits.parse().map_err(|_| DeviceNumberError);
        Ok(Self { major: number(major)?, minor: number(minor)? })
    }
}

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

/// What is done to the host, other than reading files.
pub trait HostActions: fmt::Debug + Send + Sync {
    /// Writes a whole value to an attribute in one system call. May block for as long as the kernel likes.
    fn write_attribute(&self, path: &Path, value: &[u8]) -> io::Result<()>;

    /// Opens a block device for reading, and for nobody else (`O_RDONLY | O_EXCL`). EBUSY when the kernel uses it: a
    /// mount in whatever mount namespace, swap, device mapper, md, ZFS, or another exclusive open.
    fn open_exclusive(&self, node: &Path) -> io::Result<ExclusiveOpen>;

    /// The kind and number of the device node that a path leads to, or `None` when it is not a device node. Links are
    /// followed, and a remote file system is not asked.
    fn device_node(&self, path: &Path) -> io::Result<Option<DeviceNode>>;

    /// Whether this process may open a node for reading and writing.
    fn may_open(&self, node: &Path) -> io::Result<()>;

    /// Loads a kernel module with everything that it needs.
    fn load_module(&self, module: &str) -> io::Result<()>;

    /// Lets the kernel or another process finish what it is doing.
    fn pause(&self, duration: Duration);
}

/// A block device held open exclusively, until dropped.
#[derive(Debug)]
pub struct ExclusiveOpen {
    /// The open file.
    pub file: File,
    /// The number of the block device that was really opened, whatever the node's name promises.
    pub device: DeviceNumber,
}

/// [`HostActions`] on the machine that this process runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThisHost;

impl HostActions for ThisHost {
    fn write_attribute(&self, path: &Path, value: &[u8]) -> io::Result<()> {
        let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        let written = rustix::io::write(&file, value)?;
        if written == value.len() { Ok(()) } else { Err(io::Error::from(io::ErrorKind::WriteZero)) }
    }

    fn open_exclusive(&self, node: &Path) -> io::Result<ExclusiveOpen> {
        let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let descriptor = rustix::fs::open(node, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&descriptor)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::BlockDevice {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a block device"));
        }
        let device = DeviceNumber { major: rustix::fs::major(stat.st_rdev), minor: rustix::fs::minor(stat.st_rdev) };
        Ok(ExclusiveOpen { file: File::from(descriptor), device })
    }

    fn device_node(&self, path: &Path) -> io::Result<Option<DeviceNode>> {
        // DONT_SYNC: descriptors of other processes may lie on a network file system that no longer answers.
        let stat = rustix::fs::statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE)?;
        let number = DeviceNumber { major: stat.stx_rdev_major, minor: stat.stx_rdev_minor };
        Ok(match FileType::from_raw_mode(u32::from(stat.stx_mode)) {
            FileType::BlockDevice => Some(DeviceNode::Block(number)),
            FileType::CharacterDevice => Some(DeviceNode::Character(number)),
            _ => None,
        })
    }

    fn may_open(&self, node: &Path) -> io::Result<()> {
        // EACCESS: the effective user decides, as it does for an open.
        Ok(rustix::fs::accessat(CWD, node, Access::READ_OK | Access::WRITE_OK, AtFlags::EACCESS)?)
    }

    fn load_module(&self, module: &str) -> io::Result<()> {
        // An ordinary user's PATH often lacks the system administrator's directories.
        let mut answer = Err(io::Error::from(io::ErrorKind::NotFound));
        for program in ["modprobe", "/sbin/modprobe", "/usr/sbin/modprobe"] {
            match Command::new(program).arg("--").arg(module).stdin(Stdio::null()).output() {
                Ok(output) if output.status.success() => return Ok(()),
                Ok(output) => {
                    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                    return Err(io::Error::other(if said.is_empty() { output.status.to_string() } else { said }));
                }
                Err(error) => answer = Err(error),
            }
        }
        answer
    }

    #[expect(clippy::disallowed_methods, reason = "the kernel and udev live in real time, whatever clock a run has")]
    fn pause(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
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

    #[test]
    fn a_device_number_is_parsed_as_the_kernel_prints_it() {
        assert_eq!("259:12".parse(), Ok(DeviceNumber { major: 259, minor: 12 }));
        for wrong in ["", "259", "259:", ":1", "259:-1", "1:2:3"] {
            assert_eq!(wrong.parse::<DeviceNumber>(), Err(DeviceNumberError), "{wrong}");
        }
    }

    #[test]
    fn on_this_host_a_character_node_has_a_number_and_a_plain_file_has_none() {
        let null = ThisHost.device_node(Path::new("/dev/null")).unwrap();
        assert_eq!(null, Some(DeviceNode::Character(DeviceNumber { major: 1, minor: 3 })));
        let plain = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(ThisHost.device_node(plain.path()).unwrap(), None);
    }

    #[test]
    fn on_this_host_only_a_block_device_can_be_opened_exclusively() {
        let plain = tempfile::NamedTempFile::new().unwrap();
        let error = ThisHost.open_exclusive(plain.path()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn on_this_host_a_missing_attribute_is_not_created_by_a_write() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("driver_override");
        let error = ThisHost.write_attribute(&path, b"\n").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(!path.exists());
    }
}
