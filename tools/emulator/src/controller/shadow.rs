//! Shadow doorbells: the host writes tails and heads to memory, and rings only when the controller asked for it.
//!
//! NVM Express Base Specification, "Doorbell Buffer Config command". Like the controllers that have this command, the
//! emulator looks at the shadows by itself while it is awake. Before it goes to rest it writes to the event indexes up to
//! where it has seen each queue, and looks once more: what the host has stored up to then is found by that look, and who
//! stores later sees the event index and rings. Any doorbell of an I/O queue then wakes it.
//!
//! While it rests it does *not* look, so that a driver that forgets to ring is left waiting here, too. The admin queue
//! keeps its registers, as common drivers leave its shadow alone.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use nvmetal_core::command::SubmissionEntry;
use nvmetal_core::status::Status;

use crate::controller::status as code;
use crate::emulator::Emulator;

/// The two pages that the host gave.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shadows {
    /// Where the shadow doorbells begin.
    doorbells: u64,
    /// Where the event indexes begin.
    events: u64,
    resting: bool,
}

impl Emulator {
    /// Doorbell Buffer Config.
    pub(crate) fn doorbell_buffer_config(&mut self, entry: &SubmissionEntry) -> Result<u64, Status> {
        let page_bytes = self.registers.page_bytes();
        let (doorbells, events) = (entry.prp1(), entry.prp2());
        if !self.options.shadow_doorbells {
            return Err(code::INVALID_OPCODE);
        }
        if doorbells == 0 || events == 0 || (doorbells | events) & (page_bytes - 1) != 0 {
            return Err(code::INVALID_FIELD);
        }
        self.shadows = Some(Shadows { doorbells, events, resting: false });
        Ok(0)
    }

    /// Whether this queue's doorbells have shadows.
    pub(crate) fn is_shadowed(&self, qid: u16) -> bool {
        qid != 0 && self.shadows.is_some()
    }

    /// A doorbell of an I/O queue was rung.
    pub(crate) fn wake(&mut self) {
        if let Some(shadows) = &mut self.shadows {
            shadows.resting = false;
        }
        self.scan_shadows();
    }

    /// Looks at the shadows, unless at rest; whether any had moved.
    pub(crate) fn scan_shadows(&mut self) -> bool {
        let Some(Shadows { doorbells, resting: false, .. }) = self.shadows else { return false };
        let mut any = false;
        let mut at = 0;
        while let Some(qid) = self.queues.live(at) {
            at += 1;
            if qid == 0 {
                continue;
            }
            // The head first: it makes room for the completions of what the tail brings.
            for completion in [true, false] {
                // A look of its own for each word: what follows from it enters the memory itself.
                let memory = Arc::clone(&self.memory);
                let value = memory.enter().read_u32(doorbells + self.shadow_offset(qid, completion));
                let Ok(value) = value else { return any };
                any |= if completion { self.head_moved(qid, value) } else { self.tail_moved(qid, value) };
            }
        }
        any
    }

    fn head_moved(&mut self, qid: u16, head: u32) -> bool {
        let moved = self.queues.cq(qid).is_some_and(|queue| head != queue.head && queue.may_be_head(head));
        if moved {
            self.head_doorbell(qid, head);
        }
        moved
    }

    fn tail_moved(&mut self, qid: u16, tail: u32) -> bool {
        let moved = self.queues.sq(qid).is_some_and(|queue| tail != queue.tail && tail < queue.entries);
        if moved {
            self.tail_doorbell(qid, tail);
        }
        moved
    }

    /// Nothing is left to do: asks to be woken, unless the last look finds something. Whether it did.
    pub fn rest(&mut self) -> bool {
        let Some(Shadows { events, resting: false, .. }) = self.shadows else { return false };
        {
            let memory = Arc::clone(&self.memory);
            let access = memory.enter();
            let mut at = 0;
            while let Some(qid) = self.queues.live(at) {
                at += 1;
                if qid == 0 {
                    continue;
                }
                let tail = self.queues.sq(qid).map(|queue| queue.tail);
                // Heads matter only where completions wait for room.
                let head = self.queues.cq(qid).filter(|queue| !queue.waiting.is_empty()).map(|queue| queue.head);
                for (index, completion) in [(tail, false), (head, true)] {
                    self.cells.set(qid, completion, u32::MAX);
                    if let Some(index) = index
                        && access.write_u32(events + self.shadow_offset(qid, completion), index).is_err()
                    {
                        return false;
                    }
                }
            }
        }
        // Orders the event indexes before the last look, against the host's store of a shadow before its look at the
        // event index: one of the two sees the other.
        fence(Ordering::SeqCst);
        if self.scan_shadows() {
            return true;
        }
        if let Some(shadows) = &mut self.shadows {
            shadows.resting = true;
        }
        false
    }

    fn shadow_offset(&self, qid: u16, completion: bool) -> u64 {
        (2 * u64::from(qid) + u64::from(completion)) * u64::from(self.registers.cap.doorbell_stride_bytes())
    }
}
