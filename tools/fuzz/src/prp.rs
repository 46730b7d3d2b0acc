//! PRP lists: what the builder accepts, a controller reads as the same memory, to the last byte.

use arbitrary::Unstructured;
use nvmetal_core::data_pointer::prp::{Prp, build_at, list_pages_at};
use nvmetal_core::data_pointer::{PageSize, Segment};

use crate::list::{List, join};

/// The most data described; beyond a few list pages nothing new comes.
const MOST_BYTES: u64 = 16 << 20;

/// Pieces of memory, a page size, where the list begins.
pub fn run(data: &[u8]) {
    let _ = build(&mut Unstructured::new(data));
}

fn build(input: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let page = PageSize::from_field(input.int_in_range(0..=2)?);
    let first_word = if input.ratio(1, 2)? { 0 } else { input.int_in_range(0..=700)? };
    let segments = segments(input, page)?;
    let total: u64 = segments.iter().map(|segment| segment.bytes).sum();
    let mut list = List::of(input.int_in_range(0..=20)?);
    let Ok(prp) = build_at(segments.iter().copied(), page, &mut list, first_word) else { return Ok(()) };
    assert_eq!(prp.bytes(), total);
    assert_eq!(join(walk(&prp, page, &list)), join(segments.iter().copied()));
    for _ in 0..4 {
        let bytes = input.int_in_range(1..=total)?;
        if let Some(shorter) = prp.shortened(bytes) {
            let walked = join(walk(&shorter, page, &list));
            assert_eq!(walked.iter().map(|segment| segment.bytes).sum::<u64>(), bytes);
            assert_eq!(walked, join(cut(&segments, bytes)));
        }
    }
    if let [segment] = segments[..] {
        let word = first_word.min((page.bytes() / 8) as usize - 2) as u64;
        let mut exact = List::of(list_pages_at(segment.iova, segment.bytes, page, word) as usize);
        assert!(build_at([segment], page, &mut exact, first_word).is_ok(), "list_pages says how many are needed");
    }
    Ok(())
}

/// Pieces that mostly fit together, so that most are accepted; some are anything.
fn segments(input: &mut Unstructured<'_>, page: PageSize) -> arbitrary::Result<Vec<Segment>> {
    let (mut segments, mut total) = (Vec::new(), 0);
    for number in 0..input.int_in_range(1..=40)? {
        let (mut iova, mut bytes) = (input.arbitrary::<u64>()?, u64::from(input.arbitrary::<u32>()? % (4 << 20)));
        if !input.ratio(1, 8)? {
            iova &= !3;
            iova = if number == 0 { iova } else { iova - page.offset(iova) };
            let taken = if number == 0 { page.offset(iova) } else { 0 };
            bytes = bytes.next_multiple_of(page.bytes()).saturating_sub(taken);
        }
        total += bytes;
        if total > MOST_BYTES {
            break;
        }
        segments.push(Segment { iova, bytes });
    }
    if let Some(last) = segments.last_mut() {
        last.bytes -= input.int_in_range(0..=4096.min(last.bytes))?;
    }
    Ok(segments)
}

fn cut(segments: &[Segment], mut bytes: u64) -> Vec<Segment> {
    let mut left = Vec::new();
    for segment in segments {
        let here = segment.bytes.min(bytes);
        bytes -= here;
        left.push(Segment { iova: segment.iova, bytes: here });
    }
    left
}

/// Follows the two entries as a controller does.
fn walk(prp: &Prp, page: PageSize, list: &List) -> Vec<Segment> {
    let (mut left, mut pieces) = (prp.bytes(), Vec::new());
    let mut take = |iova: u64, left: &mut u64| {
        let bytes = (page.bytes() - page.offset(iova)).min(*left);
        pieces.push(Segment { iova, bytes });
        *left -= bytes;
    };
    take(prp.prp1, &mut left);
    if left > 0 && left <= page.bytes() {
        assert_eq!(page.offset(prp.prp2), 0);
        take(prp.prp2, &mut left);
    }
    let (mut at, mut index) = (prp.prp2 - page.offset(prp.prp2), (page.offset(prp.prp2) / 8) as usize);
    while left > 0 {
        let word = list.word(at, index);
        assert_eq!(page.offset(word), 0);
        if index as u64 + 1 == page.bytes() / 8 && left > page.bytes() {
            (at, index) = (word, 0);
        } else {
            take(word, &mut left);
            index += 1;
        }
    }
    pieces
}
