//! The controller's registers: where they lie and what their bits mean.
//!
//! NVM Express Base Specification, "Controller Properties"; NVMe over PCIe Transport Specification for the doorbells.
//! A register whose bits are all ones is what a vanished device answers: check [`is_all_ones`] before believing a bit.
#![forbid(unsafe_code)]

use crate::number::ZeroBasedU16;
use crate::{bits, codes};

/// Byte offsets of the registers in BAR0.
pub mod offset {
    /// Controller Capabilities, 8 bytes.
    pub const CAP: u64 = 0x00;
    /// Version, 4 bytes.
    pub const VS: u64 = 0x08;
    /// Interrupt Mask Set, 4 bytes.
    pub const INTMS: u64 = 0x0c;
    /// Interrupt Mask Clear, 4 bytes.
    pub const INTMC: u64 = 0x10;
    /// Controller Configuration, 4 bytes.
    pub const CC: u64 = 0x14;
    /// Controller Status, 4 bytes.
    pub const CSTS: u64 = 0x1c;
    /// NVM Subsystem Reset, 4 bytes.
    pub const NSSR: u64 = 0x20;
    /// Admin Queue Attributes, 4 bytes.
    pub const AQA: u64 = 0x24;
    /// Admin Submission Queue base address, 8 bytes.
    pub const ASQ: u64 = 0x28;
    /// Admin Completion Queue base address, 8 bytes.
    pub const ACQ: u64 = 0x30;
    /// Controller Memory Buffer Location, 4 bytes.
    pub const CMBLOC: u64 = 0x38;
    /// Controller Memory Buffer Size, 4 bytes.
    pub const CMBSZ: u64 = 0x3c;
    /// Boot Partition Information, 4 bytes.
    pub const BPINFO: u64 = 0x40;
    /// Boot Partition Read Select, 4 bytes.
    pub const BPRSEL: u64 = 0x44;
    /// Boot Partition Memory Buffer Location, 8 bytes.
    pub const BPMBL: u64 = 0x48;
    /// Controller Memory Buffer Memory Space Control, 8 bytes.
    pub const CMBMSC: u64 = 0x50;
    /// Controller Memory Buffer Status, 4 bytes.
    pub const CMBSTS: u64 = 0x58;
    /// Controller Memory Buffer Elasticity Buffer Size, 4 bytes.
    pub const CMBEBS: u64 = 0x5c;
    /// Controller Memory Buffer Sustained Write Throughput, 4 bytes.
    pub const CMBSWTP: u64 = 0x60;
    /// NVM Subsystem Shutdown, 4 bytes.
    pub const NSSD: u64 = 0x64;
    /// Controller Ready Timeouts, 4 bytes.
    pub const CRTO: u64 = 0x68;
    /// Persistent Memory Region Capabilities, 4 bytes.
    pub const PMRCAP: u64 = 0xe00;
    /// Persistent Memory Region Control, 4 bytes.
    pub const PMRCTL: u64 = 0xe04;
    /// Persistent Memory Region Status, 4 bytes.
    pub const PMRSTS: u64 = 0xe08;
    /// Persistent Memory Region Elasticity Buffer Size, 4 bytes.
    pub const PMREBS: u64 = 0xe0c;
    /// Persistent Memory Region Sustained Write Throughput, 4 bytes.
    pub const PMRSWTP: u64 = 0xe10;
    /// Persistent Memory Region Memory Space Control, lower half, 4 bytes.
    pub const PMRMSCL: u64 = 0xe14;
    /// Persistent Memory Region Memory Space Control, upper half, 4 bytes.
    pub const PMRMSCU: u64 = 0xe18;
    /// First doorbell.
    pub const DOORBELLS: u64 = 0x1000;
}

/// What a write to NSSR must carry for a subsystem reset: the ASCII letters "NVMe".
pub const NSSR_RESET: u32 = 0x4e56_4d65;

/// Whether a 32-bit register reads as all ones, as it does when the device is gone.
pub const fn is_all_ones(value: u32) -> bool {
    value == u32::MAX
}

/// Whether a 64-bit register reads as all ones, as it does when the device is gone.
pub const fn is_all_ones_u64(value: u64) -> bool {
    value == u64::MAX
}

/// Byte offset in BAR0 of a queue's doorbell: the submission queue's tail, or the completion queue's head.
///
/// `dstrd` is the field CAP.DSTRD (four bits), the distance of two doorbells being `4 << dstrd` bytes.
pub const fn doorbell_offset(qid: u16, completion: bool, dstrd: u8) -> u64 {
    offset::DOORBELLS + (2 * qid as u64 + completion as u64) * (4 << (dstrd & 0xf))
}

bits! {
    /// CAP, Controller Capabilities. NVM Express Base Specification, "Offset 0h: CAP".
    pub struct Capabilities(u64 as U64) {
        /// Most entries that an I/O queue may have (0's based, at least 2 entries).
        0:16 mqes: ZeroBasedU16 = ZERO_BASED, "Maximum Queue Entries Supported";
        /// I/O queues must be physically contiguous.
        16:1 cqr: bool = FLAG, "Contiguous Queues Required";
        /// Weighted round robin with urgent priority class is supported.
        17:1 ams_weighted_round_robin: bool = FLAG, "Arbitration: Weighted Round Robin with Urgent Priority";
        /// A vendor's own arbitration is supported.
        18:1 ams_vendor: bool = FLAG, "Arbitration: Vendor Specific";
        /// Reserved.
        19:5 __: u8 = RESERVED, "Reserved";
        /// Longest time to become ready or not ready, in units of 500 ms.
        24:8 to: u8 = amount(500, "ms"), "Timeout";
        /// Doorbell stride: doorbells lie 2^(2 + DSTRD) bytes apart.
        32:4 dstrd: u8 = power_of_two(4, "bytes"), "Doorbell Stride";
        /// NVM Subsystem Reset is supported.
        36:1 nssrs: bool = FLAG, "NVM Subsystem Reset Supported";
        /// The NVM command set is supported.
        37:1 css_nvm: bool = FLAG, "Command Set: NVM";
        /// Reserved.
        38:5 __: u8 = RESERVED, "Reserved";
        /// One or more I/O command sets, told by the Identify I/O Command Set data structure, are supported.
        43:1 css_io: bool = FLAG, "Command Set: I/O Command Sets";
        /// No I/O command set is supported, only the admin command set.
        44:1 css_admin_only: bool = FLAG, "Command Set: Admin Only";
        /// Boot partitions are supported.
        45:1 bps: bool = FLAG, "Boot Partition Support";
        /// The scope that the controller's power is part of.
        46:2 cps: u8 = choice(PowerScope::MEANINGS), "Controller Power Scope";
        /// Smallest memory page, 2^(12 + MPSMIN) bytes.
        48:4 mpsmin: u8 = power_of_two(4096, "bytes"), "Memory Page Size Minimum";
        /// Largest memory page, 2^(12 + MPSMAX) bytes.
        52:4 mpsmax: u8 = power_of_two(4096, "bytes"), "Memory Page Size Maximum";
        /// A persistent memory region is supported.
        56:1 pmrs: bool = FLAG, "Persistent Memory Region Supported";
        /// A controller memory buffer is supported.
        57:1 cmbs: bool = FLAG, "Controller Memory Buffer Supported";
        /// NVM subsystem shutdown is supported.
        58:1 nsss: bool = FLAG, "NVM Subsystem Shutdown Supported";
        /// The controller can be ready with media.
        59:1 crwms: bool = FLAG, "Controller Ready With Media Supported";
        /// The controller can be ready independent of media.
        60:1 crims: bool = FLAG, "Controller Ready Independent of Media Supported";
        /// NVM subsystem shutdown enhancements are supported.
        61:1 nsses: bool = FLAG, "NVM Subsystem Shutdown Enhancements Supported";
        /// Reserved.
        62:2 __: u8 = RESERVED, "Reserved";
    }
}

codes! {
    /// CAP.CPS: what shares the controller's power.
    pub struct PowerScope(u8, 2) {
        /// The controller does not say.
        0 NOT_REPORTED "not reported";
        /// This controller alone.
        1 CONTROLLER "controller";
        /// The controllers of one domain.
        2 DOMAIN "domain";
        /// The whole NVM subsystem.
        3 SUBSYSTEM "NVM subsystem";
    }
}

impl Capabilities {
    /// Longest time for RDY to change after EN, in milliseconds. A TO of 0 still means one unit.
    pub const fn timeout_ms(self) -> u32 {
        let units = if self.to() == 0 { 1 } else { self.to() as u32 };
        units * 500
    }

    /// Distance of two doorbells in bytes.
    pub const fn doorbell_stride_bytes(self) -> u32 {
        4 << self.dstrd()
    }

    /// Smallest memory page in bytes.
    pub const fn page_size_min_bytes(self) -> u64 {
        4096 << self.mpsmin()
    }

    /// Largest memory page in bytes.
    pub const fn page_size_max_bytes(self) -> u64 {
        4096 << self.mpsmax()
    }
}

bits! {
    /// VS, Version of the specification that the controller follows. NVM Express Base Specification, "Offset 8h: VS".
    pub struct Version(u32 as U32) {
        /// Third number.
        0:8 tertiary: u8 = COUNT, "Tertiary Version";
        /// Second number.
        8:8 minor: u8 = COUNT, "Minor Version";
        /// First number.
        16:16 major: u16 = COUNT, "Major Version";
    }
}

impl ::core::fmt::Display for Version {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        write!(f, "{}.{}", self.major(), self.minor())?;
        if self.tertiary() != 0 { write!(f, ".{}", self.tertiary()) } else { Ok(()) }
    }
}

bits! {
    /// CC, Controller Configuration. NVM Express Base Specification, "Offset 14h: CC".
    pub struct Configuration(u32 as U32) {
        /// The controller runs.
        0:1 en: bool = FLAG, "Enable";
        /// Reserved.
        1:3 __: u8 = RESERVED, "Reserved";
        /// The I/O command set selected.
        4:3 css: CommandSetSelected = choice(CommandSetSelected::MEANINGS), "I/O Command Set Selected";
        /// Memory page of the host, 2^(12 + MPS) bytes.
        7:4 mps: u8 = power_of_two(4096, "bytes"), "Memory Page Size";
        /// How the controller picks the next submission queue.
        11:3 ams: Arbitration = choice(Arbitration::MEANINGS), "Arbitration Mechanism Selected";
        /// The kind of shutdown that is asked for.
        14:2 shn: ShutdownNotification = choice(ShutdownNotification::MEANINGS), "Shutdown Notification";
        /// Size of a submission queue entry, 2^IOSQES bytes.
        16:4 iosqes: u8 = power_of_two(1, "bytes"), "I/O Submission Queue Entry Size";
        /// Size of a completion queue entry, 2^IOCQES bytes.
        20:4 iocqes: u8 = power_of_two(1, "bytes"), "I/O Completion Queue Entry Size";
        /// The controller may be ready independent of media.
        24:1 crime: bool = FLAG, "Controller Ready Independent of Media Enable";
        /// Reserved.
        25:7 __: u8 = RESERVED, "Reserved";
    }
}

codes! {
    /// CC.CSS: which I/O command sets the host uses.
    pub struct CommandSetSelected(u8, 3) {
        /// The NVM command set.
        0 NVM "NVM command set";
        /// All command sets that the controller offers.
        6 ALL "all supported I/O command sets";
        /// None: admin commands only.
        7 ADMIN_ONLY "admin commands only";
    }
}

codes! {
    /// CC.AMS: how the controller picks the next submission queue.
    pub struct Arbitration(u8, 3) {
        /// Round robin.
        0 ROUND_ROBIN "round robin";
        /// Weighted round robin with urgent priority class.
        1 WEIGHTED_ROUND_ROBIN "weighted round robin with urgent priority class";
        /// The vendor's own.
        7 VENDOR "vendor specific";
    }
}

codes! {
    /// CC.SHN: the kind of shutdown that the host asks for.
    pub struct ShutdownNotification(u8, 2) {
        /// None.
        0 NONE "none";
        /// In good order: the drive saves what it must.
        1 NORMAL "normal";
        /// At once, power is about to go.
        2 ABRUPT "abrupt";
    }
}

bits! {
    /// CSTS, Controller Status. NVM Express Base Specification, "Offset 1Ch: CSTS".
    pub struct ControllerStatus(u32 as U32) {
        /// The controller takes commands.
        0:1 rdy: bool = FLAG, "Ready";
        /// The controller met a fatal error and needs a reset.
        1:1 cfs: bool = FLAG, "Controller Fatal Status";
        /// How far a shutdown has come.
        2:2 shst: ShutdownStatus = choice(ShutdownStatus::MEANINGS), "Shutdown Status";
        /// A subsystem reset happened while the controller was enabled. Cleared by writing one.
        4:1 nssro: bool = FLAG, "NVM Subsystem Reset Occurred";
        /// The controller does not process commands for now.
        5:1 pp: bool = FLAG, "Processing Paused";
        /// The shutdown status is of the whole subsystem, not of the controller.
        6:1 st: bool = FLAG, "Shutdown Type";
        /// Reserved.
        7:25 __: u32 = RESERVED, "Reserved";
    }
}

codes! {
    /// CSTS.SHST: how far a shutdown has come.
    pub struct ShutdownStatus(u8, 2) {
        /// Normal operation, no shutdown asked for.
        0 NORMAL "normal operation";
        /// In progress.
        1 OCCURRING "shutdown in progress";
        /// Done.
        2 COMPLETE "shutdown complete";
    }
}

bits! {
    /// AQA, Admin Queue Attributes. NVM Express Base Specification, "Offset 24h: AQA".
    pub struct AdminQueueAttributes(u32 as U32) {
        /// Entries of the admin submission queue (0's based), at most 4096. Twelve bits.
        0:12 asqs: ZeroBasedU16 = ZERO_BASED, "Admin Submission Queue Size";
        /// Reserved.
        12:4 __: u8 = RESERVED, "Reserved";
        /// Entries of the admin completion queue (0's based), at most 4096. Twelve bits.
        16:12 acqs: ZeroBasedU16 = ZERO_BASED, "Admin Completion Queue Size";
        /// Reserved.
        28:4 __: u8 = RESERVED, "Reserved";
    }
}

bits! {
    /// CRTO, Controller Ready Timeouts. NVM Express Base Specification, "Offset 68h: CRTO".
    pub struct ReadyTimeouts(u32 as U32) {
        /// Longest time until ready with media, in units of 500 ms.
        0:16 crwmt: u16 = amount(500, "ms"), "Controller Ready With Media Timeout";
        /// Longest time until ready independent of media, in units of 500 ms.
        16:16 crimt: u16 = amount(500, "ms"), "Controller Ready Independent of Media Timeout";
    }
}

bits! {
    /// CMBLOC, Controller Memory Buffer Location. NVM Express Base Specification, "Offset 38h: CMBLOC".
    pub struct CmbLocation(u32 as U32) {
        /// Base Indicator Register: which BAR holds the buffer.
        0:3 bir: u8 = COUNT, "Base Indicator Register";
        /// Queues may lie partly in the buffer.
        3:1 cqmms: bool = FLAG, "Queue Mixed Memory Support";
        /// Queues in the buffer need not be contiguous.
        4:1 cqpds: bool = FLAG, "Queue Physically Discontiguous Support";
        /// Data pointer and data may lie in different memories.
        5:1 cdpmls: bool = FLAG, "Data Pointer Mixed Locations Support";
        /// Data pointer and command may lie in different memories.
        6:1 cdpcils: bool = FLAG, "Data Pointer and Command Independent Locations Support";
        /// Data and metadata may lie in different memories.
        7:1 cdmmms: bool = FLAG, "Data Metadata Mixed Memory Support";
        /// Queues in the buffer need not be aligned to dwords.
        8:1 cqda: bool = FLAG, "Queue Dword Alignment";
        /// Reserved.
        9:3 __: u8 = RESERVED, "Reserved";
        /// Where the buffer begins, in the units of CMBSZ.SZU.
        12:20 ofst: u32 = HEX, "Offset";
    }
}

bits! {
    /// CMBSZ, Controller Memory Buffer Size. NVM Express Base Specification, "Offset 3Ch: CMBSZ".
    pub struct CmbSize(u32 as U32) {
        /// Submission queues may lie in the buffer.
        0:1 sqs: bool = FLAG, "Submission Queue Support";
        /// Completion queues may lie in the buffer.
        1:1 cqs: bool = FLAG, "Completion Queue Support";
        /// PRP and SGL lists may lie in the buffer.
        2:1 lists: bool = FLAG, "PRP SGL List Support";
        /// Data of commands that transfer from the controller may lie in the buffer.
        3:1 rds: bool = FLAG, "Read Data Support";
        /// Data of commands that transfer to the controller may lie in the buffer.
        4:1 wds: bool = FLAG, "Write Data Support";
        /// Reserved.
        5:3 __: u8 = RESERVED, "Reserved";
        /// Unit of size and offset: 4 KiB times 16^SZU.
        8:4 szu: u8 = HEX, "Size Units";
        /// Size of the buffer in units of SZU.
        12:20 sz: u32 = COUNT, "Size";
    }
}

impl CmbSize {
    /// What one unit of size or offset is worth in bytes, or `None` for a reserved unit (7h and above).
    pub const fn unit_bytes(self) -> Option<u64> {
        if self.szu() > 6 { None } else { Some(4096 << (4 * self.szu())) }
    }

    /// Size of the buffer in bytes, or `None` for a reserved unit.
    pub const fn size_bytes(self) -> Option<u64> {
        match self.unit_bytes() {
            Some(unit) => Some(unit * self.sz() as u64),
            None => None,
        }
    }
}
