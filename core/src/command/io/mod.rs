//! I/O commands of the NVM command set.
//!
//! NVM Express NVM Command Set Specification, "I/O Commands"; Flush, Cancel, I/O Management and the reservations are
//! the base specification's.
//!
//! The commands that move, compare, check or clear logical blocks share most of their dwords; the macro `block_command`
//! holds the rows that they share once, and each command adds its own.
#![forbid(unsafe_code)]

mod copy;
mod manage;
mod reservation;
mod tag;
pub use copy::*;
pub use manage::*;
pub use reservation::*;
pub use tag::*;

use super::{Command, CommandDescriptor, command};
use crate::codes;
use crate::number::{UInt, ZeroBasedU16};

/// The commands of the NVM command set that have a builder.
pub static COMMANDS: &[CommandDescriptor] = &[
    Flush::DESCRIPTOR,
    Write::DESCRIPTOR,
    Read::DESCRIPTOR,
    WriteUncorrectable::DESCRIPTOR,
    Compare::DESCRIPTOR,
    WriteZeroes::DESCRIPTOR,
    DatasetManagement::DESCRIPTOR,
    Verify::DESCRIPTOR,
    ReservationRegister::DESCRIPTOR,
    ReservationReport::DESCRIPTOR,
    ReservationAcquire::DESCRIPTOR,
    IoManagementReceive::DESCRIPTOR,
    ReservationRelease::DESCRIPTOR,
    Cancel::DESCRIPTOR,
    Copy::DESCRIPTOR,
    IoManagementSend::DESCRIPTOR,
];

codes! {
    /// The opcode of an I/O command.
    pub struct IoOpcode(u8, 8) {
        /// Flush.
        0x00 FLUSH "Flush";
        /// Write.
        0x01 WRITE "Write";
        /// Read.
        0x02 READ "Read";
        /// Write Uncorrectable.
        0x04 WRITE_UNCORRECTABLE "Write Uncorrectable";
        /// Compare.
        0x05 COMPARE "Compare";
        /// Write Zeroes.
        0x08 WRITE_ZEROES "Write Zeroes";
        /// Dataset Management.
        0x09 DATASET_MANAGEMENT "Dataset Management";
        /// Verify.
        0x0c VERIFY "Verify";
        /// Reservation Register.
        0x0d RESERVATION_REGISTER "Reservation Register";
        /// Reservation Report.
        0x0e RESERVATION_REPORT "Reservation Report";
        /// Reservation Acquire.
        0x11 RESERVATION_ACQUIRE "Reservation Acquire";
        /// I/O Management Receive.
        0x12 IO_MANAGEMENT_RECEIVE "I/O Management Receive";
        /// Reservation Release.
        0x15 RESERVATION_RELEASE "Reservation Release";
        /// Cancel.
        0x18 CANCEL "Cancel";
        /// Copy.
        0x19 COPY "Copy";
        /// I/O Management Send.
        0x1d IO_MANAGEMENT_SEND "I/O Management Send";
        /// Zone Management Send (zoned namespaces).
        0x79 ZONE_MANAGEMENT_SEND "Zone Management Send";
        /// Zone Management Receive (zoned namespaces).
        0x7a ZONE_MANAGEMENT_RECEIVE "Zone Management Receive";
        /// Zone Append (zoned namespaces).
        0x7d ZONE_APPEND "Zone Append";
    }
}

command! {
    /// Flush: what was written before is on the media when this completes.
    /// NVM Express Base Specification, "Flush command".
    pub struct Flush = IoOpcode::FLUSH, "Flush" {
        /// The namespace, or FFFFFFFFh for all where the controller supports that.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
    }
}

/// A command on a range of logical blocks: the rows that all such commands share, then the command's own.
macro_rules! block_command {
    (
        $(#[doc = $doc:literal])+
        pub struct $name:ident = $opcode:expr, $label:literal { $($own:tt)* }
    ) => {
        command! {
            $(#[doc = $doc])+
            pub struct $name = $opcode, $label {
                /// The namespace.
                1[0:32] nsid: u32 = HEX, "Namespace Identifier";
                /// Bits 79:64 of the logical block tags, see [`LogicalBlockTags`].
                2[0:16] tags_79_64: u16 = HEX, "Logical Block Tags Upper";
                /// Bits 63:32 of the logical block tags.
                3[0:32] tags_63_32: u32 = HEX, "Logical Block Tags Upper";
                /// First logical block.
                10[0:64] slba: u64 = HEX, "Starting LBA";
                /// Logical blocks.
                12[0:16] nlb: ZeroBasedU16 = ZERO_BASED, "Number of Logical Blocks";
                /// How dword 13 extends the command; 0 where it does not.
                12[16:4] cetype: UInt<4> = HEX, "Command Extension Type";
                /// The storage tag is checked.
                12[24:1] stc: bool = FLAG, "Storage Tag Check";
                /// The reference tag is checked.
                12[26:1] prchk_reference: bool = FLAG, "Protection Information Check: Reference Tag";
                /// The application tag is checked.
                12[27:1] prchk_application: bool = FLAG, "Protection Information Check: Application Tag";
                /// The guard is checked.
                12[28:1] prchk_guard: bool = FLAG, "Protection Information Check: Guard";
                /// The controller makes the protection information, or takes it away.
                12[29:1] pract: bool = FLAG, "Protection Information Action";
                /// Force Unit Access: the media, not a volatile cache.
                12[30:1] fua: bool = FLAG, "Force Unit Access";
                /// Limited Retry: the controller should not try hard.
                12[31:1] lr: bool = FLAG, "Limited Retry";
                $($own)*
                /// Bits 31:0 of the logical block tags: with a 16-bit guard and no storage tag, the reference tag.
                14[0:32] tags_31_0: u32 = HEX, "Logical Block Tags Lower";
                /// The application tag, as expected or to be written.
                15[0:16] lbat: u16 = HEX, "Logical Block Application Tag";
                /// Which bits of the application tag are checked.
                15[16:16] lbatm: u16 = HEX, "Logical Block Application Tag Mask";
            }
        }

        impl $name {
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
    };
}

codes! {
    /// DSM.AF: how often a range will be accessed.
    pub struct AccessFrequency(u8, 4) {
        /// Nothing is known.
        0 NONE "no information";
        /// Typical.
        1 TYPICAL "typical";
        /// Few reads and few writes.
        2 INFREQUENT "infrequent reads and writes";
        /// Few writes, many reads.
        3 READ_MOSTLY "infrequent writes, frequent reads";
        /// Many writes, few reads.
        4 WRITE_MOSTLY "frequent writes, infrequent reads";
        /// Many of both.
        5 FREQUENT "frequent reads and writes";
        /// Read once.
        6 ONE_READ "one time read";
        /// Will soon be read.
        7 SPECULATIVE_READ "speculative read";
        /// Will soon be written over.
        8 OVERWRITE "to be overwritten soon";
    }
}

block_command! {
    /// Read. NVM Express NVM Command Set Specification, "Read command".
    pub struct Read = IoOpcode::READ, "Read" {
        /// How often the range will be accessed.
        13[0:4] access_frequency: AccessFrequency = choice(AccessFrequency::MEANINGS), "Access Frequency";
        /// How long the command may take: 0 not said, 1 long is fine, 2 typical, 3 as short as possible.
        13[4:2] access_latency: UInt<2> = COUNT, "Access Latency";
        /// The command is one of a sequence.
        13[6:1] sequential: bool = FLAG, "Sequential Request";
        /// The data does not compress.
        13[7:1] incompressible: bool = FLAG, "Incompressible";
    }
}

block_command! {
    /// Write. NVM Express NVM Command Set Specification, "Write command".
    pub struct Write = IoOpcode::WRITE, "Write" {
        /// The kind of directive; 0 for none.
        12[20:4] dtype: UInt<4> = HEX, "Directive Type";
        /// How often the range will be accessed.
        13[0:4] access_frequency: AccessFrequency = choice(AccessFrequency::MEANINGS), "Access Frequency";
        /// How long the command may take: 0 not said, 1 long is fine, 2 typical, 3 as short as possible.
        13[4:2] access_latency: UInt<2> = COUNT, "Access Latency";
        /// The command is one of a sequence.
        13[6:1] sequential: bool = FLAG, "Sequential Request";
        /// The data does not compress.
        13[7:1] incompressible: bool = FLAG, "Incompressible";
        /// What the directive makes of it: the stream, or the placement handle.
        13[16:16] dspec: u16 = HEX, "Directive Specific";
    }
}

block_command! {
    /// Compare: reads and compares with the data of the command.
    /// NVM Express NVM Command Set Specification, "Compare command".
    pub struct Compare = IoOpcode::COMPARE, "Compare" {
        /// What the command extension makes of it.
        13[0:16] cev: u16 = HEX, "Command Extension Value";
    }
}

block_command! {
    /// Verify: reads and checks without a transfer.
    /// NVM Express NVM Command Set Specification, "Verify command".
    pub struct Verify = IoOpcode::VERIFY, "Verify" {
        /// What the command extension makes of it.
        13[0:16] cev: u16 = HEX, "Command Extension Value";
    }
}

block_command! {
    /// Write Zeroes. NVM Express NVM Command Set Specification, "Write Zeroes command".
    pub struct WriteZeroes = IoOpcode::WRITE_ZEROES, "Write Zeroes" {
        /// The kind of directive; 0 for none.
        12[20:3] dtype: UInt<3> = HEX, "Directive Type";
        /// The whole namespace, whatever the range.
        12[23:1] nsz: bool = FLAG, "Namespace Zeroes";
        /// The blocks are deallocated, as far as they then read as zeroes.
        12[25:1] deac: bool = FLAG, "Deallocate";
        /// What the command extension makes of it.
        13[0:16] cev: u16 = HEX, "Command Extension Value";
        /// What the directive makes of it.
        13[16:16] dspec: u16 = HEX, "Directive Specific";
    }
}

command! {
    /// Write Uncorrectable: makes blocks unreadable until they are written.
    /// NVM Express NVM Command Set Specification, "Write Uncorrectable command".
    pub struct WriteUncorrectable = IoOpcode::WRITE_UNCORRECTABLE, "Write Uncorrectable" {
        /// The namespace.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
        /// First logical block.
        10[0:64] slba: u64 = HEX, "Starting LBA";
        /// Logical blocks.
        12[0:16] nlb: ZeroBasedU16 = ZERO_BASED, "Number of Logical Blocks";
        /// The kind of directive; 0 for none.
        12[20:4] dtype: UInt<4> = HEX, "Directive Type";
        /// What the directive makes of it.
        13[16:16] dspec: u16 = HEX, "Directive Specific";
    }
}
