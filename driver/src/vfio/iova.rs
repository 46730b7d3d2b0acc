//! Which address the device sees memory at.
//!
//! An IOMMU does not take every address. Its tables may be 39 bits wide, and on x86 a write to FEE00000h to FEEFFFFFh is
//! an interrupt and never reaches memory. The kernel knows what is left, so the usable ranges are always asked for, and
//! this allocator hands out addresses from them and from nowhere else.
//!
//! First fit, lowest address first, with a small twist: a large request is aligned to the huge page that it contains, so
//! that the IOMMU can use one entry where it would need 512. The lowest 64 KiB are never given out, because an IOVA of 0
//! in a command means "none".
//!
//! What is handed out is remembered with its length: a mapping can only be taken back whole, and both kernel interfaces
//! would unmap too much or nothing when asked otherwise.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

/// The first address that may be handed out.
const LOWEST: u64 = 64 << 10;
/// Requests from this length on are aligned to it: the huge page that memory is made of here.
const HUGE_PAGE: u64 = 2 << 20;

/// Addresses from `start` to `last`, both included (a range may end with the last address there is).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IovaRange {
    /// The first address.
    pub start: u64,
    /// The last one.
    pub last: u64,
}

/// Hands out parts of the usable ranges.
#[derive(Debug)]
pub struct IovaAllocator {
    page_bytes: u64,
    /// Start to last, disjoint and never adjacent.
    free: BTreeMap<u64, u64>,
    /// Start to length.
    taken: BTreeMap<u64, u64>,
}

/// An address was given back that had not been handed out, or not with that length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("IOVA {iova:#x} (+{bytes:#x}) is not one mapping of this address space")]
pub struct NotTaken {
    /// The address.
    pub iova: u64,
    /// The length.
    pub bytes: u64,
}

impl IovaAllocator {
    /// An allocator for `usable`, in units of `page_bytes` (a power of two).
    pub fn new(usable: &[IovaRange], page_bytes: u64) -> Self {
        let mut allocator = Self { page_bytes, free: BTreeMap::new(), taken: BTreeMap::new() };
        allocator.set_usable(usable, page_bytes);
        allocator
    }

    /// Replaces the usable ranges and the unit, which become narrower when another device joins. What is handed out
    /// stays so.
    pub fn set_usable(&mut self, usable: &[IovaRange], page_bytes: u64) {
        self.page_bytes = page_bytes;
        self.free.clear();
        for range in usable {
            // Whole pages only: an address inside the range whose page reaches out of it is of no use.
            let start = range.start.max(LOWEST).checked_next_multiple_of(self.page_bytes);
            let end = u128::from(range.last) + 1;
            let last = (end - end % u128::from(self.page_bytes)).checked_sub(1);
            if let (Some(start), Some(last)) = (start, last.and_then(|last| u64::try_from(last).ok()))
                && start <= last
            {
                self.release(start, last);
            }
        }
        for (start, bytes) in self.taken.clone() {
            self.carve(start, start + (bytes - 1));
        }
    }

    /// An address for `bytes` bytes (rounded up to pages); `None` if no free range is long enough, or for no bytes.
    pub fn allocate(&mut self, bytes: u64) -> Option<u64> {
        let bytes = bytes.checked_next_multiple_of(self.page_bytes).filter(|bytes| *bytes > 0)?;
        let natural = if bytes >= HUGE_PAGE { HUGE_PAGE.max(self.page_bytes) } else { self.page_bytes };
        let start = self
            .first_fit(bytes, natural)
            // Better an address that needs more entries than none.
            .or_else(|| self.first_fit(bytes, self.page_bytes))?;
        self.carve(start, start + (bytes - 1));
        self.taken.insert(start, bytes);
        Some(start)
    }

    /// Whether `bytes` bytes at `iova` are what one [`IovaAllocator::allocate`] has handed out.
    pub fn is_taken(&self, iova: u64, bytes: u64) -> Result<(), NotTaken> {
        match self.taken.get(&iova) {
            Some(length) if *length == bytes || bytes.checked_next_multiple_of(self.page_bytes) == Some(*length) => {
                Ok(())
            }
            _ => Err(NotTaken { iova, bytes }),
        }
    }

    /// Takes back what [`IovaAllocator::allocate`] gave for `bytes` bytes.
    pub fn free(&mut self, iova: u64, bytes: u64) -> Result<(), NotTaken> {
        self.is_taken(iova, bytes)?;
        if let Some(length) = self.taken.remove(&iova) {
            self.release(iova, iova + (length - 1));
        }
        Ok(())
    }

    /// Bytes that are handed out.
    pub fn taken_bytes(&self) -> u64 {
        self.taken.values().sum()
    }

    fn first_fit(&self, bytes: u64, alignment: u64) -> Option<u64> {
        self.free.iter().find_map(|(start, last)| {
            let start = start.checked_next_multiple_of(alignment)?;
            (start.checked_add(bytes - 1)? <= *last).then_some(start)
        })
    }

    /// Adds `start` to `last` to the free ranges, joined with what touches it.
    fn release(&mut self, mut start: u64, mut last: u64) {
        if let Some((before, before_last)) = self.free.range(..=start).next_back()
            && before_last.saturating_add(1) >= start
        {
            start = *before;
            last = last.max(*before_last);
        }
        while let Some((after, after_last)) = self.free.range(start..).next()
            && *after <= last.saturating_add(1)
        {
            let after = *after;
            last = last.max(*after_last);
            self.free.remove(&after);
        }
        self.free.insert(start, last);
    }

    /// Removes `start` to `last` from the free ranges.
    fn carve(&mut self, start: u64, last: u64) {
        let touched: Vec<(u64, u64)> = self
            .free
            .range(..=last)
            .rev()
            .take_while(|(_, range_last)| **range_last >= start)
            .map(|(range_start, range_last)| (*range_start, *range_last))
            .collect();
        for (range_start, range_last) in touched {
            self.free.remove(&range_start);
            if range_start < start {
                self.free.insert(range_start, start - 1);
            }
            if range_last > last {
                self.free.insert(last + 1, range_last);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGE: u64 = 4096;
    const INTERRUPTS: IovaRange = IovaRange { start: 0xfee0_0000, last: 0xfeef_ffff };

    /// What a 39-bit VT-d reports.
    fn narrow() -> Vec<IovaRange> {
        vec![
            IovaRange { start: 0, last: INTERRUPTS.start - 1 },
            IovaRange { start: INTERRUPTS.last + 1, last: (1 << 39) - 1 },
        ]
    }

    #[test]
    fn d16_addresses_come_from_the_reported_ranges_and_skip_the_interrupt_window() {
        let mut allocator = IovaAllocator::new(&narrow(), PAGE);
        let mut largest = 0;
        // 1.5 GiB never fits twice below the window, and 300 of them nearly fill 39 bits.
        for _ in 0..300 {
            let iova = allocator.allocate(3 << 29).expect("room below 2^39");
            let last = iova + (3 << 29) - 1;
            assert!(last < INTERRUPTS.start || iova > INTERRUPTS.last, "{iova:#x}");
            assert!(last < 1 << 39, "{iova:#x}");
            largest = largest.max(last);
        }
        assert!(largest > 1 << 38);
        assert_eq!(allocator.allocate(1 << 39), None);
    }

    #[test]
    fn address_0_is_never_handed_out() {
        let mut allocator = IovaAllocator::new(&[IovaRange { start: 0, last: u64::MAX }], PAGE);
        assert_eq!(allocator.allocate(1), Some(LOWEST));
    }

    #[test]
    fn a_large_request_is_aligned_to_its_huge_page_and_falls_back_where_that_does_not_fit() {
        let mut allocator = IovaAllocator::new(&narrow(), PAGE);
        assert_eq!(allocator.allocate(PAGE).map(|iova| iova % PAGE), Some(0));
        assert_eq!(allocator.allocate(2 << 20), Some(2 << 20));
        let mut tight = IovaAllocator::new(&[IovaRange { start: 0x11_000, last: 0x11_000 + (2 << 20) - 1 }], PAGE);
        assert_eq!(tight.allocate(2 << 20), Some(0x11_000));
    }

    #[test]
    fn a_mapping_is_taken_back_whole_or_not_at_all() {
        let mut allocator = IovaAllocator::new(&narrow(), PAGE);
        let iova = allocator.allocate(8 * PAGE).expect("room");
        assert!(allocator.free(iova, 4 * PAGE).is_err());
        assert!(allocator.free(iova + PAGE, 7 * PAGE).is_err());
        assert!(allocator.free(iova, 8 * PAGE).is_ok());
        assert!(allocator.free(iova, 8 * PAGE).is_err());
        assert_eq!(allocator.allocate(8 * PAGE), Some(iova), "and can be used again");
    }

    #[test]
    fn the_last_address_of_all_can_be_used() {
        let top = IovaRange { start: u64::MAX - 2 * PAGE + 1, last: u64::MAX };
        let mut allocator = IovaAllocator::new(&[top], PAGE);
        assert_eq!(allocator.allocate(PAGE), Some(top.start));
        assert_eq!(allocator.allocate(PAGE), Some(top.start + PAGE));
        assert_eq!(allocator.allocate(PAGE), None);
        assert!(allocator.free(top.start + PAGE, PAGE).is_ok());
        assert!(allocator.free(top.start, PAGE).is_ok());
        assert_eq!(allocator.allocate(2 * PAGE), Some(top.start));
    }

    #[test]
    fn narrower_ranges_leave_what_is_taken_alone() {
        let mut allocator = IovaAllocator::new(&[IovaRange { start: 0, last: (1 << 48) - 1 }], PAGE);
        let first = allocator.allocate(16 * PAGE).expect("room");
        allocator.set_usable(&narrow(), PAGE);
        let second = allocator.allocate(16 * PAGE).expect("room");
        assert!(second >= first + 16 * PAGE);
        assert!(allocator.free(first, 16 * PAGE).is_ok());
        assert_eq!(allocator.allocate(PAGE), Some(first));
    }

    #[test]
    fn ranges_that_hold_no_whole_page_give_nothing() {
        for range in [
            IovaRange { start: 0x20_001, last: 0x20_fff },
            IovaRange { start: 0x20_001, last: 0x21_ffe },
            IovaRange { start: 5, last: 4 },
            IovaRange { start: 0, last: LOWEST - 1 },
            IovaRange { start: u64::MAX, last: u64::MAX },
        ] {
            assert_eq!(IovaAllocator::new(&[range], PAGE).allocate(1), None, "{range:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_handed_out_never_overlaps_and_lies_in_a_usable_range(
            ranges in proptest::collection::vec((0_u64..1 << 34, 1_u64..1 << 26), 1..6),
            steps in proptest::collection::vec((any::<bool>(), 1_u64..8 << 20, any::<prop::sample::Index>()), 1..80),
        ) {
            let usable: Vec<_> =
                ranges.iter().map(|(start, bytes)| IovaRange { start: *start, last: start + bytes - 1 }).collect();
            let mut allocator = IovaAllocator::new(&usable, PAGE);
            let mut held: Vec<(u64, u64)> = Vec::new();
            for (give_back, bytes, which) in steps {
                if give_back && !held.is_empty() {
                    let (iova, bytes) = held.swap_remove(which.index(held.len()));
                    prop_assert!(allocator.free(iova, bytes).is_ok());
                } else if let Some(iova) = allocator.allocate(bytes) {
                    let last = iova + bytes.next_multiple_of(PAGE) - 1;
                    prop_assert!(iova >= LOWEST && iova.is_multiple_of(PAGE));
                    for (other, other_bytes) in &held {
                        prop_assert!(last < *other || iova >= other + other_bytes.next_multiple_of(PAGE));
                    }
                    // Reported ranges may touch or overlap; each page has to be in one of them.
                    for page in [iova, last & !(PAGE - 1)] {
                        prop_assert!(usable.iter().any(|range| range.start <= page && page <= range.last));
                    }
                    held.push((iova, bytes));
                }
            }
            for (iova, bytes) in held {
                prop_assert!(allocator.free(iova, bytes).is_ok());
            }
            let fresh = IovaAllocator::new(&usable, PAGE);
            prop_assert_eq!(allocator.free, fresh.free);
        }
    }
}
