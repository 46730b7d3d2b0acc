//! Admin commands about the media and what is on it: format, sanitize, self-test, security, LBA status.
#![forbid(unsafe_code)]

use super::{AdminOpcode, command};
use crate::identify::ProtectionType;
use crate::number::{UInt, ZeroBasedU32};
use crate::{codes, structure};
use zerocopy::little_endian::{U32, U64};

codes! {
    /// SES of Format NVM: what is erased.
    pub struct SecureErase(u8, 3) {
        /// Nothing beyond the format.
        0 NONE "no secure erase";
        /// All user data.
        1 USER_DATA "user data erase";
        /// The key by which the user data is encrypted.
        2 CRYPTOGRAPHIC "cryptographic erase";
    }
}

command! {
    /// Format NVM. NVM Express Base Specification, "Format NVM command".
    pub struct FormatNvm = AdminOpcode::FORMAT_NVM, "Format NVM" {
        /// The namespace, or FFFFFFFFh for all.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
        /// Lower four bits of the format index.
        10[0:4] lbafl: UInt<4> = COUNT, "LBA Format Lower";
        /// Metadata at the end of the data, not in a buffer of its own.
        10[4:1] mset: bool = FLAG, "Metadata Settings";
        /// Protection information.
        10[5:3] pi: ProtectionType = choice(ProtectionType::MEANINGS), "Protection Information";
        /// The protection information is the first bytes of the metadata, not the last.
        10[8:1] pil: bool = FLAG, "Protection Information Location";
        /// What is erased.
        10[9:3] ses: SecureErase = choice(SecureErase::MEANINGS), "Secure Erase Settings";
        /// Upper two bits of the format index.
        10[12:2] lbafu: UInt<2> = COUNT, "LBA Format Upper";
    }
}

impl FormatNvm {
    /// The command with the format of this index (0 to 63), or `None` where the index is larger.
    pub const fn with_format_index(mut self, index: u8) -> Option<Self> {
        let (Some(low), Some(high)) = (UInt::new(index as u64 & 0xf), UInt::new(index as u64 >> 4)) else {
            return None;
        };
        self.lbafl = low;
        self.lbafu = high;
        Some(self)
    }
}

codes! {
    /// SANACT of Sanitize: what to do.
    pub struct SanitizeAction(u8, 3) {
        /// Leave the state in which a sanitize has failed.
        1 EXIT_FAILURE "exit failure mode";
        /// Erase all blocks.
        2 BLOCK_ERASE "start block erase";
        /// Write over all blocks.
        3 OVERWRITE "start overwrite";
        /// Change the keys.
        4 CRYPTO_ERASE "start crypto erase";
        /// Leave the media verification state.
        5 EXIT_VERIFICATION "exit media verification state";
    }
}

command! {
    /// Sanitize: makes all user data of the subsystem unrecoverable.
    /// NVM Express Base Specification, "Sanitize command".
    pub struct Sanitize = AdminOpcode::SANITIZE, "Sanitize" {
        /// What to do.
        10[0:3] sanact: SanitizeAction = choice(SanitizeAction::MEANINGS), "Sanitize Action";
        /// A failed sanitize can be left by the exit failure mode action.
        10[3:1] ause: bool = FLAG, "Allow Unrestricted Sanitize Exit";
        /// Overwrite passes, 0 for 16.
        10[4:4] owpass: UInt<4> = COUNT.zero("16"), "Overwrite Pass Count";
        /// The pattern is inverted between passes.
        10[8:1] oipbp: bool = FLAG, "Overwrite Invert Pattern Between Passes";
        /// The blocks stay allocated.
        10[9:1] ndas: bool = FLAG, "No-Deallocate After Sanitize";
        /// The media verification state follows.
        10[10:1] emvs: bool = FLAG, "Enter Media Verification State";
        /// Overwrite pattern.
        11[0:32] ovrpat: u32 = HEX, "Overwrite Pattern";
    }
}

codes! {
    /// STC of Device Self-test: what to do.
    pub struct SelfTestCode(u8, 4) {
        /// Start a short test, of at most two minutes.
        1 SHORT "short device self-test";
        /// Start an extended test.
        2 EXTENDED "extended device self-test";
        /// Start a host-initiated refresh.
        3 HOST_REFRESH "host-initiated refresh";
        /// Start the vendor's test.
        0xe VENDOR "vendor specific";
        /// Stop the test that is running.
        0xf ABORT "abort device self-test";
    }
}

command! {
    /// Device Self-test. NVM Express Base Specification, "Device Self-test command".
    pub struct DeviceSelfTest = AdminOpcode::DEVICE_SELF_TEST, "Device Self-test" {
        /// 0 tests the controller, FFFFFFFFh all namespaces, too, another value one namespace.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
        /// What to do.
        10[0:4] stc: SelfTestCode = choice(SelfTestCode::MEANINGS), "Self-test Code";
        /// What the self-test makes of it.
        15[0:16] dstp: u16 = HEX, "Device Self-test Parameter";
    }
}

command! {
    /// Security Send. NVM Express Base Specification, "Security Send command".
    pub struct SecuritySend = AdminOpcode::SECURITY_SEND, "Security Send" {
        /// The namespace.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
        /// What the protocol EAh makes of it.
        10[0:8] nssf: u8 = HEX, "NVMe Security Specific Field";
        /// What the protocol makes of it.
        10[8:16] spsp: u16 = HEX, "SP Specific";
        /// The security protocol of SPC-5.
        10[24:8] secp: u8 = HEX, "Security Protocol";
        /// Bytes sent.
        11[0:32] tl: u32 = amount(1, "bytes"), "Transfer Length";
    }
}

command! {
    /// Security Receive. NVM Express Base Specification, "Security Receive command".
    pub struct SecurityReceive = AdminOpcode::SECURITY_RECEIVE, "Security Receive" {
        /// The namespace.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
        /// What the protocol EAh makes of it.
        10[0:8] nssf: u8 = HEX, "NVMe Security Specific Field";
        /// What the protocol makes of it.
        10[8:16] spsp: u16 = HEX, "SP Specific";
        /// The security protocol of SPC-5.
        10[24:8] secp: u8 = HEX, "Security Protocol";
        /// Bytes that there is room for.
        11[0:32] al: u32 = amount(1, "bytes"), "Allocation Length";
    }
}

codes! {
    /// ATYPE of Get LBA Status: what is looked for.
    pub struct LbaStatusAction(u8, 8) {
        /// Allocated blocks.
        0x02 ALLOCATED "allocated LBAs";
        /// Blocks that may not be readable: look at the media, too.
        0x10 SCAN "perform scan, return tracked and untracked LBAs";
        /// Blocks that may not be readable, as far as they are known.
        0x11 TRACKED "return tracked LBAs";
    }
}

command! {
    /// Get LBA Status. NVM Express NVM Command Set Specification, "Get LBA Status command".
    pub struct GetLbaStatus = AdminOpcode::GET_LBA_STATUS, "Get LBA Status" {
        /// The namespace.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
        /// First logical block.
        10[0:64] slba: u64 = HEX, "Starting LBA";
        /// Most dwords to return.
        12[0:32] mndw: ZeroBasedU32 = ZERO_BASED, "Maximum Number of Dwords";
        /// Most logical blocks to look at; 0 for no limit.
        13[0:16] rl: u16 = COUNT.zero("no limit"), "Range Length";
        /// What is looked for.
        13[24:8] atype: LbaStatusAction = choice(LbaStatusAction::MEANINGS), "Action Type";
    }
}

structure! {
    /// The head of what Get LBA Status returns; `nlsd` descriptors follow.
    /// NVM Express NVM Command Set Specification, "LBA Status Descriptor List".
    pub struct LbaStatusHeader: 8, "lba-status-head" {
        /// Descriptors that follow.
        0 nlsd: U32 = COUNT, "Number of LBA Status Descriptors";
        /// Why the command ended.
        4 cmpc: LbaStatusCompletion = choice(LbaStatusCompletion::MEANINGS), "Completion Condition";
        /// Reserved.
        5 reserved_5: [u8; 3] = RESERVED, "Reserved";
    }
}

codes! {
    /// CMPC: why Get LBA Status ended.
    pub struct LbaStatusCompletion(u8, 8) {
        /// Not said.
        0 NONE "no indication";
        /// The list was full, there is more.
        1 INCOMPLETE "transferred as much as was asked for, more remains";
        /// All was looked at.
        2 COMPLETE "the whole range was looked at";
    }
}

structure! {
    /// LBA Status Descriptor: a range of blocks.
    /// NVM Express NVM Command Set Specification, "LBA Status Descriptor Entry".
    pub struct LbaStatusDescriptor: 16, "lba-status" {
        /// First logical block.
        0 dslba: U64 = HEX, "Descriptor Starting LBA";
        /// Logical blocks.
        8 nlb: U32 = COUNT, "Number of Logical Blocks";
        /// Reserved.
        12 reserved_12: u8 = RESERVED, "Reserved";
        /// How the blocks are, by the action type.
        13 status: u8 = HEX, "Status";
        /// Reserved.
        14 reserved_14: [u8; 2] = RESERVED, "Reserved";
    }
}
