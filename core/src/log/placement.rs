//! Flexible data placement: reclaim units and how they are used.
#![forbid(unsafe_code)]

use crate::feature::Timestamp;
use crate::number::ZeroBasedLe16;
use crate::{bits, codes, structure};
use zerocopy::little_endian::{U16, U32, U64, U128};

structure! {
    /// The head of FDP Configurations, log page 20h; configuration descriptors follow.
    /// NVM Express Base Specification, "FDP Configurations".
    pub struct FdpConfigurationsHeader: 16, "fdp-configs" {
        /// Descriptors that follow.
        0 n: ZeroBasedLe16 = ZERO_BASED, "Number of FDP Configurations";
        /// Version of the log.
        2 version: u8 = COUNT, "Version";
        /// Reserved.
        3 reserved_3: u8 = RESERVED, "Reserved";
        /// Size of the log.
        4 size: U32 = amount(1, "bytes"), "Size";
        /// Reserved.
        8 reserved_8: [u8; 8] = RESERVED, "Reserved";
    }
}

bits! {
    /// FDPA, attributes of an FDP configuration.
    pub struct FdpAttributes(u8 as u8) {
        /// Bits of a placement identifier that are the reclaim group.
        0:4 rgif: u8 = COUNT, "reclaim group identifier format";
        /// The volatile write cache keeps placement.
        4:1 fdpvwc: bool = FLAG, "FDP volatile write cache";
        /// Reserved.
        5:2 __: u8 = RESERVED, "reserved";
        /// The configuration is valid.
        7:1 valid: bool = FLAG, "valid";
    }
}

structure! {
    /// FDP Configuration Descriptor; `nruh` reclaim unit handle descriptors and the vendor's bytes follow.
    /// NVM Express Base Specification, "FDP Configuration Descriptor".
    pub struct FdpConfiguration: 64, "fdp-config" {
        /// Size of the descriptor with all that follows.
        0 size: U16 = amount(1, "bytes"), "Descriptor Size";
        /// Attributes.
        2 fdpa: FdpAttributes = bits(FdpAttributes::PARTS), "FDP Attributes";
        /// The vendor's bytes.
        3 vss: u8 = amount(1, "bytes"), "Vendor Specific Size";
        /// Reclaim groups.
        4 nrg: U32 = COUNT, "Number of Reclaim Groups";
        /// Reclaim unit handles.
        8 nruh: U16 = COUNT, "Number of Reclaim Unit Handles";
        /// Most placement identifiers of a namespace.
        10 maxpids: ZeroBasedLe16 = ZERO_BASED, "Max Placement Identifiers";
        /// Namespaces that the configuration allows.
        12 nnss: U32 = COUNT, "Number of Namespaces Supported";
        /// Size of a reclaim unit in bytes.
        16 runs: U64 = amount(1, "bytes"), "Reclaim Unit Nominal Size";
        /// Seconds that a reclaim unit may stay half written; 0 where not limited.
        24 erutl: U32 = amount(1, "s").zero("no limit"), "Estimated Reclaim Unit Time Limit";
        /// Reserved.
        28 reserved_28: [u8; 36] = RESERVED, "Reserved";
    }
}

codes! {
    /// RUHT, how well a reclaim unit handle keeps its data apart.
    pub struct ReclaimUnitHandleType(u8, 8) {
        /// Until garbage collection.
        1 INITIALLY_ISOLATED "initially isolated";
        /// Always.
        2 PERSISTENTLY_ISOLATED "persistently isolated";
    }
}

structure! {
    /// Reclaim Unit Handle Descriptor of an FDP configuration.
    pub struct ReclaimUnitHandle: 4, "ruh" {
        /// How well it keeps its data apart.
        0 ruht: ReclaimUnitHandleType = choice(ReclaimUnitHandleType::MEANINGS), "Reclaim Unit Handle Type";
        /// Reserved.
        1 reserved_1: [u8; 3] = RESERVED, "Reserved";
    }
}

structure! {
    /// The head of Reclaim Unit Handle Usage, log page 21h; `nruh` descriptors follow.
    /// NVM Express Base Specification, "Reclaim Unit Handle Usage".
    pub struct HandleUsageHeader: 8, "ruh-usage-head" {
        /// Descriptors that follow.
        0 nruh: U16 = COUNT, "Number of Reclaim Unit Handles";
        /// Reserved.
        2 reserved_2: [u8; 6] = RESERVED, "Reserved";
    }
}

codes! {
    /// RUHA, who uses a reclaim unit handle.
    pub struct HandleUse(u8, 8) {
        /// Nobody.
        0 UNUSED "unused";
        /// The host, by a placement handle.
        1 HOST "host specified";
        /// The controller.
        2 CONTROLLER "controller specified";
    }
}

structure! {
    /// Reclaim Unit Handle Usage Descriptor.
    pub struct HandleUsage: 8, "ruh-usage" {
        /// Who uses the handle.
        0 ruha: HandleUse = choice(HandleUse::MEANINGS), "Reclaim Unit Handle Attributes";
        /// Reserved.
        1 reserved_1: [u8; 7] = RESERVED, "Reserved";
    }
}

structure! {
    /// FDP Statistics, log page 22h. NVM Express Base Specification, "FDP Statistics".
    pub struct FdpStatistics: 64, "fdp-statistics" {
        /// Bytes that hosts wrote with metadata.
        0 hbmw: U128 = amount(1, "bytes"), "Host Bytes with Metadata Written";
        /// Bytes written to the media.
        16 mbmw: U128 = amount(1, "bytes"), "Media Bytes with Metadata Written";
        /// Bytes erased.
        32 mbe: U128 = amount(1, "bytes"), "Media Bytes Erased";
        /// Reserved.
        48 reserved_48: [u8; 16] = RESERVED, "Reserved";
    }
}

codes! {
    /// Type of an FDP event. Up to 7Fh the host's doing, from 80h on the controller's.
    pub struct FdpEventType(u8, 8) {
        /// The host left a reclaim unit before it was full.
        0x00 NOT_FULLY_WRITTEN "reclaim unit not fully written to capacity";
        /// A reclaim unit was open for too long.
        0x01 TIME_LIMIT "reclaim unit time limit exceeded";
        /// A reset changed reclaim unit handles.
        0x02 RESET "controller level reset modified reclaim unit handles";
        /// A placement identifier was not valid.
        0x03 INVALID_PLACEMENT "invalid placement identifier";
        /// The controller moved data.
        0x80 REALLOCATED "media reallocated";
        /// The controller changed a reclaim unit handle.
        0x81 MODIFIED "implicitly modified reclaim unit handle";
    }
}

bits! {
    /// Which fields of an FDP event are valid.
    pub struct FdpEventFlags(u8 as u8) {
        /// The placement identifier.
        0:1 piv: bool = FLAG, "placement identifier valid";
        /// The namespace.
        1:1 nsidv: bool = FLAG, "namespace valid";
        /// Reclaim group and handle.
        2:1 lv: bool = FLAG, "location valid";
        /// Reserved.
        3:5 __: u8 = RESERVED, "reserved";
    }
}

structure! {
    /// FDP Event. NVM Express Base Specification, "FDP Event".
    pub struct FdpEvent: 64, "fdp-event" {
        /// What happened.
        0 kind: FdpEventType = choice(FdpEventType::MEANINGS), "FDP Event Type";
        /// Which fields are valid.
        1 flags: FdpEventFlags = bits(FdpEventFlags::PARTS), "FDP Event Flags";
        /// Placement identifier.
        2 pid: U16 = HEX, "Placement Identifier";
        /// When.
        4 timestamp: Timestamp = nested(&Timestamp::DESCRIPTOR), "Event Timestamp";
        /// The namespace.
        12 nsid: U32 = HEX, "Namespace Identifier";
        /// What the type makes of it.
        16 type_specific: [u8; 16] = BYTES, "Event Type Specific";
        /// Reclaim group.
        32 rgid: U16 = COUNT, "Reclaim Group Identifier";
        /// Reclaim unit handle.
        34 ruhid: u8 = COUNT, "Reclaim Unit Handle Identifier";
        /// Reserved.
        35 reserved_35: [u8; 5] = RESERVED, "Reserved";
        /// The vendor's own.
        40 vendor: [u8; 24] = BYTES, "Vendor Specific";
    }
}

structure! {
    /// FDP Events, log page 23h. NVM Express Base Specification, "FDP Events".
    pub struct FdpEvents: 4096, "fdp-events" {
        /// Events in the log.
        0 n: U32 = COUNT, "Number of FDP Events";
        /// Reserved.
        4 reserved_4: [u8; 60] = RESERVED, "Reserved";
        /// The events, oldest first.
        64 event: [FdpEvent; 63] = nested(&FdpEvent::DESCRIPTOR), "FDP Event";
    }
}
