//! The controller memory buffer: memory of the controller's own, which the host reaches through a BAR and names in commands.
//!
//! NVM Express Base Specification, "Controller Memory Buffer" and the registers CMBLOC, CMBSZ, CMBMSC, CMBSTS. Until the
//! host has set CMBMSC.CRE, the two registers that describe the buffer read 0; until it has set CMBMSC.CMSE with a base
//! address, no address of a command leads there. From then on the buffer is one more range of what the controller may
//! reach, so an address in it goes the same way as any other, and one that overlaps the host's memory is refused
//! (CMBSTS.CBAI).
#![forbid(unsafe_code)]

use std::os::fd::BorrowedFd;

use nvmetal_core::register::{CmbLocation, CmbMemorySpaceControl, CmbSize, CmbStatus};

use crate::guest_memory::{GuestMemory, SharedWords};

/// The BAR that the buffer is in.
pub const BAR: u8 = 2;
/// The largest buffer, in bytes.
pub const MOST_BYTES: u64 = 64 << 20;

/// The buffer and its registers.
#[derive(Debug)]
pub(crate) struct MemoryBuffer {
    words: SharedWords,
    bytes: u64,
    control: CmbMemorySpaceControl,
    /// Where the controller takes addresses for it.
    base: Option<u64>,
    refused: bool,
}

impl MemoryBuffer {
    /// A buffer of `bytes` (a multiple of 4 KiB) zeros; none of 0 bytes, or where the system has no memory for it.
    pub(crate) fn of(bytes: u64) -> Option<Self> {
        if bytes == 0 {
            return None;
        }
        let words = SharedWords::new(bytes, 0, 0).inspect_err(|error| log::warn!("no memory buffer: {error}")).ok()?;
        Some(Self { words, bytes, control: CmbMemorySpaceControl::new(), base: None, refused: false })
    }

    /// CMBLOC.
    pub(crate) fn location(&self) -> CmbLocation {
        if self.control.cre() { CmbLocation::new().with_bir(BAR) } else { CmbLocation::new() }
    }

    /// CMBSZ: submission queues may lie in it, nothing else.
    pub(crate) fn size(&self) -> CmbSize {
        if self.control.cre() {
            CmbSize::new().with_sqs(true).with_sz((self.bytes >> 12) as u32)
        } else {
            CmbSize::new()
        }
    }

    /// CMBMSC.
    pub(crate) fn control(&self) -> CmbMemorySpaceControl {
        self.control
    }

    /// CMBSTS.
    pub(crate) fn status(&self) -> CmbStatus {
        CmbStatus::new().with_cbai(self.refused)
    }

    /// Writes CMBMSC.
    pub(crate) fn set_control(&mut self, control: CmbMemorySpaceControl, memory: &GuestMemory) {
        if let Some(base) = self.base.take()
            && let Err(error) = memory.unmap(base, self.bytes)
        {
            log::debug!("controller memory buffer: {error}");
        }
        self.control = control;
        self.refused = false;
        if !(control.cre() && control.cmse()) {
            return;
        }
        let base = control.cba() << 12;
        match memory.map_file(base, self.words.file(), 0, self.bytes) {
            Ok(()) => self.base = Some(base),
            Err(error) => {
                log::warn!("controller memory buffer: {error}");
                self.refused = true;
            }
        }
    }

    /// The memory, and its length.
    pub(crate) fn file(&self) -> (BorrowedFd<'_>, u64) {
        (self.words.file(), self.bytes)
    }
}
