//! What a region is: its length, how it may be accessed, and what of it may be mapped.
//!
//! The answer to DEVICE_GET_REGION_INFO is a fixed structure and, behind it, a chain of capabilities, each with the place
//! of the next. Of those only *sparse mmap* matters here: the areas of the region that the descriptor which comes with
//! the answer may be mapped at. An asker whose `argsz` has no room for the chain gets the fixed part and how much room it
//! takes.
#![forbid(unsafe_code)]

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::WireError;
use crate::message::RegionHead;

/// It may be read by REGION_READ.
pub const READ: u32 = 1;
/// It may be written by REGION_WRITE.
pub const WRITE: u32 = 1 << 1;
/// It may be mapped, at least in part.
pub const MMAP: u32 = 1 << 2;
/// There are capabilities.
pub const CAPS: u32 = 1 << 3;

/// The capability that lists the areas that may be mapped.
const SPARSE_MMAP: u16 = 1;
/// More capabilities than this are a loop.
const CHAIN_MOST: usize = 16;
/// More areas than this are taken from nobody.
const AREAS_MOST: usize = 64;

/// The beginning of every capability.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct CapabilityHead {
    id: U16,
    version: U16,
    /// Where in the answer the next one begins; 0 for none.
    next: U32,
}

/// The capability *sparse mmap*, without its areas.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct SparseHead {
    head: CapabilityHead,
    areas: U32,
    reserved: U32,
}

/// A part of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Area {
    /// Where it begins in the region.
    pub offset: U64,
    /// Its length.
    pub bytes: U64,
}

impl Area {
    /// `bytes` bytes from `offset` on.
    pub fn new(offset: u64, bytes: u64) -> Self {
        Self { offset: offset.into(), bytes: bytes.into() }
    }
}

/// A region.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RegionInfo {
    /// Which one.
    pub index: u32,
    /// [`READ`], [`WRITE`], [`MMAP`]; [`CAPS`] is set and cleared by what there is.
    pub flags: u32,
    /// Its length; 0 where there is none.
    pub bytes: u64,
    /// Where it begins in the descriptor.
    pub file_offset: u64,
    /// What may be mapped; `None` where there is no such list, and all or nothing may be.
    pub sparse: Option<Vec<Area>>,
}

impl RegionInfo {
    /// The answer to an asker who takes `argsz` bytes.
    pub fn encode(&self, argsz: u32) -> Vec<u8> {
        let areas = self.sparse.as_deref().unwrap_or_default();
        let caps = self.sparse.is_some();
        let needed = size_of::<RegionHead>() + if caps { size_of::<SparseHead>() + size_of_val(areas) } else { 0 };
        let fits = argsz as usize >= needed;
        let head = RegionHead {
            argsz: (needed as u32).into(),
            flags: (self.flags & !CAPS | if caps { CAPS } else { 0 }).into(),
            index: self.index.into(),
            cap_offset: if caps && fits { size_of::<RegionHead>() as u32 } else { 0 }.into(),
            bytes: self.bytes.into(),
            file_offset: self.file_offset.into(),
        };
        let mut answer = head.as_bytes().to_vec();
        if caps && fits {
            let sparse = SparseHead {
                head: CapabilityHead { id: SPARSE_MMAP.into(), version: 1.into(), next: 0.into() },
                areas: (areas.len() as u32).into(),
                reserved: 0.into(),
            };
            answer.extend_from_slice(sparse.as_bytes());
            answer.extend_from_slice(areas.as_bytes());
        }
        answer
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// It is cut short, its chain of capabilities leads outside or in a circle, or it has more areas than anybody needs.
    pub fn decode(answer: &[u8]) -> Result<Self, WireError> {
        let (head, _) = RegionHead::take(answer)?;
        let mut info = Self {
            index: head.index.get(),
            flags: head.flags.get(),
            bytes: head.bytes.get(),
            file_offset: head.file_offset.get(),
            sparse: None,
        };
        let mut at = if info.flags & CAPS == 0 { 0 } else { head.cap_offset.get() };
        for _ in 0..CHAIN_MOST {
            if at == 0 {
                return Ok(info);
            }
            let outside = WireError::Impossible { what: "capability offset", value: at.into() };
            let capability = answer.get(at as usize..).ok_or(outside.clone())?;
            let (head, _) = CapabilityHead::read_from_prefix(capability).map_err(|_| outside)?;
            if head.id.get() == SPARSE_MMAP {
                info.sparse = Some(areas(capability)?);
            }
            at = head.next.get();
        }
        Err(WireError::Impossible { what: "capability chain", value: at.into() })
    }
}

fn areas(capability: &[u8]) -> Result<Vec<Area>, WireError> {
    let short = |needed| WireError::TooShort { what: "sparse mmap capability", bytes: capability.len(), needed };
    let (sparse, rest) = SparseHead::read_from_prefix(capability).map_err(|_| short(size_of::<SparseHead>()))?;
    let count = sparse.areas.get() as usize;
    if count > AREAS_MOST {
        return Err(WireError::Impossible { what: "number of mappable areas", value: count as u64 });
    }
    let (areas, _) = <[Area]>::ref_from_prefix_with_elems(rest, count)
        .map_err(|_| short(size_of::<SparseHead>() + count * size_of::<Area>()))?;
    Ok(areas.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn doorbells() -> RegionInfo {
        RegionInfo {
            index: 0,
            flags: READ | WRITE | MMAP | CAPS,
            bytes: 0x4000,
            file_offset: 0,
            sparse: Some(vec![Area::new(0x1000, 0x1000)]),
        }
    }

    #[test]
    fn one_sparse_area_takes_64_bytes_and_comes_back() {
        let answer = doorbells().encode(64);
        assert_eq!(answer.len(), 64);
        assert_eq!(RegionInfo::decode(&answer), Ok(doorbells()));
    }

    #[test]
    fn an_asker_without_room_is_told_how_much_it_takes() {
        let answer = doorbells().encode(32);
        assert_eq!(answer.len(), 32);
        assert_eq!(RegionHead::take(&answer).unwrap().0.argsz.get(), 64);
        assert_eq!(RegionInfo::decode(&answer).unwrap().sparse, None);
    }

    #[test]
    fn a_chain_that_goes_in_a_circle_ends() {
        let mut answer = doorbells().encode(64);
        answer[36] = 32;
        assert!(matches!(RegionInfo::decode(&answer), Err(WireError::Impossible { what: "capability chain", .. })));
    }

    #[test]
    fn areas_that_are_not_there_are_not_believed() {
        let mut answer = doorbells().encode(64);
        answer[40] = 2;
        assert!(matches!(RegionInfo::decode(&answer), Err(WireError::TooShort { .. })));
        answer[40..44].fill(0xff);
        assert!(matches!(RegionInfo::decode(&answer), Err(WireError::Impossible { .. })));
        answer[12..16].fill(0xff);
        assert!(matches!(RegionInfo::decode(&answer), Err(WireError::Impossible { what: "capability offset", .. })));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(answer in proptest::collection::vec(any::<u8>(), 0..160), caps in any::<bool>()) {
            let mut answer = answer;
            if caps && answer.len() >= 32 {
                answer[4] |= 8;
                answer[12..16].copy_from_slice(&32_u32.to_le_bytes());
            }
            if let Ok(info) = RegionInfo::decode(&answer) {
                prop_assert!(info.sparse.is_none_or(|areas| areas.len() * 16 <= answer.len()));
            }
        }

        #[test]
        fn what_is_written_is_read(
            flags in 0..8_u32, bytes: u64, file_offset: u64, areas in proptest::collection::vec((any::<u64>(), any::<u64>()), 0..8),
        ) {
            let sparse = (!areas.is_empty()).then(|| areas.iter().map(|&(at, bytes)| Area::new(at, bytes)).collect());
            let flags = if areas.is_empty() { flags } else { flags | CAPS };
            let info = RegionInfo { index: 3, flags, bytes, file_offset, sparse };
            prop_assert_eq!(RegionInfo::decode(&info.encode(u32::MAX)), Ok(info));
        }
    }
}
