//! Identify Controller: who the controller is and what it can do.
#![forbid(unsafe_code)]

use super::controller_bits::{
    Anacap, Apsta, Bpcap, Cdfs, Cmic, ControllerType, Crcap, Ctratt, Dsto, EntrySize, Fcatt, Fna, Frmw, Fuses, Hctma,
    Kpioc, Lpa, Mec, Nvmsr, Nwpc, Oacs, Oaes, Ofcs, Oncs, Plsi, Rpmbs, Rrls, Sanicap, Sgls, Tmpthha, Trattr,
    VendorCommands, Vwc, Vwci,
};
use super::power::PowerState;
use crate::number::{ZeroBasedLe16, ZeroBasedU8};
use crate::register::Version;
use crate::structure;
use zerocopy::little_endian::{U16, U32, U64, U128};

structure! {
    /// Identify Controller, CNS 01h. NVM Express Base Specification, "Identify Controller Data Structure".
    pub struct Controller: 4096, "ctrl" {
        /// PCI vendor.
        0 vid: U16 = HEX, "PCI Vendor ID";
        /// PCI subsystem vendor.
        2 ssvid: U16 = HEX, "PCI Subsystem Vendor ID";
        /// Serial number.
        4 sn: [u8; 20] = TEXT, "Serial Number";
        /// Model number.
        24 mn: [u8; 40] = TEXT, "Model Number";
        /// Firmware revision.
        64 fr: [u8; 8] = TEXT, "Firmware Revision";
        /// Commands to submit at a time for the best arbitration, 2^RAB.
        72 rab: u8 = power_of_two(1, "commands"), "Recommended Arbitration Burst";
        /// The vendor's OUI, least significant byte first.
        73 ieee: [u8; 3] = OUI, "IEEE OUI Identifier";
        /// Sharing and paths.
        76 cmic: Cmic = bits(Cmic::PARTS), "Controller Multi-Path I/O and Namespace Sharing Capabilities";
        /// Largest transfer, 2^MDTS pages of CAP.MPSMIN; 0 for no limit.
        77 mdts: u8 = power_of_two(1, "pages").zero("no limit"), "Maximum Data Transfer Size";
        /// The controller in the subsystem.
        78 cntlid: U16 = HEX, "Controller ID";
        /// The version of the specification.
        80 ver: Version = VERSION.zero("older than 1.2"), "Version";
        /// Resume from D3 in microseconds.
        84 rtd3r: U32 = amount(1, "us").zero("not reported"), "RTD3 Resume Latency";
        /// Entry to D3 in microseconds.
        88 rtd3e: U32 = amount(1, "us").zero("not reported"), "RTD3 Entry Latency";
        /// Asynchronous events.
        92 oaes: Oaes = bits(Oaes::PARTS), "Optional Asynchronous Events Supported";
        /// Attributes.
        96 ctratt: Ctratt = bits(Ctratt::PARTS), "Controller Attributes";
        /// Read recovery levels.
        100 rrls: Rrls = bits(Rrls::PARTS), "Read Recovery Levels Supported";
        /// Boot partitions.
        102 bpcap: Bpcap = bits(Bpcap::PARTS), "Boot Partition Capabilities";
        /// Reserved.
        103 reserved_103: u8 = RESERVED, "Reserved";
        /// Subsystem shutdown in microseconds.
        104 nssl: U32 = amount(1, "us").zero("not reported"), "NVM Subsystem Shutdown Latency";
        /// Reserved.
        108 reserved_108: [u8; 2] = RESERVED, "Reserved";
        /// Power loss signaling.
        110 plsi: Plsi = bits(Plsi::PARTS), "Power Loss Signaling Information";
        /// Kind of controller.
        111 cntrltype: ControllerType = choice(ControllerType::MEANINGS), "Controller Type";
        /// Globally unique.
        112 fguid: [u8; 16] = DIGITS.zero("not reported"), "FRU Globally Unique Identifier";
        /// Delay before a retry, in units of 100 ms.
        128 crdt1: U16 = amount(100, "ms"), "Command Retry Delay Time 1";
        /// Delay before a retry, in units of 100 ms.
        130 crdt2: U16 = amount(100, "ms"), "Command Retry Delay Time 2";
        /// Delay before a retry, in units of 100 ms.
        132 crdt3: U16 = amount(100, "ms"), "Command Retry Delay Time 3";
        /// Reachability.
        134 crcap: Crcap = bits(Crcap::PARTS), "Controller Reachability Capabilities";
        /// Uniquifier that tells instances of the controller apart.
        135 ciu: u8 = HEX, "Controller Instance Uniquifier";
        /// Random number of this instance of the controller.
        136 cirn: U64 = HEX, "Controller Instance Random Number";
        /// Reserved.
        144 reserved_144: [u8; 96] = RESERVED, "Reserved";
        /// Reserved for the NVMe Management Interface.
        240 reserved_240: [u8; 13] = RESERVED, "Reserved";
        /// Where the subsystem sits.
        253 nvmsr: Nvmsr = bits(Nvmsr::PARTS), "NVM Subsystem Report";
        /// VPD writes that remain.
        254 vwci: Vwci = bits(Vwci::PARTS), "VPD Write Cycle Information";
        /// Management endpoints.
        255 mec: Mec = bits(Mec::PARTS), "Management Endpoint Capabilities";
        /// Optional admin commands.
        256 oacs: Oacs = bits(Oacs::PARTS), "Optional Admin Command Support";
        /// Aborts at a time, 0's based.
        258 acl: ZeroBasedU8 = ZERO_BASED, "Abort Command Limit";
        /// Asynchronous event requests at a time, 0's based.
        259 aerl: ZeroBasedU8 = ZERO_BASED, "Asynchronous Event Request Limit";
        /// Firmware slots.
        260 frmw: Frmw = bits(Frmw::PARTS), "Firmware Updates";
        /// Log pages.
        261 lpa: Lpa = bits(Lpa::PARTS), "Log Page Attributes";
        /// Entries of the error log, 0's based.
        262 elpe: ZeroBasedU8 = ZERO_BASED, "Error Log Page Entries";
        /// Power states, 0's based.
        263 npss: ZeroBasedU8 = ZERO_BASED, "Number of Power States Support";
        /// Format of vendor specific admin commands.
        264 avscc: VendorCommands = bits(VendorCommands::PARTS), "Admin Vendor Specific Command Configuration";
        /// Autonomous power state transitions.
        265 apsta: Apsta = bits(Apsta::PARTS), "Autonomous Power State Transition Attributes";
        /// Over this temperature the drive warns.
        266 wctemp: U16 = KELVIN, "Warning Composite Temperature Threshold";
        /// Over this temperature the drive may stop or shut down.
        268 cctemp: U16 = KELVIN, "Critical Composite Temperature Threshold";
        /// Longest firmware activation, in units of 100 ms.
        270 mtfa: U16 = amount(100, "ms").zero("not reported"), "Maximum Time for Firmware Activation";
        /// Host memory that the drive would like, in units of 4 KiB.
        272 hmpre: U32 = amount(4096, "bytes"), "Host Memory Buffer Preferred Size";
        /// Host memory that the drive needs at least, in units of 4 KiB.
        276 hmmin: U32 = amount(4096, "bytes"), "Host Memory Buffer Minimum Size";
        /// Total capacity in bytes.
        280 tnvmcap: U128 = amount(1, "bytes").zero("not reported"), "Total NVM Capacity";
        /// Capacity that no namespace has taken.
        296 unvmcap: U128 = amount(1, "bytes"), "Unallocated NVM Capacity";
        /// Replay protected memory.
        312 rpmbs: Rpmbs = bits(Rpmbs::PARTS), "Replay Protected Memory Block Support";
        /// Time of an extended self-test in minutes.
        316 edstt: U16 = amount(1, "min"), "Extended Device Self-test Time";
        /// Self-test options.
        318 dsto: Dsto = bits(Dsto::PARTS), "Device Self-test Options";
        /// Granularity of firmware download, in units of 4 KiB.
        319 fwug: u8 = amount(4096, "bytes").zero("not reported").ones("no restriction"), "Firmware Update Granularity";
        /// Granularity of keep alive, in units of 100 ms.
        320 kas: U16 = amount(100, "ms").zero("not supported"), "Keep Alive Support";
        /// Host controlled thermal management.
        322 hctma: Hctma = bits(Hctma::PARTS), "Host Controlled Thermal Management Attributes";
        /// Lowest temperature that the host may ask for.
        324 mntmt: U16 = KELVIN, "Minimum Thermal Management Temperature";
        /// Highest temperature that the host may ask for.
        326 mxtmt: U16 = KELVIN, "Maximum Thermal Management Temperature";
        /// Sanitize.
        328 sanicap: Sanicap = bits(Sanicap::PARTS), "Sanitize Capabilities";
        /// Smallest descriptor of the host memory buffer, in units of 4 KiB.
        332 hmminds: U32 = amount(4096, "bytes"), "Host Memory Buffer Minimum Descriptor Entry Size";
        /// Most descriptors of the host memory buffer.
        336 hmmaxd: U16 = COUNT.zero("no limit"), "Host Memory Maximum Descriptors Entries";
        /// Largest NVM set.
        338 nsetidmax: U16 = COUNT, "NVM Set Identifier Maximum";
        /// Largest endurance group.
        340 endgidmax: U16 = COUNT, "Endurance Group Identifier Maximum";
        /// Longest ANA transition in seconds.
        342 anatt: u8 = amount(1, "s"), "ANA Transition Time";
        /// Asymmetric namespace access.
        343 anacap: Anacap = bits(Anacap::PARTS), "Asymmetric Namespace Access Capabilities";
        /// Largest ANA group.
        344 anagrpmax: U32 = COUNT, "ANA Group Identifier Maximum";
        /// ANA groups.
        348 nanagrpid: U32 = COUNT, "Number of ANA Group Identifiers";
        /// Largest persistent event log, in units of 64 KiB.
        352 pels: U32 = amount(65536, "bytes"), "Persistent Event Log Size";
        /// The domain of the controller.
        356 domainid: U16 = COUNT, "Domain Identifier";
        /// Key per I/O.
        358 kpioc: Kpioc = bits(Kpioc::PARTS), "Key Per I/O Capabilities";
        /// Reserved.
        359 reserved_359: u8 = RESERVED, "Reserved";
        /// Longest firmware activation without reset, in units of 100 ms.
        360 mptfawr: U16 = amount(100, "ms"), "Maximum Processing Time for Firmware Activation Without Reset";
        /// Reserved.
        362 reserved_362: [u8; 6] = RESERVED, "Reserved";
        /// Largest endurance group in bytes.
        368 megcap: U128 = amount(1, "bytes").zero("not reported"), "Max Endurance Group Capacity";
        /// Temperature threshold hysteresis.
        384 tmpthha: Tmpthha = bits(Tmpthha::PARTS), "Temperature Threshold Hysteresis Attributes";
        /// Reserved.
        385 reserved_385: u8 = RESERVED, "Reserved";
        /// Time for commands to be quiet after communication is lost, in milliseconds.
        386 cqt: U16 = amount(1, "ms").zero("not reported"), "Command Quiesce Time";
        /// Configurable device personality attributes.
        388 cdpa: U16 = HEX, "Configurable Device Personality Attributes";
        /// Largest unlimited power of the subsystem, in the unit that the power limit uses.
        390 mup: U16 = COUNT.zero("not reported"), "Maximum Unlimited Power";
        /// How often interval power is sampled: value (bits 7:0) and scale (bits 15:8).
        392 ipmsr: U16 = HEX, "Interval Power Measurement Sample Rate";
        /// Longest time of a measurement that stops by itself.
        394 msmt: U16 = COUNT.zero("no limit"), "Maximum Stop Measurement Time";
        /// Reserved.
        396 reserved_396: [u8; 116] = RESERVED, "Reserved";
        /// Submission queue entry size: required (bits 3:0) and maximum (bits 7:4), 2^n bytes.
        512 sqes: EntrySize = bits(EntrySize::PARTS), "Submission Queue Entry Size";
        /// Completion queue entry size: required (bits 3:0) and maximum (bits 7:4), 2^n bytes.
        513 cqes: EntrySize = bits(EntrySize::PARTS), "Completion Queue Entry Size";
        /// Commands that the controller processes at a time on one queue.
        514 maxcmd: U16 = COUNT.zero("not reported"), "Maximum Outstanding Commands";
        /// Largest namespace identifier.
        516 nn: U32 = COUNT, "Number of Namespaces";
        /// Optional I/O commands.
        520 oncs: Oncs = bits(Oncs::PARTS), "Optional NVM Command Support";
        /// Fused operations.
        522 fuses: Fuses = bits(Fuses::PARTS), "Fused Operation Support";
        /// What Format NVM touches.
        524 fna: Fna = bits(Fna::PARTS), "Format NVM Attributes";
        /// Volatile write cache.
        525 vwc: Vwc = bits(Vwc::PARTS), "Volatile Write Cache";
        /// Blocks written atomically in normal operation, 0's based.
        526 awun: ZeroBasedLe16 = ZERO_BASED, "Atomic Write Unit Normal";
        /// Blocks written atomically at power fail, 0's based.
        528 awupf: ZeroBasedLe16 = ZERO_BASED, "Atomic Write Unit Power Fail";
        /// Format of vendor specific I/O commands.
        530 icsvscc: VendorCommands = bits(VendorCommands::PARTS), "I/O Command Set Vendor Specific Command Configuration";
        /// Namespace write protection.
        531 nwpc: Nwpc = bits(Nwpc::PARTS), "Namespace Write Protection Capabilities";
        /// Blocks compared and written atomically, 0's based.
        532 acwu: ZeroBasedLe16 = ZERO_BASED, "Atomic Compare and Write Unit";
        /// Copy formats.
        534 cdfs: Cdfs = bits(Cdfs::PARTS), "Copy Descriptor Formats Supported";
        /// Scatter gather lists.
        536 sgls: Sgls = bits(Sgls::PARTS), "SGL Support";
        /// Most namespaces that may be allowed.
        540 mnan: U32 = COUNT, "Maximum Number of Allowed Namespaces";
        /// Most domains and namespaces attached.
        544 maxdna: U128 = COUNT, "Maximum Domain Namespace Attachments";
        /// Most namespaces attached to an I/O controller.
        560 maxcna: U32 = COUNT, "Maximum I/O Controller Namespace Attachments";
        /// Optimal aggregated queue depth.
        564 oaqd: U32 = COUNT.zero("not reported"), "Optimal Aggregated Queue Depth";
        /// Recommended host-initiated refresh interval.
        568 rhiri: u8 = COUNT, "Recommended Host-Initiated Refresh Interval";
        /// Host-initiated refresh time.
        569 hirt: u8 = COUNT, "Host-Initiated Refresh Time";
        /// Controller maximum memory range tracking descriptors.
        570 cmmrtd: U16 = COUNT, "Controller Maximum Memory Range Tracking Descriptors";
        /// Subsystem maximum memory range tracking descriptors.
        572 nmmrtd: U16 = COUNT, "NVM Subsystem Maximum Memory Range Tracking Descriptors";
        /// Smallest memory range tracking granularity.
        574 minmrtg: u8 = COUNT, "Minimum Memory Range Tracking Granularity";
        /// Largest memory range tracking granularity.
        575 maxmrtg: u8 = COUNT, "Maximum Memory Range Tracking Granularity";
        /// Tracking attributes.
        576 trattr: Trattr = bits(Trattr::PARTS), "Tracking Attributes";
        /// Reserved.
        577 reserved_577: u8 = RESERVED, "Reserved";
        /// Maximum controller user data migration queues.
        578 mcudmq: U16 = COUNT, "Maximum Controller User Data Migration Queues";
        /// Maximum subsystem user data migration queues.
        580 mnsudmq: U16 = COUNT, "Maximum NVM Subsystem User Data Migration Queues";
        /// Maximum CDQ memory ranges.
        582 mcmr: U16 = COUNT, "Maximum CDQ Memory Ranges";
        /// Maximum CDQ memory ranges of the subsystem.
        584 nmcmr: U16 = COUNT, "NVM Subsystem Maximum CDQ Memory Ranges";
        /// Maximum controller data queue PRP count.
        586 mcdqpc: U16 = COUNT, "Maximum Controller Data Queue PRP Count";
        /// Reserved.
        588 reserved_588: [u8; 180] = RESERVED, "Reserved";
        /// Qualified name of the subsystem.
        768 subnqn: [u8; 256] = TEXT, "NVM Subsystem NVMe Qualified Name";
        /// Reserved.
        1024 reserved_1024: [u8; 768] = RESERVED, "Reserved";
        /// Fabrics: capsule size of commands, in units of 16 bytes.
        1792 ioccsz: U32 = amount(16, "bytes"), "I/O Queue Command Capsule Supported Size";
        /// Fabrics: capsule size of responses, in units of 16 bytes.
        1796 iorcsz: U32 = amount(16, "bytes"), "I/O Queue Response Capsule Supported Size";
        /// Fabrics: where data begins in a capsule, in units of 16 bytes.
        1800 icdoff: U16 = amount(16, "bytes"), "In Capsule Data Offset";
        /// Fabrics: attributes.
        1802 fcatt: Fcatt = bits(Fcatt::PARTS), "Fabrics Controller Attributes";
        /// Fabrics: most data blocks in an SGL.
        1803 msdbd: u8 = COUNT, "Maximum SGL Data Block Descriptors";
        /// Fabrics: optional commands.
        1804 ofcs: Ofcs = bits(Ofcs::PARTS), "Optional Fabrics Commands Support";
        /// Discovery controller type.
        1806 dctype: u8 = COUNT, "Discovery Controller Type";
        /// Most cross-controller resets at a time.
        1807 ccrl: u8 = COUNT, "Cross-Controller Reset Limit";
        /// Reserved.
        1808 reserved_1808: [u8; 240] = RESERVED, "Reserved";
        /// The power states.
        2048 psd: [PowerState; 32] = nested(&PowerState::DESCRIPTOR), "Power State Descriptor";
        /// The vendor's own.
        3072 vendor: [u8; 1024] = BYTES, "Vendor Specific";
    }
}

impl Controller {
    /// Largest transfer in bytes, for a CAP.MPSMIN as in the register; `None` where the controller has no limit, or none
    /// that a number of 64 bits could hold.
    pub const fn max_transfer_bytes(&self, mpsmin: u8) -> Option<u64> {
        let power = self.mdts as u32 + 12 + (mpsmin & 0xf) as u32;
        if self.mdts == 0 || power > 63 { None } else { Some(1 << power) }
    }

    /// The power states that the controller has, at most 32.
    pub fn power_states(&self) -> &[PowerState] {
        let count = usize::from(self.npss.count()).min(self.psd.len());
        self.psd.get(..count).unwrap_or(&self.psd)
    }
}
