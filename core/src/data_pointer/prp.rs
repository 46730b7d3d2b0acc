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
    /// The word of its first page at which it begins.
    first_word: u64,
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
    list_pages_at(iova, bytes, page, 0)
}

/// As [`list_pages`], for a list that begins at word `first_word` of its first page (see [`build_at`]).
pub const fn list_pages_at(iova: u64, bytes: u64, page: PageSize, first_word: u64) -> u64 {
    let entries = pages(iova, bytes, page).saturating_sub(1);
    let words = page.bytes() / 8;
    let in_first_page = words - first_word;
    if entries < 2 {
        return 0;
    }
    if entries <= in_first_page {
        return 1;
    }
    // Every list page but the last gives one word away for the link; the last page's last word is an entry.
    let behind_the_first = entries - (in_first_page - 1);
    let full = (behind_the_first - 1).div_ceil(words - 1);
    1 + if full == 0 { 1 } else { full }
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
            needed => {
                let own = pages(self.prp1, self.bytes, self.page);
                if !serves(own - 1, needed - 1, self.page, self.first_word) {
                    return None;
                }
                self.list
            }
        };
        Some(Self { prp2, bytes, ..*self })
    }
}

/// Whether a list of `own` entries that begins at word `first_word` of its first page can be lent to a transfer that
/// needs only the first `entries` of them: not if the last one would be looked for where the list has a link.
pub const fn serves(own: u64, entries: u64, page: PageSize, first_word: u64) -> bool {
    let words = page.bytes() / 8;
    let in_first_page = words - first_word;
    let ends_with_a_page = entries >= in_first_page && (entries - in_first_page).is_multiple_of(words - 1);
    entries == own || (entries < own && !ends_with_a_page)
}

/// Describes `segments` in order; writes a list to `list` if the data has more than two pages.
pub fn build(
    segments: impl IntoIterator<Item = Segment>,
    page: PageSize,
    list: &mut impl ListMemory,
) -> Result<Prp, DataPointerError> {
    build_at(segments, page, list, 0)
}

/// As [`build`], but the list begins at word `first_word` of its first page and leaves out the words before.
///
/// Where a list has its links depends on where it begins. A second list for the same data that begins one word further
/// therefore serves the very lengths for which [`Prp::shortened`] has no answer with the first: who keeps both never
/// builds again. A `first_word` behind the last but one word of a page is taken for that one.
pub fn build_at(
    segments: impl IntoIterator<Item = Segment>,
    page: PageSize,
    list: &mut impl ListMemory,
    first_word: usize,
) -> Result<Prp, DataPointerError> {
    let words = (page.bytes() / 8) as usize;
    let first_word = first_word.min(words - 2);
    let mut segments = segments.into_iter().filter(|segment| segment.bytes != 0).peekable();
    let first = segments.peek().ok_or(DataPointerError::Empty)?;
    if !first.iova.is_multiple_of(4) {
        return Err(DataPointerError::NotDwordAligned { iova: first.iova });
    }
    let mut prp =
        Prp { prp1: first.iova, prp2: 0, second_page: 0, list: 0, first_word: first_word as u64, bytes: 0, page };
    let mut writer = ListWriter { words, unit: 0, index: first_word, pending: None };
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
        let mut run = Run {
            address: segment.iova - page.offset(segment.iova),
            step: page.bytes(),
            count: pages(segment.iova, segment.bytes, page),
        };
        // The first page is entry 1; the second one is the first word of the list, if there turns out to be one.
        if entries == 0 {
            run.next();
            entries = 1;
        }
        if entries == 1
            && let Some(second_page) = run.next()
        {
            prp.second_page = second_page;
            entries = 2;
        }
        if run.count > 0 {
            if entries == 2 {
                let page_of_list = list.unit_iova(0).ok_or(DataPointerError::ListTooShort { units: 0 })?;
                prp.list = page_of_list + first_word as u64 * 8;
                writer.push(Run { address: prp.second_page, step: 0, count: 1 }, list)?;
            }
            entries += run.count;
            writer.push(run, list)?;
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

/// Pages that follow each other.
struct Run {
    address: u64,
    step: u64,
    count: u64,
}

impl Run {
    /// Takes the first page off.
    fn next(&mut self) -> Option<u64> {
        self.count = self.count.checked_sub(1)?;
        let address = self.address;
        // Behind the last page there may be no address.
        self.address = address.wrapping_add(self.step);
        Some(address)
    }
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
    fn push(&mut self, mut run: Run, list: &mut impl ListMemory) -> Result<(), DataPointerError> {
        while run.count > 0 {
            if let Some(last) = self.pending.take() {
                let next = self.unit + 1;
                let link = list.unit_iova(next).ok_or(DataPointerError::ListTooShort { units: next })?;
                list.put(self.unit, self.index, link);
                self.unit = next;
                list.put(next, 0, last);
                self.index = 1;
            }
            let fits = run.count.min((self.words - 1 - self.index) as u64);
            list.put_run(self.unit, self.index, run.address, run.step, fits as usize);
            self.index += fits as usize;
            run.address = run.address.wrapping_add(run.step.wrapping_mul(fits));
            run.count -= fits;
            if self.index + 1 == self.words {
                self.pending = run.next();
            }
        }
        Ok(())
    }

    fn finish(&mut self, list: &mut impl ListMemory) {
        if let Some(last) = self.pending.take() {
            list.put(self.unit, self.index, last);
        }
    }
}
