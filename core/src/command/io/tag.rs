//! Logical block tags: the storage tag and the reference tag share one field whose size depends on the guard.
//!
//! NVM Express NVM Command Set Specification, "Storage Tag and Logical Block Reference Tag". With a 16-bit guard the
//! field has 32 bits, with a 32-bit guard 80, with a 64-bit guard 48; the storage tag takes as many of the upper bits
//! as the format says (STS), the reference tag has the rest. In a command the field is spread over dwords 2, 3 and 14.
#![forbid(unsafe_code)]

/// Storage tag and reference tag as one number of up to 80 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogicalBlockTags(u128);

/// The guard of a format's protection information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// 16 bits, CRC-16 T10-DIF; 8 bytes of protection information.
    Crc16,
    /// 32 bits, CRC-32C; 16 bytes of protection information.
    Crc32,
    /// 64 bits, CRC-64; 16 bytes of protection information.
    Crc64,
}

impl Guard {
    /// Bits that storage tag and reference tag share.
    pub const fn tag_bits(self) -> u32 {
        match self {
            Self::Crc16 => 32,
            Self::Crc32 => 80,
            Self::Crc64 => 48,
        }
    }

    /// Bytes of protection information in a block's metadata.
    pub const fn protection_bytes(self) -> usize {
        match self {
            Self::Crc16 => 8,
            Self::Crc32 | Self::Crc64 => 16,
        }
    }
}

impl LogicalBlockTags {
    /// The tags of a format with this guard and this many bits of storage tag (STS).
    ///
    /// `None` where the storage tag has more bits than the field, or than 64, or a tag does not fit into its bits. A
    /// reference tag of 64 bits or more takes any value.
    ///
    /// ```
    /// use nvmetal_core::command::io::{Guard, LogicalBlockTags};
    /// // 16-bit guard, no storage tag: the whole of dword 14 is the reference tag.
    /// assert_eq!(LogicalBlockTags::new(Guard::Crc16, 0, 0, 0x1234_5678).unwrap().into_bits(), 0x1234_5678);
    /// // 16-bit guard, 8 bits of storage tag: 24 bits are left for the reference tag.
    /// assert_eq!(LogicalBlockTags::new(Guard::Crc16, 8, 0xab, 0x12_3456).unwrap().into_bits(), 0xab12_3456);
    /// assert_eq!(LogicalBlockTags::new(Guard::Crc16, 8, 0xab, 0x112_3456), None);
    /// ```
    pub const fn new(guard: Guard, storage_tag_bits: u32, storage: u64, reference: u64) -> Option<Self> {
        if storage_tag_bits > 64 || storage_tag_bits > guard.tag_bits() {
            return None;
        }
        let reference_bits = guard.tag_bits() - storage_tag_bits;
        if storage as u128 >= 1 << storage_tag_bits || reference as u128 >= 1 << reference_bits {
            return None;
        }
        Some(Self((storage as u128) << reference_bits | reference as u128))
    }

    /// The bits as they are spread over dword 2 (79:64), dword 3 (63:32) and dword 14 (31:0).
    pub const fn into_bits(self) -> u128 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Command;
    use crate::command::io::Read;

    #[test]
    fn a_64_bit_guard_spreads_48_bits_and_a_32_bit_guard_80() {
        let tags = LogicalBlockTags::new(Guard::Crc64, 16, 0xbeef, 0x1234_5678).unwrap();
        let entry = Read::default().with_tags(tags).entry();
        assert_eq!((entry.cdw2(), entry.cdw3(), entry.cdw14()), (0, 0xbeef, 0x1234_5678));
        let tags = LogicalBlockTags::new(Guard::Crc32, 48, 0xaaaa_bbbb_cccc, 0x1234_5678).unwrap();
        let entry = Read::default().with_tags(tags).entry();
        assert_eq!((entry.cdw2(), entry.cdw3(), entry.cdw14()), (0xaaaa, 0xbbbb_cccc, 0x1234_5678));
    }

    #[test]
    fn tags_that_do_not_fit_are_refused() {
        assert_eq!(LogicalBlockTags::new(Guard::Crc16, 33, 0, 0), None);
        assert_eq!(LogicalBlockTags::new(Guard::Crc32, 65, 0, 0), None);
        assert_eq!(LogicalBlockTags::new(Guard::Crc16, 0, 1, 0), None);
        assert_eq!(LogicalBlockTags::new(Guard::Crc16, 32, 0, 1), None);
    }
}
