//! One user of a controller at a time.
//!
//! VFIO lets only one process open a group, but there is much to do before that: two processes that take the same drive
//! at once would each find it free. So a file named by the PCI address is locked first, and holds the PID of who has it.
//! The lock is the kernel's (`flock`): it ends with the process, however that ends, so a file left by a dead one is just
//! taken over. Lock and file are checked to be the same one, since the owner removes the file when it is done.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::pci::PciAddress;
use crate::pci::sysfs::{Process, Sysfs, SysfsError};
use crate::pci::usage::open_handles;

/// How often a file that its owner removes between open and lock is opened anew.
const RACES: usize = 16;

/// A controller that this process alone works on, until dropped.
#[derive(Debug)]
#[must_use = "the controller is locked only as long as this lives"]
pub struct Lock {
    file: File,
    path: PathBuf,
}

/// A lock that could not be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has it.
    #[error("{address} is locked by {}", name(holder.as_ref(), path))]
    Held {
        /// The controller.
        address: PciAddress,
        /// Who, when that can be told.
        holder: Option<Process>,
        /// The lock file.
        path: PathBuf,
    },
    /// No lock file can be made.
    #[error("no lock file can be made: {0}")]
    NoFile(#[from] SysfsError),
}

fn name(holder: Option<&Process>, path: &Path) -> String {
    match holder {
        Some(process) => process.to_string(),
        None => format!("a process that cannot be seen from here ({})", path.display()),
    }
}

impl Lock {
    /// Locks a controller for this process.
    pub fn take(sysfs: &Sysfs, address: PciAddress) -> Result<Self, LockError> {
        let name = format!("nvmetal-{address}");
        let mut failed = None;
        for directory in sysfs.lock_directories() {
            let path = directory.join(&name);
            match Self::take_file(sysfs, address, &path) {
                Err(LockError::NoFile(error)) => failed = Some(error),
                answer => return answer,
            }
        }
        let nowhere = || SysfsError::new(&name, io::Error::from(io::ErrorKind::NotFound));
        Err(failed.unwrap_or_else(nowhere).into())
    }

    fn take_file(sysfs: &Sysfs, address: PciAddress, path: &Path) -> Result<Self, LockError> {
        let fail = |source: io::Error| SysfsError::new(path, source);
        for _ in 0..RACES {
            let mut file = match open(path) {
                Ok(descriptor) => File::from(descriptor),
                // Made by another process, or removed, since the last look.
                Err(Errno::EXIST | Errno::NOENT) if path.parent().is_some_and(Path::is_dir) => continue,
                Err(error) => return Err(fail(error.into()).into()),
            };
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => {
                    let holder = holder(sysfs, &mut file, path);
                    return Err(LockError::Held { address, holder, path: path.to_owned() });
                }
                Err(error) => return Err(fail(error.into()).into()),
            }
            if !is_same_file(&file, path) {
                continue;
            }
            // Whose lock it is matters to people only: the file of another user cannot be written, the lock holds.
            if let Err(error) = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())) {
                log::debug!("{}: {error}", path.display());
            }
            return Ok(Self { file, path: path.to_owned() });
        }
        Err(fail(io::Error::from(io::ErrorKind::ResourceBusy)).into())
    }

    /// The lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Removed while it is still locked: whoever opened it before finds out by looking again.
        if is_same_file(&self.file, &self.path)
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            log::debug!("{}: {error}", self.path.display());
        }
    }
}

/// Opens a lock file, or makes it. Never through a link: the directory may be writable to all.
///
/// A file that exists is opened without `O_CREAT`, which the kernel refuses in such directories even to root when the
/// file is another user's (`fs.protected_regular`).
fn open(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::CLOEXEC | OFlags::NOFOLLOW;
    match rustix::fs::open(path, flags | OFlags::RDWR, Mode::empty()) {
        Err(Errno::NOENT) => {
            rustix::fs::open(path, flags | OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, Mode::from_raw_mode(0o644))
        }
        Err(Errno::ACCESS) => rustix::fs::open(path, flags | OFlags::RDONLY, Mode::empty()),
        answer => answer,
    }
}

fn is_same_file(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

/// Who holds a lock: the process that the file names when it lives, else whoever has the file open (a child of a dead
/// owner keeps the lock).
fn holder(sysfs: &Sysfs, file: &mut File, path: &Path) -> Option<Process> {
    let mut text = String::new();
    let _ = file.take(32).read_to_string(&mut text);
    if let Ok(pid) = text.trim().parse()
        && sysfs.is_alive(pid)
    {
        return Some(sysfs.process(pid));
    }
    let this = std::process::id();
    let scan = open_handles(sysfs, &[(path.to_owned(), None)], &[]);
    scan.handles.into_iter().map(|handle| handle.process).find(|process| process.pid != this)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pci::testing::FakeHost;

    fn drive() -> PciAddress {
        "0000:01:00.0".parse().unwrap()
    }

    #[test]
    fn d04_the_second_user_is_told_the_pid_of_the_first() {
        let host = FakeHost::new();
        host.process(std::process::id(), "nvmetal", &[]);
        let lock = Lock::take(&host.sysfs, drive()).unwrap();
        assert_eq!(lock.path(), host.path("run/lock/nvmetal-0000:01:00.0"));
        let error = Lock::take(&host.sysfs, drive()).unwrap_err();
        let expected = format!("0000:01:00.0 is locked by PID {} (nvmetal)", std::process::id());
        assert_eq!(error.to_string(), expected);
        drop(lock);
        let _again = Lock::take(&host.sysfs, drive()).unwrap();
    }

    #[test]
    fn d04_the_lock_of_a_dead_process_is_taken_over() {
        let host = FakeHost::new();
        host.file("run/lock/nvmetal-0000:01:00.0", "4194303\n");
        let lock = Lock::take(&host.sysfs, drive()).unwrap();
        assert_eq!(std::fs::read_to_string(lock.path()).unwrap(), format!("{}\n", std::process::id()));
    }

    #[test]
    fn d04_a_lock_held_by_the_child_of_a_dead_process_names_the_child() {
        let host = FakeHost::new();
        let path = host.path("run/lock/nvmetal-0000:01:00.0");
        host.file("run/lock/nvmetal-0000:01:00.0", "4194303\n");
        let held = File::open(&path).unwrap();
        rustix::fs::flock(&held, FlockOperation::LockExclusive).unwrap();
        host.process(917, "sleep", &[&path]);
        let error = Lock::take(&host.sysfs, drive()).unwrap_err();
        assert_eq!(error.to_string(), "0000:01:00.0 is locked by PID 917 (sleep)");
    }

    #[test]
    fn d04_locks_are_keyed_by_address() {
        let host = FakeHost::new();
        let _one = Lock::take(&host.sysfs, drive()).unwrap();
        let _other = Lock::take(&host.sysfs, "10000:01:00.0".parse().unwrap()).unwrap();
    }

    #[test]
    fn a_machine_without_a_lock_directory_uses_the_temporary_one() {
        let host = FakeHost::new();
        host.remove("run/lock");
        let lock = Lock::take(&host.sysfs, drive()).unwrap();
        assert_eq!(lock.path(), host.path("tmp/nvmetal-0000:01:00.0"));
        host.remove("tmp");
        assert!(matches!(Lock::take(&host.sysfs, drive()), Err(LockError::NoFile(_))));
    }

    #[test]
    fn a_link_in_the_place_of_the_lock_file_is_not_followed() {
        let host = FakeHost::new();
        host.file("precious", "content\n");
        for directory in ["run/lock", "tmp"] {
            host.link(&format!("{directory}/nvmetal-0000:01:00.0"), host.path("precious"));
        }
        assert!(matches!(Lock::take(&host.sysfs, drive()), Err(LockError::NoFile(_))));
        assert_eq!(std::fs::read_to_string(host.path("precious")).unwrap(), "content\n");
    }

    #[test]
    fn the_file_is_gone_when_the_lock_is() {
        let host = FakeHost::new();
        let path = Lock::take(&host.sysfs, drive()).unwrap().path().to_owned();
        assert!(!path.exists());
    }
}
