//! Both builders against plain walkers that follow the words as a controller would.
#![forbid(unsafe_code)]

use super::sgl::{Piece, SglDescriptor, SglType};
use super::{DataPointerError, ListMemory, NoList, PageSize, Segment, prp, sgl};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// List memory at scattered addresses.
struct List {
    units: usize,
    words: BTreeMap<(usize, usize), u64>,
}

/// Where unit `unit` lies: apart from each other and from all data.
fn unit_iova(unit: usize) -> u64 {
    0xffff_0000_0000 + unit as u64 * 0x0100_0000
}

impl List {
    fn of(units: usize) -> Self {
        Self { units, words: BTreeMap::new() }
    }

    fn word(&self, iova: u64, index: usize) -> u64 {
        let unit = ((iova - 0xffff_0000_0000) / 0x0100_0000) as usize;
        assert_eq!(iova, unit_iova(unit), "a list address that was never given out");
        *self.words.get(&(unit, index)).expect("a word that was never written")
    }
}

impl ListMemory for List {
    fn unit_iova(&self, unit: usize) -> Option<u64> {
        (unit < self.units).then(|| unit_iova(unit))
    }

    fn put(&mut self, unit: usize, index: usize, value: u64) {
        assert!(unit < self.units);
        self.words.insert((unit, index), value);
    }
}

/// Follows two PRP entries as a controller does, and gives the pieces of memory in order.
fn walk(prp1: u64, prp2: u64, bytes: u64, page: PageSize, list: &List) -> Vec<Segment> {
    let mut left = bytes;
    let mut pieces = Vec::new();
    let mut take = |iova: u64, left: &mut u64| {
        let here = (page.bytes() - page.offset(iova)).min(*left);
        pieces.push(Segment { iova, bytes: here });
        *left -= here;
    };
    take(prp1, &mut left);
    if left > 0 && left <= page.bytes() {
        assert_eq!(page.offset(prp2), 0);
        take(prp2, &mut left);
    }
    let (mut at, mut index) = (prp2 - page.offset(prp2), (page.offset(prp2) / 8) as usize);
    while left > 0 {
        let word = list.word(at, index);
        if index as u64 + 1 == page.bytes() / 8 && left > page.bytes() {
            (at, index) = (word, 0);
            continue;
        }
        assert_eq!(page.offset(word), 0);
        take(word, &mut left);
        index += 1;
    }
    pieces
}

fn join(pieces: &[Segment]) -> Vec<Segment> {
    let mut joined: Vec<Segment> = Vec::new();
    for piece in pieces {
        match joined.last_mut() {
            Some(last) if last.iova + last.bytes == piece.iova => last.bytes += piece.bytes,
            _ => joined.push(*piece),
        }
    }
    joined
}

/// C-19, with the list at `L`.
#[test]
fn c19_prp_table() {
    const L: u64 = 0xffff_0000_0000;
    let rows: [(u64, u64, u64, &[u64]); 11] = [
        (0x100_0000, 0x200, 0, &[]),
        (0x100_0000, 0x1000, 0, &[]),
        (0x100_0000, 0x1008, 0x100_1000, &[]),
        (0x100_0000, 0x2000, 0x100_1000, &[]),
        (0x100_0000, 0x2010, L, &[0x100_1000, 0x100_2000]),
        (0x100_0000, 0x3000, L, &[0x100_1000, 0x100_2000]),
        (0x100_0000, 0x3018, L, &[0x100_1000, 0x100_2000, 0x100_3000]),
        (0x100_0004, 0x200, 0, &[]),
        (0x100_0004, 0xffc, 0, &[]),
        (0x100_0004, 0x1000, 0x100_1000, &[]),
        (0x100_0004, 0x2010, L, &[0x100_1000, 0x100_2000]),
    ];
    for (iova, bytes, prp2, entries) in rows {
        let mut list = List::of(1);
        let prp = prp::build([Segment { iova, bytes }], PageSize::MINIMUM, &mut list).unwrap();
        assert_eq!((prp.prp1, prp.prp2), (iova, prp2), "{bytes:#x} bytes at {iova:#x}");
        assert_eq!(list.words.values().copied().collect::<Vec<_>>(), entries);
    }
}

/// C-21: lists longer than a page are chained; the last word of a full page is the link, or the last entry of all.
#[test]
fn c21_lists_longer_than_a_page_are_chained() {
    let page = PageSize::MINIMUM;
    for pages in [511, 512, 513, 514, 1022, 1023, 1024, 1025, 1026, 1534, 1535, 1536, 16384] {
        let bytes = pages * 4096;
        let units = prp::list_pages(0x100_0000, bytes, page) as usize;
        let mut list = List::of(units);
        let prp = prp::build([Segment { iova: 0x100_0000, bytes }], page, &mut list).unwrap();
        let walked = walk(prp.prp1, prp.prp2, bytes, page, &list);
        assert_eq!(walked.len() as u64, pages);
        assert_eq!(join(&walked), [Segment { iova: 0x100_0000, bytes }]);
        let used = list.words.keys().map(|&(unit, _)| unit).max().map_or(0, |unit| unit + 1);
        assert_eq!(used, units, "{pages} pages: list_pages says what is used");
        let mut short = List::of(units - 1);
        let refused = prp::build([Segment { iova: 0x100_0000, bytes }], page, &mut short);
        assert_eq!(refused, Err(DataPointerError::ListTooShort { units: units - 1 }));
    }
}

#[test]
fn what_prp_cannot_describe_is_refused() {
    let page = PageSize::MINIMUM;
    let build = |segments: &[Segment]| prp::build(segments.iter().copied(), page, &mut List::of(4));
    let segment = |iova, bytes| Segment { iova, bytes };
    assert_eq!(build(&[]), Err(DataPointerError::Empty));
    assert_eq!(build(&[segment(0x1000, 0)]), Err(DataPointerError::Empty));
    assert_eq!(build(&[segment(0x1002, 8)]), Err(DataPointerError::NotDwordAligned { iova: 0x1002 }));
    let border = build(&[segment(0x1000, 0x1000), segment(0x5010, 8)]);
    assert_eq!(border, Err(DataPointerError::InnerBorder { iova: 0x5010 }));
    let border = build(&[segment(0x1000, 0x800), segment(0x5000, 8)]);
    assert_eq!(border, Err(DataPointerError::InnerBorder { iova: 0x1800 }));
    let long = build(&[segment(u64::MAX - 3, 8)]);
    assert_eq!(long, Err(DataPointerError::TooLong { iova: u64::MAX - 3, bytes: 8 }));
    assert!(build(&[segment(u64::MAX - 3, 4)]).is_ok(), "the last dword there is");
    let no_list = prp::build([segment(0x1000, 0x3000)], page, &mut NoList);
    assert_eq!(no_list, Err(DataPointerError::ListTooShort { units: 0 }));
}

#[test]
fn page_sizes_are_powers_of_two_from_4_kib_to_128_mib() {
    assert_eq!(PageSize::from_field(0).bytes(), 4096);
    assert_eq!(PageSize::from_field(15).bytes(), 128 << 20);
    assert_eq!(PageSize::from_bytes(16384).map(PageSize::field), Some(2));
    for wrong in [0, 2048, 4095, 12288, 256 << 20] {
        assert_eq!(PageSize::from_bytes(wrong), None);
    }
}

proptest! {
    #[test]
    fn prp_describes_every_length_at_every_offset_to_the_last_byte(
        field in 0_u8..3,
        offset in 0_u64..16384,
        bytes in 1_u64..6_000_000,
        shorter in 1_u64..6_000_000,
    ) {
        let page = PageSize::from_field(field);
        let iova = 0x40_0000_0000 + offset % page.bytes() / 4 * 4;
        let mut list = List::of(prp::list_pages(iova, bytes, page) as usize);
        let whole = prp::build([Segment { iova, bytes }], page, &mut list).unwrap();
        prop_assert_eq!(join(&walk(whole.prp1, whole.prp2, bytes, page, &list)), [Segment { iova, bytes }]);
        let shorter = shorter.min(bytes);
        if let Some(part) = whole.shortened(shorter) {
            let walked = walk(part.prp1, part.prp2, shorter, page, &list);
            prop_assert_eq!(join(&walked), [Segment { iova, bytes: shorter }]);
        } else {
            prop_assert!(prp::list_pages(iova, bytes, page) > 1, "only a chained list cannot serve every length");
        }
    }

    #[test]
    fn c21_two_lists_that_begin_a_word_apart_serve_every_shorter_transfer(
        offset in 0_u64..1024,
        bytes in 1_u64..8_000_000,
        pages in 512_u64..2000,
        tail in 0_u64..4096,
    ) {
        let page = PageSize::MINIMUM;
        let iova = 0x40_0000_0000 + offset * 4;
        let segment = Segment { iova, bytes };
        let mut lists = [0, 1].map(|first| (first, List::of(prp::list_pages_at(iova, bytes, page, first) as usize)));
        let wholes: Vec<_> = lists
            .iter_mut()
            .map(|(first, list)| prp::build_at([segment], page, list, *first as usize).unwrap())
            .collect();
        // Around the ends of list pages, where one of the two has a link.
        let shorter = (pages * 4096 + tail).clamp(1, bytes);
        let (part, list) = match (wholes[0].shortened(shorter), wholes[1].shortened(shorter)) {
            (Some(part), _) => (part, &lists[0].1),
            (None, Some(part)) => (part, &lists[1].1),
            (None, None) => panic!("neither list serves {shorter} of {bytes} bytes"),
        };
        prop_assert_eq!(join(&walk(part.prp1, part.prp2, shorter, page, list)), [Segment { iova, bytes: shorter }]);
    }

    #[test]
    fn prp_describes_scattered_pages_in_order(
        first in 0_u64..1023,
        places in proptest::collection::vec((1_u64..100_000, 1_u64..5), 1..600),
        tail in 1_u64..4096,
    ) {
        let page = PageSize::MINIMUM;
        let mut segments: Vec<Segment> =
            places.iter().map(|&(number, pages)| Segment { iova: number * 0x1_0000, bytes: pages * 4096 }).collect();
        segments[0].iova += first * 4;
        segments[0].bytes -= first * 4;
        let last = segments.last_mut().unwrap();
        last.bytes = (last.bytes - 1).min((last.bytes + tail).saturating_sub(4096)).max(1);
        let bytes = segments.iter().map(|segment| segment.bytes).sum();
        let mut list = List::of(8);
        let prp = prp::build(segments.iter().copied(), page, &mut list).unwrap();
        prop_assert_eq!(join(&walk(prp.prp1, prp.prp2, bytes, page, &list)), join(&segments));
    }

    #[test]
    fn sgl_describes_any_pieces_in_order(
        pieces in proptest::collection::vec((any::<u32>(), 1_u32..100_000, any::<bool>()), 1..200),
        per_segment in 2_usize..40,
    ) {
        let pieces: Vec<Piece> = pieces.iter().map(|&(iova, bytes, skip)| {
            if skip { Piece::Skip(bytes) } else {
                Piece::Data(Segment { iova: u64::from(iova), bytes: u64::from(bytes) })
            }
        }).collect();
        let mut list = List::of(200);
        let command = sgl::build(&pieces, per_segment, &mut list).unwrap();
        prop_assert_eq!(walk_sgl(command, &list), pieces);
    }
}

/// A transfer that ends with the 512th list entry must not be given a list whose 512th word is a link.
#[test]
fn a_list_is_not_lent_to_a_transfer_that_would_take_its_link_for_data() {
    let (page, iova) = (PageSize::MINIMUM, 0x100_0000);
    let bytes = 2000 * 4096;
    let mut list = List::of(4);
    let whole = prp::build([Segment { iova, bytes }], page, &mut list).unwrap();
    let refused: Vec<u64> = (1..=2000).filter(|pages| whole.shortened(pages * 4096).is_none()).collect();
    assert_eq!(refused, [513, 1024, 1535], "entries 512, 1023 and 1534 stand behind a link");
    for pages in (1..=2000).filter(|pages| !refused.contains(pages)) {
        let part = whole.shortened(pages * 4096).unwrap();
        assert_eq!(walk(part.prp1, part.prp2, pages * 4096, page, &list).len() as u64, pages);
    }
}

fn walk_sgl(command: SglDescriptor, list: &List) -> Vec<Piece> {
    let piece = |descriptor: SglDescriptor| match descriptor.kind {
        SglType::BitBucket => Piece::Skip(descriptor.bytes),
        _ => Piece::Data(Segment { iova: descriptor.iova, bytes: u64::from(descriptor.bytes) }),
    };
    if command.kind == SglType::DataBlock || command.kind == SglType::BitBucket {
        return vec![piece(command)];
    }
    let mut pieces = Vec::new();
    let mut segment = command;
    loop {
        assert_eq!(segment.bytes % 16, 0);
        let count = segment.bytes as usize / 16;
        let mut next = None;
        for index in 0..count {
            let words = [list.word(segment.iova, 2 * index), list.word(segment.iova, 2 * index + 1)];
            let descriptor = SglDescriptor::from_words(words).expect("a known type");
            if matches!(descriptor.kind, SglType::Segment | SglType::LastSegment) {
                assert_eq!(index + 1, count, "only the last descriptor of a segment leads on");
                next = Some(descriptor);
            } else {
                pieces.push(piece(descriptor));
            }
        }
        let Some(descriptor) = next else {
            assert_eq!(segment.kind, SglType::LastSegment);
            return pieces;
        };
        assert_eq!(segment.kind, SglType::Segment);
        segment = descriptor;
    }
}

#[test]
fn sgl_refuses_what_it_cannot_describe() {
    let long = Piece::Data(Segment { iova: 0, bytes: 1 << 32 });
    assert_eq!(sgl::build(&[long], 4, &mut NoList), Err(DataPointerError::TooLong { iova: 0, bytes: 1 << 32 }));
    assert_eq!(sgl::build(&[], 4, &mut NoList), Err(DataPointerError::Empty));
    let two = [Piece::Skip(4), Piece::Skip(4)];
    assert_eq!(sgl::build(&two, 4, &mut NoList), Err(DataPointerError::ListTooShort { units: 0 }));
}
