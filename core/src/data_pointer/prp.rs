//! Physical region page entries and lists.
//!
//! Each entry is the address of one memory page. The first may start anywhere on a dword inside its page; all others
//! start at the page's beginning, and the last may end anywhere. So a command's two entries describe up to two pages.
//! For more, the second entry is the address of a *PRP list*: a page full of entries for the second page onwards. If
//! they are more than fit, the last word of a full list page is not a data page but the address of the next list page.
//! (NVM Express Base Specification, "Physical Region Page Entry and List".)
//!
//! A list describes the buffer and not the command: [`build`] is done once for a buffer that is used again and again,
//! and [`Prp::shortened`] gives the pair of entries of any shorter transfer from the same start.
#![forbid(unsafe_code)]

use super::{DataPointerError, ListMemory, PageSize, Segment};

/// The two entries of a command, and what they rest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prp {
    /// PRP entry 1.
    pub prp1: u64,
    /// PRP entry 2: 0, the second page, or the address of the list.
    pub prp2: u64,
    /// The second page, if the data has one.
    second_page: u64,
    /// The list, if the data has more than two pages.
    list: u64,
    /// The length described.
    bytes: u64,
    page: PageSize,
}

/// Pages that `bytes` bytes at `iova` touch.
pub const fn pages(iova: u64, bytes: u64, page: PageSize) -> u64 {
    let offset = page.offset(iova);
    // Written without a sum that could overflow.
    (bytes >> page.shift()) + ((bytes & (page.bytes() - 1)) + offset).div_ceil(page.bytes())
}

/// List pages that a buffer of `bytes` bytes at `iova` needs.
pub const fn list_pages(iova: u64, bytes: u64, page: PageSize) -> u64 {
    let entries = pages(iova, bytes, page).saturating_sub(1);
    if entries < 2 {
        return 0;
    }
    // Every list page but the last gives one word away for the link.
    let words = page.bytes() / 8;
    let full = (entries - 1) / (words - 1);
    // What is left over after `full` linked pages fills a last one, unless exactly the word of a link is saved by it.
    if full > 0 && entries - (full - 1) * (words - 1) <= words { full } else { full + 1 }
}

impl Prp {
    /// The length that the entries describe.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The entries for the first `bytes` bytes of the same data; nothing is rebuilt. A length beyond what was described
    /// gives the whole.
    ///
    /// `None` if this list cannot serve that length: a controller that expects one last entry takes the last word of a
    /// list page for it, where the longer list has a link. (Only lists of more than one page have links: with pages of
    /// 4 KiB, transfers of 2 MiB and more.) Then the list has to be built anew.
    #[inline]
    #[must_use]
    pub fn shortened(&self, bytes: u64) -> Option<Self> {
        let bytes = bytes.min(self.bytes);
        let prp2 = match pages(self.prp1, bytes, self.page) {
            0 | 1 => 0,
            2 => self.second_page,
            pages => {
                if bytes != self.bytes && self.reads_a_link(pages - 1) {
                    return None;
                }
                self.list
            }
        };
        Some(Self { prp2, bytes, ..*self })
    }

    /// Whether the last of `entries` list entries would be looked for where this list has a link.
    fn reads_a_link(&self, entries: u64) -> bool {
        let words = self.page.bytes() / 8;
        let own = pages(self.prp1, self.bytes, self.page) - 1;
        entries >= words && (entries - 1).is_multiple_of(words - 1) && own > entries
    }
}

/// Describes `segments` in order; writes a list to `list` if the data has more than two pages.
pub fn build(
    segments: impl IntoIterator<Item = Segment>,
    page: PageSize,
    list: &mut impl ListMemory,
) -> Result<Prp, DataPointerError> {
    let mut segments = segments.into_iter().filter(|segment| segment.bytes != 0).peekable();
    let first = segments.peek().ok_or(DataPointerError::Empty)?;
    if !first.iova.is_multiple_of(4) {
        return Err(DataPointerError::NotDwordAligned { iova: first.iova });
    }
    let mut prp = Prp { prp1: first.iova, prp2: 0, second_page: 0, list: 0, bytes: 0, page };
    let mut writer = ListWriter { words: (page.bytes() / 8) as usize, unit: 0, index: 0, pending: None };
    let mut entries: u64 = 0;
    while let Some(segment) = segments.next() {
        let too_long = DataPointerError::TooLong { iova: segment.iova, bytes: segment.bytes };
        // The address just behind may be 2^64, which is no address but is no overflow either.
        let last = segment.iova.checked_add(segment.bytes - 1).ok_or(too_long)?;
        if entries > 0 && page.offset(segment.iova) != 0 {
            return Err(DataPointerError::InnerBorder { iova: segment.iova });
        }
        if segments.peek().is_some() && page.offset(last) != page.bytes() - 1 {
            return Err(DataPointerError::InnerBorder { iova: last.wrapping_add(1) });
        }
        prp.bytes = prp.bytes.checked_add(segment.bytes).ok_or(too_long)?;
        let first_page = segment.iova - page.offset(segment.iova);
        for number in 0..pages(segment.iova, segment.bytes, page) {
            let address = first_page + number * page.bytes();
            match entries {
                0 => {}
                1 => prp.second_page = address,
                2 => {
                    prp.list = list.unit_iova(0).ok_or(DataPointerError::ListTooShort { units: 0 })?;
                    writer.push(prp.second_page, list)?;
                    writer.push(address, list)?;
                }
                _ => writer.push(address, list)?,
            }
            entries += 1;
        }
    }
    writer.finish(list);
    prp.prp2 = match entries {
        0 | 1 => 0,
        2 => prp.second_page,
        _ => prp.list,
    };
    Ok(prp)
}

/// Fills list pages. The word at the end of a page is held back until it is known whether it is the last entry of all
/// or has to make room for the link.
struct ListWriter {
    words: usize,
    unit: usize,
    index: usize,
    pending: Option<u64>,
}

impl ListWriter {
    fn push(&mut self, address: u64, list: &mut impl ListMemory) -> Result<(), DataPointerError> {
        if let Some(last) = self.pending.take() {
            let next = self.unit + 1;
            let link = list.unit_iova(next).ok_or(DataPointerError::ListTooShort { units: next })?;
            list.put(self.unit, self.index, link);
            self.unit = next;
            list.put(next, 0, last);
            self.index = 1;
        }
        if self.index + 1 == self.words {
            self.pending = Some(address);
        } else {
            list.put(self.unit, self.index, address);
            self.index += 1;
        }
        Ok(())
    }

    fn finish(&mut self, list: &mut impl ListMemory) {
        if let Some(last) = self.pending.take() {
            list.put(self.unit, self.index, last);
        }
    }
}
