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
#![forbid(unsafe_code)]

/// The two data pointer words of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrpPair {
    /// The first byte of the transfer.
    pub prp1: u64,
    /// 0, the second page, or the PRP list.
    pub prp2: u64,
}

/// Bytes of one entry.
pub(super) const ENTRY_BYTES: usize = 8;

/// How a list of some number of entries is laid out in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ListShape {
    /// Entries that describe data.
    entries: usize,
    /// Entries in a page.
    per_page: usize,
}

/// One word of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// The page of data with this number; the buffer's first page is number 0 and never in a list.
    Data(usize),
    /// The word at this offset from the beginning of the list, where the next page of the list begins.
    Next(usize),
}

impl ListShape {
    /// The list for data that touches `data_pages` pages.
    pub(super) fn for_pages(data_pages: usize, page_bytes: usize) -> Self {
        Self { entries: if data_pages <= 2 { 0 } else { data_pages - 1 }, per_page: page_bytes / ENTRY_BYTES }
    }

    /// Whether it needs more than one page, and with that a second chain.
    pub(super) fn is_chained(self) -> bool {
        self.entries > self.per_page
    }

    /// Bytes that the list takes, both chains together.
    pub(super) fn bytes(self) -> usize {
        if self.is_chained() {
            (self.chain_pages(0) + self.chain_pages(1)) * self.per_page * ENTRY_BYTES
        } else {
            self.entries * ENTRY_BYTES
        }
    }

    /// What the list's first byte has to be aligned to, so that no part of it crosses a page where it must not.
    pub(super) fn alignment(self) -> usize {
        if self.is_chained() { self.per_page * ENTRY_BYTES } else { self.bytes().next_power_of_two().max(ENTRY_BYTES) }
    }

    /// Where the list for a transfer that needs `entries` entries begins, from the beginning of the list.
    pub(super) fn start_for(self, entries: usize) -> usize {
        let meets_the_pointer = self.is_chained()
            && (self.per_page..self.entries).contains(&entries)
            && (entries - self.per_page).is_multiple_of(self.per_page - 1);
        if meets_the_pointer { self.second_chain_offset() } else { 0 }
    }

    /// Every word of the list with its offset from the beginning, both chains.
    pub(super) fn words(self) -> impl Iterator<Item = (usize, Word)> {
        let second = self.is_chained().then(|| self.chain(self.second_chain_offset() / ENTRY_BYTES));
        self.chain(0).chain(second.into_iter().flatten())
    }

    /// Where the second chain's first entry is: one entry into its first page.
    fn second_chain_offset(self) -> usize {
        (self.chain_pages(0) * self.per_page + 1) * ENTRY_BYTES
    }

    /// Pages of a chain whose first page leaves out `skipped` entries.
    fn chain_pages(self, skipped: usize) -> usize {
        let first = self.per_page - skipped;
        if self.entries <= first {
            return 1;
        }
        // Every page but the last gives one word to the pointer to the next; so do all but one of the pages after the
        // first.
        let after_the_first = self.entries - (first - 1);
        1 + (after_the_first - 1).div_ceil(self.per_page - 1).max(1)
    }

    /// The words of the chain that begins at word number `slot`.
    fn chain(self, mut slot: usize) -> impl Iterator<Item = (usize, Word)> {
        (0..self.entries).flat_map(move |entry| {
            let last_of_page = slot % self.per_page == self.per_page - 1;
            let pointer = (last_of_page && entry + 1 < self.entries).then(|| {
                slot += 1;
                ((slot - 1) * ENTRY_BYTES, Word::Next(slot * ENTRY_BYTES))
            });
            let data = (slot * ENTRY_BYTES, Word::Data(entry + 1));
            slot += 1;
            pointer.into_iter().chain(core::iter::once(data))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Reads a list as a controller does: the data pages of a transfer that needs `entries` entries.
    fn walk(words: &HashMap<usize, Word>, page_bytes: usize, start: usize, entries: usize) -> Vec<usize> {
        let (mut offset, mut pages) = (start, Vec::new());
        while pages.len() < entries {
            let last_of_page = offset % page_bytes == page_bytes - ENTRY_BYTES;
            match (words[&offset], last_of_page && pages.len() + 1 < entries) {
                (Word::Next(next), true) => {
                    assert_eq!(next % page_bytes, 0, "a following list page begins at its beginning");
                    offset = next;
                }
                (Word::Data(page), false) => {
                    pages.push(page);
                    offset += ENTRY_BYTES;
                }
                (word, expected_pointer) => panic!("{word:?} at {offset:#x}, a pointer was due: {expected_pointer}"),
            }
        }
        pages
    }

    fn assert_every_prefix(data_pages: usize, page_bytes: usize) {
        let shape = ListShape::for_pages(data_pages, page_bytes);
        let words: HashMap<_, _> = shape.words().collect();
        assert_eq!(words.len(), shape.words().count(), "no word is written twice");
        assert!(words.keys().all(|offset| offset + ENTRY_BYTES <= shape.bytes()), "{data_pages} pages");
        for entries in 2..data_pages {
            let pages = walk(&words, page_bytes, shape.start_for(entries), entries);
            assert_eq!(pages, (1..=entries).collect::<Vec<_>>(), "{entries} entries of a list for {data_pages} pages");
        }
    }

    #[test]
    fn c19_prp_table_every_shorter_transfer_reads_the_right_pages() {
        // Pages of 64 bytes hold 8 entries, so that chains of many pages stay small.
        for data_pages in 0..200 {
            assert_every_prefix(data_pages, 64);
        }
    }

    #[test]
    fn lists_around_the_limit_of_one_page_are_right() {
        for data_pages in [2, 3, 512, 513, 514, 1023, 1024, 1025] {
            assert_every_prefix(data_pages, 4096);
        }
    }

    #[test]
    fn a_list_that_fits_in_a_page_never_crosses_one() {
        for data_pages in 3..=513 {
            let shape = ListShape::for_pages(data_pages, 4096);
            assert!(!shape.is_chained());
            assert!(shape.bytes() <= shape.alignment() && shape.alignment() <= 4096);
        }
    }

    #[test]
    fn two_pages_need_no_list() {
        assert_eq!(ListShape::for_pages(2, 4096).bytes(), 0);
        assert_eq!(ListShape::for_pages(2, 4096).words().count(), 0);
    }
}
