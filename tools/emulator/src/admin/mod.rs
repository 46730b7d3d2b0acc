//! Admin commands, one file for each family.
#![forbid(unsafe_code)]

mod abort;
pub(crate) mod events;
pub(crate) mod features;
mod format;
mod host_memory;
mod identify;
mod log_page;
mod queues;
pub(crate) mod sanitize;
pub(crate) mod self_test;

use nvmetal_core::command::SubmissionEntry;
use nvmetal_core::command::admin::AdminOpcode;
use nvmetal_core::status::Status;

use crate::controller::status as code;
use crate::emulator::Emulator;
use crate::guest_memory::Access;

impl Emulator {
    /// Carries out an admin command; `None` where it stays outstanding.
    pub(crate) fn execute_admin(
        &mut self,
        entry: &SubmissionEntry,
        access: &Access<'_>,
    ) -> Option<Result<u64, Status>> {
        if entry.fuse() != 0 {
            return Some(Err(code::INVALID_FIELD));
        }
        if self.sanitize.is_running() && !sanitize::is_allowed(entry.opcode()) {
            self.error_log.note(0, entry, code::SANITIZE_IN_PROGRESS, 0);
            return Some(Err(code::SANITIZE_IN_PROGRESS));
        }
        let outcome = match AdminOpcode::from_bits(entry.opcode()) {
            AdminOpcode::DELETE_IO_SQ => self.delete_sq(entry, access),
            AdminOpcode::CREATE_IO_SQ => self.create_sq(entry),
            AdminOpcode::GET_LOG_PAGE => self.get_log_page(entry, access),
            AdminOpcode::DELETE_IO_CQ => self.delete_cq(entry),
            AdminOpcode::CREATE_IO_CQ => self.create_cq(entry),
            AdminOpcode::IDENTIFY => self.identify(entry, access),
            AdminOpcode::ABORT => self.abort(entry, access),
            AdminOpcode::SET_FEATURES => self.set_features(entry, access),
            AdminOpcode::GET_FEATURES => self.get_features(entry, access),
            AdminOpcode::ASYNC_EVENT_REQUEST => return self.async_event_request(entry),
            AdminOpcode::DEVICE_SELF_TEST => self.device_self_test(entry),
            AdminOpcode::FORMAT_NVM => self.format_nvm(entry),
            AdminOpcode::SANITIZE => self.start_sanitize(entry),
            AdminOpcode::DOORBELL_BUFFER_CONFIG => self.doorbell_buffer_config(entry),
            _ => Err(code::INVALID_OPCODE),
        };
        if let Err(status) = outcome {
            self.error_log.note(0, entry, status, 0);
        }
        Some(outcome)
    }

    /// Sends `data` (the beginning of it that was asked for) to where an admin command's data pointer points.
    pub(crate) fn send_admin(
        &mut self,
        entry: &SubmissionEntry,
        data: &[u8],
        access: &Access<'_>,
    ) -> Result<(), Status> {
        self.pieces.resolve(entry, data.len() as u64, self.registers.page_bytes(), access)?;
        self.pieces.send(data, access)
    }

    /// Fetches `bytes` from where an admin command's data pointer points.
    pub(crate) fn fetch_admin(
        &mut self,
        entry: &SubmissionEntry,
        bytes: usize,
        access: &Access<'_>,
    ) -> Result<Vec<u8>, Status> {
        let mut data = vec![0; bytes];
        self.pieces.resolve(entry, bytes as u64, self.registers.page_bytes(), access)?;
        self.pieces.fetch(&mut data, access)?;
        Ok(data)
    }
}
