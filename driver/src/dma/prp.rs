//! PRP lists for a buffer's whole life.
//!
//! A transfer is described by PRP1, which may begin anywhere in a page, and PRP2: nothing, the second page, or a list
//! with one entry for each page after the first (NVM Express Base Specification 2.0, section 4.1.1). The list depends
//! only on where the buffer is, not on the command, so it is written once, and a shorter transfer uses the beginning of
//! the same list.
//!
//! One thing makes that less simple than it sounds. A list longer than a page is chained: *the last entry of a list page
//! points to the next list page if more entries follow, and is an ordinary entry if it is the last one needed*. The same
//! list therefore serves every length except those that end exactly with a page of the list. For these there is a second
//! chain that begins one entry further into its first page: whatever fills the first chain's pages exactly does not fill
//! the second one's. Buffers whose list fits in one page (2 MiB with pages of 4 KiB), which is all that most drives
//! take in one command, have a single chain.
#![allow(unsafe_code)] // Writes into the part of a shared allocation that a buffer owns.

use nvmetal_core::data_pointer::{ListMemory, PageSize, Segment, prp};

use super::{DmaError, DmaMemory};

/// The two data pointer words of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrpPair {
    /// The first byte of the transfer.
    pub prp1: u64,
    /// 0, the second page, or the PRP list.
    pub prp2: u64,
}

/// Bytes of one entry.
const ENTRY_BYTES: usize = 8;

/// The data that a list is for, from which follows what the list looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ListShape {
    /// The data, as the device sees it.
    pub data: Segment,
    /// The unit of its entries.
    pub page: PageSize,
}

impl ListShape {
    /// Whether it needs more than one page, and with that a second chain.
    pub(super) fn is_chained(self) -> bool {
        self.pages(0) > 1
    }

    /// Bytes that the list takes, both chains together.
    pub(super) fn bytes(self) -> usize {
        match self.pages(0) {
            0 => 0,
            1 => self.entries(self.data.bytes) as usize * ENTRY_BYTES,
            first => (first + self.pages(1)) as usize * self.page.bytes() as usize,
        }
    }

    /// What the list's first byte has to be aligned to, so that no part of it crosses a page where it must not.
    pub(super) fn alignment(self) -> usize {
        if self.is_chained() { self.page.bytes() as usize } else { self.bytes().next_power_of_two().max(ENTRY_BYTES) }
    }

    /// The list for a transfer of the first `bytes` bytes, if the whole one begins at `list_iova`.
    pub(super) fn list_for(self, list_iova: u64, bytes: u64) -> u64 {
        if prp::serves(self.entries(self.data.bytes), self.entries(bytes), self.page, 0) {
            list_iova
        } else {
            self.second_chain(list_iova) + ENTRY_BYTES as u64
        }
    }

    /// Writes the list, both chains, to where it begins in `memory`.
    ///
    /// # Safety
    /// No other thread of this process may access [`ListShape::bytes`] bytes from there meanwhile.
    pub(super) unsafe fn write(self, memory: &DmaMemory, list_iova: u64) -> Result<(), DmaError> {
        let page_bytes = self.page.bytes();
        // So little that a page of the list describes it, wherever it begins: the usual list, and one progression.
        if self.data.bytes < page_bytes * (page_bytes / ENTRY_BYTES as u64) {
            let second_page = self.data.iova - self.page.offset(self.data.iova) + page_bytes;
            let (place, entries) = ((list_iova - memory.iova()) as usize, self.entries(self.data.bytes) as usize);
            // SAFETY: the caller keeps other threads away.
            return unsafe { memory.progression_in_shared(place, second_page, page_bytes, entries) };
        }
        let place = |iova| ListPlace { memory, iova, page: self.page, written: Ok(()) };
        let mut first = place(list_iova);
        prp::build([self.data], self.page, &mut first)?;
        first.written?;
        if self.is_chained() {
            let mut second = place(self.second_chain(list_iova));
            prp::build_at([self.data], self.page, &mut second, 1)?;
            second.written?;
        }
        Ok(())
    }

    fn entries(self, bytes: u64) -> u64 {
        prp::pages(self.data.iova, bytes, self.page).saturating_sub(1)
    }

    fn pages(self, first_word: u64) -> u64 {
        prp::list_pages_at(self.data.iova, self.data.bytes, self.page, first_word)
    }

    /// Where the page is in which the second chain begins.
    fn second_chain(self, list_iova: u64) -> u64 {
        list_iova + self.pages(0) * self.page.bytes()
    }
}

/// The memory of one chain, as the builder sees it.
struct ListPlace<'a> {
    memory: &'a DmaMemory,
    /// Where its first page begins, as the device sees it.
    iova: u64,
    page: PageSize,
    /// Whether every word found its place.
    written: Result<(), DmaError>,
}

impl ListMemory for ListPlace<'_> {
    fn unit_iova(&self, unit: usize) -> Option<u64> {
        Some(self.iova + unit as u64 * self.page.bytes())
    }

    fn put(&mut self, unit: usize, index: usize, value: u64) {
        let iova = self.iova + unit as u64 * self.page.bytes() + (index * ENTRY_BYTES) as u64;
        let place = (iova - self.memory.iova()) as usize;
        // SAFETY: only `ListShape::write` makes a `ListPlace`, and its caller keeps other threads away.
        if let Err(error) = unsafe { self.memory.copy_in_shared(place, &value.to_le_bytes()) } {
            self.written = Err(error);
        }
    }

    fn put_run(&mut self, unit: usize, index: usize, first: u64, step: u64, count: usize) {
        let iova = self.iova + unit as u64 * self.page.bytes() + (index * ENTRY_BYTES) as u64;
        let place = (iova - self.memory.iova()) as usize;
        // SAFETY: as in `put`.
        if let Err(error) = unsafe { self.memory.progression_in_shared(place, first, step, count) } {
            self.written = Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(data_pages: u64) -> ListShape {
        ListShape { data: Segment { iova: 0x100_0000, bytes: data_pages * 4096 }, page: PageSize::MINIMUM }
    }

    #[test]
    fn a_list_that_fits_in_a_page_never_crosses_one() {
        for data_pages in 3..=513 {
            let shape = shape(data_pages);
            assert!(!shape.is_chained());
            assert!(shape.bytes() <= shape.alignment() && shape.alignment() <= 4096);
        }
    }

    #[test]
    fn two_pages_need_no_list_and_514_a_second_chain() {
        assert_eq!(shape(2).bytes(), 0);
        assert!(shape(514).is_chained());
        assert_eq!(shape(514).bytes(), 4 * 4096);
    }
}
