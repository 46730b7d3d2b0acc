//! Looking at descriptors that a client has sent, before anything depends on them.
//!
//! A descriptor can be anything. Mapping a file that its owner then shrinks ends the process that touches the lost pages;
//! a file of a file system that is itself a program can make it wait for ever. So memory has to be a memfd (or a file of
//! a tmpfs) that is sealed against shrinking, and is sealed here where its owner has not done it. An eventfd has to be one,
//! and is made one that never blocks its writer.
#![forbid(unsafe_code)]

use core::time::Duration;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags, SealFlags};
use rustix::io::Errno;

use super::Trust;

/// Whether `file` may be mapped up to `end`.
pub(super) fn check_memory(file: &OwnedFd, end: u64, trust: Trust) -> Result<(), Errno> {
    if trust == Trust::Sealed && !is_sealed(file) {
        log::warn!("memory refused: its owner could shrink it (a memfd that may be sealed cannot be shrunk then)");
        return Err(Errno::PERM);
    }
    // After sealing, so that it cannot change any more.
    let stat = rustix::fs::fstat(file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || u64::try_from(stat.st_size).unwrap_or(0) < end
    {
        return Err(Errno::INVAL);
    }
    Ok(())
}

fn is_sealed(file: &OwnedFd) -> bool {
    let sealed = |seals: SealFlags| seals.contains(SealFlags::SHRINK);
    match rustix::fs::fcntl_get_seals(file) {
        Ok(seals) if sealed(seals) => true,
        Ok(_) => rustix::fs::fcntl_add_seals(file, SealFlags::SHRINK).is_ok(),
        Err(_) => false,
    }
}

/// Whether `event` is an eventfd; from then on it does not block.
pub(super) fn check_event(event: &OwnedFd) -> Result<(), Errno> {
    let name = std::fs::read_link(format!("/proc/self/fd/{}", event.as_raw_fd())).map_err(|_| Errno::INVAL)?;
    if name.as_os_str() != "anon_inode:[eventfd]" {
        return Err(Errno::INVAL);
    }
    let flags = rustix::fs::fcntl_getfl(event)?;
    rustix::fs::fcntl_setfl(event, flags | OFlags::NONBLOCK)
}

/// Waits until a descriptor is readable, a signal arrives, or the time has passed.
pub(super) fn wait(descriptor: &impl AsFd, timeout: Duration) -> io::Result<()> {
    let timeout = Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    match poll(&mut [PollFd::new(descriptor, PollFlags::IN)], Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
