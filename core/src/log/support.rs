//! What a controller supports: log pages, commands and features, and what each of them does.
#![forbid(unsafe_code)]

use crate::{bits, codes, structure};

bits! {
    /// What the supported log pages log says of one page.
    pub struct LogSupport(u32 as U32) {
        /// The page is supported.
        0:1 lsupp: bool = FLAG, "supported";
        /// The offset of Get Log Page may be an index.
        1:1 ios: bool = FLAG, "index offset supported";
        /// Reserved.
        2:14 __: u16 = RESERVED, "reserved";
        /// What the page makes of it.
        16:16 lidsp: u16 = HEX, "log specific parameter";
    }
}

structure! {
    /// Supported Log Pages, log page 00h: one entry for each log page identifier.
    /// NVM Express Base Specification, "Supported Log Pages".
    pub struct SupportedLogPages: 1024, "supported-log-pages" {
        /// By log page identifier.
        0 lid: [LogSupport; 256] = bits(LogSupport::PARTS), "Log Page";
    }
}

codes! {
    /// CSE: what must be kept apart from the command.
    pub struct SubmissionRestriction(u8, 3) {
        /// Nothing.
        0 NONE "no restriction";
        /// Other commands to the same namespace.
        1 SAME_NAMESPACE "no other command to the same namespace";
        /// Other commands to any namespace.
        2 ANY_NAMESPACE "no other command to any namespace";
    }
}

bits! {
    /// What the commands supported and effects log says of one command.
    pub struct CommandEffect(u32 as U32) {
        /// The command is supported.
        0:1 csupp: bool = FLAG, "supported";
        /// It may change data.
        1:1 lbcc: bool = FLAG, "logical block content change";
        /// It may change what a namespace is like.
        2:1 ncc: bool = FLAG, "namespace capability change";
        /// It may change which namespaces there are.
        3:1 nic: bool = FLAG, "namespace inventory change";
        /// It may change what the controller can do.
        4:1 ccc: bool = FLAG, "controller capability change";
        /// Reserved.
        5:9 __: u16 = RESERVED, "reserved";
        /// How far the restriction on submission can be eased.
        14:2 cser: u8 = COUNT, "submission and execution relaxation";
        /// What must be kept apart from the command.
        16:3 cse: SubmissionRestriction = choice(SubmissionRestriction::MEANINGS), "submission and execution";
        /// The command takes a UUID index.
        19:1 uuid: bool = FLAG, "UUID selection";
        /// Scope of the command, a bit for each: namespace, controller, NVM set, endurance group, domain, subsystem.
        20:12 csp: u16 = HEX, "scope";
    }
}

structure! {
    /// Commands Supported and Effects, log page 05h.
    /// NVM Express Base Specification, "Commands Supported and Effects".
    pub struct CommandEffects: 4096, "effects" {
        /// Admin commands by opcode.
        0 acs: [CommandEffect; 256] = bits(CommandEffect::PARTS), "Admin Command";
        /// I/O commands by opcode.
        1024 iocs: [CommandEffect; 256] = bits(CommandEffect::PARTS), "I/O Command";
        /// Reserved.
        2048 reserved_2048: [u8; 2048] = RESERVED, "Reserved";
    }
}

bits! {
    /// What the feature identifiers log says of one feature.
    pub struct FeatureEffect(u32 as U32) {
        /// The feature is supported.
        0:1 fsupp: bool = FLAG, "supported";
        /// It may change data.
        1:1 udcc: bool = FLAG, "user data content change";
        /// It may change what a namespace is like.
        2:1 ncc: bool = FLAG, "namespace capability change";
        /// It may change which namespaces there are.
        3:1 nic: bool = FLAG, "namespace inventory change";
        /// It may change what the controller can do.
        4:1 ccc: bool = FLAG, "controller capability change";
        /// Reserved.
        5:14 __: u16 = RESERVED, "reserved";
        /// The feature takes a UUID index.
        19:1 uuid: bool = FLAG, "UUID selection";
        /// Scope of the feature, a bit for each: namespace, controller, NVM set, endurance group, domain, subsystem,
        /// controller data queue.
        20:12 fsp: u16 = HEX, "scope";
    }
}

structure! {
    /// Feature Identifiers Supported and Effects, log page 12h.
    /// NVM Express Base Specification, "Feature Identifiers Supported and Effects".
    pub struct FeatureEffects: 1024, "feature-effects" {
        /// By feature identifier.
        0 fid: [FeatureEffect; 256] = bits(FeatureEffect::PARTS), "Feature";
    }
}
