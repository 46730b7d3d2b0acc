//! Submission and completion queues as the controller sees them: where they lie, how far each side has come.
#![forbid(unsafe_code)]

use std::collections::VecDeque;

/// A submission queue.
#[derive(Debug)]
pub(crate) struct SubmissionQueue {
    pub(crate) base: u64,
    pub(crate) entries: u32,
    /// The next entry to fetch.
    pub(crate) head: u32,
    /// Behind the last entry that the host told of.
    pub(crate) tail: u32,
    pub(crate) cqid: u16,
    /// Whether it stands in the row of queues that have entries to be fetched.
    pub(crate) in_turn: bool,
    /// When the host's software has the next command ready.
    pub(crate) host_ready_ns: u64,
}

impl SubmissionQueue {
    pub(crate) fn new(base: u64, entries: u32, cqid: u16) -> Self {
        Self { base, entries, head: 0, tail: 0, cqid, in_turn: false, host_ready_ns: 0 }
    }

    pub(crate) fn has_entries(&self) -> bool {
        self.head != self.tail
    }

    /// The address of the next entry; the head moves on.
    pub(crate) fn fetch(&mut self) -> u64 {
        let address = self.base.wrapping_add(u64::from(self.head) * 64);
        self.head = if self.head + 1 == self.entries { 0 } else { self.head + 1 };
        address
    }
}

/// A completion queue.
#[derive(Debug)]
pub(crate) struct CompletionQueue {
    pub(crate) base: u64,
    pub(crate) entries: u32,
    /// The next entry to write.
    pub(crate) tail: u32,
    /// The first entry that the host has not taken.
    pub(crate) head: u32,
    pub(crate) phase: bool,
    /// The interrupt vector, where the queue raises interrupts.
    pub(crate) vector: Option<u16>,
    /// Submission queues that complete to it.
    pub(crate) submission_queues: u32,
    /// Completions that found the queue full: address part and halves, without the phase tag.
    pub(crate) waiting: VecDeque<[u64; 2]>,
}

impl CompletionQueue {
    pub(crate) fn new(base: u64, entries: u32, vector: Option<u16>) -> Self {
        Self { base, entries, tail: 0, head: 0, phase: true, vector, submission_queues: 0, waiting: VecDeque::new() }
    }

    fn after(&self, index: u32) -> u32 {
        if index + 1 == self.entries { 0 } else { index + 1 }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.after(self.tail) == self.head
    }

    /// The address of the next entry and its phase tag; the tail moves on.
    pub(crate) fn place(&mut self) -> (u64, bool) {
        let place = (self.base.wrapping_add(u64::from(self.tail) * 16), self.phase);
        self.tail = self.after(self.tail);
        if self.tail == 0 {
            self.phase = !self.phase;
        }
        place
    }

    /// Whether the host may say that it has taken everything up to `head`.
    pub(crate) fn may_be_head(&self, head: u32) -> bool {
        let distance = |to: u32| (to + self.entries - self.head) % self.entries;
        head < self.entries && distance(head) <= distance(self.tail)
    }
}

/// All queues by their identifiers; number 0 is the admin queue.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    submission: Vec<Option<SubmissionQueue>>,
    completion: Vec<Option<CompletionQueue>>,
    /// Identifiers of which there is one queue at least.
    live: Vec<u16>,
}

macro_rules! access {
    ($get:ident, $get_mut:ident, $set:ident, $list:ident, $ty:ty) => {
        pub(crate) fn $get(&self, qid: u16) -> Option<&$ty> {
            self.$list.get(usize::from(qid))?.as_ref()
        }

        pub(crate) fn $get_mut(&mut self, qid: u16) -> Option<&mut $ty> {
            self.$list.get_mut(usize::from(qid))?.as_mut()
        }

        pub(crate) fn $set(&mut self, qid: u16, queue: Option<$ty>) -> Option<$ty> {
            let index = usize::from(qid);
            if index >= self.$list.len() {
                self.$list.resize_with(index + 1, || None);
            }
            let before = self.$list.get_mut(index).and_then(|place| core::mem::replace(place, queue));
            self.live.retain(|&live| live != qid);
            if self.sq(qid).is_some() || self.cq(qid).is_some() {
                self.live.push(qid);
            }
            before
        }
    };
}

impl Queues {
    access!(sq, sq_mut, set_sq, submission, SubmissionQueue);
    access!(cq, cq_mut, set_cq, completion, CompletionQueue);

    pub(crate) fn clear(&mut self) {
        self.submission.clear();
        self.completion.clear();
        self.live.clear();
    }

    /// The identifier at this place among those in use.
    pub(crate) fn live(&self, at: usize) -> Option<u16> {
        self.live.get(at).copied()
    }

    /// A submission queue and the completion queue that it completes to.
    pub(crate) fn pair_mut(&mut self, qid: u16) -> Option<(&mut SubmissionQueue, &mut CompletionQueue)> {
        let submission = self.submission.get_mut(usize::from(qid))?.as_mut()?;
        let completion = self.completion.get_mut(usize::from(submission.cqid))?.as_mut()?;
        Some((submission, completion))
    }

    /// Identifiers of the submission queues that there are, the admin queue's too.
    pub(crate) fn submission_ids(&self) -> impl Iterator<Item = u16> {
        self.submission.iter().enumerate().filter(|(_, queue)| queue.is_some()).map(|(qid, _)| qid as u16)
    }
}
