//! Doorbells that are memory: the host stores, and the controller looks.
//!
//! A threaded emulator cannot be called for each doorbell: a store is all that a driver's hot path does. So there is one
//! word for each doorbell, and the controller compares it with the index that it knows, again and again. What a store to
//! memory cannot show is a doorbell of a queue that does not exist, or the same index again.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::controller::queue::SubmissionQueue;
use crate::emulator::Emulator;
use crate::guest_memory::SharedWords;

/// The words.
#[derive(Debug, Default)]
pub(crate) enum Cells {
    /// There are none: doorbells are calls.
    #[default]
    None,
    /// Words of this process.
    Own(Arc<[AtomicU32]>),
    /// Words that another process has mapped.
    Shared(Arc<SharedWords>),
}

impl Cells {
    fn cell(&self, qid: u16, completion: bool) -> Option<&AtomicU32> {
        let index = 2 * usize::from(qid) + usize::from(completion);
        match self {
            Self::None => None,
            Self::Own(words) => words.get(index),
            Self::Shared(words) => words.get(index),
        }
    }

    /// The doorbell stands at what the controller knows: of a queue that begins, or after an index that cannot be.
    pub(crate) fn set(&self, qid: u16, completion: bool, index: u32) {
        if let Some(cell) = self.cell(qid, completion) {
            cell.store(index, Ordering::Relaxed);
        }
    }
}

impl Emulator {
    /// From now on doorbells are these words: the tail of submission queue *n* is word 2*n*, the head of completion queue
    /// *n* is word 2*n* + 1.
    pub fn share_doorbells(&mut self, cells: Arc<[AtomicU32]>) {
        self.cells = Cells::Own(cells);
    }

    /// The same with words that another process can write.
    pub fn share_doorbells_outside(&mut self, words: Arc<SharedWords>) {
        self.cells = Cells::Shared(words);
    }

    /// Looks at all doorbells of queues that exist; whether any had been written.
    pub fn scan_doorbells(&mut self) -> bool {
        let mut any = false;
        if !self.registers.csts.rdy() {
            return any;
        }
        let mut at = 0;
        while let Some(qid) = self.queues.live(at) {
            at += 1;
            if self.is_shadowed(qid) {
                let rung = [false, true].into_iter().any(|completion| {
                    // Acquire: pairs with the release before the host's store of the doorbell.
                    self.cells.cell(qid, completion).is_some_and(|cell| cell.load(Ordering::Acquire) != u32::MAX)
                });
                if rung {
                    // `rest` and this make the words such that any doorbell's value is another.
                    self.cells.set(qid, false, u32::MAX);
                    self.cells.set(qid, true, u32::MAX);
                    self.wake();
                    any = true;
                } else if self.queues.sq(qid).is_some_and(SubmissionQueue::has_entries) && self.serve_at_once(qid) {
                    any = true;
                }
                continue;
            }
            // The head first: it makes room for the completions of what the tail brings.
            if let (Some(queue), Some(cell)) = (self.queues.cq(qid), self.cells.cell(qid, true)) {
                // Acquire: orders the host's reads of the entries it gives back before our writing them again.
                let head = cell.load(Ordering::Acquire);
                if head != queue.head {
                    self.head_doorbell(qid, head);
                    any = true;
                }
            }
            if let (Some(queue), Some(cell)) = (self.queues.sq(qid), self.cells.cell(qid, false)) {
                // Acquire: pairs with the release before the host's store of the doorbell; its entries are visible.
                let tail = cell.load(Ordering::Acquire);
                if tail != queue.tail {
                    self.tail_doorbell(qid, tail);
                    any = true;
                } else if queue.has_entries() && self.serve_at_once(qid) {
                    any = true;
                }
            }
        }
        self.scan_shadows() || any
    }
}
