//! Taking up commands: whose turn it is, and what becomes of the entry.
//!
//! Submission queues that have entries stand in a row (round robin). One command is taken up at a time; how long that
//! takes is what limits the commands per second of the whole controller.
#![forbid(unsafe_code)]

use nvmetal_core::command::SubmissionEntry;

use crate::controller::flight::{Fate, Flight};
use crate::emulator::Emulator;
use crate::event::What;
use crate::fault::{FaultKind, Occasion};
use crate::guest_memory::Access;
use crate::trace::Happening;

/// Commands that may be outstanding, taken up and not yet answered. A driver runs out of command identifiers before; one
/// that takes no account of its own commands must not make the controller grow without end.
const OUTSTANDING_MOST: usize = 1 << 20;

impl Emulator {
    /// Puts a queue with entries into the row.
    pub(crate) fn take_up(&mut self, qid: u16) {
        let (now_ns, host_ns) = (self.now_ns, self.options.model.host);
        let Some(queue) = self.queues.sq_mut(qid) else { return };
        if queue.in_turn || !queue.has_entries() {
            return;
        }
        queue.in_turn = true;
        // The host's own work for a command is part of what a person measures, and passes before the doorbell.
        let ready_ns = queue.host_ready_ns + host_ns;
        if qid != 0 && ready_ns > now_ns {
            queue.host_ready_ns = ready_ns;
            self.events.plan(ready_ns, What::HostReady(qid));
            return;
        }
        self.stand_in_line(qid);
    }

    /// The host has the next command of the queue ready.
    pub(crate) fn host_ready(&mut self, qid: u16) {
        if self.queues.sq(qid).is_some_and(|queue| queue.in_turn) {
            self.stand_in_line(qid);
        }
    }

    fn stand_in_line(&mut self, qid: u16) {
        self.in_turn.push_back(qid);
        if !self.fetching {
            self.fetching = true;
            let at_ns = (self.now_ns + self.options.model.doorbell).max(self.fetch_free_ns);
            self.events.plan(at_ns, What::Fetch);
        }
    }

    /// After RDY: doorbells may have been rung before.
    pub(crate) fn take_up_all(&mut self) {
        let ids: Vec<u16> = self.queues.submission_ids().collect();
        for qid in ids {
            self.take_up(qid);
        }
    }

    /// Fetches one command from the queue whose turn it is.
    pub(crate) fn fetch(&mut self, access: &Access<'_>) {
        self.fetching = false;
        self.fetch_free_ns = self.now_ns + self.options.model.command;
        let Some(qid) = self.in_turn.pop_front() else { return };
        let waiting = self.queues.pair_mut(qid).map_or(0, |(_, completion)| completion.waiting.len());
        if self.flights.len() + waiting >= OUTSTANDING_MOST {
            self.fatal();
            return;
        }
        if let Some(queue) = self.queues.sq_mut(qid) {
            queue.in_turn = false;
            let address = queue.fetch();
            match access.read_entry(address) {
                Ok(words) => self.begin(qid, SubmissionEntry::from_words(words)),
                Err(_) => self.fatal(), // A queue that cannot be read is a fatal error: there is nobody to tell.
            }
        }
        self.take_up(qid);
        if !self.in_turn.is_empty() && !self.fetching {
            self.fetching = true;
            self.events.plan(self.fetch_free_ns, What::Fetch);
        }
    }

    /// A command has been fetched.
    fn begin(&mut self, qid: u16, entry: SubmissionEntry) {
        self.commands += 1;
        if self.options.removed_at.is_some_and(|at| self.commands > at) {
            self.remove();
            return;
        }
        self.log.count(qid, entry.opcode());
        self.log.record(self.now_ns, Happening::Command { qid, entry });
        if qid == 0 {
            let silent = self.faults.hit(Occasion::Admin) == Some(FaultKind::AdminTimeout);
            let fate = if silent { Fate::Silence } else { Fate::Execute };
            let ticket = self.flights.add(Flight { entry, sqid: 0, fate, first: 0, bytes: 0 });
            self.events.plan(self.now_ns + self.options.model.admin, What::Complete(ticket));
        } else {
            self.begin_io(qid, entry);
        }
    }
}
