//! Scatter gather lists.
//!
//! A descriptor is sixteen bytes: an address, a length, and a type. One *data block* in the command itself describes
//! data in one piece. Several pieces stand in a *segment*, an array of descriptors in memory; the command then holds the
//! descriptor of that segment. A segment that is not the last ends in the descriptor of the next one, which says by its
//! type whether another follows (*segment*) or not (*last segment*). A *bit bucket* stands for data of a read that
//! nobody wants. (NVM Express Base Specification, "Scatter Gather List".)
//!
//! That a command's data pointer is such a descriptor is said by PSDT in its first dword ([`PSDT_SGL`],
//! [`PSDT_SGL_METADATA`]).
#![forbid(unsafe_code)]

use super::{DataPointerError, ListMemory, Segment};

/// Dword 0 bits 15:14 of a command whose data pointer is a descriptor and whose metadata pointer is an address.
pub const PSDT_SGL: u32 = 0b01 << 14;
/// The same, with the metadata pointer the address of a descriptor.
pub const PSDT_SGL_METADATA: u32 = 0b10 << 14;

/// What a descriptor describes (its type in the upper half of byte 15; subtype 0, an address).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum SglType {
    /// Data.
    DataBlock = 0x0,
    /// Data of a read that is thrown away.
    BitBucket = 0x1,
    /// A segment that is followed by another.
    Segment = 0x2,
    /// The last segment.
    LastSegment = 0x3,
}

/// A descriptor as two 64-bit words: the address; the length in the lower half of the second, the type at its top.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SglDescriptor {
    /// The address.
    pub iova: u64,
    /// The length.
    pub bytes: u32,
    /// What it is.
    pub kind: SglType,
}

impl SglDescriptor {
    /// The two words for the command's data pointer (its PRP1 and PRP2 places) or for a segment.
    pub const fn words(self) -> [u64; 2] {
        [self.iova, self.bytes as u64 | (self.kind as u64) << 60]
    }

    /// Reads a descriptor; `None` for a type or subtype that is none of [`SglType`].
    pub const fn from_words(words: [u64; 2]) -> Option<Self> {
        let kind = match words[1] >> 56 {
            0x00 => SglType::DataBlock,
            0x10 => SglType::BitBucket,
            0x20 => SglType::Segment,
            0x30 => SglType::LastSegment,
            _ => return None,
        };
        Some(Self { iova: words[0], bytes: words[1] as u32, kind })
    }
}

/// A piece of data for a scatter gather list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// Memory.
    Data(Segment),
    /// This many bytes of a read that nobody wants.
    Skip(u32),
}

impl Piece {
    fn descriptor(self) -> Result<SglDescriptor, DataPointerError> {
        match self {
            Self::Data(Segment { iova, bytes }) => {
                let too_long = DataPointerError::TooLong { iova, bytes };
                let length = u32::try_from(bytes).map_err(|_| too_long)?;
                iova.checked_add(bytes.saturating_sub(1)).ok_or(too_long)?;
                Ok(SglDescriptor { iova, bytes: length, kind: SglType::DataBlock })
            }
            Self::Skip(bytes) => Ok(SglDescriptor { iova: 0, bytes, kind: SglType::BitBucket }),
        }
    }
}

/// Describes `pieces` in order. One piece stands in the command; more go to segments of `per_segment` descriptors each
/// (at least 2) in `list`.
///
/// The descriptor returned goes to the command's data pointer.
pub fn build(
    pieces: &[Piece],
    per_segment: usize,
    list: &mut impl ListMemory,
) -> Result<SglDescriptor, DataPointerError> {
    let per_segment = per_segment.max(2);
    let (first, rest) = pieces.split_first().ok_or(DataPointerError::Empty)?;
    if rest.is_empty() {
        return first.descriptor();
    }
    let mut left = pieces;
    let mut unit = 0;
    let command = pointer(list, 0, left.len(), per_segment)?;
    while !left.is_empty() {
        let here = if left.len() <= per_segment { left.len() } else { per_segment - 1 };
        let (now, later) = left.split_at(here);
        for (index, piece) in now.iter().enumerate() {
            put(list, unit, index, piece.descriptor()?);
        }
        if !later.is_empty() {
            let link = pointer(list, unit + 1, later.len(), per_segment)?;
            put(list, unit, here, link);
        }
        left = later;
        unit += 1;
    }
    Ok(command)
}

/// The descriptor that points to segment `unit`, in which `left` pieces begin.
fn pointer(
    list: &impl ListMemory,
    unit: usize,
    left: usize,
    per_segment: usize,
) -> Result<SglDescriptor, DataPointerError> {
    let iova = list.unit_iova(unit).ok_or(DataPointerError::ListTooShort { units: unit })?;
    let (kind, count) =
        if left <= per_segment { (SglType::LastSegment, left) } else { (SglType::Segment, per_segment) };
    Ok(SglDescriptor { iova, bytes: (count * 16) as u32, kind })
}

fn put(list: &mut impl ListMemory, unit: usize, index: usize, descriptor: SglDescriptor) {
    let words = descriptor.words();
    list.put(unit, 2 * index, words[0]);
    list.put(unit, 2 * index + 1, words[1]);
}
