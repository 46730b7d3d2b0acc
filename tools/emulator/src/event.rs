//! The queue of what is going to happen, in the order of time.
#![forbid(unsafe_code)]

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::controller::flight::Ticket;

/// Something that happens at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// The controller takes up a command, from the queue whose turn it is.
    Fetch,
    /// A queue's next command is ready on the host's side.
    HostReady(u16),
    /// The media has the data; the way over the link begins.
    Transfer(Ticket),
    /// The command takes effect and is completed.
    Complete(Ticket),
    /// RDY becomes what EN is, if no other change came in between.
    Ready(u32),
    /// The shutdown is done.
    ShutdownDone(u32),
    /// The sanitize operation is at its end.
    SanitizeDone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Event {
    at_ns: u64,
    /// Events of the same moment happen in the order in which they were planned.
    order: u64,
    what: What,
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at_ns, self.order).cmp(&(other.at_ns, other.order))
    }
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Events by time.
#[derive(Debug, Default)]
pub(crate) struct Events {
    heap: BinaryHeap<Reverse<Event>>,
    order: u64,
}

impl Events {
    pub(crate) fn plan(&mut self, at_ns: u64, what: What) {
        self.order += 1;
        self.heap.push(Reverse(Event { at_ns, order: self.order, what }));
    }

    /// When the next one happens.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|event| event.0.at_ns)
    }

    /// Takes the next one, if it happens by `until_ns`.
    pub(crate) fn take(&mut self, until_ns: u64) -> Option<(u64, What)> {
        if self.next_ns()? > until_ns {
            return None;
        }
        self.heap.pop().map(|event| (event.0.at_ns, event.0.what))
    }

    /// Forgets everything that `drop` says yes to.
    pub(crate) fn forget(&mut self, mut drop: impl FnMut(&What) -> bool) {
        self.heap.retain(|event| !drop(&event.0.what));
    }
}
