//! The bit fields of Identify Controller, in the order of the structure.
//!
//! Each is named by the specification's abbreviation; its page in the documentation says what that stands for.
#![forbid(unsafe_code)]

use crate::number::ZeroBasedU8;
use crate::{bits, codes};

bits! {
    /// CMIC, Controller Multi-Path I/O and Namespace Sharing Capabilities.
    pub struct Cmic(u8 as u8) {
        /// The subsystem may have more than one port.
        0:1 multi_port: bool = FLAG, "more than one port";
        /// The subsystem may have two or more controllers.
        1:1 multi_controller: bool = FLAG, "more than one controller";
        /// The controller belongs to an SR-IOV virtual function.
        2:1 virtual_function: bool = FLAG, "SR-IOV virtual function";
        /// Asymmetric Namespace Access is reported.
        3:1 ana: bool = FLAG, "asymmetric namespace access reporting";
        /// Reserved.
        4:4 __: u8 = RESERVED, "reserved";
    }
}

bits! {
    /// OAES, Optional Asynchronous Events Supported: which notices the controller can send.
    pub struct Oaes(u32 as U32) {
        /// Reserved.
        0:8 __: u8 = RESERVED, "reserved";
        /// The list of attached namespaces changed.
        8:1 attached_namespace: bool = FLAG, "attached namespace attribute notices";
        /// A firmware activation begins.
        9:1 firmware_activation: bool = FLAG, "firmware activation notices";
        /// Reserved.
        10:1 __: bool = RESERVED, "reserved";
        /// Asymmetric namespace access changed.
        11:1 ana_change: bool = FLAG, "asymmetric namespace access change notices";
        /// An entry came to the predictable latency event aggregate log.
        12:1 predictable_latency: bool = FLAG, "predictable latency event aggregate log change notices";
        /// There may be LBAs that cannot be read.
        13:1 lba_status: bool = FLAG, "LBA status information alert notices";
        /// An entry came to the endurance group event aggregate log.
        14:1 endurance_group: bool = FLAG, "endurance group event aggregate log page change notices";
        /// The NVM subsystem shuts down.
        15:1 subsystem_shutdown: bool = FLAG, "normal NVM subsystem shutdown notices";
        /// A temperature came back from beyond its threshold by the hysteresis.
        16:1 temperature_hysteresis: bool = FLAG, "temperature threshold hysteresis recovery notices";
        /// Reachability groups or associations changed.
        17:1 reachability: bool = FLAG, "reachability groups and associations change notices";
        /// Reserved.
        18:1 __: bool = RESERVED, "reserved";
        /// An allocated namespace changed.
        19:1 allocated_namespace: bool = FLAG, "allocated namespace attribute notices";
        /// A cross-controller reset is complete.
        20:1 cross_controller_reset: bool = FLAG, "cross-controller reset completed notices";
        /// Communication with a host was lost.
        21:1 lost_host: bool = FLAG, "lost host communication notices";
        /// Reserved.
        22:5 __: u8 = RESERVED, "reserved";
        /// A zone descriptor changed.
        27:1 zone_descriptor: bool = FLAG, "zone descriptor changed notices";
        /// Reserved.
        28:3 __: u8 = RESERVED, "reserved";
        /// The discovery log changed.
        31:1 discovery_log: bool = FLAG, "discovery log page change notices";
    }
}

bits! {
    /// CTRATT, Controller Attributes.
    pub struct Ctratt(u32 as U32) {
        /// Host identifiers of 128 bits.
        0:1 host_id_128: bool = FLAG, "128-bit host identifier";
        /// A non-operational state may draw more for background work.
        1:1 non_operational_permissive: bool = FLAG, "non-operational power state permissive mode";
        /// NVM sets.
        2:1 nvm_sets: bool = FLAG, "NVM sets";
        /// Read recovery levels.
        3:1 read_recovery_levels: bool = FLAG, "read recovery levels";
        /// Endurance groups.
        4:1 endurance_groups: bool = FLAG, "endurance groups";
        /// Predictable latency mode.
        5:1 predictable_latency: bool = FLAG, "predictable latency mode";
        /// Any command keeps the association alive.
        6:1 traffic_keep_alive: bool = FLAG, "traffic based keep alive";
        /// Namespace granularity is reported.
        7:1 namespace_granularity: bool = FLAG, "namespace granularity";
        /// Submission queues may be tied to an NVM set.
        8:1 sq_associations: bool = FLAG, "SQ associations";
        /// The UUID list is reported.
        9:1 uuid_list: bool = FLAG, "UUID list";
        /// The subsystem may have more than one domain.
        10:1 multi_domain: bool = FLAG, "multi-domain subsystem";
        /// Fixed capacity management.
        11:1 fixed_capacity: bool = FLAG, "fixed capacity management";
        /// Variable capacity management.
        12:1 variable_capacity: bool = FLAG, "variable capacity management";
        /// Endurance groups can be deleted.
        13:1 delete_endurance_group: bool = FLAG, "delete endurance group";
        /// NVM sets can be deleted.
        14:1 delete_nvm_set: bool = FLAG, "delete NVM set";
        /// Extended LBA formats: wider guards and storage tags.
        15:1 extended_lba_formats: bool = FLAG, "extended LBA formats";
        /// MDTS does not count metadata.
        16:1 mdts_excludes_metadata: bool = FLAG, "MDTS and size limits exclude metadata";
        /// The host memory buffer may be kept away from in non-operational states.
        17:1 hmb_restrict_non_operational: bool = FLAG, "HMB restrict non-operational power state access";
        /// Reservations interact with host identifiers.
        18:1 reservations_and_host_id: bool = FLAG, "reservations and host identifier interaction";
        /// Flexible data placement.
        19:1 flexible_data_placement: bool = FLAG, "flexible data placement";
        /// The host may limit power.
        20:1 power_limit: bool = FLAG, "power limit";
        /// The controller measures power.
        21:1 power_measurement: bool = FLAG, "power measurement";
        /// The controller measures voltage.
        22:1 voltage_measurement: bool = FLAG, "voltage measurement";
        /// Scope of the limit on interval energy or input, as the code says.
        23:2 interval_limit_scope: u8 = HEX, "power limit scope";
        /// Reserved.
        25:7 __: u8 = RESERVED, "reserved";
    }
}

bits! {
    /// RRLS, Read Recovery Levels Supported: bit n is level n.
    pub struct Rrls(u16 as U16) {
        /// Levels 0 to 15.
        0:16 levels: u16 = HEX, "levels";
    }
}

bits! {
    /// BPCAP, Boot Partition Capabilities.
    pub struct Bpcap(u8 as u8) {
        /// Whether the RPMB can protect the boot partitions.
        0:2 rpmb_write_protection: RpmbBootProtection = choice(RpmbBootProtection::MEANINGS), "RPMB boot partition write protection";
        /// Set Features can protect the boot partitions.
        2:1 feature_write_protection: bool = FLAG, "Set Features boot partition write protection";
        /// Reserved.
        3:5 __: u8 = RESERVED, "reserved";
    }
}

codes! {
    /// BPCAP.RPMBBPWPS: whether the RPMB can protect the boot partitions.
    pub struct RpmbBootProtection(u8, 2) {
        /// The controller does not say.
        0 NOT_SPECIFIED "not specified";
        /// It cannot.
        1 NOT_SUPPORTED "not supported";
        /// It can.
        2 SUPPORTED "supported";
    }
}

bits! {
    /// PLSI, Power Loss Signaling Information.
    pub struct Plsi(u8 as u8) {
        /// Emergency power fail.
        0:1 emergency_power_fail: bool = FLAG, "emergency power fail";
        /// Forced quiescence.
        1:1 forced_quiescence: bool = FLAG, "forced quiescence";
        /// Reserved.
        2:6 __: u8 = RESERVED, "reserved";
    }
}

codes! {
    /// CNTRLTYPE: what kind of controller it is.
    pub struct ControllerType(u8, 8) {
        /// Not reported, as before version 1.4.
        0 NOT_REPORTED "not reported";
        /// I/O controller.
        1 IO "I/O controller";
        /// Discovery controller.
        2 DISCOVERY "discovery controller";
        /// Administrative controller.
        3 ADMINISTRATIVE "administrative controller";
    }
}

bits! {
    /// CRCAP, Controller Reachability Capabilities.
    pub struct Crcap(u8 as u8) {
        /// Reachability is reported.
        0:1 reporting: bool = FLAG, "reachability reporting";
        /// A namespace's reachability group can change.
        1:1 group_changes: bool = FLAG, "reachability group ID changeable";
        /// Reserved.
        2:6 __: u8 = RESERVED, "reserved";
    }
}

bits! {
    /// NVMSR, NVM Subsystem Report.
    pub struct Nvmsr(u8 as u8) {
        /// Part of a storage device.
        0:1 storage_device: bool = FLAG, "NVMe storage device";
        /// Part of an enclosure.
        1:1 enclosure: bool = FLAG, "NVMe enclosure";
        /// Reserved.
        2:6 __: u8 = RESERVED, "reserved";
    }
}

bits! {
    /// VWCI, VPD Write Cycle Information.
    pub struct Vwci(u8 as u8) {
        /// Writes of the vital product data that remain; 7Fh means at least so many.
        0:7 remaining: u8 = COUNT, "VPD write cycles remaining";
        /// The number is valid.
        7:1 valid: bool = FLAG, "valid";
    }
}

bits! {
    /// MEC, Management Endpoint Capabilities.
    pub struct Mec(u8 as u8) {
        /// A management endpoint on SMBus or another 2-wire port.
        0:1 two_wire: bool = FLAG, "management endpoint on a 2-wire port";
        /// A management endpoint on PCIe.
        1:1 pcie: bool = FLAG, "management endpoint on a PCIe port";
        /// Reserved.
        2:6 __: u8 = RESERVED, "reserved";
    }
}

bits! {
    /// OACS, Optional Admin Command Support.
    pub struct Oacs(u16 as U16) {
        /// Security Send and Security Receive.
        0:1 security: bool = FLAG, "Security Send and Security Receive";
        /// Format NVM.
        1:1 format_nvm: bool = FLAG, "Format NVM";
        /// Firmware Commit and Firmware Image Download.
        2:1 firmware: bool = FLAG, "Firmware Commit and Firmware Image Download";
        /// Namespace Management and Namespace Attachment.
        3:1 namespace_management: bool = FLAG, "Namespace Management";
        /// Device Self-test.
        4:1 self_test: bool = FLAG, "Device Self-test";
        /// Directives.
        5:1 directives: bool = FLAG, "Directives";
        /// NVMe-MI Send and NVMe-MI Receive.
        6:1 mi: bool = FLAG, "NVMe-MI Send and NVMe-MI Receive";
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
        12:4 __: u8 = RESERVED, "reserved";
    }
}

bits! {
    /// FRMW, Firmware Updates.
    pub struct Frmw(u8 as u8) {
        /// Slot 1 cannot be written.
        0:1 slot_1_read_only: bool = FLAG, "slot 1 read only";
        /// Number of slots, 1 to 7.
        1:3 slots: u8 = COUNT.zero("not reported"), "firmware slots";
        /// New firmware can be activated without a reset.
        4:1 activate_without_reset: bool = FLAG, "activation without reset";
        /// Overlapping pieces of a firmware image are found.
        5:1 overlap_detection: bool = FLAG, "multiple update detection";
        /// Reserved.
        6:2 __: u8 = RESERVED, "reserved";
    }
}

bits! {
    /// LPA, Log Page Attributes.
    pub struct Lpa(u8 as u8) {
        /// The SMART log is kept for each namespace.
        0:1 smart_per_namespace: bool = FLAG, "SMART log per namespace";
        /// Commands Supported and Effects log.
        1:1 effects: bool = FLAG, "commands supported and effects log";
        /// Get Log Page takes a 32-bit length and an offset.
        2:1 extended_data: bool = FLAG, "extended data for Get Log Page";
        /// Telemetry logs and notices.
        3:1 telemetry: bool = FLAG, "telemetry logs";
        /// Persistent event log.
        4:1 persistent_event: bool = FLAG, "persistent event log";
        /// Logs 00h, 12h and 13h, and what each command does in log 05h.
        5:1 supported_pages: bool = FLAG, "supported log pages log";
        /// Telemetry data area 4.
        6:1 telemetry_area_4: bool = FLAG, "telemetry data area 4";
        /// Reserved.
        7:1 __: bool = RESERVED, "reserved";
    }
}

bits! {
    /// AVSCC and ICSVSCC: whether vendor specific commands have the standard form.
    pub struct VendorCommands(u8 as u8) {
        /// They have the standard form with the number of dwords in dword 10 and 11.
        0:1 standard_format: bool = FLAG, "standard format";
        /// Reserved.
        1:7 __: u8 = RESERVED, "reserved";
    }
}

bits! {
    /// APSTA, Autonomous Power State Transition Attributes.
    pub struct Apsta(u8 as u8) {
        /// The controller changes power states by itself.
        0:1 supported: bool = FLAG, "autonomous power state transitions";
        /// Reserved.
        1:7 __: u8 = RESERVED, "reserved";
    }
}

bits! {
    /// RPMBS, Replay Protected Memory Block Support.
    pub struct Rpmbs(u32 as U32) {
        /// Number of RPMB units.
        0:3 units: u8 = COUNT, "RPMB units";
        /// How messages are authenticated; 0 is HMAC SHA-256.
        3:3 authentication: u8 = HEX, "authentication method";
        /// Reserved.
        6:10 __: u16 = RESERVED, "reserved";
        /// Size of one unit in 128 KiB, 0's based.
        16:8 total_size: ZeroBasedU8 = ZERO_BASED, "total size in 128 KiB";
        /// Most 512-byte sectors in one access, 0's based.
        24:8 access_size: ZeroBasedU8 = ZERO_BASED, "access size in 512 bytes";
    }
}
bits! {
    /// DSTO, Device Self-test Options.
    pub struct Dsto(u8 as u8) {
        /// One self-test runs in the subsystem at a time, not one for each controller.
        0:1 one_per_subsystem: bool = FLAG, "one self-test at a time in the subsystem";
        /// Host-initiated refresh.
        1:1 host_refresh: bool = FLAG, "host-initiated refresh";
        /// Reserved.
        2:6 __: u8 = RESERVED, "reserved";
    }
}

bits! {
    /// HCTMA, Host Controlled Thermal Management Attributes.
    pub struct Hctma(u16 as U16) {
        /// The host may set throttling temperatures.
        0:1 supported: bool = FLAG, "host controlled thermal management";
        /// Reserved.
        1:15 __: u16 = RESERVED, "reserved";
    }
}

codes! {
    /// SANICAP.NODMMAS: whether media changes after a sanitize that keeps blocks allocated.
    pub struct NoDeallocateModifies(u8, 2) {
        /// The controller does not say.
        0 NOT_DEFINED "not defined";
        /// It does not.
        1 NOT_MODIFIED "media is not additionally modified";
        /// It does.
        2 MODIFIED "media is additionally modified";
    }
}

bits! {
    /// SANICAP, Sanitize Capabilities.
    pub struct Sanicap(u32 as U32) {
        /// Crypto erase.
        0:1 crypto_erase: bool = FLAG, "crypto erase";
        /// Block erase.
        1:1 block_erase: bool = FLAG, "block erase";
        /// Overwrite.
        2:1 overwrite: bool = FLAG, "overwrite";
        /// The media verification state.
        3:1 verification: bool = FLAG, "media verification";
        /// Sanitize of one namespace.
        4:1 namespace_sanitize: bool = FLAG, "namespace sanitize";
        /// Reserved.
        5:24 __: u32 = RESERVED, "reserved";
        /// No-Deallocate After Sanitize is refused.
        29:1 no_deallocate_inhibited: bool = FLAG, "no-deallocate inhibited";
        /// Whether media changes after a sanitize that keeps blocks allocated.
        30:2 no_deallocate_modifies: NoDeallocateModifies = choice(NoDeallocateModifies::MEANINGS), "no-deallocate modifies media";
    }
}

bits! {
    /// ANACAP, Asymmetric Namespace Access Capabilities.
    pub struct Anacap(u8 as u8) {
        /// Reports the state optimized.
        0:1 optimized: bool = FLAG, "ANA optimized state";
        /// Reports the state non-optimized.
        1:1 non_optimized: bool = FLAG, "ANA non-optimized state";
        /// Reports the state inaccessible.
        2:1 inaccessible: bool = FLAG, "ANA inaccessible state";
        /// Reports the state persistent loss.
        3:1 persistent_loss: bool = FLAG, "ANA persistent loss state";
        /// Reports the state change.
        4:1 change: bool = FLAG, "ANA change state";
        /// Reserved.
        5:1 __: bool = RESERVED, "reserved";
        /// A namespace's group does not change while it is attached.
        6:1 group_fixed: bool = FLAG, "ANA group ID does not change while attached";
        /// Namespace Management takes a group.
        7:1 group_in_management: bool = FLAG, "ANA group ID in Namespace Management";
    }
}

bits! {
    /// KPIOC, Key Per I/O Capabilities.
    pub struct Kpioc(u8 as u8) {
        /// Key per I/O.
        0:1 supported: bool = FLAG, "key per I/O";
        /// It is enabled for all namespaces or for none.
        1:1 all_namespaces: bool = FLAG, "key per I/O applies to all namespaces";
        /// Reserved.
        2:6 __: u8 = RESERVED, "reserved";
    }
}

bits! {
    /// TMPTHHA, Temperature Threshold Hysteresis Attributes.
    pub struct Tmpthha(u8 as u8) {
        /// Largest hysteresis in kelvin; 0 where there is none.
        0:3 maximum: u8 = amount(1, "K").zero("not supported"), "largest hysteresis";
        /// Reserved.
        3:5 __: u8 = RESERVED, "reserved";
    }
}

bits! {
    /// SQES and CQES: sizes of a queue entry that the controller requires and allows.
    pub struct EntrySize(u8 as u8) {
        /// Size that must be used at least, 2^n bytes.
        0:4 required: u8 = power_of_two(1, "bytes"), "required";
        /// Largest size, 2^n bytes.
        4:4 maximum: u8 = power_of_two(1, "bytes"), "maximum";
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
        /// Save in Set Features and Select in Get Features.
        4:1 save_select: bool = FLAG, "Save and Select fields of the feature commands";
        /// Reservations.
        5:1 reservations: bool = FLAG, "reservations";
        /// The Timestamp feature.
        6:1 timestamp: bool = FLAG, "Timestamp feature";
        /// Verify.
        7:1 verify: bool = FLAG, "Verify";
        /// Copy.
        8:1 copy: bool = FLAG, "Copy";
        /// A copy within one range is atomic.
        9:1 copy_single_atomicity: bool = FLAG, "copy single atomicity";
        /// Every copy is fast.
        10:1 all_fast_copy: bool = FLAG, "all copies are fast copies";
        /// Write Zeroes deallocates where asked to.
        11:1 write_zeroes_deallocate: bool = FLAG, "maximum size Write Zeroes with deallocate";
        /// Write Zeroes can zero the whole namespace.
        12:1 namespace_zeroes: bool = FLAG, "namespace zeroes";
        /// Reserved.
        13:3 __: u8 = RESERVED, "reserved";
    }
}

bits! {
    /// FUSES, Fused Operation Support.
    pub struct Fuses(u16 as U16) {
        /// Compare and Write.
        0:1 compare_and_write: bool = FLAG, "Compare and Write";
        /// Reserved.
        1:15 __: u16 = RESERVED, "reserved";
    }
}

bits! {
    /// FNA, Format NVM Attributes: what a format or an erase touches.
    pub struct Fna(u8 as u8) {
        /// A format touches all namespaces.
        0:1 format_all: bool = FLAG, "format applies to all namespaces";
        /// A secure erase touches all namespaces.
        1:1 erase_all: bool = FLAG, "secure erase applies to all namespaces";
        /// Cryptographic erase is offered.
        2:1 crypto_erase: bool = FLAG, "cryptographic erase";
        /// The broadcast namespace FFFFFFFFh is refused.
        3:1 broadcast_refused: bool = FLAG, "broadcast namespace not supported";
        /// Reserved.
        4:4 __: u8 = RESERVED, "reserved";
    }
}

codes! {
    /// VWC.FB: how Flush treats the namespace FFFFFFFFh.
    pub struct FlushBehavior(u8, 2) {
        /// Not reported, as before version 1.4.
        0 NOT_REPORTED "not reported";
        /// Refused.
        2 REFUSED "Flush of all namespaces is not supported";
        /// Flushes all namespaces.
        3 SUPPORTED "Flush of all namespaces is supported";
    }
}

bits! {
    /// VWC, Volatile Write Cache.
    pub struct Vwc(u8 as u8) {
        /// There is a volatile write cache.
        0:1 present: bool = FLAG, "volatile write cache present";
        /// How Flush treats the namespace FFFFFFFFh.
        1:2 flush: FlushBehavior = choice(FlushBehavior::MEANINGS), "flush behavior";
        /// Reserved.
        3:5 __: u8 = RESERVED, "reserved";
    }
}

bits! {
    /// NWPC, Namespace Write Protection Capabilities.
    pub struct Nwpc(u8 as u8) {
        /// No protection and protection.
        0:1 write_protect: bool = FLAG, "write protect";
        /// Protection until the next power cycle.
        1:1 until_power_cycle: bool = FLAG, "write protect until power cycle";
        /// Protection forever.
        2:1 permanent: bool = FLAG, "permanent write protect";
        /// Reserved.
        3:5 __: u8 = RESERVED, "reserved";
    }
}

bits! {
    /// CDFS, Copy Descriptor Formats Supported: bit n is format n.
    pub struct Cdfs(u16 as U16) {
        /// Format 0h: ranges of the same namespace, 16-bit guard.
        0:1 format_0: bool = FLAG, "format 0h";
        /// Format 1h: ranges of the same namespace, wider guards.
        1:1 format_1: bool = FLAG, "format 1h";
        /// Format 2h: ranges of any namespace, 16-bit guard.
        2:1 format_2: bool = FLAG, "format 2h";
        /// Format 3h: ranges of any namespace, wider guards.
        3:1 format_3: bool = FLAG, "format 3h";
        /// Format 4h: from subsystem local memory.
        4:1 format_4: bool = FLAG, "format 4h";
        /// Reserved.
        5:11 __: u16 = RESERVED, "reserved";
    }
}

codes! {
    /// SGLS.SGLS: whether NVM commands take scatter gather lists, and how aligned.
    pub struct SglSupport(u8, 2) {
        /// No SGLs.
        0 NONE "not supported";
        /// SGLs of any alignment and length.
        1 BYTE "supported, byte granularity";
        /// SGLs aligned to and in multiples of dwords.
        2 DWORD "supported, dword granularity";
    }
}

bits! {
    /// SGLS, SGL Support.
    pub struct Sgls(u32 as U32) {
        /// Whether NVM commands take SGLs.
        0:2 support: SglSupport = choice(SglSupport::MEANINGS), "SGL support";
        /// Keyed data blocks.
        2:1 keyed: bool = FLAG, "keyed SGL data block descriptor";
        /// Reserved.
        3:5 __: u8 = RESERVED, "reserved";
        /// Descriptors that are best not exceeded; 0 where not reported.
        8:8 descriptor_threshold: u8 = COUNT.zero("not reported"), "SGL descriptor threshold";
        /// Bit buckets.
        16:1 bit_bucket: bool = FLAG, "SGL bit bucket descriptor";
        /// A contiguous metadata buffer may be aligned to bytes.
        17:1 metadata_byte_aligned: bool = FLAG, "byte aligned metadata buffer";
        /// An SGL may be longer than the data.
        18:1 longer_than_data: bool = FLAG, "SGL longer than the data";
        /// The metadata pointer may point to an SGL.
        19:1 metadata_sgl: bool = FLAG, "metadata pointer to an SGL segment";
        /// An address may be an offset.
        20:1 offset: bool = FLAG, "address field as an offset";
        /// Transport data blocks.
        21:1 transport: bool = FLAG, "transport SGL data block descriptor";
        /// Reserved.
        22:10 __: u16 = RESERVED, "reserved";
    }
}

bits! {
    /// TRATTR, Tracking Attributes.
    pub struct Trattr(u8 as u8) {
        /// Host memory changes are tracked.
        0:1 host_memory: bool = FLAG, "track host memory changes";
        /// User data changes are tracked.
        1:1 user_data: bool = FLAG, "track user data changes";
        /// Memory ranges of a tracker have a length limit.
        2:1 range_length_limit: bool = FLAG, "memory range tracking length limit";
        /// Reserved.
        3:5 __: u8 = RESERVED, "reserved";
    }
}

bits! {
    /// FCATT, Fabrics Controller Attributes.
    pub struct Fcatt(u8 as u8) {
        /// The controller is of the static model, not the dynamic one.
        0:1 static_model: bool = FLAG, "static controller model";
        /// Reserved.
        1:7 __: u8 = RESERVED, "reserved";
    }
}

bits! {
    /// OFCS, Optional Fabrics Commands Support.
    pub struct Ofcs(u16 as U16) {
        /// Disconnect.
        0:1 disconnect: bool = FLAG, "Disconnect";
        /// Reserved.
        1:15 __: u16 = RESERVED, "reserved";
    }
}
