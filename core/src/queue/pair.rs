//! A submission queue and its completion queue, with the table of what is in flight: the whole I/O path.
//!
//! The life of a command: [`QueuePair::submit_io`] puts the caller's buffer into a slot and an entry into the ring;
//! [`QueuePair::ring`] tells the controller, once for as many entries as there are; [`QueuePair::poll`] takes what has
//! been completed, checks each completion, hands the buffer back, and rings the head doorbell once.
//!
//! **A completion is believed only after it was checked**: its command id must be in flight with that generation, its
//! queue id must be ours, and its head must lie between the command's own entry and the tail we rang. One that fails is
//! a [`DeviceFault`]: the queue takes no more commands and no more completions, because what the device does from then
//! on means nothing. The buffers in flight stay where they are until the device is proven quiet.
//!
//! **One thread, one queue pair.** There is no lock, no allocation, no indirect call in here; a pair may be sent to
//! another thread but not shared.
//!
//! The completion queue cannot overflow: a slot is freed only when its completion was taken, and there are fewer slots
//! than entries in either ring.
#![forbid(unsafe_code)]

use core::ops::DerefMut;

use crate::command::SubmissionEntry;

use super::barrier;
use super::doorbell::Doorbell;
use super::ring::{CompletionRing, Cursor, IoWords, RawCompletion, SubmissionRing};
use super::slot::{DeviceQuiet, Slot, SlotTable, Unfit};

/// A command was not taken; here is its buffer again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused<B> {
    /// Why.
    pub reason: RefusedReason,
    /// The caller's buffer.
    pub buffer: B,
}

/// Why a command was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedReason {
    /// As many commands are in flight as the queue holds: poll first.
    Full,
    /// The queue is stopped after a fault.
    Stopped,
}

/// Something a correct controller does not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceFault {
    /// What kind of thing.
    pub kind: DeviceFaultKind,
    /// The completion as it was read.
    pub completion: RawCompletion,
    /// The index in the completion queue where it was.
    pub index: u32,
    /// The submission queue that the pair is for.
    pub queue_id: u16,
}

/// The kinds of [`DeviceFault`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceFaultKind {
    /// A command id that this queue cannot have issued.
    UnknownCommand,
    /// A command id that is not in flight: completed twice, or never submitted.
    NotInFlight,
    /// A command id of an earlier use of its slot.
    StaleGeneration,
    /// The completion names another submission queue.
    WrongQueue,
    /// The submission queue head lies outside the entries that the controller can have fetched.
    HeadOutOfRange,
}

impl DeviceFaultKind {
    /// One short sentence.
    pub fn text(self) -> &'static str {
        match self {
            Self::UnknownCommand => "a completion for a command id that was never issued",
            Self::NotInFlight => "a completion for a command that is not in flight",
            Self::StaleGeneration => "a completion for a command that ended before",
            Self::WrongQueue => "a completion for another submission queue",
            Self::HeadOutOfRange => "a completion whose submission queue head is impossible",
        }
    }
}

impl core::fmt::Display for DeviceFault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let [_, _, dword2, dword3] = self.completion.dwords();
        write!(
            f,
            "queue {}: {} (command id {:#06x}, queue id {}, head {}, at index {}: dwords 2-3 {dword2:08x} {dword3:08x})",
            self.queue_id,
            self.kind.text(),
            self.completion.cid(),
            self.completion.sq_id(),
            self.completion.sq_head(),
            self.index,
        )
    }
}

impl core::error::Error for DeviceFault {}

/// A finished command.
#[derive(Debug)]
pub struct Done<B> {
    /// The caller's buffer.
    pub buffer: B,
    /// The command's id.
    pub cid: u16,
    /// The status field, 15 bits: 0 is success.
    pub status: u16,
    /// Dword 0 of the completion, the command's own result.
    pub dword0: u32,
    /// Dword 1 of the completion.
    pub dword1: u32,
    /// What the caller gave as stamp when the command was submitted.
    pub stamp: u64,
}

/// The two rings of a pair.
pub type Rings<M> = (SubmissionRing<M>, CompletionRing<M>);

/// A submission queue, its completion queue, and what is in flight between them.
///
/// `D` rings the doorbells, `M` is the rings' memory, `S` the slots' storage.
#[derive(Debug)]
pub struct QueuePair<D, M, S> {
    submission: SubmissionRing<M>,
    completion: CompletionRing<M>,
    slots: SlotTable<S>,
    /// Dword 2 of a completion that says: this queue, and the head is the tail that the controller was told.
    caught_up: u32,
    /// Entries submitted so far, and how many of them the controller knows of; both wrap.
    submitted: u32,
    rung_entries: u32,
    /// Commands that have ended, of those submitted; wraps.
    ended: u32,
    stopped: bool,
    tail_doorbell: D,
    head_doorbell: D,
}

/// The parts of a pair.
#[derive(Debug)]
pub struct Parts<D, M, S> {
    /// The submission queue's id.
    pub queue_id: u16,
    /// The submission ring.
    pub submission: SubmissionRing<M>,
    /// The completion ring.
    pub completion: CompletionRing<M>,
    /// The slots; fewer than either ring has entries.
    pub slots: SlotTable<S>,
    /// The submission queue's tail doorbell.
    pub tail_doorbell: D,
    /// The completion queue's head doorbell.
    pub head_doorbell: D,
}

impl<D: Doorbell, M, B, S: DerefMut<Target = [Slot<B>]>> QueuePair<D, M, S> {
    /// Puts a pair together. `None` if there are as many slots as entries in a ring, or more: a full ring looks empty.
    pub fn new(parts: Parts<D, M, S>) -> Option<Self> {
        let entries = parts.submission.count().min(parts.completion.count());
        if parts.slots.capacity() >= entries as usize {
            return None;
        }
        Some(Self {
            submission: parts.submission,
            completion: parts.completion,
            slots: parts.slots,
            caught_up: u32::from(parts.queue_id) << 16,
            submitted: 0,
            rung_entries: 0,
            ended: 0,
            stopped: false,
            tail_doorbell: parts.tail_doorbell,
            head_doorbell: parts.head_doorbell,
        })
    }

    /// The queue's id.
    pub fn queue_id(&self) -> u16 {
        (self.caught_up >> 16) as u16
    }

    /// The most commands that may be in flight.
    pub fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// How many commands are in flight (rung or not).
    #[inline(always)]
    pub fn in_flight(&self) -> u32 {
        self.submitted.wrapping_sub(self.ended)
    }

    /// Whether the queue was stopped by a fault or by [`QueuePair::stop`].
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// The table of what is in flight.
    pub fn slots(&self) -> &SlotTable<S> {
        &self.slots
    }

    /// Where the next completion will be: it moves with every completion that is taken.
    #[inline]
    pub fn completion_head(&self) -> u32 {
        self.completion.head()
    }

    /// Whether entries wait for [`QueuePair::ring`].
    #[inline(always)]
    pub fn has_unrung(&self) -> bool {
        self.rung_entries != self.submitted
    }

    /// Takes a read or write. `stamp` comes back with the completion, and is what its age is measured from.
    ///
    /// Nothing reaches the controller before [`QueuePair::ring`].
    #[inline(always)]
    pub fn submit_io(&mut self, io: &IoWords, buffer: B, stamp: u64) -> Result<u16, Refused<B>> {
        let entries = self.submitted.wrapping_add(1);
        match self.slots.put(buffer, stamp, entries) {
            Ok(cid) => {
                self.submitted = entries;
                self.submission.put_io(io, cid);
                Ok(cid)
            }
            Err(buffer) => Err(self.refuse(buffer)),
        }
    }

    /// Takes any command: `words` are the entry's eight 64-bit words; its command id is filled in.
    ///
    /// Nothing reaches the controller before [`QueuePair::ring`].
    #[inline]
    pub fn submit(&mut self, words: &[u64; 8], buffer: B, stamp: u64) -> Result<u16, Refused<B>> {
        let entries = self.submitted.wrapping_add(1);
        match self.slots.put(buffer, stamp, entries) {
            Ok(cid) => {
                self.submitted = entries;
                self.submission.put(words, cid);
                Ok(cid)
            }
            Err(buffer) => Err(self.refuse(buffer)),
        }
    }

    #[cold]
    fn refuse(&self, buffer: B) -> Refused<B> {
        Refused { reason: if self.stopped { RefusedReason::Stopped } else { RefusedReason::Full }, buffer }
    }

    /// Tells the controller of all entries submitted since the last time.
    #[inline(always)]
    pub fn ring(&mut self) {
        if self.has_unrung() {
            let tail = self.submission.tail();
            if D::WATCHES && self.tail_doorbell.watches() {
                self.show_submitted();
            }
            barrier::ring_then_doorbell();
            self.tail_doorbell.ring(tail);
            self.caught_up = self.caught_up & !0xffff | tail;
            self.rung_entries = self.submitted;
        }
    }

    /// Shows the entries that the doorbell is about to be rung for.
    #[cold]
    fn show_submitted(&self) {
        let (rung, count) = (self.caught_up & 0xffff, self.submission.count());
        let entries = ahead(rung, self.submission.tail(), count);
        for index in (0..entries).map(|behind| (rung + behind) % count) {
            if let Some(words) = self.submission.entry(index) {
                self.tail_doorbell.submitted(&SubmissionEntry::from_words(words));
            }
        }
    }

    /// Takes up to `limit` completions, hands each to `each`, and returns how many there were.
    ///
    /// A completion that fails its checks stops the queue; those before it in the same call have been handed over.
    #[inline(always)]
    pub fn poll(&mut self, limit: u32, mut each: impl FnMut(Done<B>)) -> Result<u32, DeviceFault> {
        let limit = if self.stopped { 0 } else { limit };
        let mut count = 0;
        let mut cursor = self.completion.cursor();
        let watched = self.head_doorbell.watches();
        while count != limit {
            let Some(raw) = self.completion.take(&mut cursor) else { break };
            if D::WATCHES && watched {
                self.head_doorbell.completed(raw);
            }
            match self.accept(raw) {
                Ok(done) => each(done),
                Err(unfit) => {
                    self.drained(count, cursor);
                    return Err(self.fault(unfit, raw));
                }
            }
            count += 1;
        }
        if count != 0 {
            self.drained(count, cursor);
        }
        Ok(count)
    }

    /// The end of a drain: the entries before `cursor` are the controller's again.
    #[inline(always)]
    fn drained(&mut self, count: u32, cursor: Cursor) {
        self.ended = self.ended.wrapping_add(count);
        self.completion.set_cursor(cursor);
        self.head_doorbell.ring(self.completion.head());
    }

    /// The checks of one completion; the buffer comes out only if all of them hold.
    #[inline(always)]
    fn accept(&mut self, raw: RawCompletion) -> Result<Done<B>, Unfit> {
        let (told, caught_up) = (raw.high as u32, self.caught_up);
        let (rung_entries, count) = (self.rung_entries, self.submission.count());
        // The controller fetched at least up to behind the command's own entry, and at most up to the tail it was told;
        // mostly it is exactly there, which one comparison shows, of the queue's id as well. Counted in entries, not as
        // places in the ring: others may have gone round it while this one was under way.
        let plausible = |entries: u32| {
            if told == caught_up {
                return true;
            }
            let (head, tail) = (told & 0xffff, caught_up & 0xffff);
            let fetched = rung_entries.wrapping_sub(ahead(head, tail, count));
            told >> 16 == caught_up >> 16 && head < count && fetched.wrapping_sub(entries).cast_signed() >= 0
        };
        let taken = self.slots.take(raw.cid(), plausible)?;
        Ok(Done {
            buffer: taken.buffer,
            cid: raw.cid(),
            status: raw.status(),
            dword0: raw.low as u32,
            dword1: (raw.low >> 32) as u32,
            stamp: taken.stamp,
        })
    }

    #[cold]
    fn fault(&mut self, unfit: Unfit, completion: RawCompletion) -> DeviceFault {
        self.stop();
        let kind = match unfit {
            _ if completion.sq_id() != self.queue_id() => DeviceFaultKind::WrongQueue,
            Unfit::NoSlot => DeviceFaultKind::UnknownCommand,
            Unfit::Free => DeviceFaultKind::NotInFlight,
            Unfit::Stale => DeviceFaultKind::StaleGeneration,
            Unfit::Implausible => DeviceFaultKind::HeadOutOfRange,
        };
        let head = self.completion.head();
        let index = if head == 0 { self.completion.count() - 1 } else { head - 1 };
        DeviceFault { kind, completion, index, queue_id: self.queue_id() }
    }

    /// Stops the queue: no command is taken any more, no completion looked at. What is in flight stays owned.
    pub fn stop(&mut self) {
        self.stopped = true;
        self.slots.close();
    }

    /// Takes out one command after another, after the device was proven quiet; `None` when none is left. The queue is
    /// stopped by it.
    pub fn reclaim(&mut self, proof: DeviceQuiet) -> Option<(u16, B)> {
        self.stopped = true;
        let reclaimed = self.slots.reclaim(proof);
        self.slots.close();
        self.ended = self.ended.wrapping_add(u32::from(reclaimed.is_some()));
        reclaimed
    }

    /// Begins anew in other rings, for queues of the same ids that were made again; the old ones are given back. The rings
    /// are as long as the old ones, and empty.
    ///
    /// # Errors
    /// Something is still in flight ([`QueuePair::reclaim`] it first), or the rings are shorter: they are given back.
    pub fn renew(
        &mut self,
        submission: SubmissionRing<M>,
        completion: CompletionRing<M>,
    ) -> Result<Rings<M>, Rings<M>> {
        let as_long = submission.count() == self.submission.count() && completion.count() == self.completion.count();
        if !as_long || !self.slots.open() {
            return Err((submission, completion));
        }
        self.caught_up &= !0xffff;
        (self.submitted, self.rung_entries, self.ended) = (0, 0, 0);
        self.stopped = false;
        self.tail_doorbell.restart();
        self.head_doorbell.restart();
        let old = core::mem::replace(&mut self.submission, submission);
        Ok((old, core::mem::replace(&mut self.completion, completion)))
    }

    /// Gives the doorbells and the rings' memory back. Buffers in flight are leaked: reclaim them first.
    pub fn into_parts(self) -> Parts<D, M, S> {
        Parts {
            queue_id: self.queue_id(),
            submission: self.submission,
            completion: self.completion,
            slots: self.slots,
            tail_doorbell: self.tail_doorbell,
            head_doorbell: self.head_doorbell,
        }
    }
}

/// How far `to` lies ahead of `from` in a ring of `count` entries.
#[inline(always)]
fn ahead(from: u32, to: u32, count: u32) -> u32 {
    let difference = to.wrapping_sub(from);
    if to < from { difference.wrapping_add(count) } else { difference }
}
