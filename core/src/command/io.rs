//! Commands of the NVM command set.
//!
//! NVM Express NVM Command Set Specification, "I/O Commands".
#![forbid(unsafe_code)]

use super::command;
use crate::codes;
use crate::number::{UInt, ZeroBasedU16};

codes! {
    /// The opcode of an I/O command.
    pub struct IoOpcode(u8, 8) {
        /// Flush.
        0x00 FLUSH "Flush";
        /// Write.
        0x01 WRITE "Write";
        /// Read.
        0x02 READ "Read";
    }
}

command! {
    /// Flush. NVM Express Base Specification, "Flush command".
    pub struct Flush = IoOpcode::FLUSH, "Flush" {
        /// The namespace, or FFFFFFFFh for all.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
    }
}

command! {
    /// Read. NVM Express NVM Command Set Specification, "Read command".
    pub struct Read = IoOpcode::READ, "Read" {
        /// The namespace.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
        /// First logical block.
        10[0:64] slba: u64 = HEX, "Starting LBA";
        /// Logical blocks.
        12[0:16] nlb: ZeroBasedU16 = ZERO_BASED, "Number of Logical Blocks";
        /// What is done with the protection information.
        12[26:4] prinfo: UInt<4> = HEX, "Protection Information";
        /// Force Unit Access: from the media, not from a cache.
        12[30:1] fua: bool = FLAG, "Force Unit Access";
        /// Limited Retry: the controller should not try hard.
        12[31:1] lr: bool = FLAG, "Limited Retry";
    }
}

command! {
    /// Write. NVM Express NVM Command Set Specification, "Write command".
    pub struct Write = IoOpcode::WRITE, "Write" {
        /// The namespace.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
        /// First logical block.
        10[0:64] slba: u64 = HEX, "Starting LBA";
        /// Logical blocks.
        12[0:16] nlb: ZeroBasedU16 = ZERO_BASED, "Number of Logical Blocks";
        /// What is done with the protection information.
        12[26:4] prinfo: UInt<4> = HEX, "Protection Information";
        /// Force Unit Access: complete when the data is on the media.
        12[30:1] fua: bool = FLAG, "Force Unit Access";
        /// Limited Retry: the controller should not try hard.
        12[31:1] lr: bool = FLAG, "Limited Retry";
    }
}
