//! Format NVM.
//!
//! NVM Express Base Specification, "Format NVM command".
#![forbid(unsafe_code)]

use nvmetal_core::command::admin::{FormatNvm, SecureErase};
use nvmetal_core::command::{Command, SubmissionEntry};
use nvmetal_core::status::Status;

use super::identify::format_list;
use crate::controller::status as code;
use crate::emulator::Emulator;

impl Emulator {
    pub(super) fn format_nvm(&mut self, entry: &SubmissionEntry) -> Result<u64, Status> {
        let command = FormatNvm::from_entry(entry);
        let all = command.nsid == u32::MAX;
        if !all && self.namespace(command.nsid).is_none() {
            return Err(code::INVALID_NAMESPACE);
        }
        if command.ses.into_bits() > SecureErase::CRYPTOGRAPHIC.into_bits() || entry.cdw10() >> 14 != 0 {
            return Err(code::INVALID_FIELD);
        }
        let index = command.lbafl.get() | command.lbafu.get() << 4;
        let format = format_list(self.options.metadata_bytes).nth(index as usize);
        let Some((lbads, metadata_bytes)) = format else { return Err(code::INVALID_FORMAT) };
        // There is no protection information.
        if command.pi.into_bits() != 0 {
            return Err(code::INVALID_FORMAT);
        }
        self.self_tests.aborted_by_format(self.now_ns);
        let capacity = self.options.model.capacity;
        for namespace in self.namespaces.iter_mut().filter(|namespace| all || namespace.nsid == command.nsid) {
            namespace.format(capacity, lbads, metadata_bytes, command.mset);
        }
        Ok(0)
    }
}
