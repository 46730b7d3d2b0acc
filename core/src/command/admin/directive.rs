//! Directives: hints that travel with commands, and the commands that set them up.
#![forbid(unsafe_code)]

use super::{AdminOpcode, command};
use crate::number::ZeroBasedU32;
use crate::{codes, structure};
use zerocopy::little_endian::{U16, U32};

codes! {
    /// DTYPE, the kind of directive.
    pub struct DirectiveType(u8, 8) {
        /// Which directives there are.
        0 IDENTIFY "Identify";
        /// Streams.
        1 STREAMS "Streams";
        /// Data placement.
        2 DATA_PLACEMENT "Data Placement";
    }
}

command! {
    /// Directive Send. NVM Express Base Specification, "Directive Send command".
    pub struct DirectiveSend = AdminOpcode::DIRECTIVE_SEND, "Directive Send" {
        /// The namespace.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
        /// Dwords of data.
        10[0:32] numd: ZeroBasedU32 = ZERO_BASED, "Number of Dwords";
        /// The operation, by the kind of directive.
        11[0:8] doper: u8 = HEX, "Directive Operation";
        /// The kind of directive.
        11[8:8] dtype: DirectiveType = choice(DirectiveType::MEANINGS), "Directive Type";
        /// What the directive makes of it.
        11[16:16] dspec: u16 = HEX, "Directive Specific";
        /// What the directive makes of it.
        12[0:32] cdw12: u32 = HEX, "Command Dword 12";
        /// What the directive makes of it.
        13[0:32] cdw13: u32 = HEX, "Command Dword 13";
    }
}

command! {
    /// Directive Receive. NVM Express Base Specification, "Directive Receive command".
    pub struct DirectiveReceive = AdminOpcode::DIRECTIVE_RECEIVE, "Directive Receive" {
        /// The namespace.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
        /// Dwords of data.
        10[0:32] numd: ZeroBasedU32 = ZERO_BASED, "Number of Dwords";
        /// The operation, by the kind of directive.
        11[0:8] doper: u8 = HEX, "Directive Operation";
        /// The kind of directive.
        11[8:8] dtype: DirectiveType = choice(DirectiveType::MEANINGS), "Directive Type";
        /// What the directive makes of it.
        11[16:16] dspec: u16 = HEX, "Directive Specific";
        /// What the directive makes of it.
        12[0:32] cdw12: u32 = HEX, "Command Dword 12";
        /// What the directive makes of it.
        13[0:32] cdw13: u32 = HEX, "Command Dword 13";
    }
}

structure! {
    /// What the directive Identify returns: bit n of each field is the directive of type n.
    /// NVM Express Base Specification, "Identify Directive - Return Parameters Data Structure".
    pub struct Directives: 4096, "directives" {
        /// Directives that are supported.
        0 supported: [u8; 32] = BYTES, "Directives Supported";
        /// Directives that are enabled.
        32 enabled: [u8; 32] = BYTES, "Directives Enabled";
        /// Directives that stay enabled over a reset.
        64 persistent: [u8; 32] = BYTES, "Directives Persistent Across Controller Level Resets";
        /// Reserved.
        96 reserved_96: [u8; 4000] = RESERVED, "Reserved";
    }
}

structure! {
    /// What the directive Streams returns as its parameters.
    /// NVM Express Base Specification, "Streams Directive - Return Parameters Data Structure".
    pub struct StreamsParameters: 32, "streams" {
        /// Most streams open at a time in the subsystem.
        0 msl: U16 = COUNT, "Max Streams Limit";
        /// Streams that are free in the subsystem.
        2 nssa: U16 = COUNT, "NVM Subsystem Streams Available";
        /// Streams that are open in the subsystem.
        4 nsso: U16 = COUNT, "NVM Subsystem Streams Open";
        /// Bit 0: stream identifiers may be shared by hosts.
        6 nssc: u8 = HEX, "NVM Subsystem Stream Capability";
        /// Reserved.
        7 reserved_7: [u8; 9] = RESERVED, "Reserved";
        /// Logical blocks that a stream is best written in.
        16 sws: U32 = COUNT, "Stream Write Size";
        /// Stream write sizes that are deallocated together.
        20 sgs: U16 = COUNT, "Stream Granularity Size";
        /// Streams given to the namespace.
        22 nsa: U16 = COUNT, "Namespace Streams Allocated";
        /// Streams open in the namespace.
        24 nso: U16 = COUNT, "Namespace Streams Open";
        /// Reserved.
        26 reserved_26: [u8; 6] = RESERVED, "Reserved";
    }
}
