//! The slot table: who is in flight, under which command id, and whose buffer the device may be touching.
//!
//! A command id is a slot number in its low bits and that slot's *generation* in the bits above. The generation changes
//! each time the slot is used, so a completion that comes twice, or late (after the command was given up), carries an id
//! that no longer fits and is found out instead of releasing somebody else's buffer. There are at least four bits of
//! generation, hence at most 4096 commands in flight per queue; the highest generation is never used, so that FFFFh,
//! which the specification reserves, never occurs. Controllers that need small ids get [`Generations::Plain`]: the slot
//! number alone, and no such protection.
//!
//! **Ownership.** While a command is in flight, its slot owns its buffer: nobody else can free it. A table that is
//! dropped *leaks* the buffers of commands in flight: the device may still write to them, and a leak is the lesser evil.
//! They are given back one by one with their completions, or all at once by [`SlotTable::reclaim`], which asks for the
//! proof that the device is quiet.
#![forbid(unsafe_code)]

use core::mem::ManuallyDrop;
use core::ops::DerefMut;

/// The most commands that one queue may have in flight.
pub const MAX_SLOTS: usize = 4096;

/// "No slot".
const NONE: u32 = u32::MAX;

/// Why the device cannot touch the buffers of a queue any more.
///
/// Making one is a promise. It is not `unsafe`, for it cannot be checked by any compiler; it is a type, so that every
/// place that makes the promise can be found and has to say on what it rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceQuiet {
    /// Delete I/O Submission Queue was completed with success.
    QueueDeleted,
    /// CSTS.RDY read 0 after CC.EN was cleared.
    ControllerDisabled,
    /// The function was reset, and the reset was reported as done.
    FunctionReset,
    /// The buffers were unmapped, and the transport promised that no access is under way.
    Unmapped,
    /// The commands never reached the device: its doorbell was not rung for them.
    NeverRung,
}

/// Whether a slot's generation is part of its command ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Generations {
    /// Slot in the low bits, generation above.
    #[default]
    Counted,
    /// The slot number alone (quirk `plain_cid`).
    Plain,
}

/// One command's place: half a cache line with a buffer handle of up to two words.
#[derive(Debug)]
#[repr(align(32))]
pub struct Slot<B> {
    /// The id of the command in flight (then there is a buffer), or the id that the next one will get.
    id: u16,
    /// Free: the next free slot. In flight: how many entries had been submitted with this one, wrapping.
    link: u32,
    /// When it was submitted.
    stamp: u64,
    buffer: Option<ManuallyDrop<B>>,
}

impl<B> Slot<B> {
    /// An unused slot. A table links and numbers its slots itself.
    pub const fn new() -> Self {
        Self { id: 0, link: NONE, stamp: 0, buffer: None }
    }

    /// Whether a command is in flight here.
    fn is_live(&self) -> bool {
        self.buffer.is_some()
    }
}

impl<B> Default for Slot<B> {
    fn default() -> Self {
        Self::new()
    }
}

/// The slots of one queue, in storage of the caller's: a boxed slice, or an array on a machine without an allocator.
#[derive(Debug)]
pub struct SlotTable<S> {
    slots: S,
    free: u32,
    /// Bits of the id that are the slot.
    mask: u32,
    /// Taken from an id for the next generation: they count down.
    step: u16,
    /// The generation after 0, in its place in an id.
    highest: u16,
}

/// What a finished command leaves: its buffer and when it was submitted.
#[derive(Debug)]
pub(super) struct Taken<B> {
    pub buffer: B,
    pub stamp: u64,
}

/// Why an id from a completion was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unfit {
    /// No such slot.
    NoSlot,
    /// The slot has no command in flight: completed twice, or never submitted.
    Free,
    /// The slot is in flight under another generation.
    Stale,
    /// The command is in flight, but what else the completion says of it cannot be.
    Implausible,
}

impl<B, S: DerefMut<Target = [Slot<B>]>> SlotTable<S> {
    /// A table over `slots`, all free. `None` if there are none, or more than [`MAX_SLOTS`].
    pub fn new(mut slots: S, generations: Generations) -> Option<Self> {
        let count = slots.len();
        if count == 0 || count > MAX_SLOTS {
            return None;
        }
        let bits = usize::BITS - (count - 1).leading_zeros();
        let (step, highest) = match generations {
            // All ones is left out: with all ones in the slot bits it would be FFFFh.
            Generations::Counted => (1 << bits, (((1_u32 << (16 - bits)) - 2) << bits) as u16),
            Generations::Plain => (0, 0),
        };
        for (index, slot) in slots.iter_mut().enumerate() {
            let next = index as u32 + 1;
            *slot = Slot {
                id: index as u16 | highest,
                link: if next as usize == count { NONE } else { next },
                stamp: 0,
                buffer: None,
            };
        }
        Some(Self { slots, free: 0, mask: (1 << bits) - 1, step, highest })
    }

    /// Number of slots.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Number of commands in flight. Counts them; the queue pair keeps the number.
    pub fn in_flight(&self) -> u32 {
        self.slots.iter().filter(|slot| slot.is_live()).count() as u32
    }

    /// Puts `buffer` into a free slot and gives the command's id; or gives the buffer back when none is free.
    #[inline(always)]
    pub(super) fn put(&mut self, buffer: B, stamp: u64, behind: u32) -> Result<u16, B> {
        let Some(slot) = self.slots.get_mut(self.free as usize) else { return Err(buffer) };
        self.free = slot.link;
        slot.link = behind;
        slot.stamp = stamp;
        slot.buffer = Some(ManuallyDrop::new(buffer));
        Ok(slot.id)
    }

    /// Takes the command with this id out, if it is in flight under exactly this id and `plausible` says yes to the
    /// number of entries submitted up to its own. Else the slot stays as it is.
    #[inline(always)]
    pub(super) fn take(&mut self, cid: u16, plausible: impl FnOnce(u32) -> bool) -> Result<Taken<B>, Unfit> {
        let index = u32::from(cid) & self.mask;
        let Some(slot) = self.slots.get_mut(index as usize) else { return Err(Unfit::NoSlot) };
        if slot.id != cid {
            return Err(if slot.is_live() { Unfit::Stale } else { Unfit::Free });
        }
        // A free slot has the id of its next command already, so that alone proves nothing.
        if slot.buffer.is_none() {
            return Err(Unfit::Free);
        }
        if !plausible(slot.link) {
            return Err(Unfit::Implausible);
        }
        let Some(buffer) = slot.buffer.take() else { return Err(Unfit::Free) };
        let taken = Taken { buffer: ManuallyDrop::into_inner(buffer), stamp: slot.stamp };
        let (next, below_zero) = cid.overflowing_sub(self.step);
        slot.id = next;
        if below_zero {
            slot.id = index as u16 | self.highest;
        }
        slot.link = self.free;
        self.free = index;
        Ok(taken)
    }

    /// Id and submission stamp of the command that has been in flight longest.
    pub fn oldest(&self) -> Option<(u16, u64)> {
        let live = self.slots.iter().filter(|slot| slot.is_live());
        live.min_by_key(|slot| slot.stamp).map(|slot| (slot.id, slot.stamp))
    }

    /// Whether a command with this id is in flight.
    pub fn is_in_flight(&self, cid: u16) -> bool {
        let slot = self.slots.get((u32::from(cid) & self.mask) as usize);
        slot.is_some_and(|slot| slot.id == cid && slot.is_live())
    }

    /// The buffer of a command in flight, to look at its description (not at its bytes: the device owns those).
    pub fn buffer(&self, cid: u16) -> Option<&B> {
        let slot = self.slots.get((u32::from(cid) & self.mask) as usize)?;
        if slot.id == cid { slot.buffer.as_deref() } else { None }
    }

    /// Takes one command after another out, whatever the device has done with it; `None` when none is left.
    ///
    /// `proof` says why the device cannot touch the buffers any more.
    pub fn reclaim(&mut self, proof: DeviceQuiet) -> Option<(u16, B)> {
        let _ = proof;
        let cid = self.slots.iter().find(|slot| slot.is_live()).map(|slot| slot.id)?;
        self.take(cid, |_| true).ok().map(|taken| (cid, taken.buffer))
    }

    /// Makes the table refuse new commands (a faulty device): no slot is free any more.
    pub(super) fn close(&mut self) {
        self.free = NONE;
    }

    /// Makes an empty table take commands again; whether it is empty. Generations go on where they were, so that what
    /// comes late is still found out.
    pub(super) fn open(&mut self) -> bool {
        let count = self.slots.len() as u32;
        if self.in_flight() != 0 {
            return false;
        }
        for (index, slot) in (1..).zip(self.slots.iter_mut()) {
            slot.link = if index == count { NONE } else { index };
        }
        self.free = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(count: usize, generations: Generations) -> SlotTable<Box<[Slot<u64>]>> {
        let slots: Vec<Slot<u64>> = (0..count).map(|_| Slot::new()).collect();
        SlotTable::new(slots.into_boxed_slice(), generations).expect("count in range")
    }

    #[test]
    fn every_slot_can_be_used_and_one_more_is_refused_with_its_buffer() {
        for count in [1, 2, 3, 31, 32, 33, 4095, 4096] {
            let mut table = table(count, Generations::Counted);
            for buffer in 0..count as u64 {
                table.put(buffer, 0, 0).expect("a free slot");
            }
            assert_eq!(table.put(77, 0, 0), Err(77));
            assert_eq!(table.in_flight(), count as u32);
        }
    }

    #[test]
    fn an_id_fits_once() {
        let mut table = table(8, Generations::Counted);
        let cid = table.put(5, 1, 2).unwrap();
        assert!(table.is_in_flight(cid));
        assert_eq!(table.take(cid, |behind| behind != 2).unwrap_err(), Unfit::Implausible);
        let taken = table.take(cid, |behind| behind == 2).unwrap();
        assert_eq!((taken.buffer, taken.stamp), (5, 1));
        assert_eq!(table.take(cid, |_| true).unwrap_err(), Unfit::Free);
        let next = table.put(6, 1, 2).unwrap();
        assert_ne!(next, cid, "the same slot, another generation");
        assert_eq!(table.take(cid, |_| true).unwrap_err(), Unfit::Stale);
        assert!(table.take(next, |_| true).is_ok());
    }

    #[test]
    fn the_reserved_id_never_occurs_and_every_generation_differs_from_the_last() {
        for count in [1, 5, 4096] {
            let mut table = table(count, Generations::Counted);
            let mut last = vec![u16::MAX; count];
            for _ in 0..70_000 {
                let cid = table.put(0, 0, 0).unwrap();
                assert_ne!(cid, 0xffff);
                let slot = usize::from(cid) & table.mask as usize;
                assert_ne!(last[slot], cid);
                last[slot] = cid;
                table.take(cid, |_| true).unwrap();
            }
        }
    }

    #[test]
    fn plain_ids_are_the_slot_numbers() {
        let mut table = table(4, Generations::Plain);
        for _ in 0..3 {
            let ids: Vec<u16> = (0..4).map(|_| table.put(0, 0, 0).unwrap()).collect();
            assert!(ids.iter().all(|&cid| cid < 4), "{ids:?}");
            for cid in ids {
                table.take(cid, |_| true).unwrap();
            }
        }
    }

    #[test]
    fn an_id_beyond_the_table_has_no_slot() {
        let mut table = table(5, Generations::Counted);
        assert_eq!(table.take(6, |_| true).unwrap_err(), Unfit::NoSlot);
    }

    #[test]
    fn the_oldest_is_the_one_submitted_first() {
        let mut table = table(4, Generations::Counted);
        assert_eq!(table.oldest(), None);
        let first = table.put(0, 10, 0).unwrap();
        table.put(0, 20, 0).unwrap();
        assert_eq!(table.oldest(), Some((first, 10)));
    }

    #[test]
    fn dropping_a_table_leaks_what_is_in_flight_and_nothing_else() {
        use std::sync::Arc;
        let alive = Arc::new(());
        let slots: Box<[Slot<Arc<()>>]> = (0..4).map(|_| Slot::new()).collect();
        let mut table = SlotTable::new(slots, Generations::Counted).unwrap();
        let returned = table.put(Arc::clone(&alive), 0, 0).unwrap();
        table.put(Arc::clone(&alive), 0, 0).unwrap();
        drop(table.take(returned, |_| true).unwrap());
        drop(table);
        assert_eq!(Arc::strong_count(&alive), 2, "one of ours, one leaked");
    }

    #[test]
    fn an_emptied_table_opens_with_every_slot_and_other_ids() {
        let mut table = table(4, Generations::Counted);
        let before: Vec<u16> = (0..3).map(|buffer| table.put(buffer, 0, 0).unwrap()).collect();
        table.close();
        assert!(!table.open(), "something is in flight");
        while table.reclaim(DeviceQuiet::QueueDeleted).is_some() {}
        assert!(table.open());
        let after: Vec<u16> = (0..4).map(|buffer| table.put(buffer, 0, 0).unwrap()).collect();
        assert!(after.iter().all(|cid| !before.contains(cid)), "{before:?} {after:?}");
        assert_eq!(table.put(4, 0, 0), Err(4));
    }

    #[test]
    fn reclaim_gives_every_buffer_back_once() {
        let mut table = table(4, Generations::Counted);
        for buffer in 0..3 {
            table.put(buffer, 0, 0).unwrap();
        }
        let mut back: Vec<u64> =
            core::iter::from_fn(|| table.reclaim(DeviceQuiet::ControllerDisabled)).map(|(_, buffer)| buffer).collect();
        back.sort_unstable();
        assert_eq!(back, [0, 1, 2]);
        assert_eq!(table.in_flight(), 0);
    }
}
