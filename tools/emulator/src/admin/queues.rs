//! Creating and deleting I/O queues.
//!
//! NVM Express Base Specification, "Create I/O Completion Queue", "Create I/O Submission Queue", and their deletions.
#![forbid(unsafe_code)]

use nvmetal_core::command::admin::{
    CreateIoCompletionQueue, CreateIoSubmissionQueue, DeleteIoCompletionQueue, DeleteIoSubmissionQueue,
};
use nvmetal_core::command::{Command, SubmissionEntry};
use nvmetal_core::number::ZeroBasedU16;
use nvmetal_core::status::Status;

use crate::controller::queue::{CompletionQueue, SubmissionQueue};
use crate::controller::status as code;
use crate::emulator::Emulator;
use crate::guest_memory::Access;

impl Emulator {
    /// Interrupt vectors that the controller has.
    pub fn vectors(&self) -> u16 {
        self.options.queues.saturating_add(1).min(2048)
    }

    /// What both kinds of queue have in common: an identifier, a size, an address.
    fn check_new_queue(&self, qsize: ZeroBasedU16, pc: bool, base: u64) -> Result<(), Status> {
        if qsize.into_bits() == 0 || qsize.count() > self.registers.cap.mqes().count() {
            return Err(code::INVALID_QUEUE_SIZE);
        }
        // Queues in pieces are not supported (CAP.CQR), so PRP1 is the queue's own address.
        if !pc {
            return Err(code::INVALID_FIELD);
        }
        if base & (self.registers.page_bytes() - 1) != 0 {
            return Err(code::PRP_OFFSET_INVALID);
        }
        Ok(())
    }

    pub(super) fn create_cq(&mut self, entry: &SubmissionEntry) -> Result<u64, Status> {
        let command = CreateIoCompletionQueue::from_entry(entry);
        let qid = command.qid;
        if qid == 0 || qid > self.features.queues(self.options.queues) || self.queues.cq(qid).is_some() {
            return Err(code::INVALID_QUEUE_ID);
        }
        self.check_new_queue(command.qsize, command.pc, entry.prp1())?;
        if command.ien && command.iv >= self.vectors() {
            return Err(code::INVALID_INTERRUPT_VECTOR);
        }
        let vector = command.ien.then_some(command.iv);
        self.cells.set(qid, true, 0);
        self.queues.set_cq(qid, Some(CompletionQueue::new(entry.prp1(), command.qsize.count(), vector)));
        Ok(0)
    }

    pub(super) fn create_sq(&mut self, entry: &SubmissionEntry) -> Result<u64, Status> {
        let command = CreateIoSubmissionQueue::from_entry(entry);
        let (qid, cqid) = (command.qid, command.cqid);
        if qid == 0 || qid > self.features.queues(self.options.queues) || self.queues.sq(qid).is_some() {
            return Err(code::INVALID_QUEUE_ID);
        }
        if cqid == 0 || cqid > self.features.queues(self.options.queues) {
            return Err(code::INVALID_QUEUE_ID);
        }
        self.check_new_queue(command.qsize, command.pc, entry.prp1())?;
        let completion = self.queues.cq_mut(cqid).ok_or(code::COMPLETION_QUEUE_INVALID)?;
        completion.submission_queues += 1;
        self.cells.set(qid, false, 0);
        self.queues.set_sq(qid, Some(SubmissionQueue::new(entry.prp1(), command.qsize.count(), cqid)));
        Ok(0)
    }

    /// Commands in flight on the queue end first, as aborted.
    pub(super) fn delete_sq(&mut self, entry: &SubmissionEntry, access: &Access<'_>) -> Result<u64, Status> {
        let qid = DeleteIoSubmissionQueue::from_entry(entry).qid;
        let cqid = self.queues.sq(qid).filter(|_| qid != 0).ok_or(code::INVALID_QUEUE_ID)?.cqid;
        while let Some(flight) = self.flights.take_of_queue(qid) {
            self.post(qid, flight.entry.cid(), Err(code::ABORTED_SQ_DELETION), access);
        }
        self.in_turn.retain(|&in_turn| in_turn != qid);
        self.queues.set_sq(qid, None);
        if let Some(completion) = self.queues.cq_mut(cqid) {
            completion.submission_queues -= 1;
        }
        Ok(0)
    }

    pub(super) fn delete_cq(&mut self, entry: &SubmissionEntry) -> Result<u64, Status> {
        let qid = DeleteIoCompletionQueue::from_entry(entry).qid;
        let queue = self.queues.cq(qid).filter(|_| qid != 0).ok_or(code::INVALID_QUEUE_ID)?;
        if queue.submission_queues != 0 {
            return Err(code::INVALID_QUEUE_DELETION);
        }
        self.queues.set_cq(qid, None);
        Ok(0)
    }
}
