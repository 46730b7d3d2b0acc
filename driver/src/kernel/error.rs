//! What can go wrong on the way through the kernel, and what to do about it.
#![forbid(unsafe_code)]

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// An error on the way through the kernel's driver. What the drive itself answers is a
/// [`DriverError::Command`](crate::DriverError::Command).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// This user may not.
    #[error(
        "{}: {what} is not permitted; run it as root (CAP_SYS_ADMIN is needed for admin commands, and the right to read \
         the node for reads)",
        path.display()
    )]
    Permission {
        /// The node.
        path: PathBuf,
        /// What was tried.
        what: String,
    },
    /// The command is not one of those that only read.
    #[error(
        "{address}: {command} is not sent while the kernel holds the drive: only Identify, Get Features and a Get Log \
         Page that retains events are"
    )]
    Refused {
        /// The device.
        address: String,
        /// The command.
        command: String,
    },
    /// The command's data does not fit its buffer.
    #[error("{address}: {command} moves {moves} bytes, the buffer has {buffer}")]
    Length {
        /// The device.
        address: String,
        /// The command.
        command: String,
        /// What the controller would send.
        moves: u64,
        /// What there is room for.
        buffer: u64,
    },
    /// The kernel's driver does not hold the drive.
    #[error(
        "{address}: the kernel's NVMe driver does not hold it ({}); give it back first (nvmetal release {address}), or \
         use it through VFIO",
        driver.as_deref().unwrap_or("no driver is bound")
    )]
    NotHeld {
        /// The device.
        address: String,
        /// Who does.
        driver: Option<String>,
    },
    /// Somebody uses the block device, and writing was asked for.
    #[error("{}: in use (mounted, swap, or held by another device); it is not written to", path.display())]
    InUse {
        /// The node.
        path: PathBuf,
    },
    /// Writing was asked for on another drive than the permit is for.
    #[error(
        "{}: writing was permitted for the serial number `{permitted}`, this is `{}`",
        path.display(),
        found.as_deref().unwrap_or("unknown")
    )]
    OtherSerial {
        /// The node.
        path: PathBuf,
        /// The permit's.
        permitted: String,
        /// The drive's.
        found: Option<String>,
    },
    /// Neither a block device nor a file.
    #[error("{}: neither a block device nor a file", path.display())]
    NotABlockDevice {
        /// The path.
        path: PathBuf,
    },
    /// The kernel gave the command up.
    #[error(
        "{}: the kernel cancelled {what}: it timed out, or the controller was reset meanwhile; the kernel log says more \
         (dmesg)",
        path.display()
    )]
    Cancelled {
        /// The node.
        path: PathBuf,
        /// What was under way.
        what: String,
    },
    /// A system call failed.
    #[error("{}: {what}: {source}", path.display())]
    System {
        /// The node.
        path: PathBuf,
        /// What was tried.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
}

impl KernelError {
    /// The error of `what` on `path`.
    pub(super) fn of(path: &Path, what: impl Into<String>, errno: Errno) -> Self {
        let (path, what) = (path.to_owned(), what.into());
        match errno {
            Errno::ACCESS | Errno::PERM => Self::Permission { path, what },
            _ => Self::System { path, what, source: errno.into() },
        }
    }

    /// Whether the user's rights or the machine are the cause, and not the drive.
    pub fn is_environment(&self) -> bool {
        matches!(self, Self::Permission { .. } | Self::NotHeld { .. })
    }

    /// Whether it is a refusal that protects the drive or its data.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::InUse { .. } | Self::OtherSerial { .. })
    }

    /// Whether the drive is gone or no longer answers the kernel.
    pub fn is_lost(&self) -> bool {
        match self {
            Self::Cancelled { .. } => true,
            Self::System { source, .. } => Errno::from_io_error(source).is_some_and(is_gone),
            _ => false,
        }
    }
}

/// Whether an error number says that the device is gone.
pub(super) fn is_gone(errno: Errno) -> bool {
    matches!(errno, Errno::NODEV | Errno::NXIO | Errno::SHUTDOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_right_says_what_to_do_and_others_keep_the_systems_word() {
        for errno in [Errno::ACCESS, Errno::PERM] {
            let error = KernelError::of(Path::new("/dev/nvme0"), "Identify", errno);
            assert!(error.is_environment() && !error.is_lost(), "{error:?}");
            let text = error.to_string();
            assert!(text.starts_with("/dev/nvme0: Identify is not permitted; run it as root"), "{text}");
        }
        let error = KernelError::of(Path::new("/dev/nvme0"), "Identify", Errno::NODEV);
        assert!(error.is_lost() && !error.is_environment());
        assert_eq!(error.to_string(), "/dev/nvme0: Identify: No such device (os error 19)");
    }

    #[test]
    fn what_the_kernel_gave_up_is_lost_and_points_to_its_log() {
        let error = KernelError::Cancelled { path: "/dev/nvme0".into(), what: "Identify".into() };
        assert!(error.is_lost());
        assert!(error.to_string().contains("dmesg"), "{error}");
    }
}
