//! Media in memory that only takes what was written: terabytes cost nothing until they are used.
//!
//! Data is kept in pages of 4 KiB. What no page is kept for reads as zeros, or, where the drive is to behave as filled,
//! as a pattern that looks like data: random, different in every page, the same each time. Deallocated ranges are
//! remembered and read as zeros.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

/// Bytes of a page.
pub(crate) const PAGE_BYTES: usize = 4096;
/// Different random pages that the pattern is made of.
const PATTERNS: usize = 16;

/// A piece of what a read returns.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Piece<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// So many zeros.
    Zeros(usize),
}

/// Page numbers are small and even: one multiplication spreads them.
#[derive(Default)]
pub(crate) struct PageHasher(u64);

impl Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(self.0 ^ u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        let spread = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = spread ^ spread >> 32;
    }
}

type Page = [u8; PAGE_BYTES];

/// Sparse memory. See the [module](self).
#[derive(Debug)]
pub(crate) struct Sparse {
    pages: HashMap<u64, Box<Page>, BuildHasherDefault<PageHasher>>,
    /// Page ranges that read as zeros although the drive is filled: first page, page behind the last.
    zeroed: BTreeMap<u64, u64>,
    patterns: Option<Vec<Page>>,
    /// The pattern's page that was asked for last, with its stamp.
    stamped: Box<Page>,
    bytes: u64,
}

impl Sparse {
    /// `bytes` bytes, filled with a pattern from `seed` or all zero.
    pub(crate) fn new(bytes: u64, filled: Option<u64>) -> Self {
        let patterns = filled.map(|seed| {
            let mut state = seed.wrapping_mul(2).wrapping_add(0x9e37_79b9_7f4a_7c15);
            (0..PATTERNS)
                .map(|_| {
                    let mut page = [0; PAGE_BYTES];
                    for word in page.as_chunks_mut::<8>().0 {
                        *word = xorshift(&mut state).to_le_bytes();
                    }
                    page
                })
                .collect()
        });
        Self { pages: HashMap::default(), zeroed: BTreeMap::new(), patterns, stamped: Box::new([0; PAGE_BYTES]), bytes }
    }

    /// Hands the bytes from `first` on to `each`, piece by piece, until `each` fails.
    pub(crate) fn read<E>(
        &mut self,
        first: u64,
        bytes: u64,
        mut each: impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut at = first;
        let end = first.saturating_add(bytes);
        while at < end {
            let (page, offset) = (at / PAGE_BYTES as u64, (at % PAGE_BYTES as u64) as usize);
            let length = (PAGE_BYTES - offset).min((end - at) as usize);
            let part = offset..offset + length;
            if let Some(data) = self.pages.get(&page) {
                each(Piece::Bytes(data.get(part).unwrap_or_default()))?;
            } else if let Some(pattern) = self.pattern(page) {
                each(Piece::Bytes(pattern.get(part).unwrap_or_default()))?;
            } else {
                each(Piece::Zeros(length))?;
            }
            at += length as u64;
        }
        Ok(())
    }

    /// What a page of a filled drive holds where nothing else was written.
    fn pattern(&mut self, page: u64) -> Option<&Page> {
        let patterns = self.patterns.as_ref()?;
        if self.zeroed.range(..=page).next_back().is_some_and(|(_, &end)| page < end) {
            return None;
        }
        // Not of the page's number itself: the first page's stamp would be zero.
        let mixed = page.wrapping_add(1).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let chosen = patterns.get((mixed >> 60) as usize)?;
        // The stamp makes each page of 4 KiB differ from all others; the rest of it is one of a few random pages.
        self.stamped.copy_from_slice(chosen);
        self.stamped.get_mut(..8)?.copy_from_slice(&mixed.to_le_bytes());
        Some(&self.stamped)
    }

    /// The page's own memory, made if there was none.
    fn page_mut(&mut self, page: u64) -> &mut Page {
        if !self.pages.contains_key(&page) {
            let content = self.pattern(page).map_or_else(|| Box::new([0; PAGE_BYTES]), |pattern| Box::new(*pattern));
            self.unzero(page);
            return self.pages.entry(page).or_insert(content);
        }
        self.pages.entry(page).or_insert_with(|| Box::new([0; PAGE_BYTES]))
    }

    /// Writes `bytes` bytes from `first` on; `fill` fills each piece in turn, until it fails.
    pub(crate) fn write<E>(
        &mut self,
        first: u64,
        bytes: u64,
        mut fill: impl FnMut(&mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut at = first;
        let end = first.saturating_add(bytes);
        while at < end {
            let (page, offset) = (at / PAGE_BYTES as u64, (at % PAGE_BYTES as u64) as usize);
            let length = (PAGE_BYTES - offset).min((end - at) as usize);
            fill(self.page_mut(page).get_mut(offset..offset + length).unwrap_or_default())?;
            at += length as u64;
        }
        Ok(())
    }

    /// Deallocates the bytes from `first` on: they read as zeros. Pages that lie only partly inside are zeroed.
    pub(crate) fn deallocate(&mut self, first: u64, bytes: u64) {
        let end = first.saturating_add(bytes).min(self.bytes);
        let (inner, behind) = (first.div_ceil(PAGE_BYTES as u64), end / PAGE_BYTES as u64);
        let edges = if inner >= behind {
            [(first, end), (0, 0)]
        } else {
            [(first, inner * PAGE_BYTES as u64), (behind * PAGE_BYTES as u64, end)]
        };
        for (from, to) in edges {
            if from < to {
                let Ok(()) = self.write(from, to - from, |piece| {
                    piece.fill(0);
                    Ok::<(), std::convert::Infallible>(())
                });
            }
        }
        if inner < behind {
            if behind - inner > self.pages.len() as u64 {
                self.pages.retain(|page, _| !(inner..behind).contains(page));
            } else {
                for page in inner..behind {
                    self.pages.remove(&page);
                }
            }
            self.zero(inner, behind);
        }
    }

    /// Bytes that are allocated: written, or filled and never deallocated.
    pub(crate) fn allocated_bytes(&self) -> u64 {
        if self.patterns.is_none() {
            return (self.pages.len() as u64 * PAGE_BYTES as u64).min(self.bytes);
        }
        let zeroed: u64 = self.zeroed.iter().map(|(start, end)| end - start).sum();
        self.bytes.saturating_sub(zeroed * PAGE_BYTES as u64)
    }

    fn zero(&mut self, mut first: u64, mut behind: u64) {
        if self.patterns.is_none() {
            return;
        }
        if let Some((&start, &end)) = self.zeroed.range(..=first).next_back()
            && end >= first
        {
            first = start;
            behind = behind.max(end);
        }
        while let Some((&start, &end)) = self.zeroed.range(first..=behind).next() {
            behind = behind.max(end);
            self.zeroed.remove(&start);
        }
        self.zeroed.insert(first, behind);
    }

    fn unzero(&mut self, page: u64) {
        if let Some((&start, &end)) = self.zeroed.range(..=page).next_back()
            && page < end
        {
            self.zeroed.remove(&start);
            if start < page {
                self.zeroed.insert(start, page);
            }
            if page + 1 < end {
                self.zeroed.insert(page + 1, end);
            }
        }
    }
}

fn xorshift(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(media: &mut Sparse, first: u64, bytes: u64) -> Vec<u8> {
        let mut all = Vec::new();
        media
            .read(first, bytes, |piece| {
                match piece {
                    Piece::Bytes(bytes) => all.extend_from_slice(bytes),
                    Piece::Zeros(count) => all.resize(all.len() + count, 0),
                }
                Ok::<(), ()>(())
            })
            .unwrap();
        all
    }

    fn write(media: &mut Sparse, first: u64, data: &[u8]) {
        let mut rest = data;
        media
            .write(first, data.len() as u64, |piece| {
                let (now, later) = rest.split_at(piece.len());
                piece.copy_from_slice(now);
                rest = later;
                Ok::<(), ()>(())
            })
            .unwrap();
    }

    #[test]
    fn what_was_written_is_read_and_what_lies_beside_it_is_unchanged() {
        for filled in [None, Some(3)] {
            let mut media = Sparse::new(1 << 40, filled);
            let before = read(&mut media, (1 << 39) - 512, 8192);
            write(&mut media, 1 << 39, &[7; 4608]);
            let mut expected = before;
            expected[512..512 + 4608].fill(7);
            assert_eq!(read(&mut media, (1 << 39) - 512, 8192), expected);
        }
    }

    #[test]
    fn a_filled_drive_holds_different_data_everywhere_and_the_same_each_time() {
        let mut media = Sparse::new(1 << 40, Some(1));
        let (one, two) = (read(&mut media, 0, 4096), read(&mut media, 1 << 30, 4096));
        assert_ne!(one, two);
        assert!(one.as_chunks::<8>().0.iter().all(|word| *word != [0; 8]));
        assert_eq!(read(&mut Sparse::new(1 << 40, Some(1)), 0, 4096), one);
    }

    #[test]
    fn deallocated_ranges_read_as_zeros_and_are_not_counted() {
        let mut media = Sparse::new(1 << 30, Some(1));
        assert_eq!(media.allocated_bytes(), 1 << 30);
        media.deallocate(512, 3 * 4096);
        assert_eq!(read(&mut media, 512, 3 * 4096), vec![0; 3 * 4096]);
        assert_ne!(read(&mut media, 0, 512), vec![0; 512]);
        assert_eq!(media.allocated_bytes(), (1 << 30) - 2 * 4096);
        write(&mut media, 4096, &[1; 512]);
        assert_eq!(media.allocated_bytes(), (1 << 30) - 4096);
        media.deallocate(0, 1 << 30);
        assert_eq!(media.allocated_bytes(), 0);
        assert_eq!(read(&mut media, 4096, 512), vec![0; 512]);
    }
}
