//! The registers by which a controller is brought up, watched and shut down.
#![forbid(unsafe_code)]

use crate::number::ZeroBasedU16;
use crate::{bits, codes};

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
        write!(f, "{}.{}.{}", self.major(), self.minor(), self.tertiary())
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
        /// The controller does not process commands at the moment.
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
    /// ASQ and ACQ, base address of the admin queues. NVM Express Base Specification, "Offset 28h: ASQ".
    pub struct QueueBase(u64 as U64) {
        /// Reserved: the address is that of a page of 4 KiB.
        0:12 __: u16 = RESERVED, "Reserved";
        /// The address without its lowest 12 bits.
        12:52 page: u64 = HEX, "Queue Base";
    }
}

impl QueueBase {
    /// The address.
    pub const fn address(self) -> u64 {
        self.page() << 12
    }
}
