//! Completions: the entry, its phase tag, the interrupt.
#![forbid(unsafe_code)]

use nvmetal_core::status::Status;

use crate::controller::flight::{Fate, Flight, Ticket};
use crate::emulator::Emulator;
use crate::fault::FaultKind;
use crate::guest_memory::Access;
use crate::trace::Happening;

/// What a command returns: dwords 0 and 1 of its completion, or how it failed.
pub(crate) type Outcome = Result<u64, Status>;

impl Emulator {
    /// The moment at which a command takes effect and ends.
    pub(crate) fn complete(&mut self, ticket: Ticket, access: &Access<'_>) {
        if self.hang.is_some() || self.flights.get(ticket).is_some_and(|flight| flight.fate == Fate::Silence) {
            return; // Never answered, and still there to be aborted or to end with its queue.
        }
        let Some(flight) = self.flights.take(ticket) else { return };
        if self.flights.len() == 0 {
            self.health.rests(self.now_ns);
        }
        let outcome = match flight.fate {
            Fate::End(status) => Err(status),
            Fate::Silence => return,
            Fate::Execute if flight.sqid == 0 => match self.execute_admin(&flight.entry, access) {
                Some(outcome) => outcome,
                None => return, // It stays outstanding: an asynchronous event request.
            },
            Fate::Execute => self.execute_io(&flight, access),
            Fate::Lie(kind) => {
                let outcome = self.execute_io(&flight, access);
                self.post_lie(kind, &flight, outcome, access);
                return;
            }
        };
        self.post(flight.sqid, flight.entry.cid(), outcome, access);
    }

    /// Completes a command of a submission queue.
    pub(crate) fn post(&mut self, sqid: u16, cid: u16, outcome: Outcome, access: &Access<'_>) {
        if let Some((cqid, completion)) = self.completion(sqid, cid, outcome) {
            self.write_soon(cqid, completion, access);
        }
    }

    /// The completion queue of a command, and its entry without the phase tag.
    fn completion(&mut self, sqid: u16, cid: u16, outcome: Outcome) -> Option<(u16, [u64; 2])> {
        let (result, status) = match outcome {
            Ok(result) => (result, Status::SUCCESS),
            Err(status) => (0, status),
        };
        let queue = self.queues.sq(sqid)?;
        let (cqid, head) = (queue.cqid, queue.head);
        self.log.record(self.now_ns, Happening::Completion { qid: sqid, cid, dw0: result as u32, status });
        let high = u64::from(head) | u64::from(sqid) << 16 | u64::from(cid) << 32 | u64::from(status.into_bits()) << 49;
        Some((cqid, [result, high]))
    }

    fn write_soon(&mut self, cqid: u16, completion: [u64; 2], access: &Access<'_>) {
        if let Some(queue) = self.queues.cq_mut(cqid) {
            queue.waiting.push_back(completion);
            self.write_waiting(cqid, access);
        }
    }

    /// Completes a command as no correct controller does.
    fn post_lie(&mut self, kind: FaultKind, flight: &Flight, outcome: Outcome, access: &Access<'_>) {
        let Some((entries, tail)) = self.queues.sq(flight.sqid).map(|queue| (queue.entries, queue.tail)) else {
            return;
        };
        let Some((cqid, [low, high])) = self.completion(flight.sqid, flight.entry.cid(), outcome) else { return };
        let lie = match kind {
            FaultKind::BadId => [low, high | 0xffff << 32],
            FaultKind::StaleId => [low, high ^ 1 << 47],
            FaultKind::WrongQueue => [low, high ^ 1 << 16],
            FaultKind::WrongHead => [low, high & !0xffff | u64::from((tail + 1) % entries)],
            // The phase tag is added by way of exclusive or.
            FaultKind::StalePhase => [low, high | 1 << 48],
            FaultKind::Torn => [0, high & !0xffff_ffff],
            _ => [low, high],
        };
        self.mute = kind == FaultKind::LostInterrupt;
        self.write_soon(cqid, lie, access);
        self.mute = false;
        if kind == FaultKind::Double {
            self.write_soon(cqid, lie, access);
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
            if access.write_completion(address, [low, high ^ u64::from(phase) << 48]).is_err() {
                self.fatal(); // Nobody can be told on a queue that cannot be written.
                return;
            }
            written = true;
        }
        if !written {
            return;
        }
        self.visible += 1;
        if let Some(vector) = queue.vector.filter(|_| !self.mute) {
            self.log.record(self.now_ns, Happening::Interrupt { vector });
            self.irq.raise(vector);
        }
    }
}
