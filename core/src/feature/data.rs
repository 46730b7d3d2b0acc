//! The data structures that come with some features.
#![forbid(unsafe_code)]

use crate::{bits, codes, structure};
use zerocopy::little_endian::{U16, U32, U64};

bits! {
    /// Entry of the autonomous power state transition table, one for each power state.
    pub struct AutonomousPowerEntry(u64 as U64) {
        /// Reserved.
        0:3 __: u8 = RESERVED, "reserved";
        /// The non-operational state to go to.
        3:5 itps: u8 = COUNT, "Idle Transition Power State";
        /// Milliseconds of idleness before that; 0 for no transition.
        8:24 itpt: u32 = amount(1, "ms").zero("no transition"), "Idle Time Prior to Transition";
        /// Reserved.
        32:32 __: u32 = RESERVED, "reserved";
    }
}

structure! {
    /// Autonomous power state transition table.
    /// NVM Express Base Specification, "Autonomous Power State Transition Data Structure".
    pub struct AutonomousPowerTable: 256, "apst" {
        /// One entry for each power state.
        0 entry: [AutonomousPowerEntry; 32] = bits(AutonomousPowerEntry::PARTS), "Power State";
    }
}

structure! {
    /// One piece of the host memory buffer; the list of them is in host memory.
    /// NVM Express Base Specification, "Host Memory Buffer - Host Memory Buffer Descriptor Entry".
    pub struct HostMemoryDescriptor: 16, "hmb-descriptor" {
        /// Where the piece lies, a multiple of the memory page.
        0 badd: U64 = HEX, "Buffer Address";
        /// Its size in memory pages (CC.MPS).
        8 bsize: U32 = amount(1, "pages"), "Buffer Size";
        /// Reserved.
        12 reserved_12: [u8; 4] = RESERVED, "Reserved";
    }
}

structure! {
    /// What Get Features returns for the host memory buffer.
    /// NVM Express Base Specification, "Host Memory Buffer - Attributes Data Structure".
    pub struct HostMemoryBufferAttributes: 4096, "hmb" {
        /// Size in memory pages (CC.MPS).
        0 hsize: U32 = amount(1, "pages"), "Host Memory Buffer Size";
        /// Where the list of descriptors lies, lower half.
        4 hmdlal: U32 = HEX, "Host Memory Descriptor List Address Lower";
        /// Where the list of descriptors lies, upper half.
        8 hmdlau: U32 = HEX, "Host Memory Descriptor List Address Upper";
        /// Descriptors in the list.
        12 hmdlec: U32 = COUNT, "Host Memory Descriptor List Entry Count";
        /// Reserved.
        16 reserved_16: [u8; 4080] = RESERVED, "Reserved";
    }
}

codes! {
    /// Where a timestamp comes from.
    pub struct TimestampOrigin(u8, 3) {
        /// It was 0 at the last reset of the controller.
        0 RESET "cleared at the last controller level reset";
        /// The host set it.
        1 HOST "set by the host";
    }
}

bits! {
    /// Attributes of a timestamp.
    pub struct TimestampAttributes(u8 as u8) {
        /// The controller may have stopped counting in between.
        0:1 synch: bool = FLAG, "may have stopped counting";
        /// Where it comes from.
        1:3 origin: TimestampOrigin = choice(TimestampOrigin::MEANINGS), "origin";
        /// Reserved.
        4:4 __: u8 = RESERVED, "reserved";
    }
}

structure! {
    /// Timestamp. NVM Express Base Specification, "Timestamp - Data Structure for Get Features".
    pub struct Timestamp: 8, "timestamp" {
        /// Milliseconds since 1970-01-01 UTC, or since the last reset, 48 bits.
        0 milliseconds: [u8; 6] = number(1, "ms"), "Timestamp";
        /// Where it comes from.
        6 attributes: TimestampAttributes = bits(TimestampAttributes::PARTS), "Attributes";
        /// Reserved.
        7 reserved_7: u8 = RESERVED, "Reserved";
    }
}

impl Timestamp {
    /// Milliseconds since 1970-01-01 UTC, or since the last reset.
    pub const fn milliseconds(&self) -> u64 {
        let [a, b, c, d, e, f] = self.milliseconds;
        u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
    }
}

codes! {
    /// What a range of blocks is used for.
    pub struct LbaRangeUse(u8, 8) {
        /// Anything.
        0 GENERAL "general purpose";
        /// A file system.
        1 FILE_SYSTEM "file system";
        /// RAID.
        2 RAID "RAID";
        /// A cache.
        3 CACHE "cache";
        /// Swap.
        4 SWAP "page or swap file";
    }
}

bits! {
    /// Attributes of a range of blocks.
    pub struct LbaRangeAttributes(u8 as u8) {
        /// The range may be written over.
        0:1 overwriteable: bool = FLAG, "may be written over";
        /// The range should be hidden from the operating system.
        1:1 hidden: bool = FLAG, "hidden";
        /// Reserved.
        2:6 __: u8 = RESERVED, "reserved";
    }
}

structure! {
    /// LBA Range Type; up to 64 of them.
    /// NVM Express NVM Command Set Specification, "LBA Range Type - Data Structure Entry".
    pub struct LbaRange: 64, "lba-range" {
        /// What the range is used for.
        0 kind: LbaRangeUse = choice(LbaRangeUse::MEANINGS), "Type";
        /// Attributes.
        1 attributes: LbaRangeAttributes = bits(LbaRangeAttributes::PARTS), "Attributes";
        /// Reserved.
        2 reserved_2: [u8; 14] = RESERVED, "Reserved";
        /// First logical block.
        16 slba: U64 = HEX, "Starting LBA";
        /// Logical blocks, 0's based.
        24 nlb: U64 = ZERO_BASED, "Number of Logical Blocks";
        /// Globally unique identifier of the range.
        32 guid: [u8; 16] = DIGITS, "Unique Identifier";
        /// Reserved.
        48 reserved_48: [u8; 16] = RESERVED, "Reserved";
    }
}

structure! {
    /// Predictable latency mode configuration.
    /// NVM Express Base Specification, "Predictable Latency Mode - Deterministic Threshold Configuration".
    pub struct PredictableLatencyConfig: 512, "plm-config" {
        /// Events that are enabled.
        0 ee: U16 = HEX, "Enable Event";
        /// Reserved.
        2 reserved_2: [u8; 30] = RESERVED, "Reserved";
        /// Reads after which a warning is given.
        32 dtwinrt: U64 = COUNT, "DTWIN Reads Threshold";
        /// Writes after which a warning is given.
        40 dtwinwt: U64 = COUNT, "DTWIN Writes Threshold";
        /// Milliseconds after which a warning is given.
        48 dtwintt: U64 = amount(1, "ms"), "DTWIN Time Threshold";
        /// Reserved.
        56 reserved_56: [u8; 456] = RESERVED, "Reserved";
    }
}

structure! {
    /// Host Behavior Support: what the host can do.
    /// NVM Express Base Specification, "Host Behavior Support - Data Structure".
    pub struct HostBehavior: 512, "host-behavior" {
        /// 1: the host follows Command Retry Delay.
        0 acre: u8 = COUNT, "Advanced Command Retry Enable";
        /// 1: the host takes telemetry data area 4.
        1 etdas: u8 = COUNT, "Extended Telemetry Data Area 4 Supported";
        /// 1: the host knows extended LBA formats.
        2 lbafee: u8 = COUNT, "LBA Format Extension Enable";
        /// 1: the host knows dispersed namespaces.
        3 hdisns: u8 = COUNT, "Host Dispersed Namespace Support";
        /// Copy descriptor formats that the host uses, bit n for format n.
        4 cdfe: U16 = HEX, "Copy Descriptor Formats Enable";
        /// Reserved.
        6 reserved_6: [u8; 506] = RESERVED, "Reserved";
    }
}

structure! {
    /// Host Identifier, of 8 or 16 bytes.
    /// NVM Express Base Specification, "Host Identifier - Data Structure".
    pub struct HostIdentifierData: 16, "host-id" {
        /// The identifier; only the first 8 bytes without extended host identifiers.
        0 hostid: [u8; 16] = DIGITS, "Host Identifier";
    }
}
