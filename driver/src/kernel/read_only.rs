//! The admin commands that are sent while the kernel holds the drive.
//!
//! The kernel's passthrough takes any command from root, Format and Sanitize included, on a drive that may hold the
//! mounted file system. So what goes that way is not an entry but a [`ReadOnly`], which can only be made from one of three
//! commands: Identify, Get Features, and Get Log Page with its Retain Asynchronous Event bit, without which reading a page
//! would take an event away from the kernel.
//!
//! It also knows how much the controller will send. The kernel maps as many bytes as the caller says and the controller
//! sends as many as the command says; a command that says more would have the controller write past the buffer, into
//! whatever memory the remaining data pointer happens to name. They have to agree.
#![forbid(unsafe_code)]

use nvmetal_core::command::admin::{AdminOpcode, GetLogPage};
use nvmetal_core::command::{Command, SubmissionEntry};

use super::error::KernelError;
use crate::controller::describe;

/// What Identify sends, whatever is asked for.
pub(super) const IDENTIFY_BYTES: usize = 4096;
/// The most that Get Features sends for any feature of the specification.
pub(super) const FEATURE_BYTES: usize = 4096;

/// An admin command that changes nothing, and the bytes that it makes the controller send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOnly {
    entry: SubmissionEntry,
    buffer_bytes: usize,
}

impl ReadOnly {
    /// The command of `entry`, for data of `data_bytes`.
    ///
    /// # Errors
    /// [`KernelError::Refused`] for any command but those three; [`KernelError::Length`] where the controller would send
    /// more or less than `data_bytes`.
    pub fn new(address: &str, entry: SubmissionEntry, data_bytes: usize) -> Result<Self, KernelError> {
        let refused = || KernelError::Refused { address: address.to_owned(), command: describe(&entry) };
        let (moves, buffer_bytes) = match AdminOpcode::from_bits(entry.opcode()) {
            AdminOpcode::IDENTIFY => (IDENTIFY_BYTES as u64, IDENTIFY_BYTES),
            AdminOpcode::GET_LOG_PAGE => {
                let get = GetLogPage::from_entry(&entry);
                if !get.rae {
                    return Err(refused());
                }
                (get.numd.count() * 4, data_bytes)
            }
            // How much a feature sends is the feature's own matter: there is always room for the most.
            AdminOpcode::GET_FEATURES if data_bytes <= FEATURE_BYTES => (data_bytes as u64, FEATURE_BYTES),
            AdminOpcode::GET_FEATURES => (FEATURE_BYTES as u64, FEATURE_BYTES),
            _ => return Err(refused()),
        };
        // A fused command would be half of something, and an SGL is the kernel's to make.
        if entry.fuse() != 0 || entry.psdt() != 0 {
            return Err(refused());
        }
        if moves != data_bytes as u64 {
            let (address, command) = (address.to_owned(), describe(&entry));
            return Err(KernelError::Length { address, command, moves, buffer: data_bytes as u64 });
        }
        Ok(Self { entry, buffer_bytes })
    }

    /// The entry; the kernel fills in command id and data pointer.
    pub fn entry(&self) -> &SubmissionEntry {
        &self.entry
    }

    /// The room that the controller has to be given.
    pub(super) fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }
}

#[cfg(test)]
mod tests {
    use nvmetal_core::command::admin::{GetFeatures, Identify};
    use nvmetal_core::number::ZeroBasedU32;
    use proptest::prelude::*;

    use super::*;

    fn log_page(bytes: u64, rae: bool) -> SubmissionEntry {
        let numd = ZeroBasedU32::from_count(bytes / 4).expect("a length");
        GetLogPage { rae, numd, ..Default::default() }.entry()
    }

    fn make(entry: SubmissionEntry, data_bytes: usize) -> Result<ReadOnly, KernelError> {
        ReadOnly::new("nvme0", entry, data_bytes)
    }

    #[test]
    fn the_three_commands_that_read_are_taken() {
        assert!(make(Identify::default().entry(), 4096).is_ok());
        assert!(make(log_page(512, true), 512).is_ok());
        assert_eq!(make(GetFeatures::default().entry(), 0).map(|taken| taken.buffer_bytes()).ok(), Some(FEATURE_BYTES));
        assert!(make(GetFeatures::default().entry(), 512).is_ok());
    }

    #[test]
    fn a_log_page_that_would_clear_an_event_is_refused() {
        let error = make(log_page(512, false), 512).expect_err("RAE is 0");
        assert!(matches!(error, KernelError::Refused { .. }), "{error:?}");
        assert!(error.is_refusal());
    }

    #[test]
    fn a_command_that_would_send_more_than_the_buffer_holds_is_refused() {
        for (entry, bytes) in [(log_page(4096, true), 512), (log_page(512, true), 4096), (log_page(512, true), 0)] {
            assert!(matches!(make(entry, bytes), Err(KernelError::Length { .. })));
        }
        assert!(matches!(make(Identify::default().entry(), 512), Err(KernelError::Length { moves: 4096, .. })));
        assert!(matches!(make(GetFeatures::default().entry(), 8192), Err(KernelError::Length { .. })));
    }

    #[test]
    fn a_fused_command_and_one_with_an_sgl_are_refused() {
        let entry = Identify::default().entry();
        assert!(make(entry.with_psdt(1), 4096).is_err());
        assert!(make(entry.with_cdw0(entry.cdw0() | 1 << 8), 4096).is_err());
    }

    proptest! {
        #[test]
        fn no_entry_whatsoever_gets_another_opcode_through(
            dwords in any::<[u32; 16]>(),
            data_bytes in 0_usize..10_000,
        ) {
            let entry = SubmissionEntry::from_dwords(dwords);
            if let Ok(taken) = make(entry, data_bytes) {
                prop_assert!([0x02, 0x06, 0x0a].contains(&taken.entry().opcode()));
                prop_assert!(taken.buffer_bytes() >= data_bytes);
            }
        }

        #[test]
        fn all_other_opcodes_are_refused(opcode in any::<u8>(), data_bytes in 0_usize..10_000) {
            prop_assume!(![0x02, 0x06, 0x0a].contains(&opcode));
            let refused = matches!(make(SubmissionEntry::new(opcode), data_bytes), Err(KernelError::Refused { .. }));
            prop_assert!(refused);
        }
    }
}
