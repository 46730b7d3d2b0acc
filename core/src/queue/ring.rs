//! The two rings: submission entries that we write and the controller reads, completion entries the other way round.
//!
//! A ring is an array in memory that both sides see. The submission ring has a tail (ours) and a head (the
//! controller's, told in each completion); it is full when one more entry would make them equal, so a ring of *n*
//! entries holds *n* - 1 commands. The completion ring has no such indices in memory: each entry carries a *phase tag*,
//! one bit that the controller inverts on each pass, and an entry is new when its bit is the one expected on this pass.
//!
//! All words shared with the device are atomics, accessed relaxed, and ordered by [`super::barrier`] alone. That is what
//! makes the access well defined for the compiler while somebody else changes the memory, and lets `loom` run this very
//! file. A volatile access of a whole entry would cost three times the instructions and order nothing.
//!
//! **Writing an entry.** Of the sixty-four bytes of a read or write, a queue used for one kind of I/O changes forty: the
//! first word (opcode, command id, namespace), both data pointers, the first block, the length. `SubmissionRing::put_io`
//! stores those five words and relies on the other three being zero from the start. After an entry of another shape has
//! been written with `SubmissionRing::put`, that is not so, and for one pass round the ring entries are written whole.
#![allow(unsafe_code)] // Pointers into memory that the device shares.

use core::ptr::NonNull;

use super::barrier;

#[cfg(not(any(loom, target_has_atomic = "64")))]
use core::sync::atomic::AtomicU32;
#[cfg(all(not(loom), target_has_atomic = "64"))]
use core::sync::atomic::AtomicU64;
#[cfg(not(loom))]
use core::sync::atomic::Ordering;
#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a submission queue entry (CC.IOSQES = 6).
pub const SUBMISSION_ENTRY_BYTES: usize = 64;
/// Bytes of a completion queue entry (CC.IOCQES = 4).
pub const COMPLETION_ENTRY_BYTES: usize = 16;

/// Memory that a ring lives in.
///
/// A ring owns its memory: it stays until the ring is dropped.
///
/// # Safety
/// The implementor promises that `pointer()` gives the same address each time, aligned to 64 bytes, that `bytes()` bytes
/// from there stay valid for reads and writes for as long as the value lives (also while it is moved), that they were
/// zero when the value was handed over, and that nothing but one ring and one device uses them.
pub unsafe trait RingMemory {
    /// Where it starts.
    fn pointer(&self) -> NonNull<u8>;
    /// How long it is.
    fn bytes(&self) -> usize;
}

/// A submission entry as it lies in memory.
#[repr(C, align(64))]
pub struct SubmissionSlot {
    #[cfg(any(loom, target_has_atomic = "64"))]
    words: [AtomicU64; 8],
    #[cfg(not(any(loom, target_has_atomic = "64")))]
    words: [AtomicU32; 16],
}

impl SubmissionSlot {
    /// An entry of zeros.
    #[allow(clippy::new_without_default)] // Only loom's tests make one by itself.
    pub fn new() -> Self {
        #[cfg(any(loom, target_has_atomic = "64"))]
        return Self { words: core::array::from_fn(|_| AtomicU64::new(0)) };
        #[cfg(not(any(loom, target_has_atomic = "64")))]
        return Self { words: core::array::from_fn(|_| AtomicU32::new(0)) };
    }

    /// Stores the 64-bit word at `index` (dwords `2 * index` and `2 * index + 1`).
    #[inline(always)]
    fn store<const INDEX: usize>(&self, value: u64) {
        #[cfg(any(loom, target_has_atomic = "64"))]
        self.words[INDEX].store(value, Ordering::Relaxed);
        #[cfg(not(any(loom, target_has_atomic = "64")))]
        {
            self.words[2 * INDEX].store(value as u32, Ordering::Relaxed);
            self.words[2 * INDEX + 1].store((value >> 32) as u32, Ordering::Relaxed);
        }
    }

    /// What a device reads at `index`. For devices in software that are written on top of this crate, and for tests.
    #[inline]
    pub fn load(&self, index: usize) -> u64 {
        #[cfg(any(loom, target_has_atomic = "64"))]
        return self.words.get(index).map_or(0, |word| word.load(Ordering::Relaxed));
        #[cfg(not(any(loom, target_has_atomic = "64")))]
        return (0..2).fold(0, |value, half| {
            let word = self.words.get(2 * index + half).map_or(0, |word| word.load(Ordering::Relaxed));
            value | u64::from(word) << (32 * half)
        });
    }
}

/// A completion entry as it lies in memory.
#[repr(C, align(16))]
pub struct CompletionSlot {
    #[cfg(any(loom, target_has_atomic = "64"))]
    words: [AtomicU64; 2],
    #[cfg(not(any(loom, target_has_atomic = "64")))]
    words: [AtomicU32; 4],
}

impl CompletionSlot {
    /// An entry of zeros.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        #[cfg(any(loom, target_has_atomic = "64"))]
        return Self { words: core::array::from_fn(|_| AtomicU64::new(0)) };
        #[cfg(not(any(loom, target_has_atomic = "64")))]
        return Self { words: core::array::from_fn(|_| AtomicU32::new(0)) };
    }

    /// Dwords 2 and 3 (the half with the phase tag).
    #[inline(always)]
    fn load_high(&self) -> u64 {
        #[cfg(any(loom, target_has_atomic = "64"))]
        return self.words[1].load(Ordering::Relaxed);
        // Without a 64-bit load the phase tag's dword comes first, and the other only after the order is made.
        #[cfg(not(any(loom, target_has_atomic = "64")))]
        {
            let high = self.words[3].load(Ordering::Relaxed);
            barrier::phase_then_rest();
            return u64::from(high) << 32 | u64::from(self.words[2].load(Ordering::Relaxed));
        }
    }

    /// Dwords 0 and 1, the command's own result.
    #[inline(always)]
    fn load_low(&self) -> u64 {
        #[cfg(any(loom, target_has_atomic = "64"))]
        return self.words[0].load(Ordering::Relaxed);
        #[cfg(not(any(loom, target_has_atomic = "64")))]
        return u64::from(self.words[1].load(Ordering::Relaxed)) << 32
            | u64::from(self.words[0].load(Ordering::Relaxed));
    }

    /// Posts a completion as a device does: the half with the phase tag last. For devices in software and tests.
    pub fn post(&self, low: u64, high: u64) {
        #[cfg(any(loom, target_has_atomic = "64"))]
        {
            self.words[0].store(low, Ordering::Relaxed);
            self.words[1].store(high, Ordering::Release);
        }
        #[cfg(not(any(loom, target_has_atomic = "64")))]
        {
            self.words[0].store(low as u32, Ordering::Relaxed);
            self.words[1].store((low >> 32) as u32, Ordering::Relaxed);
            self.words[2].store(high as u32, Ordering::Relaxed);
            self.words[3].store((high >> 32) as u32, Ordering::Release);
        }
    }
}

/// Why a ring could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RingError {
    /// A ring has 2 to 65,536 entries (NVM Express Base Specification, "Queue Size").
    Entries(u32),
    /// The memory is shorter than the entries need.
    TooShort {
        /// What the entries need.
        needed_bytes: usize,
        /// What was given.
        bytes: usize,
    },
    /// The memory does not start on a 64-byte boundary.
    Misaligned,
}

impl core::fmt::Display for RingError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Entries(entries) => write!(f, "a queue has 2 to 65536 entries, not {entries}"),
            Self::TooShort { needed_bytes, bytes } => {
                write!(f, "queue memory of {bytes} bytes is too short: {needed_bytes} are needed")
            }
            Self::Misaligned => write!(f, "queue memory does not start on a 64-byte boundary"),
        }
    }
}

impl core::error::Error for RingError {}

fn check(memory: &impl RingMemory, entries: u32, entry_bytes: usize) -> Result<(), RingError> {
    if !(2..=65_536).contains(&entries) {
        return Err(RingError::Entries(entries));
    }
    let needed_bytes = entries as usize * entry_bytes;
    if memory.bytes() < needed_bytes {
        return Err(RingError::TooShort { needed_bytes, bytes: memory.bytes() });
    }
    if !memory.pointer().as_ptr().addr().is_multiple_of(64) {
        return Err(RingError::Misaligned);
    }
    Ok(())
}

/// The words of a read or write that change from one to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoWords {
    /// Opcode and namespace ([`IoWords::command`]): dwords 0 and 1 with a command id of 0.
    pub command: u64,
    /// PRP entry 1.
    pub prp1: u64,
    /// PRP entry 2, or the address of a PRP list.
    pub prp2: u64,
    /// The first logical block (dwords 10 and 11).
    pub start_lba: u64,
    /// Dword 12: number of blocks, zero based, and the flags above it.
    pub dword12: u32,
}

impl IoWords {
    /// Dwords 0 and 1 without the command id: `opcode`, with the fuse and data pointer bits above it, and the namespace.
    #[inline(always)]
    #[must_use]
    pub const fn command(opcode: u16, nsid: u32) -> u64 {
        opcode as u64 | (nsid as u64) << 32
    }
}

/// The submission ring: entries and our tail.
///
/// The tail is kept as the address of its entry, which is what is needed for each command; its index is needed once for a
/// doorbell.
pub struct SubmissionRing<M> {
    entries: NonNull<SubmissionSlot>,
    /// Behind the last entry.
    end: NonNull<SubmissionSlot>,
    /// The entry at the tail: from `entries` up to, not including, `end`.
    next: NonNull<SubmissionSlot>,
    count: u32,
    /// Entries that still have to be written whole, because the ring holds some of another shape.
    whole: u32,
    _memory: M,
}

impl<M> core::fmt::Debug for SubmissionRing<M> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SubmissionRing").field("count", &self.count).field("tail", &self.tail()).finish_non_exhaustive()
    }
}

// SAFETY: the ring is the only user of its memory on this side (RingMemory's promise), so it may move with its memory.
unsafe impl<M: Send> Send for SubmissionRing<M> {}

impl<M: RingMemory> SubmissionRing<M> {
    /// A ring of `count` entries in `memory`.
    pub fn new(memory: M, count: u32) -> Result<Self, RingError> {
        check(&memory, count, size_of::<SubmissionSlot>())?;
        let entries = memory.pointer().cast();
        // SAFETY: `check` found room for `count` entries.
        let end = unsafe { entries.add(count as usize) };
        Ok(Self { entries, end, next: entries, count, whole: 0, _memory: memory })
    }
}

impl<M> SubmissionRing<M> {
    /// Number of entries.
    #[inline(always)]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The index that the next entry will be written to; what the doorbell is rung with.
    #[inline(always)]
    pub fn tail(&self) -> u32 {
        // SAFETY: both lie in the ring's one allocation, `next` at or behind the first entry and below 65,536 of them.
        unsafe { self.next.offset_from_unsigned(self.entries) as u32 }
    }

    /// The entry at `index` as it stands in memory; `None` beyond the ring.
    pub fn entry(&self, index: u32) -> Option<[u64; 8]> {
        // SAFETY: `new` checked that `count` entries fit, and `index < count`.
        let slot = (index < self.count).then(|| unsafe { self.entries.add(index as usize).as_ref() })?;
        Some(core::array::from_fn(|word| slot.load(word)))
    }

    /// The entry at the tail; moves the tail behind it.
    #[inline(always)]
    fn advance(&mut self) -> &SubmissionSlot {
        let slot = self.next;
        // SAFETY: `next` lies before `end`, so one further is at most `end`, which is in or just behind the memory.
        let behind = unsafe { slot.add(1) };
        self.next = if behind == self.end { self.entries } else { behind };
        // SAFETY: `new` found room for the entry. It is made of atomics, so that the device's reading it at the same time
        // is no data race.
        unsafe { slot.as_ref() }
    }

    /// Writes a whole entry at the tail, with `cid` as its command id, and moves the tail. Does not ring, and does not
    /// check for room: the slot table does.
    #[inline]
    pub(super) fn put(&mut self, words: &[u64; 8], cid: u16) {
        let slot = self.advance();
        slot.store::<0>(words[0] & !0xffff_0000 | u64::from(cid) << 16);
        slot.store::<1>(words[1]);
        slot.store::<2>(words[2]);
        slot.store::<3>(words[3]);
        slot.store::<4>(words[4]);
        slot.store::<5>(words[5]);
        slot.store::<6>(words[6]);
        slot.store::<7>(words[7]);
        self.whole = if words[1] | words[2] | words[7] == 0 { self.whole.saturating_sub(1) } else { self.count };
    }

    /// The same for a read or write.
    #[inline(always)]
    pub(super) fn put_io(&mut self, io: &IoWords, cid: u16) {
        let first = io.command + (u64::from(cid) << 16);
        if self.whole != 0 {
            return self.put_whole_io(first, io.prp1, io.prp2, io.start_lba, io.dword12);
        }
        let slot = self.advance();
        slot.store::<0>(first);
        slot.store::<3>(io.prp1);
        slot.store::<4>(io.prp2);
        slot.store::<5>(io.start_lba);
        slot.store::<6>(u64::from(io.dword12));
    }

    /// One by one, in registers: a structure would be put together in memory for every command, also where this is not
    /// called.
    #[cold]
    fn put_whole_io(&mut self, first: u64, prp1: u64, prp2: u64, start_lba: u64, dword12: u32) {
        self.put(&[first, 0, 0, prp1, prp2, start_lba, u64::from(dword12), 0], (first >> 16) as u16);
    }
}

/// A completion as it was read: dwords 0-1 and 2-3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawCompletion {
    /// Dwords 0 and 1: the command's own result.
    pub low: u64,
    /// Dwords 2 and 3: submission queue head and id, command id, phase tag, status.
    pub high: u64,
}

impl RawCompletion {
    /// The controller's head in the submission queue.
    #[inline(always)]
    pub fn sq_head(self) -> u32 {
        (self.high & 0xffff) as u32
    }

    /// The submission queue that the command was in.
    #[inline(always)]
    pub fn sq_id(self) -> u16 {
        (self.high >> 16) as u16
    }

    /// The command's id.
    #[inline(always)]
    pub fn cid(self) -> u16 {
        (self.high >> 32) as u16
    }

    /// The status field without the phase tag: 15 bits, status code lowest.
    #[inline(always)]
    pub fn status(self) -> u16 {
        (self.high >> 49) as u16
    }

    /// The four dwords.
    pub fn dwords(self) -> [u32; 4] {
        [self.low as u32, (self.low >> 32) as u32, self.high as u32, (self.high >> 32) as u32]
    }
}

/// The phase tag's place in dword 3.
const PHASE: u32 = 1 << 16;

/// The completion ring: entries, our head, and the phase tag that a new entry has on this pass.
pub struct CompletionRing<M> {
    entries: NonNull<CompletionSlot>,
    /// Behind the last entry.
    end: NonNull<CompletionSlot>,
    count: u32,
    /// The entry at the head, and the phase of a new one.
    cursor: Cursor,
    _memory: M,
}

impl<M> core::fmt::Debug for CompletionRing<M> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("CompletionRing").field("count", &self.count).field("head", &self.head()).finish_non_exhaustive()
    }
}

// SAFETY: as for SubmissionRing.
unsafe impl<M: Send> Send for CompletionRing<M> {}

impl<M: RingMemory> CompletionRing<M> {
    /// A ring of `count` entries in `memory`, which is zero: the first pass has phase 1.
    pub fn new(memory: M, count: u32) -> Result<Self, RingError> {
        check(&memory, count, size_of::<CompletionSlot>())?;
        let entries = memory.pointer().cast();
        // SAFETY: `check` found room for `count` entries.
        let end = unsafe { entries.add(count as usize) };
        Ok(Self { entries, end, count, cursor: Cursor { next: entries, phase: PHASE }, _memory: memory })
    }
}

impl<M> CompletionRing<M> {
    /// The index of the next entry to be looked at; what the head doorbell is rung with.
    #[inline(always)]
    pub fn head(&self) -> u32 {
        // SAFETY: both lie in the ring's one allocation, `next` at or behind the first entry and below 65,536 of them.
        unsafe { self.cursor.next.offset_from_unsigned(self.entries) as u32 }
    }

    /// Number of entries.
    #[inline(always)]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Where the next completion is looked for. A drain keeps it in registers and puts it back at its end.
    #[inline(always)]
    pub(super) fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// The end of a drain that began with [`CompletionRing::cursor`].
    #[inline(always)]
    pub(super) fn set_cursor(&mut self, cursor: Cursor) {
        debug_assert!((self.entries..self.end).contains(&cursor.next));
        self.cursor = cursor;
    }

    /// Takes the next completion at `cursor`, if there is one, and moves the cursor.
    #[inline(always)]
    pub(super) fn take(&self, cursor: &mut Cursor) -> Option<RawCompletion> {
        // SAFETY: a cursor lies before `end`, so it is at one of the entries that `new` found room for. They are atomics,
        // so that the device's writing one at the same time is no data race.
        let slot = unsafe { cursor.next.as_ref() };
        let high = slot.load_high();
        if ((high >> 32) as u32 ^ cursor.phase) & PHASE != 0 {
            return None;
        }
        barrier::phase_then_rest();
        let low = slot.load_low();
        // SAFETY: it lies before `end`, so one further is at most `end`, which is in or just behind the memory.
        cursor.next = unsafe { cursor.next.add(1) };
        if cursor.next == self.end {
            *cursor = self.next_pass(cursor.phase);
        }
        Some(RawCompletion { low, high })
    }

    /// Where a cursor goes on that came to the end. Out of line, or it would be worked out for every completion.
    #[cold]
    #[inline(never)]
    fn next_pass(&self, phase: u32) -> Cursor {
        Cursor { next: self.entries, phase: phase ^ PHASE }
    }
}

/// A place in a completion ring, before its end, and the phase of a new entry there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor {
    next: NonNull<CompletionSlot>,
    /// `PHASE` or 0.
    phase: u32,
}

#[cfg(all(test, not(loom)))]
pub(super) mod testing {
    //! Ring memory on the heap, seen from both sides.

    use super::{CompletionSlot, NonNull, RingMemory, SubmissionSlot};
    use std::sync::Arc;

    /// Zeroed memory; clones are the same memory.
    #[derive(Clone)]
    pub(in crate::queue) struct Memory(Arc<Vec<SubmissionSlot>>);

    // SAFETY: a shared vector that never changes its length, whose elements are 64-byte aligned atomics.
    unsafe impl RingMemory for Memory {
        fn pointer(&self) -> NonNull<u8> {
            NonNull::from(self.0.as_slice()).cast()
        }

        fn bytes(&self) -> usize {
            self.0.len() * 64
        }
    }

    impl Memory {
        pub(in crate::queue) fn new(bytes: usize) -> Self {
            Self(Arc::new((0..bytes.div_ceil(64)).map(|_| SubmissionSlot::new()).collect()))
        }

        pub(in crate::queue) fn submission(&self, index: u32) -> &SubmissionSlot {
            &self.0[index as usize]
        }

        pub(in crate::queue) fn completion(&self, index: u32) -> &CompletionSlot {
            assert!((index as usize + 1) * 16 <= self.bytes());
            // SAFETY: in range, aligned, and both kinds of slot are nothing but atomics.
            unsafe { self.pointer().cast::<CompletionSlot>().add(index as usize).as_ref() }
        }
    }
}
