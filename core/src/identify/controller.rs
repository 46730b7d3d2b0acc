//! Identify Controller: who the controller is and what it can do.
#![forbid(unsafe_code)]

use super::power::PowerState;
use crate::register::Version;
use crate::{bits, structure};
use zerocopy::little_endian::{U16, U32, U128};

bits! {
    /// OACS, Optional Admin Command Support.
    pub struct Oacs(u16 as U16) {
        /// Security Send and Security Receive.
        0:1 security: bool = FLAG, "Security Send and Receive";
        /// Format NVM.
        1:1 format_nvm: bool = FLAG, "Format NVM";
        /// Firmware Commit and Firmware Image Download.
        2:1 firmware: bool = FLAG, "Firmware Commit and Download";
        /// Namespace Management and Attachment.
        3:1 namespace_management: bool = FLAG, "Namespace Management and Attachment";
        /// Device Self-test.
        4:1 self_test: bool = FLAG, "Device Self-test";
        /// Directives.
        5:1 directives: bool = FLAG, "Directives";
        /// NVMe-MI Send and Receive.
        6:1 mi: bool = FLAG, "NVMe-MI Send and Receive";
        /// Virtualization Management.
        7:1 virtualization: bool = FLAG, "Virtualization Management";
        /// Doorbell Buffer Config.
        8:1 doorbell_buffer: bool = FLAG, "Doorbell Buffer Config";
        /// Get LBA Status.
        9:1 get_lba_status: bool = FLAG, "Get LBA Status";
        /// Command and feature lockdown.
        10:1 lockdown: bool = FLAG, "Command and Feature Lockdown";
        /// Host managed live migration.
        11:1 live_migration: bool = FLAG, "Host Managed Live Migration";
        /// Reserved.
        12:4 __: u8 = RESERVED, "Reserved";
    }
}

bits! {
    /// FRMW, Firmware Updates.
    pub struct Frmw(u8 as u8) {
        /// Slot 1 is read only.
        0:1 slot_1_read_only: bool = FLAG, "First Firmware Slot Read Only";
        /// Number of slots, 1 to 7.
        1:3 slots: u8 = COUNT.zero("not reported"), "Number of Firmware Slots";
        /// New firmware is activated without a reset.
        4:1 activate_without_reset: bool = FLAG, "Firmware Activation Without Reset";
        /// Overlapping ranges in a firmware image are found.
        5:1 overlap_detection: bool = FLAG, "Support Multiple Update Detection";
        /// Reserved.
        6:2 __: u8 = RESERVED, "Reserved";
    }
}

bits! {
    /// LPA, Log Page Attributes.
    pub struct Lpa(u8 as u8) {
        /// The SMART log is kept for each namespace.
        0:1 smart_per_namespace: bool = FLAG, "SMART per Namespace";
        /// Commands Supported and Effects log.
        1:1 effects: bool = FLAG, "Commands Supported and Effects Log";
        /// Get Log Page takes a 32-bit length and an offset.
        2:1 extended_data: bool = FLAG, "Extended Data for Get Log Page";
        /// Telemetry logs.
        3:1 telemetry: bool = FLAG, "Telemetry Logs";
        /// Persistent event log.
        4:1 persistent_event: bool = FLAG, "Persistent Event Log";
        /// Supported log pages and feature identifier effects logs.
        5:1 supported_pages: bool = FLAG, "Supported Log Pages Log";
        /// Telemetry data area 4.
        6:1 telemetry_area_4: bool = FLAG, "Telemetry Data Area 4";
        /// Reserved.
        7:1 __: u8 = RESERVED, "Reserved";
    }
}

bits! {
    /// ONCS, Optional NVM Command Support.
    pub struct Oncs(u16 as U16) {
        /// Compare.
        0:1 compare: bool = FLAG, "Compare";
        /// Write Uncorrectable.
        1:1 write_uncorrectable: bool = FLAG, "Write Uncorrectable";
        /// Dataset Management.
        2:1 dataset_management: bool = FLAG, "Dataset Management";
        /// Write Zeroes.
        3:1 write_zeroes: bool = FLAG, "Write Zeroes";
        /// Save and Select in Set and Get Features.
        4:1 save_select: bool = FLAG, "Save and Select Features";
        /// Reservations.
        5:1 reservations: bool = FLAG, "Reservations";
        /// The Timestamp feature.
        6:1 timestamp: bool = FLAG, "Timestamp";
        /// Verify.
        7:1 verify: bool = FLAG, "Verify";
        /// Copy.
        8:1 copy: bool = FLAG, "Copy";
        /// Reserved.
        9:7 __: u8 = RESERVED, "Reserved";
    }
}

bits! {
    /// VWC, Volatile Write Cache.
    pub struct VolatileWriteCache(u8 as u8) {
        /// There is a volatile write cache.
        0:1 present: bool = FLAG, "Volatile Write Cache Present";
        /// How Flush treats the namespace FFFFFFFFh.
        1:2 flush_all: u8 = HEX, "Flush Behavior";
        /// Reserved.
        3:5 __: u8 = RESERVED, "Reserved";
    }
}

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
        73 ieee: [u8; 3] = DIGITS, "IEEE OUI Identifier";
        /// Sharing and paths.
        76 cmic: u8 = HEX, "Controller Multi-Path I/O and Namespace Sharing Capabilities";
        /// Largest transfer, 2^MDTS pages of CAP.MPSMIN; 0 for no limit.
        77 mdts: u8 = power_of_two(1, "pages").zero("no limit"), "Maximum Data Transfer Size";
        /// The controller in the subsystem.
        78 cntlid: U16 = HEX, "Controller ID";
        /// The version of the specification.
        80 ver: Version = bits(Version::PARTS), "Version";
        /// Resume from D3 in microseconds.
        84 rtd3r: U32 = amount(1, "us").zero("not reported"), "RTD3 Resume Latency";
        /// Entry to D3 in microseconds.
        88 rtd3e: U32 = amount(1, "us").zero("not reported"), "RTD3 Entry Latency";
        /// Asynchronous events.
        92 oaes: U32 = HEX, "Optional Asynchronous Events Supported";
        /// Attributes.
        96 ctratt: U32 = HEX, "Controller Attributes";
        /// Read recovery levels.
        100 rrls: U16 = HEX, "Read Recovery Levels Supported";
        /// Boot partitions.
        102 bpcap: u8 = HEX, "Boot Partition Capabilities";
        /// Reserved.
        103 reserved_103: u8 = RESERVED, "Reserved";
        /// Subsystem shutdown in microseconds.
        104 nssl: U32 = amount(1, "us").zero("not reported"), "NVM Subsystem Shutdown Latency";
        /// Reserved.
        108 reserved_108: [u8; 2] = RESERVED, "Reserved";
        /// Power loss signaling.
        110 plsi: u8 = HEX, "Power Loss Signaling Information";
        /// Kind of controller.
        111 cntrltype: u8 = COUNT.zero("not reported"), "Controller Type";
        /// Globally unique.
        112 fguid: [u8; 16] = DIGITS.zero("not reported"), "FRU Globally Unique Identifier";
        /// Delay before a retry, in units of 100 ms.
        128 crdt1: U16 = amount(100, "ms"), "Command Retry Delay Time 1";
        /// Delay before a retry, in units of 100 ms.
        130 crdt2: U16 = amount(100, "ms"), "Command Retry Delay Time 2";
        /// Delay before a retry, in units of 100 ms.
        132 crdt3: U16 = amount(100, "ms"), "Command Retry Delay Time 3";
        /// Reachability.
        134 crcap: u8 = HEX, "Controller Reachability Capabilities";
        /// Reserved.
        135 reserved_135: [u8; 118] = RESERVED, "Reserved";
        /// Where the subsystem sits.
        253 nvmsr: u8 = HEX, "NVM Subsystem Report";
        /// VPD writes that remain.
        254 vwci: u8 = HEX, "VPD Write Cycle Information";
        /// Management endpoints.
        255 mec: u8 = HEX, "Management Endpoint Capabilities";
        /// Optional admin commands.
        256 oacs: Oacs = bits(Oacs::PARTS), "Optional Admin Command Support";
        /// Aborts at a time, 0's based.
        258 acl: u8 = ZERO_BASED, "Abort Command Limit";
        /// Asynchronous event requests at a time, 0's based.
        259 aerl: u8 = ZERO_BASED, "Asynchronous Event Request Limit";
        /// Firmware slots.
        260 frmw: Frmw = bits(Frmw::PARTS), "Firmware Updates";
        /// Log pages.
        261 lpa: Lpa = bits(Lpa::PARTS), "Log Page Attributes";
        /// Entries of the error log, 0's based.
        262 elpe: u8 = ZERO_BASED, "Error Log Page Entries";
        /// Power states, 0's based.
        263 npss: u8 = ZERO_BASED, "Number of Power States Support";
        /// Format of vendor specific admin commands.
        264 avscc: u8 = HEX, "Admin Vendor Specific Command Configuration";
        /// Autonomous power state transitions.
        265 apsta: u8 = HEX, "Autonomous Power State Transition Attributes";
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
        312 rpmbs: U32 = HEX, "Replay Protected Memory Block Support";
        /// Time of an extended self-test in minutes.
        316 edstt: U16 = amount(1, "min"), "Extended Device Self-test Time";
        /// Self-test options.
        318 dsto: u8 = HEX, "Device Self-test Options";
        /// Granularity of firmware download, in units of 4 KiB.
        319 fwug: u8 = amount(4096, "bytes").zero("not reported").ones("no restriction"), "Firmware Update Granularity";
        /// Granularity of keep alive, in units of 100 ms.
        320 kas: U16 = amount(100, "ms").zero("not supported"), "Keep Alive Support";
        /// Host controlled thermal management.
        322 hctma: U16 = HEX, "Host Controlled Thermal Management Attributes";
        /// Lowest temperature that the host may ask for.
        324 mntmt: U16 = KELVIN, "Minimum Thermal Management Temperature";
        /// Highest temperature that the host may ask for.
        326 mxtmt: U16 = KELVIN, "Maximum Thermal Management Temperature";
        /// Sanitize.
        328 sanicap: U32 = HEX, "Sanitize Capabilities";
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
        343 anacap: u8 = HEX, "Asymmetric Namespace Access Capabilities";
        /// Largest ANA group.
        344 anagrpmax: U32 = COUNT, "ANA Group Identifier Maximum";
        /// ANA groups.
        348 nanagrpid: U32 = COUNT, "Number of ANA Group Identifiers";
        /// Largest persistent event log, in units of 64 KiB.
        352 pels: U32 = amount(65536, "bytes"), "Persistent Event Log Size";
        /// The domain of the controller.
        356 domainid: U16 = COUNT, "Domain Identifier";
        /// Key per I/O.
        358 kpioc: u8 = HEX, "Key Per I/O Capabilities";
        /// Reserved.
        359 reserved_359: u8 = RESERVED, "Reserved";
        /// Longest firmware activation without reset, in units of 100 ms.
        360 mptfawr: U16 = amount(100, "ms"), "Maximum Processing Time for Firmware Activation Without Reset";
        /// Reserved.
        362 reserved_362: [u8; 6] = RESERVED, "Reserved";
        /// Largest endurance group in bytes.
        368 megcap: U128 = amount(1, "bytes").zero("not reported"), "Max Endurance Group Capacity";
        /// Temperature threshold hysteresis.
        384 tmpthha: u8 = HEX, "Temperature Threshold Hysteresis Attributes";
        /// Reserved.
        385 reserved_385: u8 = RESERVED, "Reserved";
        /// Time for commands to be quiet after communication is lost, in milliseconds.
        386 cqt: U16 = amount(1, "ms").zero("not reported"), "Command Quiesce Time";
        /// Reserved.
        388 reserved_388: [u8; 124] = RESERVED, "Reserved";
        /// Submission queue entry size: required (bits 3:0) and maximum (bits 7:4), 2^n bytes.
        512 sqes: u8 = HEX, "Submission Queue Entry Size";
        /// Completion queue entry size: required (bits 3:0) and maximum (bits 7:4), 2^n bytes.
        513 cqes: u8 = HEX, "Completion Queue Entry Size";
        /// Commands that the controller processes at a time on one queue.
        514 maxcmd: U16 = COUNT.zero("not reported"), "Maximum Outstanding Commands";
        /// Largest namespace identifier.
        516 nn: U32 = COUNT, "Number of Namespaces";
        /// Optional I/O commands.
        520 oncs: Oncs = bits(Oncs::PARTS), "Optional NVM Command Support";
        /// Fused operations.
        522 fuses: U16 = HEX, "Fused Operation Support";
        /// What Format NVM touches.
        524 fna: u8 = HEX, "Format NVM Attributes";
        /// Volatile write cache.
        525 vwc: VolatileWriteCache = bits(VolatileWriteCache::PARTS), "Volatile Write Cache";
        /// Blocks written atomically in normal operation, 0's based.
        526 awun: U16 = ZERO_BASED, "Atomic Write Unit Normal";
        /// Blocks written atomically at power fail, 0's based.
        528 awupf: U16 = ZERO_BASED, "Atomic Write Unit Power Fail";
        /// Format of vendor specific I/O commands.
        530 icsvscc: u8 = HEX, "I/O Command Set Vendor Specific Command Configuration";
        /// Namespace write protection.
        531 nwpc: u8 = HEX, "Namespace Write Protection Capabilities";
        /// Blocks compared and written atomically, 0's based.
        532 acwu: U16 = ZERO_BASED, "Atomic Compare and Write Unit";
        /// Copy formats.
        534 cdfs: U16 = HEX, "Copy Descriptor Formats Supported";
        /// Scatter gather lists.
        536 sgls: U32 = HEX, "SGL Support";
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
        576 trattr: u8 = HEX, "Tracking Attributes";
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
        1802 fcatt: u8 = HEX, "Fabrics Controller Attributes";
        /// Fabrics: most data blocks in an SGL.
        1803 msdbd: u8 = COUNT, "Maximum SGL Data Block Descriptors";
        /// Fabrics: optional commands.
        1804 ofcs: U16 = HEX, "Optional Fabrics Commands Support";
        /// Discovery controller type.
        1806 dctype: u8 = COUNT, "Discovery Controller Type";
        /// Reserved.
        1807 reserved_1807: [u8; 241] = RESERVED, "Reserved";
        /// The power states.
        2048 psd: [PowerState; 32] = nested(&PowerState::DESCRIPTOR), "Power State Descriptor";
        /// The vendor's own.
        3072 vendor: [u8; 1024] = BYTES, "Vendor Specific";
    }
}
