//! The completion queue entry: sixteen bytes by which the controller says how a command ended.
//!
//! NVM Express Base Specification, "Common Completion Queue Entry Layout".
#![forbid(unsafe_code)]

use crate::status::Status;
use crate::structure;
use zerocopy::little_endian::{U16, U32};

structure! {
    /// Completion Queue Entry, as it lies in memory.
    /// NVM Express Base Specification, "Common Completion Queue Entry Layout".
    pub struct CompletionLayout: 16, "cqe" {
        /// The command's own result, lower half.
        0 dw0: U32 = HEX, "Command Specific Dword 0";
        /// The command's own result, upper half; reserved for most commands.
        4 dw1: U32 = HEX, "Command Specific Dword 1";
        /// How far the controller has read the submission queue.
        8 sqhd: U16 = COUNT, "Submission Queue Head Pointer";
        /// The submission queue that the command came from.
        10 sqid: U16 = COUNT, "Submission Queue Identifier";
        /// Which command of that queue has ended.
        12 cid: U16 = HEX, "Command Identifier";
        /// How the command ended, and the phase tag.
        14 status: U16 = STATUS, "Status Field";
    }
}

/// A completion queue entry, as four dwords in the order of the processor.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct CompletionEntry([u32; 4]);

impl CompletionEntry {
    /// Size in bytes.
    pub const SIZE: usize = 16;

    /// The entry made of these dwords.
    pub const fn from_dwords(dwords: [u32; 4]) -> Self {
        Self(dwords)
    }

    /// The four dwords.
    pub const fn dwords(self) -> [u32; 4] {
        self.0
    }

    /// An entry with everything that a controller fills in.
    pub const fn new(result: u64, sqhd: u16, sqid: u16, cid: u16, status: Status, phase: bool) -> Self {
        Self([
            result as u32,
            (result >> 32) as u32,
            sqhd as u32 | (sqid as u32) << 16,
            cid as u32 | (phase as u32) << 16 | (status.into_bits() as u32) << 17,
        ])
    }

    /// The entry as it lies in memory.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        let v = u128::from_le_bytes(bytes);
        Self([v as u32, (v >> 32) as u32, (v >> 64) as u32, (v >> 96) as u32])
    }

    /// The entry as it lies in memory.
    pub const fn to_bytes(self) -> [u8; 16] {
        let [a, b, c, d] = self.0;
        (a as u128 | (b as u128) << 32 | (c as u128) << 64 | (d as u128) << 96).to_le_bytes()
    }

    /// Dword 0, the command's own result.
    pub const fn dw0(self) -> u32 {
        self.0[0]
    }

    /// Dword 1, the upper half of the command's own result.
    pub const fn dw1(self) -> u32 {
        self.0[1]
    }

    /// Dwords 0 and 1 as one number.
    pub const fn result(self) -> u64 {
        self.0[0] as u64 | (self.0[1] as u64) << 32
    }

    /// SQHD, how far the controller has read the submission queue.
    pub const fn sqhd(self) -> u16 {
        self.0[2] as u16
    }

    /// SQID, the submission queue that the command came from.
    pub const fn sqid(self) -> u16 {
        (self.0[2] >> 16) as u16
    }

    /// CID, the command identifier.
    pub const fn cid(self) -> u16 {
        self.0[3] as u16
    }

    /// The phase tag, by which a new entry is told from an old one.
    pub const fn phase(self) -> bool {
        self.0[3] & 1 << 16 != 0
    }

    /// How the command ended.
    pub const fn status(self) -> Status {
        Status::from_bits((self.0[3] >> 17) as u16)
    }
}

impl ::core::fmt::Debug for CompletionEntry {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        f.debug_struct("CompletionEntry")
            .field("result", &format_args!("{:#x}", self.result()))
            .field("sqhd", &self.sqhd())
            .field("sqid", &self.sqid())
            .field("cid", &format_args!("{:#x}", self.cid()))
            .field("phase", &u8::from(self.phase()))
            .field("status", &self.status())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_built_completion_reads_back_and_keeps_its_place_in_memory() {
        let entry = CompletionEntry::new(0x1122_3344_5566_7788, 5, 3, 0x0221, Status::from_bits(0x6281), true);
        assert_eq!((entry.dw0(), entry.dw1()), (0x5566_7788, 0x1122_3344));
        assert_eq!((entry.sqhd(), entry.sqid(), entry.cid(), entry.phase()), (5, 3, 0x221, true));
        assert_eq!(entry.status().into_bits(), 0x6281);
        let bytes = entry.to_bytes();
        assert_eq!(bytes[14..], [0x03, 0xc5]);
        assert_eq!(CompletionEntry::from_bytes(bytes), entry);
    }
}
