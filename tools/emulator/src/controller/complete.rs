//! Completions: the entry, its phase tag, the interrupt.
#![forbid(unsafe_code)]

use nvmetal_core::status::Status;

use crate::controller::flight::{Fate, Ticket};
use crate::emulator::Emulator;
use crate::guest_memory::Access;
use crate::trace::Happening;

/// What a command returns: dwords 0 and 1 of its completion, or how it failed.
pub(crate) type Outcome = Result<u64, Status>;

impl Emulator {
    /// The moment at which a command takes effect and ends.
    pub(crate) fn complete(&mut self, ticket: Ticket, access: &Access<'_>) {
        if self.flights.get(ticket).is_some_and(|flight| flight.fate == Fate::Silence) {
            return; // Never answered, and still there to be aborted or to end with its queue.
        }
        let Some(flight) = self.flights.take(ticket) else { return };
        let outcome = match flight.fate {
            Fate::End(status) => Err(status),
            Fate::Silence => return,
            Fate::Execute if flight.sqid == 0 => match self.execute_admin(&flight.entry, access) {
                Some(outcome) => outcome,
                None => return, // It stays outstanding: an asynchronous event request.
            },
            Fate::Execute => self.execute_io(&flight, access),
        };
        self.post(flight.sqid, flight.entry.cid(), outcome, access);
    }

    /// Completes a command of a submission queue.
    pub(crate) fn post(&mut self, sqid: u16, cid: u16, outcome: Outcome, access: &Access<'_>) {
        let (result, status) = match outcome {
            Ok(result) => (result, Status::SUCCESS),
            Err(status) => (0, status),
        };
        let Some(queue) = self.queues.sq(sqid) else { return };
        let (cqid, head) = (queue.cqid, queue.head);
        self.log.record(self.now_ns, Happening::Completion { qid: sqid, cid, dw0: result as u32, status });
        let high = u64::from(head) | u64::from(sqid) << 16 | u64::from(cid) << 32 | u64::from(status.into_bits()) << 49;
        if let Some(queue) = self.queues.cq_mut(cqid) {
            queue.waiting.push_back([result, high]);
            self.write_waiting(cqid, access);
        }
    }

    /// Writes the completions of a queue for which there is room.
    pub(crate) fn write_waiting(&mut self, cqid: u16, access: &Access<'_>) {
        let Some(queue) = self.queues.cq_mut(cqid) else { return };
        let mut written = false;
        while !queue.is_full()
            && let Some([low, high]) = queue.waiting.pop_front()
        {
            let (address, phase) = queue.place();
            if access.write_completion(address, [low, high | u64::from(phase) << 48]).is_err() {
                self.fatal(); // Nobody can be told on a queue that cannot be written.
                return;
            }
            written = true;
        }
        if !written {
            return;
        }
        self.visible += 1;
        if let Some(vector) = queue.vector {
            self.log.record(self.now_ns, Happening::Interrupt { vector });
            self.irq.raise(vector);
        }
    }
}
