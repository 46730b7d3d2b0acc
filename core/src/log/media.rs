//! What is on the media: LBA status, sanitize, changed zones, boot partitions, rotation, lockdown.
#![forbid(unsafe_code)]

use crate::command::admin::SanitizeAction;
use crate::{bits, codes, structure};
use zerocopy::little_endian::{U16, U32, U64};

structure! {
    /// The head of LBA Status Information, log page 0Eh; `nlslne` elements follow.
    /// NVM Express NVM Command Set Specification, "LBA Status Information".
    pub struct LbaStatusHeader: 16, "lba-status-log" {
        /// Length of the log.
        0 lslplen: U32 = amount(1, "bytes"), "LBA Status Log Page Length";
        /// Elements that follow.
        4 nlslne: U32 = COUNT, "Number of LBA Status Log Namespace Elements";
        /// Untracked blocks that may not be readable, at a guess.
        8 estulb: U32 = COUNT, "Estimate of Unrecoverable Logical Blocks";
        /// Reserved.
        12 reserved_12: [u8; 2] = RESERVED, "Reserved";
        /// Counts the changes of the log.
        14 lsgc: U16 = COUNT, "LBA Status Generation Counter";
    }
}

structure! {
    /// LBA Status Log Namespace Element; `nlrd` range descriptors follow.
    /// NVM Express NVM Command Set Specification, "LBA Status Log Namespace Element".
    pub struct LbaStatusElement: 16, "lba-status-element" {
        /// The namespace.
        0 neid: U32 = HEX, "Namespace Element Identifier";
        /// Range descriptors that follow; FFFFFFFFh for the whole namespace without any.
        4 nlrd: U32 = COUNT.ones("the whole namespace"), "Number of LBA Range Descriptors";
        /// The action type that Get LBA Status should use.
        8 ratype: u8 = HEX, "Recommended Action Type";
        /// Reserved.
        9 reserved_9: [u8; 7] = RESERVED, "Reserved";
    }
}

structure! {
    /// LBA Range Descriptor of the LBA status log.
    pub struct LbaStatusRange: 16, "lba-status-range" {
        /// First logical block.
        0 rslba: U64 = HEX, "Range Starting LBA";
        /// Logical blocks.
        8 rnlb: U32 = COUNT, "Range Number of Logical Blocks";
        /// Reserved.
        12 reserved_12: [u8; 4] = RESERVED, "Reserved";
    }
}

codes! {
    /// How the last sanitize went.
    pub struct SanitizeOutcome(u8, 3) {
        /// There was none.
        0 NEVER "never sanitized";
        /// It succeeded.
        1 SUCCEEDED "the last sanitize operation completed successfully";
        /// It runs.
        2 IN_PROGRESS "a sanitize operation is in progress";
        /// It failed.
        3 FAILED "the last sanitize operation failed";
        /// It succeeded, but deallocated although it was asked not to.
        4 DEALLOCATED "the last sanitize operation completed successfully, blocks were deallocated";
    }
}

bits! {
    /// SSTAT, Sanitize Status.
    pub struct SanitizeStatus(u16 as U16) {
        /// How the last sanitize went.
        0:3 outcome: SanitizeOutcome = choice(SanitizeOutcome::MEANINGS), "status";
        /// Overwrite passes that are complete.
        3:5 passes: u8 = COUNT, "overwrite passes completed";
        /// No user data was written since the last sanitize, or ever.
        8:1 global_data_erased: bool = FLAG, "global data erased";
        /// The media verification state was left before its time.
        9:1 verification_canceled: bool = FLAG, "media verification canceled";
        /// Reserved.
        10:6 __: u8 = RESERVED, "reserved";
    }
}

bits! {
    /// SCDW10: dword 10 of the Sanitize command that began the last operation.
    pub struct SanitizeCommand(u32 as U32) {
        /// What was to be done.
        0:3 sanact: SanitizeAction = choice(SanitizeAction::MEANINGS), "sanitize action";
        /// Unrestricted exit was allowed.
        3:1 ause: bool = FLAG, "allow unrestricted sanitize exit";
        /// Overwrite passes, 0 for 16.
        4:4 owpass: u8 = COUNT, "overwrite pass count";
        /// The pattern was to be inverted between passes.
        8:1 oipbp: bool = FLAG, "overwrite invert pattern between passes";
        /// The blocks were to stay allocated.
        9:1 ndas: bool = FLAG, "no-deallocate after sanitize";
        /// The media verification state was to follow.
        10:1 emvs: bool = FLAG, "enter media verification state";
        /// Reserved.
        11:21 __: u32 = RESERVED, "reserved";
    }
}

codes! {
    /// State of the sanitize state machine.
    pub struct SanitizeState(u8, 4) {
        /// Idle.
        0 IDLE "idle";
        /// Restricted processing.
        1 RESTRICTED_PROCESSING "restricted processing";
        /// Restricted failure.
        2 RESTRICTED_FAILURE "restricted failure";
        /// Unrestricted processing.
        3 UNRESTRICTED_PROCESSING "unrestricted processing";
        /// Unrestricted failure.
        4 UNRESTRICTED_FAILURE "unrestricted failure";
        /// Media verification.
        5 MEDIA_VERIFICATION "media verification";
        /// Deallocation after the verification.
        6 POST_VERIFICATION_DEALLOCATION "post-verification deallocation";
    }
}

bits! {
    /// SSI, Sanitize State Information.
    pub struct SanitizeStateInformation(u8 as u8) {
        /// The state.
        0:4 sans: SanitizeState = choice(SanitizeState::MEANINGS), "sanitize state";
        /// The state in which a failure happened.
        4:4 fails: SanitizeState = choice(SanitizeState::MEANINGS), "failure state";
    }
}

structure! {
    /// Sanitize Status, log page 81h. NVM Express Base Specification, "Sanitize Status".
    pub struct Sanitize: 512, "sanitize" {
        /// How far the operation is, in 65536ths; FFFFh where none runs.
        0 sprog: U16 = COUNT.ones("no operation in progress"), "Sanitize Progress";
        /// How the last one went.
        2 sstat: SanitizeStatus = bits(SanitizeStatus::PARTS), "Sanitize Status";
        /// The command that began it.
        4 scdw10: SanitizeCommand = bits(SanitizeCommand::PARTS), "Sanitize Command Dword 10 Information";
        /// Estimated seconds for an overwrite.
        8 eto: U32 = amount(1, "s").ones("not reported"), "Estimated Time For Overwrite";
        /// Estimated seconds for a block erase.
        12 etbe: U32 = amount(1, "s").ones("not reported"), "Estimated Time For Block Erase";
        /// Estimated seconds for a crypto erase.
        16 etce: U32 = amount(1, "s").ones("not reported"), "Estimated Time For Crypto Erase";
        /// Estimated seconds for an overwrite without deallocation.
        20 etond: U32 = amount(1, "s").ones("not reported"), "Estimated Time For Overwrite With No-Deallocate";
        /// Estimated seconds for a block erase without deallocation.
        24 etbend: U32 = amount(1, "s").ones("not reported"), "Estimated Time For Block Erase With No-Deallocate";
        /// Estimated seconds for a crypto erase without deallocation.
        28 etcend: U32 = amount(1, "s").ones("not reported"), "Estimated Time For Crypto Erase With No-Deallocate";
        /// Estimated seconds for the deallocation after a verification.
        32 etpvds: U32 = amount(1, "s").ones("not reported"), "Estimated Time For Post-Verification Deallocation State";
        /// The state machine.
        36 ssi: SanitizeStateInformation = bits(SanitizeStateInformation::PARTS), "Sanitize State Information";
        /// Reserved.
        37 reserved_37: [u8; 475] = RESERVED, "Reserved";
    }
}

structure! {
    /// Changed Zone List, log page BFh.
    /// NVM Express Zoned Namespace Command Set Specification, "Changed Zone List".
    pub struct ChangedZones: 4096, "changed-zones" {
        /// Zones in the list; FFFFh where there are more than fit.
        0 nrzid: U16 = COUNT.ones("more than fit"), "Number of Zone Identifiers";
        /// Reserved.
        2 reserved_2: [u8; 6] = RESERVED, "Reserved";
        /// First logical blocks of the zones.
        8 zid: [U64; 511] = HEX, "Zone Identifier";
    }
}

bits! {
    /// What the boot partition log says of the boot partitions.
    pub struct BootPartitionInfo(u32 as U32) {
        /// Size in 128 KiB.
        0:15 bpsz: u16 = amount(131_072, "bytes"), "boot partition size";
        /// Reserved.
        15:16 __: u16 = RESERVED, "reserved";
        /// The active one.
        31:1 abpid: bool = FLAG, "active boot partition ID";
    }
}

structure! {
    /// The head of Boot Partition, log page 15h; the boot partition follows.
    /// NVM Express Base Specification, "Boot Partition".
    pub struct BootPartitionHeader: 16, "boot-partition" {
        /// Log page identifier, 15h.
        0 lid: u8 = HEX, "Log Page Identifier";
        /// Reserved.
        1 reserved_1: [u8; 3] = RESERVED, "Reserved";
        /// The boot partitions.
        4 bpinfo: BootPartitionInfo = bits(BootPartitionInfo::PARTS), "Boot Partition Information";
        /// Reserved.
        8 reserved_8: [u8; 8] = RESERVED, "Reserved";
    }
}

structure! {
    /// Rotational Media Information, log page 16h.
    /// NVM Express Base Specification, "Rotational Media Information".
    pub struct RotationalMedia: 512, "rotational-media" {
        /// The endurance group.
        0 endgid: U16 = COUNT, "Endurance Group Identifier";
        /// Actuators.
        2 numa: U16 = COUNT, "Number of Actuators";
        /// Rotations per minute.
        4 nrs: U16 = COUNT.zero("not reported"), "Nominal Rotational Speed";
        /// Reserved.
        6 reserved_6: [u8; 2] = RESERVED, "Reserved";
        /// Spin-ups.
        8 spinc: U32 = COUNT, "Spinup Count";
        /// Spin-ups that failed.
        12 fspinc: U32 = COUNT, "Failed Spinup Count";
        /// Loads of the heads.
        16 ldc: U32 = COUNT, "Load Count";
        /// Loads of the heads that failed.
        20 fldc: U32 = COUNT, "Failed Load Count";
        /// Reserved.
        24 reserved_24: [u8; 488] = RESERVED, "Reserved";
    }
}

structure! {
    /// Command and Feature Lockdown, log page 14h.
    /// NVM Express Base Specification, "Command and Feature Lockdown".
    pub struct LockdownLog: 512, "lockdown" {
        /// Scope (bits 3:0) and contents (bits 5:4) of the list.
        0 cfila: u8 = HEX, "Command and Feature Identifier List Attributes";
        /// Reserved.
        1 reserved_1: [u8; 2] = RESERVED, "Reserved";
        /// Bytes of the list.
        3 lngth: u8 = COUNT, "Length";
        /// Opcodes or feature identifiers.
        4 cfil: [u8; 508] = BYTES, "Command and Feature Identifier List";
    }
}
