//! Doorbells: which queue, which index, and whether that can be.
#![forbid(unsafe_code)]

use nvmetal_core::register::offset;

use crate::admin::events::AsyncEvent;
use crate::emulator::Emulator;
use crate::trace::Happening;

impl Emulator {
    /// A 32-bit write to the doorbell at `offset` of BAR0.
    pub(crate) fn write_doorbell(&mut self, offset: u64, value: u32) {
        let stride = u64::from(self.registers.cap.doorbell_stride_bytes());
        let number = (offset - offset::DOORBELLS) / stride;
        let (qid, completion) = ((number / 2) as u16, number % 2 == 1);
        if number / 2 > u64::from(u16::MAX) || !(offset - offset::DOORBELLS).is_multiple_of(stride) {
            self.async_event(AsyncEvent::INVALID_DOORBELL_REGISTER);
            return;
        }
        self.log.record(self.now_ns, Happening::Doorbell { qid, completion, value });
        if !self.registers.csts.rdy() {
            return; // What a doorbell does to a controller that is not ready is not defined; here: nothing.
        }
        if self.is_shadowed(qid) {
            self.wake();
            return;
        }
        if completion { self.head_doorbell(qid, value) } else { self.tail_doorbell(qid, value) }
    }

    pub(crate) fn tail_doorbell(&mut self, qid: u16, value: u32) {
        let now_ns = self.now_ns;
        let Some(queue) = self.queues.sq_mut(qid) else {
            self.async_event(AsyncEvent::INVALID_DOORBELL_REGISTER);
            return;
        };
        if value >= queue.entries || value == queue.tail {
            self.cells.set(qid, false, queue.tail);
            self.async_event(AsyncEvent::INVALID_DOORBELL_VALUE);
            return;
        }
        if !queue.has_entries() {
            queue.host_ready_ns = queue.host_ready_ns.max(now_ns);
        }
        queue.tail = value;
        if !self.serve_at_once(qid) {
            self.take_up(qid);
        }
    }

    pub(crate) fn head_doorbell(&mut self, qid: u16, value: u32) {
        let Some(queue) = self.queues.cq_mut(qid) else {
            self.async_event(AsyncEvent::INVALID_DOORBELL_REGISTER);
            return;
        };
        if !queue.may_be_head(value) || value == queue.head {
            self.cells.set(qid, true, queue.head);
            self.async_event(AsyncEvent::INVALID_DOORBELL_VALUE);
            return;
        }
        queue.head = value;
        if !queue.waiting.is_empty() {
            let memory = std::sync::Arc::clone(&self.memory);
            self.write_waiting(qid, &memory.enter());
        }
    }
}
