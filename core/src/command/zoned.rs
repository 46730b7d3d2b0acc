//! Commands of the zoned namespace command set, and what Zone Management Receive returns.
//!
//! NVM Express Zoned Namespace Command Set Specification, "I/O Commands".
#![forbid(unsafe_code)]

use super::io::IoOpcode;
use super::{Command, CommandDescriptor, command};
use crate::number::{UInt, ZeroBasedU16, ZeroBasedU32};
use crate::{bits, codes, structure};
use zerocopy::little_endian::U64;

/// The commands of the zoned namespace command set that have a builder.
pub static COMMANDS: &[CommandDescriptor] =
    &[ZoneManagementSend::DESCRIPTOR, ZoneManagementReceive::DESCRIPTOR, ZoneAppend::DESCRIPTOR];

codes! {
    /// ZSA of Zone Management Send: what to do with a zone.
    pub struct ZoneSendAction(u8, 8) {
        /// Close.
        0x01 CLOSE "close zone";
        /// Finish: the zone becomes full.
        0x02 FINISH "finish zone";
        /// Open.
        0x03 OPEN "open zone";
        /// Reset: the zone becomes empty.
        0x04 RESET "reset zone";
        /// Take offline.
        0x05 OFFLINE "offline zone";
        /// Set the zone descriptor extension.
        0x10 SET_DESCRIPTOR_EXTENSION "set zone descriptor extension";
        /// Flush the zone random write area up to the address.
        0x11 ZRWA_FLUSH "flush explicit ZRWA range";
    }
}

command! {
    /// Zone Management Send.
    /// NVM Express Zoned Namespace Command Set Specification, "Zone Management Send command".
    pub struct ZoneManagementSend = IoOpcode::ZONE_MANAGEMENT_SEND, "Zone Management Send" {
        /// The namespace.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
        /// First logical block of the zone.
        10[0:64] slba: u64 = HEX, "Starting LBA";
        /// What to do.
        13[0:8] zsa: ZoneSendAction = choice(ZoneSendAction::MEANINGS), "Zone Send Action";
        /// All zones that the action can be done with.
        13[8:1] select_all: bool = FLAG, "Select All";
        /// What the action makes of it: for open, give the zone a random write area.
        13[9:1] zsaso: bool = FLAG, "Zone Send Action Specific Option";
        /// How the address is meant.
        13[16:8] zm: u8 = HEX, "ZSLBA Method";
    }
}

codes! {
    /// ZRA of Zone Management Receive: what is asked for.
    pub struct ZoneReceiveAction(u8, 8) {
        /// Zone descriptors.
        0 REPORT "report zones";
        /// Zone descriptors and their extensions.
        1 EXTENDED_REPORT "extended report zones";
    }
}

codes! {
    /// ZRASF of Zone Management Receive: which zones are asked for.
    pub struct ZoneFilter(u8, 8) {
        /// All.
        0 ALL "all zones";
        /// Empty ones.
        1 EMPTY "empty";
        /// Implicitly opened ones.
        2 IMPLICITLY_OPENED "implicitly opened";
        /// Explicitly opened ones.
        3 EXPLICITLY_OPENED "explicitly opened";
        /// Closed ones.
        4 CLOSED "closed";
        /// Full ones.
        5 FULL "full";
        /// Read only ones.
        6 READ_ONLY "read only";
        /// Offline ones.
        7 OFFLINE "offline";
    }
}

command! {
    /// Zone Management Receive; returns a [`ZoneReport`] and descriptors.
    /// NVM Express Zoned Namespace Command Set Specification, "Zone Management Receive command".
    pub struct ZoneManagementReceive = IoOpcode::ZONE_MANAGEMENT_RECEIVE, "Zone Management Receive" {
        /// The namespace.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
        /// A logical block of the first zone.
        10[0:64] slba: u64 = HEX, "Starting LBA";
        /// Dwords to return.
        12[0:32] numd: ZeroBasedU32 = ZERO_BASED, "Number of Dwords";
        /// What is asked for.
        13[0:8] zra: ZoneReceiveAction = choice(ZoneReceiveAction::MEANINGS), "Zone Receive Action";
        /// Which zones.
        13[8:8] zrasf: ZoneFilter = choice(ZoneFilter::MEANINGS), "Zone Receive Action Specific Field";
        /// The number of zones is that of the descriptors returned, not of all that match.
        13[16:1] partial: bool = FLAG, "Partial Report";
    }
}

command! {
    /// Zone Append: writes at the zone's write pointer and says where that was (dwords 0 and 1 of the completion).
    /// NVM Express Zoned Namespace Command Set Specification, "Zone Append command".
    pub struct ZoneAppend = IoOpcode::ZONE_APPEND, "Zone Append" {
        /// The namespace.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
        /// Bits 79:64 of the logical block tags, see [`LogicalBlockTags`](super::io::LogicalBlockTags).
        2[0:16] tags_79_64: u16 = HEX, "Logical Block Tags Upper";
        /// Bits 63:32 of the logical block tags.
        3[0:32] tags_63_32: u32 = HEX, "Logical Block Tags Upper";
        /// First logical block of the zone.
        10[0:64] zslba: u64 = HEX, "Zone Starting LBA";
        /// Logical blocks.
        12[0:16] nlb: ZeroBasedU16 = ZERO_BASED, "Number of Logical Blocks";
        /// How dword 13 extends the command; 0 where it does not.
        12[16:4] cetype: UInt<4> = HEX, "Command Extension Type";
        /// The kind of directive; 0 for none.
        12[20:4] dtype: UInt<4> = HEX, "Directive Type";
        /// The storage tag is checked.
        12[24:1] stc: bool = FLAG, "Storage Tag Check";
        /// The controller changes the reference tags to the blocks' place.
        12[25:1] piremap: bool = FLAG, "Protection Information Remap";
        /// The reference tag is checked.
        12[26:1] prchk_reference: bool = FLAG, "Protection Information Check: Reference Tag";
        /// The application tag is checked.
        12[27:1] prchk_application: bool = FLAG, "Protection Information Check: Application Tag";
        /// The guard is checked.
        12[28:1] prchk_guard: bool = FLAG, "Protection Information Check: Guard";
        /// The controller makes the protection information.
        12[29:1] pract: bool = FLAG, "Protection Information Action";
        /// Force Unit Access: complete when the data is on the media.
        12[30:1] fua: bool = FLAG, "Force Unit Access";
        /// Limited Retry: the controller should not try hard.
        12[31:1] lr: bool = FLAG, "Limited Retry";
        /// What the command extension makes of it.
        13[0:16] cev: u16 = HEX, "Command Extension Value";
        /// What the directive makes of it.
        13[16:16] dspec: u16 = HEX, "Directive Specific";
        /// Bits 31:0 of the logical block tags.
        14[0:32] tags_31_0: u32 = HEX, "Logical Block Tags Lower";
        /// The application tag that is written.
        15[0:16] lbat: u16 = HEX, "Logical Block Application Tag";
        /// Which bits of the application tag are checked.
        15[16:16] lbatm: u16 = HEX, "Logical Block Application Tag Mask";
    }
}

codes! {
    /// ZT, the type of a zone.
    pub struct ZoneType(u8, 8) {
        /// Written in sequence, or not at all.
        2 SEQUENTIAL_WRITE_REQUIRED "sequential write required";
    }
}

codes! {
    /// ZS, the state of a zone.
    pub struct ZoneState(u8, 4) {
        /// Empty.
        0x1 EMPTY "empty";
        /// Opened by a write.
        0x2 IMPLICITLY_OPENED "implicitly opened";
        /// Opened by a command.
        0x3 EXPLICITLY_OPENED "explicitly opened";
        /// Closed.
        0x4 CLOSED "closed";
        /// Read only.
        0xd READ_ONLY "read only";
        /// Full.
        0xe FULL "full";
        /// Offline.
        0xf OFFLINE "offline";
    }
}

bits! {
    /// The state byte of a zone descriptor.
    pub struct ZoneStateByte(u8 as u8) {
        /// Reserved.
        0:4 __: u8 = RESERVED, "reserved";
        /// The state.
        4:4 zs: ZoneState = choice(ZoneState::MEANINGS), "zone state";
    }
}

bits! {
    /// ZA, attributes of a zone.
    pub struct ZoneAttributes(u8 as u8) {
        /// The controller made the zone full.
        0:1 zfc: bool = FLAG, "zone finished by controller";
        /// The controller would like the zone to be finished.
        1:1 fzr: bool = FLAG, "finish zone recommended";
        /// The controller would like the zone to be reset.
        2:1 rzr: bool = FLAG, "reset zone recommended";
        /// The zone has a random write area.
        3:1 zrwav: bool = FLAG, "zone random write area valid";
        /// Reserved.
        4:3 __: u8 = RESERVED, "reserved";
        /// The zone has a descriptor extension.
        7:1 zdev: bool = FLAG, "zone descriptor extension valid";
    }
}

structure! {
    /// The head of a report of zones; descriptors follow.
    /// NVM Express Zoned Namespace Command Set Specification, "Report Zones Data Structure".
    pub struct ZoneReport: 64, "zone-report" {
        /// Zones.
        0 nz: U64 = COUNT, "Number of Zones";
        /// Reserved.
        8 reserved_8: [u8; 56] = RESERVED, "Reserved";
    }
}

structure! {
    /// Zone Descriptor. NVM Express Zoned Namespace Command Set Specification, "Zone Descriptor Data Structure".
    pub struct ZoneDescriptor: 64, "zone" {
        /// The type, bits 3:0.
        0 zt: ZoneType = choice(ZoneType::MEANINGS), "Zone Type";
        /// The state.
        1 zs: ZoneStateByte = bits(ZoneStateByte::PARTS), "Zone State";
        /// Attributes.
        2 za: ZoneAttributes = bits(ZoneAttributes::PARTS), "Zone Attributes";
        /// More on the attributes: time limits.
        3 zai: u8 = HEX, "Zone Attributes Information";
        /// Reserved.
        4 reserved_4: [u8; 4] = RESERVED, "Reserved";
        /// Logical blocks that can be written.
        8 zcap: U64 = COUNT, "Zone Capacity";
        /// First logical block.
        16 zslba: U64 = HEX, "Zone Start LBA";
        /// Where the next write goes.
        24 wp: U64 = HEX, "Write Pointer";
        /// Reserved.
        32 reserved_32: [u8; 32] = RESERVED, "Reserved";
    }
}
