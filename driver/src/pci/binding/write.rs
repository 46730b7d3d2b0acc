//! Writing an attribute that may block, with a deadline.
//!
//! A write to `unbind` returns when the driver has let go of the device, and a driver that waits for a drive that no
//! longer answers, or for a process that holds the device, lets go late or never. The write is made on a thread of its
//! own; when the deadline passes the caller goes on with an error, and the thread stays behind until the kernel is done.
#![forbid(unsafe_code)]

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::pci::sysfs::{Sysfs, SysfsError};

/// A write that failed, or did not return.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The kernel refused it.
    #[error(transparent)]
    Refused(#[from] SysfsError),
    /// It did not return in time, and is still going on.
    #[error("{}: the write did not return within {} s", path.display(), deadline.as_secs_f32())]
    Blocked {
        /// Which attribute.
        path: PathBuf,
        /// How long it was given.
        deadline: Duration,
    },
}

/// Writes a value and waits for the kernel to take it, no longer than `deadline`.
pub(super) fn write(sysfs: &Sysfs, path: &Path, value: &str, deadline: Duration) -> Result<(), WriteError> {
    let (answer, waiting) = mpsc::channel();
    let actions = Arc::clone(sysfs.actions());
    let (target, bytes) = (path.to_owned(), value.as_bytes().to_vec());
    log::debug!("write {:?} to {}", value, path.display());
    let writer = move || {
        // Nobody listens any more once the deadline has passed.
        let _ = answer.send(actions.write_attribute(&target, &bytes));
    };
    let refused = |source| WriteError::Refused(SysfsError::new(path, source));
    thread::Builder::new().name("nvmetal-sysfs".to_owned()).spawn(writer).map_err(refused)?;
    match waiting.recv_timeout(deadline) {
        Ok(result) => result.map_err(refused),
        Err(RecvTimeoutError::Timeout) => Err(WriteError::Blocked { path: path.to_owned(), deadline }),
        Err(RecvTimeoutError::Disconnected) => {
            Err(refused(io::Error::other("the writing thread ended without an answer")))
        }
    }
}
