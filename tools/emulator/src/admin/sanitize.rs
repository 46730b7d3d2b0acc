//! Sanitize: all data of the drive becomes unrecoverable, in the background.
//!
//! How long that takes is worked out from the capacity when it begins. While it runs, I/O commands and most admin commands
//! end with Sanitize In Progress, and the log page tells how far it is. A reset does not stop it. At its end everything is
//! deallocated, and the host is told by an event.
//!
//! NVM Express Base Specification, "Sanitize command", "Sanitize Operations".
#![forbid(unsafe_code)]

use nvmetal_core::command::admin::{AdminOpcode, Sanitize, SanitizeAction};
use nvmetal_core::command::{Command, SubmissionEntry};
use nvmetal_core::log::{
    Sanitize as SanitizePage, SanitizeCommand, SanitizeOutcome, SanitizeState, SanitizeStateInformation, SanitizeStatus,
};
use nvmetal_core::status::Status;
use zerocopy::little_endian::{U16, U32};

use super::events::AsyncEvent;
use crate::controller::status as code;
use crate::emulator::Emulator;
use crate::event::What;

/// Bytes that a block erase clears in a second.
const ERASE_BYTES_PER_SECOND: u64 = 32 << 30;
/// Bytes that one pass of an overwrite covers in a second.
const OVERWRITE_BYTES_PER_SECOND: u64 = 2 << 30;
/// Nanoseconds of a second.
const SECOND_NS: u64 = 1_000_000_000;
/// A time that is not reported.
const NOT_REPORTED: u32 = u32::MAX;

/// The sanitize operation that runs or ran last.
#[derive(Debug, Default)]
pub(crate) struct Sanitizing {
    /// Beginning and end of the one that runs.
    running: Option<(u64, u64)>,
    /// Dword 10 of the last command.
    command: Option<u32>,
    passes: u8,
}

/// Whether an admin command may be carried out while a sanitize operation runs.
pub(super) fn is_allowed(opcode: u8) -> bool {
    [
        AdminOpcode::DELETE_IO_SQ,
        AdminOpcode::CREATE_IO_SQ,
        AdminOpcode::GET_LOG_PAGE,
        AdminOpcode::DELETE_IO_CQ,
        AdminOpcode::CREATE_IO_CQ,
        AdminOpcode::IDENTIFY,
        AdminOpcode::ABORT,
        AdminOpcode::SET_FEATURES,
        AdminOpcode::GET_FEATURES,
        AdminOpcode::ASYNC_EVENT_REQUEST,
        AdminOpcode::DOORBELL_BUFFER_CONFIG,
    ]
    .contains(&AdminOpcode::from_bits(opcode))
}

/// Seconds that an action takes on a drive of so many bytes.
fn seconds(action: SanitizeAction, passes: u8, bytes: u64) -> u64 {
    match action {
        SanitizeAction::CRYPTO_ERASE => 1,
        SanitizeAction::BLOCK_ERASE => 2 + bytes / ERASE_BYTES_PER_SECOND,
        _ => 2 + bytes / OVERWRITE_BYTES_PER_SECOND * u64::from(passes),
    }
}

impl Sanitizing {
    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// The log page.
    pub(super) fn page(&self, now_ns: u64, bytes: u64) -> SanitizePage {
        let estimate = |action, passes| U32::new(seconds(action, passes, bytes).try_into().unwrap_or(NOT_REPORTED - 1));
        let progress = self.running.map(|(from, to)| {
            let done = u128::from(now_ns.saturating_sub(from)) * 65_536 / u128::from((to - from).max(1));
            done.min(65_535) as u16
        });
        let (outcome, state) = match (self.running, self.command) {
            (Some(_), command) => {
                let unrestricted = SanitizeCommand::from_bits(command.unwrap_or(0)).ause();
                let state = if unrestricted {
                    SanitizeState::UNRESTRICTED_PROCESSING
                } else {
                    SanitizeState::RESTRICTED_PROCESSING
                };
                (SanitizeOutcome::IN_PROGRESS, state)
            }
            (None, Some(_)) => (SanitizeOutcome::SUCCEEDED, SanitizeState::IDLE),
            (None, None) => (SanitizeOutcome::NEVER, SanitizeState::IDLE),
        };
        let done = self.running.is_none();
        SanitizePage {
            sprog: U16::new(progress.unwrap_or(u16::MAX)),
            sstat: SanitizeStatus::default().with_outcome(outcome).with_passes(if done { self.passes } else { 0 }),
            scdw10: SanitizeCommand::from_bits(self.command.unwrap_or(0)),
            eto: estimate(SanitizeAction::OVERWRITE, 1),
            etbe: estimate(SanitizeAction::BLOCK_ERASE, 0),
            etce: estimate(SanitizeAction::CRYPTO_ERASE, 0),
            etond: U32::new(NOT_REPORTED),
            etbend: U32::new(NOT_REPORTED),
            etcend: U32::new(NOT_REPORTED),
            etpvds: U32::new(NOT_REPORTED),
            ssi: SanitizeStateInformation::default().with_sans(state),
            ..SanitizePage::default()
        }
    }
}

impl Emulator {
    pub(super) fn start_sanitize(&mut self, entry: &SubmissionEntry) -> Result<u64, Status> {
        let command = Sanitize::from_entry(entry);
        let passes = match (command.sanact, command.owpass.get() as u8) {
            // Nothing has failed, so there is nothing to leave.
            (SanitizeAction::EXIT_FAILURE, _) => return Ok(0),
            (SanitizeAction::BLOCK_ERASE | SanitizeAction::CRYPTO_ERASE, _) => 0,
            (SanitizeAction::OVERWRITE, 0) => 16,
            (SanitizeAction::OVERWRITE, passes) => passes,
            _ => return Err(code::INVALID_FIELD),
        };
        // No-Deallocate is inhibited, and there is no media verification state.
        if command.ndas || command.emvs || entry.cdw10() >> 11 != 0 {
            return Err(code::INVALID_FIELD);
        }
        self.self_tests.aborted_by_sanitize(self.now_ns);
        let seconds = seconds(command.sanact, passes, self.options.model.capacity);
        let end_ns = self.now_ns.saturating_add(seconds.saturating_mul(SECOND_NS));
        self.sanitize = Sanitizing { running: Some((self.now_ns, end_ns)), command: Some(entry.cdw10()), passes };
        self.events.plan(end_ns, What::SanitizeDone);
        Ok(0)
    }

    /// The operation is at its end.
    pub(crate) fn sanitize_done(&mut self) {
        self.sanitize.running = None;
        for namespace in &mut self.namespaces {
            namespace.erase();
        }
        self.async_event(AsyncEvent::SANITIZE_COMPLETED);
    }
}
