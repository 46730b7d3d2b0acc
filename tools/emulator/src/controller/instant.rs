//! The short way for a controller that answers at once: no event, no time, no data.
//!
//! The model `null` exists to measure the software in front of it, so its own cost must be small. What it checks is what
//! a driver could get wrong: the namespace, the opcode, the range.
#![forbid(unsafe_code)]

use nvmetal_core::status::Status;

use crate::controller::status as code;
use crate::emulator::Emulator;
use crate::model::{MediaKind, Model};
use crate::nvm::opcode;

/// Commands that are answered before another queue is looked at.
const BURST: u32 = 64;

impl Model {
    /// Whether every command is answered at once.
    pub(crate) fn is_instant(&self) -> bool {
        self.media == MediaKind::Null
            && [self.command, self.host, self.doorbell, self.completion, self.read, self.program, self.write_latency]
                .iter()
                .all(|&time_ns| time_ns == 0)
    }
}

impl Emulator {
    /// Answers what a queue holds; whether the queue may be served this way.
    pub(crate) fn serve_at_once(&mut self, qid: u16) -> bool {
        if !self.instant
            || qid == 0
            || !self.faults.is_empty()
            || self.options.removed_at.is_some()
            || self.sanitize.is_running()
        {
            return false;
        }
        let memory = std::sync::Arc::clone(&self.memory);
        let access = memory.enter();
        let Some((nsid, blocks)) = self.namespaces.first().map(|namespace| (namespace.nsid, namespace.blocks)) else {
            return false;
        };
        let Some((submission, completion)) = self.queues.pair_mut(qid) else { return false };
        let mut answered = 0;
        while submission.has_entries() && !completion.is_full() && answered < BURST {
            let Ok(words) = access.read_entry(submission.fetch()) else {
                self.fatal();
                return true;
            };
            let [head, .., slba, nlb, _] = words;
            let count = (nlb & 0xffff) + 1;
            let status = match head as u8 {
                _ if (head >> 32) as u32 != nsid => code::INVALID_NAMESPACE,
                opcode::FLUSH => Status::SUCCESS,
                opcode::READ | opcode::WRITE if slba.checked_add(count).is_some_and(|end| end <= blocks) => {
                    Status::SUCCESS
                }
                opcode::READ | opcode::WRITE => code::LBA_OUT_OF_RANGE,
                _ => code::INVALID_OPCODE,
            };
            self.log.count(qid, head as u8);
            let (address, phase) = completion.place();
            let high = u64::from(submission.head)
                | u64::from(qid) << 16
                | (head >> 16 & 0xffff) << 32
                | u64::from(phase) << 48
                | u64::from(status.into_bits()) << 49;
            if access.write_completion(address, [0, high]).is_err() {
                self.fatal();
                return true;
            }
            answered += 1;
        }
        self.commands += u64::from(answered);
        self.visible += 1;
        if answered != 0
            && let Some(vector) = completion.vector
        {
            self.irq.raise(vector);
        }
        true
    }
}
