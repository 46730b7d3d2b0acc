//! Shadow doorbells: telling the controller through memory, and ringing only when it asked for it.
//!
//! A write to a mapped register costs a trip over the bus; where the controller is another program (a virtual machine
//! monitor), it costs an exit into it. With *Doorbell Buffer Config* the host writes tails and heads to a page of shadow
//! doorbells, and the controller says in a second page, the event indices, from which value on it wants the real
//! doorbell. (NVM Express Base Specification, "Doorbell Buffer Config command".)
//!
//! The rule compares three indices that wrap, so it is arithmetic modulo 2^16: ring if the event index lies in the
//! stretch from the old value up to, not including, the new one.
//!
//! Between the store of the shadow and the load of the event index stands the only full fence of the I/O path
//! ([`super::barrier::dbbuf_full`]): the controller does the same two accesses the other way round before it sleeps, and
//! without the fences each could miss the other's.
#![allow(unsafe_code)] // Pointers into the two pages.

use core::cell::Cell;
use core::ptr::NonNull;

use super::barrier;
use super::doorbell::Doorbell;
use super::ring::{RawCompletion, RingMemory};
use crate::command::SubmissionEntry;

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering};

/// One entry of a shadow doorbell or event index page.
pub type ShadowWord = AtomicU32;

/// A doorbell with a shadow. Belongs to one thread, like its queue.
#[derive(Debug)]
pub struct Shadowed<D, M> {
    inner: D,
    shadow: NonNull<ShadowWord>,
    event: NonNull<ShadowWord>,
    last: Cell<u32>,
    _pages: (M, M),
}

// SAFETY: the pointers lead into memory that the value keeps alive, to atomics; one thread at a time has the value.
unsafe impl<D: Send, M: Send> Send for Shadowed<D, M> {}

impl<D, M: RingMemory> Shadowed<D, M> {
    /// The doorbell whose register lies `index` doorbell strides behind the first, with its shadow and its event index
    /// at `index` entries of `entry_bytes` (the stride, 4 << CAP.DSTRD) in the two pages.
    ///
    /// `None` if that lies outside a page, or is not aligned.
    pub fn new(inner: D, shadows: M, events: M, index: usize, entry_bytes: usize) -> Option<Self> {
        let word = |page: &M| {
            let offset = index.checked_mul(entry_bytes)?;
            let end = offset.checked_add(size_of::<ShadowWord>())?;
            // SAFETY: `offset` is at most the length of the memory.
            let place = (end <= page.bytes()).then(|| unsafe { page.pointer().add(offset) })?;
            place.as_ptr().addr().is_multiple_of(align_of::<ShadowWord>()).then(|| place.cast::<ShadowWord>())
        };
        let (shadow, event) = (word(&shadows)?, word(&events)?);
        let made = Self { inner, shadow, event, last: Cell::new(0), _pages: (shadows, events) };
        made.begin();
        Some(made)
    }
}

impl<D, M> Shadowed<D, M> {
    /// A queue begins at 0, whatever an earlier one of the same number left here.
    fn begin(&self) {
        self.last.set(0);
        // SAFETY: `new` checked that the words lie in the pages, which live as long as this; they are atomics.
        unsafe { self.shadow.as_ref() }.store(0, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { self.event.as_ref() }.store(0, Ordering::Relaxed);
    }
}

impl<D: Doorbell, M> Doorbell for Shadowed<D, M> {
    const WATCHES: bool = D::WATCHES;

    #[inline]
    fn ring(&self, value: u32) {
        let old = self.last.replace(value);
        // SAFETY: `new` checked that the words lie in the pages, which live as long as this; they are atomics.
        let (shadow, event) = unsafe { (self.shadow.as_ref(), self.event.as_ref()) };
        shadow.store(value, Ordering::Relaxed);
        barrier::dbbuf_full();
        if must_ring(event.load(Ordering::Relaxed), value, old) {
            self.inner.ring(value);
        }
    }

    fn restart(&self) {
        self.begin();
    }

    fn submitted(&self, entry: &SubmissionEntry) {
        self.inner.submitted(entry);
    }

    fn completed(&self, completion: RawCompletion) {
        self.inner.completed(completion);
    }
}

/// Whether a controller that asked for `event` wants to hear that the index went from `old` to `new`.
pub const fn must_ring(event: u32, new: u32, old: u32) -> bool {
    (new.wrapping_sub(event).wrapping_sub(1) as u16) < (new.wrapping_sub(old) as u16)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::queue::ring::testing::Memory;

    #[derive(Default)]
    struct Rung(Cell<u32>);

    impl Doorbell for Rung {
        fn ring(&self, _value: u32) {
            self.0.set(self.0.get() + 1);
        }
    }

    #[test]
    fn the_bell_is_rung_only_where_the_event_index_was_passed() {
        let cases = [
            (0, 1, 0, true),
            (5, 5, 4, false),
            (4, 5, 4, true),
            (7, 5, 4, false),
            (3, 5, 4, false),
            (31, 1, 31, true),
            (1, 1, 31, false),
            (65_535, 0, 65_535, true),
            (10, 40, 8, true),
        ];
        for (event, new, old, ring) in cases {
            assert_eq!(must_ring(event, new, old), ring, "event {event}, {old} -> {new}");
        }
    }

    #[test]
    fn shadows_are_written_where_the_stride_says() {
        let (shadows, events) = (Memory::new(4096), Memory::new(4096));
        let doorbell = Shadowed::new(Rung::default(), shadows.clone(), events, 3, 4).unwrap();
        doorbell.ring(7);
        assert_eq!(shadows.submission(0).load(1) >> 32, 7, "byte 12");
        assert_eq!(doorbell.inner.0.get(), 1, "the event index was 0");
        doorbell.ring(9);
        assert_eq!(doorbell.inner.0.get(), 1);
    }

    #[test]
    fn a_place_outside_the_page_is_refused() {
        let page = || Memory::new(4096);
        assert!(Shadowed::new(Rung::default(), page(), page(), 1023, 4).is_some());
        assert!(Shadowed::new(Rung::default(), page(), page(), 1024, 4).is_none());
        assert!(Shadowed::new(Rung::default(), page(), page(), usize::MAX, 4).is_none());
        assert!(Shadowed::new(Rung::default(), page(), page(), 1, 2).is_none());
    }
}
