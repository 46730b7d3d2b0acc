//! What is done to the host, other than reading its files.
//!
//! [`HostActions`] is the complete list of what this part of the driver ever does to a machine. In tests a directory of
//! plain files stands for the host, and what plain files cannot do (bind a driver when an attribute is written, refuse an
//! exclusive open, have a device number) is done by another implementation of the trait.
#![forbid(unsafe_code)]

use core::fmt;
use core::str::FromStr;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, OFlags, StatxFlags};
use serde::{Serialize, Serializer};

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
        // Where it has always been comes first: what PATH says is not to decide what root runs.
        let mut answer = Err(io::Error::from(io::ErrorKind::NotFound));
        for program in ["/sbin/modprobe", "/usr/sbin/modprobe", "modprobe"] {
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

#[cfg(test)]
mod tests {
    use super::*;

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
