//! Copy and Dataset Management: commands whose data is a list of ranges.
#![forbid(unsafe_code)]

use super::{IoOpcode, LogicalBlockTags, command};
use crate::number::{UInt, ZeroBasedLe16, ZeroBasedU8};
use crate::{bits, structure};
use zerocopy::little_endian::{U16, U32, U64};

command! {
    /// Dataset Management; the data is a list of [`DatasetRange`]s.
    /// NVM Express NVM Command Set Specification, "Dataset Management command".
    pub struct DatasetManagement = IoOpcode::DATASET_MANAGEMENT, "Dataset Management" {
        /// The namespace.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
        /// Ranges.
        10[0:8] nr: ZeroBasedU8 = ZERO_BASED, "Number of Ranges";
        /// The ranges will be read as a whole.
        11[0:1] idr: bool = FLAG, "Integral Dataset for Read";
        /// The ranges will be written as a whole.
        11[1:1] idw: bool = FLAG, "Integral Dataset for Write";
        /// The ranges may be deallocated.
        11[2:1] ad: bool = FLAG, "Deallocate";
    }
}

structure! {
    /// A range of Dataset Management. NVM Express NVM Command Set Specification, "Dataset Management - Range Definition".
    pub struct DatasetRange: 16, "dsm-range" {
        /// Hints on how the range will be used.
        0 cattr: U32 = HEX, "Context Attributes";
        /// Length in logical blocks (a count).
        4 nlb: U32 = COUNT, "Length in logical blocks";
        /// First logical block.
        8 slba: U64 = HEX, "Starting LBA";
    }
}

command! {
    /// Copy; the data is a list of ranges in the form told by `desfmt`.
    /// NVM Express NVM Command Set Specification, "Copy command".
    pub struct Copy = IoOpcode::COPY, "Copy" {
        /// The namespace of the destination.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
        /// Bits 79:64 of the logical block tags that are written.
        2[0:16] tags_79_64: u16 = HEX, "Logical Block Tags Upper";
        /// Bits 63:32 of the logical block tags that are written.
        3[0:32] tags_63_32: u32 = HEX, "Logical Block Tags Upper";
        /// First logical block of the destination.
        10[0:64] sdlba: u64 = HEX, "Starting Destination LBA";
        /// Ranges.
        12[0:8] nr: ZeroBasedU8 = ZERO_BASED, "Number of Ranges";
        /// The form of the ranges.
        12[8:4] desfmt: UInt<4> = HEX, "Descriptor Format";
        /// What is done with the protection information when the source is read: reference tag, application tag and
        /// guard check (bits 0 to 2), action (bit 3).
        12[12:4] prinfor: UInt<4> = HEX, "Protection Information Read";
        /// How dword 13 extends the command; 0 where it does not.
        12[16:4] cetype: UInt<4> = HEX, "Command Extension Type";
        /// The kind of directive; 0 for none.
        12[20:4] dtype: UInt<4> = HEX, "Directive Type";
        /// The storage tag is checked when the destination is written.
        12[24:1] stcw: bool = FLAG, "Storage Tag Check Write";
        /// The storage tag is checked when the source is read.
        12[25:1] stcr: bool = FLAG, "Storage Tag Check Read";
        /// What is done with the protection information when the destination is written.
        12[26:4] prinfow: UInt<4> = HEX, "Protection Information Write";
        /// Force Unit Access: complete when the data is on the media.
        12[30:1] fua: bool = FLAG, "Force Unit Access";
        /// Limited Retry: the controller should not try hard.
        12[31:1] lr: bool = FLAG, "Limited Retry";
        /// What the command extension makes of it.
        13[0:16] cev: u16 = HEX, "Command Extension Value";
        /// What the directive makes of it.
        13[16:16] dspec: u16 = HEX, "Directive Specific";
        /// Bits 31:0 of the logical block tags that are written.
        14[0:32] tags_31_0: u32 = HEX, "Logical Block Tags Lower";
        /// The application tag that is written.
        15[0:16] lbat: u16 = HEX, "Logical Block Application Tag";
        /// Which bits of the application tag are written.
        15[16:16] lbatm: u16 = HEX, "Logical Block Application Tag Mask";
    }
}

impl Copy {
    /// The command with these logical block tags in dwords 2, 3 and 14.
    #[must_use]
    pub const fn with_tags(mut self, tags: LogicalBlockTags) -> Self {
        let bits = tags.into_bits();
        self.tags_79_64 = (bits >> 64) as u16;
        self.tags_63_32 = (bits >> 32) as u32;
        self.tags_31_0 = bits as u32;
        self
    }
}

bits! {
    /// SOPT, options of a source range in another namespace.
    pub struct SourceOptions(u16 as U16) {
        /// Reserved.
        0:15 __: u16 = RESERVED, "reserved";
        /// The range is copied fast or not at all.
        15:1 fco: bool = FLAG, "fast copy only";
    }
}

structure! {
    /// Source range, descriptor formats 0h (same namespace) and 2h (any namespace), for a 16-bit guard.
    /// NVM Express NVM Command Set Specification, "Copy - Source Range Entries Copy Descriptor Format".
    pub struct CopyRange: 32, "copy-range" {
        /// The namespace of the source in format 2h; reserved in format 0h.
        0 snsid: U32 = HEX, "Source Namespace Identifier";
        /// Reserved.
        4 reserved_4: [u8; 4] = RESERVED, "Reserved";
        /// First logical block.
        8 slba: U64 = HEX, "Starting LBA";
        /// Logical blocks.
        16 nlb: ZeroBasedLe16 = ZERO_BASED, "Number of Logical Blocks";
        /// Command extension type, bits 3:0.
        18 cetype: u8 = HEX, "Command Extension Type";
        /// Reserved.
        19 reserved_19: u8 = RESERVED, "Reserved";
        /// Command extension value.
        20 cev: U16 = HEX, "Command Extension Value";
        /// Options in format 2h; reserved in format 0h.
        22 sopt: SourceOptions = bits(SourceOptions::PARTS), "Source Options";
        /// Expected logical block tags, most significant byte first.
        24 elbt: [u8; 4] = DIGITS, "Expected Logical Block Tags";
        /// Expected application tag, most significant byte first.
        28 elbat: [u8; 2] = DIGITS, "Expected Logical Block Application Tag";
        /// Expected application tag's mask, most significant byte first.
        30 elbatm: [u8; 2] = DIGITS, "Expected Logical Block Application Tag Mask";
    }
}

structure! {
    /// Source range, descriptor formats 1h (same namespace) and 3h (any namespace), for 32-bit and 64-bit guards.
    /// NVM Express NVM Command Set Specification, "Copy - Source Range Entries Copy Descriptor Format".
    pub struct CopyRangeWide: 40, "copy-range-wide" {
        /// The namespace of the source in format 3h; reserved in format 1h.
        0 snsid: U32 = HEX, "Source Namespace Identifier";
        /// Reserved.
        4 reserved_4: [u8; 4] = RESERVED, "Reserved";
        /// First logical block.
        8 slba: U64 = HEX, "Starting LBA";
        /// Logical blocks.
        16 nlb: ZeroBasedLe16 = ZERO_BASED, "Number of Logical Blocks";
        /// Command extension type, bits 3:0.
        18 cetype: u8 = HEX, "Command Extension Type";
        /// Reserved.
        19 reserved_19: u8 = RESERVED, "Reserved";
        /// Command extension value.
        20 cev: U16 = HEX, "Command Extension Value";
        /// Options in format 3h; reserved in format 1h.
        22 sopt: SourceOptions = bits(SourceOptions::PARTS), "Source Options";
        /// Reserved.
        24 reserved_24: [u8; 2] = RESERVED, "Reserved";
        /// Expected logical block tags, most significant byte first.
        26 elbt: [u8; 10] = DIGITS, "Expected Logical Block Tags";
        /// Expected application tag, most significant byte first.
        36 elbat: [u8; 2] = DIGITS, "Expected Logical Block Application Tag";
        /// Expected application tag's mask, most significant byte first.
        38 elbatm: [u8; 2] = DIGITS, "Expected Logical Block Application Tag Mask";
    }
}
