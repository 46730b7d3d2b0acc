//! Scatter gather lists: any descriptor is read without a panic, and what the builder wrote is read back as the same.

use arbitrary::Unstructured;
use nvmetal_core::data_pointer::Segment;
use nvmetal_core::data_pointer::sgl::{Piece, SglDescriptor, SglType, build};

use crate::list::List;

/// A descriptor, then pieces and the length of a segment.
pub fn run(data: &[u8]) {
    let _ = pieces(&mut Unstructured::new(data));
}

fn pieces(input: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let words: [u64; 2] = input.arbitrary()?;
    if let Some(descriptor) = SglDescriptor::from_words(words) {
        let back = descriptor.words();
        assert_eq!((back[0], back[1] as u32, back[1] >> 56), (words[0], words[1] as u32, words[1] >> 56));
    }
    let per_segment = usize::from(input.arbitrary::<u8>()?);
    let mut list = List::of(usize::from(input.arbitrary::<u8>()?));
    let mut pieces = Vec::new();
    while !input.is_empty() && pieces.len() < 2000 {
        pieces.push(match input.int_in_range(0..=9)? {
            0 | 1 => Piece::Skip(input.arbitrary()?),
            2 => Piece::Data(Segment { iova: input.arbitrary()?, bytes: input.arbitrary()? }),
            _ => {
                Piece::Data(Segment { iova: input.arbitrary::<u32>()?.into(), bytes: input.arbitrary::<u32>()?.into() })
            }
        });
    }
    if let Ok(command) = build(&pieces, per_segment, &mut list) {
        assert_eq!(walk(command, per_segment.max(2), &list), pieces);
    }
    Ok(())
}

fn piece(descriptor: SglDescriptor) -> Piece {
    match descriptor.kind {
        SglType::BitBucket => Piece::Skip(descriptor.bytes),
        _ => Piece::Data(Segment { iova: descriptor.iova, bytes: descriptor.bytes.into() }),
    }
}

/// Follows a command's descriptor as a controller does.
fn walk(command: SglDescriptor, per_segment: usize, list: &List) -> Vec<Piece> {
    if matches!(command.kind, SglType::DataBlock | SglType::BitBucket) {
        return vec![piece(command)];
    }
    let (mut pieces, mut segment) = (Vec::new(), command);
    loop {
        assert_eq!(segment.bytes % 16, 0);
        let count = segment.bytes as usize / 16;
        assert!((1..=per_segment).contains(&count));
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
