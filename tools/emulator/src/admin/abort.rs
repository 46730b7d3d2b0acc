//! Abort.
#![forbid(unsafe_code)]

use nvmetal_core::command::admin::Abort;
use nvmetal_core::command::{Command, SubmissionEntry};
use nvmetal_core::status::Status;

use crate::controller::status as code;
use crate::emulator::Emulator;
use crate::fault::{FaultKind, Occasion};
use crate::guest_memory::Access;

/// Dword 0 of the completion: the command was not aborted.
const NOT_ABORTED: u64 = 1;

impl Emulator {
    pub(super) fn abort(&mut self, entry: &SubmissionEntry, access: &Access<'_>) -> Result<u64, Status> {
        let Abort { sqid, cid } = Abort::from_entry(entry);
        if self.queues.sq(sqid).is_none() {
            return Err(code::INVALID_FIELD);
        }
        if sqid == 0 && self.async_events.take_request(cid) {
            self.post(0, cid, Err(code::ABORT_REQUESTED), access);
            return Ok(0);
        }
        if self.faults.hit(Occasion::Abort) == Some(FaultKind::AbortRefused) {
            return Ok(NOT_ABORTED);
        }
        match self.flights.take_by_id(sqid, cid) {
            Some(_) => {
                self.post(sqid, cid, Err(code::ABORT_REQUESTED), access);
                Ok(0)
            }
            None => Ok(NOT_ABORTED),
        }
    }
}
