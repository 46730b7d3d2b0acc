//! Admin commands.
//!
//! NVM Express Base Specification, "Admin Command Set".
#![forbid(unsafe_code)]

use super::command;
use crate::codes;
use crate::number::{UInt, ZeroBasedU16, ZeroBasedU32};

codes! {
    /// The opcode of an admin command.
    pub struct AdminOpcode(u8, 8) {
        /// Delete I/O Submission Queue.
        0x00 DELETE_IO_SQ "Delete I/O Submission Queue";
        /// Create I/O Submission Queue.
        0x01 CREATE_IO_SQ "Create I/O Submission Queue";
        /// Get Log Page.
        0x02 GET_LOG_PAGE "Get Log Page";
        /// Delete I/O Completion Queue.
        0x04 DELETE_IO_CQ "Delete I/O Completion Queue";
        /// Create I/O Completion Queue.
        0x05 CREATE_IO_CQ "Create I/O Completion Queue";
        /// Identify.
        0x06 IDENTIFY "Identify";
        /// Abort.
        0x08 ABORT "Abort";
        /// Set Features.
        0x09 SET_FEATURES "Set Features";
        /// Get Features.
        0x0a GET_FEATURES "Get Features";
        /// Asynchronous Event Request.
        0x0c ASYNC_EVENT_REQUEST "Asynchronous Event Request";
    }
}

codes! {
    /// CNS: what an Identify command asks for.
    pub struct Cns(u8, 8) {
        /// The namespace data structure of the NVM command set.
        0x00 NAMESPACE "Identify Namespace";
        /// The controller data structure.
        0x01 CONTROLLER "Identify Controller";
        /// The active namespaces.
        0x02 ACTIVE_NAMESPACES "Active Namespace ID list";
        /// The identification descriptors of a namespace.
        0x03 NAMESPACE_DESCRIPTORS "Namespace Identification Descriptor list";
    }
}

command! {
    /// Delete I/O Submission Queue. NVM Express Base Specification, "Delete I/O Submission Queue command".
    pub struct DeleteIoSubmissionQueue = AdminOpcode::DELETE_IO_SQ, "Delete I/O Submission Queue" {
        /// The queue.
        10[0:16] qid: u16 = COUNT, "Queue Identifier";
    }
}

command! {
    /// Delete I/O Completion Queue. NVM Express Base Specification, "Delete I/O Completion Queue command".
    pub struct DeleteIoCompletionQueue = AdminOpcode::DELETE_IO_CQ, "Delete I/O Completion Queue" {
        /// The queue.
        10[0:16] qid: u16 = COUNT, "Queue Identifier";
    }
}

command! {
    /// Create I/O Completion Queue; PRP1 is where the queue lies.
    /// NVM Express Base Specification, "Create I/O Completion Queue command".
    pub struct CreateIoCompletionQueue = AdminOpcode::CREATE_IO_CQ, "Create I/O Completion Queue" {
        /// The queue.
        10[0:16] qid: u16 = COUNT, "Queue Identifier";
        /// Its entries.
        10[16:16] qsize: ZeroBasedU16 = ZERO_BASED, "Queue Size";
        /// The queue is physically contiguous.
        11[0:1] pc: bool = FLAG, "Physically Contiguous";
        /// The queue raises interrupts.
        11[1:1] ien: bool = FLAG, "Interrupts Enabled";
        /// The interrupt vector.
        11[16:16] iv: u16 = COUNT, "Interrupt Vector";
    }
}

codes! {
    /// QPRIO: a submission queue's class under weighted round robin.
    pub struct QueuePriority(u8, 2) {
        /// Before all others.
        0 URGENT "urgent";
        /// High.
        1 HIGH "high";
        /// Medium.
        2 MEDIUM "medium";
        /// Low.
        3 LOW "low";
    }
}

command! {
    /// Create I/O Submission Queue; PRP1 is where the queue lies.
    /// NVM Express Base Specification, "Create I/O Submission Queue command".
    pub struct CreateIoSubmissionQueue = AdminOpcode::CREATE_IO_SQ, "Create I/O Submission Queue" {
        /// The queue.
        10[0:16] qid: u16 = COUNT, "Queue Identifier";
        /// Its entries.
        10[16:16] qsize: ZeroBasedU16 = ZERO_BASED, "Queue Size";
        /// The queue is physically contiguous.
        11[0:1] pc: bool = FLAG, "Physically Contiguous";
        /// Its class under weighted round robin.
        11[1:2] qprio: QueuePriority = choice(QueuePriority::MEANINGS), "Queue Priority";
        /// The completion queue that its commands complete to.
        11[16:16] cqid: u16 = COUNT, "Completion Queue Identifier";
        /// The NVM set that the queue is used with; 0 for none.
        12[0:16] nvmsetid: u16 = COUNT, "NVM Set Identifier";
    }
}

command! {
    /// Get Log Page. NVM Express Base Specification, "Get Log Page command".
    pub struct GetLogPage = AdminOpcode::GET_LOG_PAGE, "Get Log Page" {
        /// The namespace, or FFFFFFFFh for the controller.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
        /// The log page.
        10[0:8] lid: u8 = HEX, "Log Page Identifier";
        /// What the log page makes of it.
        10[8:7] lsp: UInt<7> = HEX, "Log Specific Parameter";
        /// Retain Asynchronous Event: reading does not clear the event.
        10[15:1] rae: bool = FLAG, "Retain Asynchronous Event";
        /// Dwords to return.
        10[16:32] numd: ZeroBasedU32 = ZERO_BASED, "Number of Dwords";
        /// What the log page makes of it.
        11[16:16] lsi: u16 = HEX, "Log Specific Identifier";
        /// First byte (a multiple of four), or index where `ot` is set.
        12[0:64] lpo: u64 = HEX, "Log Page Offset";
        /// Index of the vendor's UUID in the UUID list; 0 for none.
        14[0:7] uuid_index: UInt<7> = COUNT, "UUID Index";
        /// The offset is an index.
        14[23:1] ot: bool = FLAG, "Offset Type";
        /// The command set that the page is of.
        14[24:8] csi: u8 = HEX, "Command Set Identifier";
    }
}

command! {
    /// Identify. NVM Express Base Specification, "Identify command".
    pub struct Identify = AdminOpcode::IDENTIFY, "Identify" {
        /// The namespace, where `cns` is of one.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
        /// What is asked for.
        10[0:8] cns: Cns = choice(Cns::MEANINGS), "Controller or Namespace Structure";
        /// The controller, where `cns` is of one.
        10[16:16] cntid: u16 = HEX, "Controller Identifier";
        /// What `cns` makes of it.
        11[0:16] cns_specific: u16 = HEX, "CNS Specific Identifier";
        /// The command set, where `cns` is of one.
        11[24:8] csi: u8 = HEX, "Command Set Identifier";
        /// Index of the vendor's UUID in the UUID list; 0 for none.
        14[0:7] uuid_index: UInt<7> = COUNT, "UUID Index";
    }
}

command! {
    /// Abort. NVM Express Base Specification, "Abort command".
    pub struct Abort = AdminOpcode::ABORT, "Abort" {
        /// The submission queue of the command.
        10[0:16] sqid: u16 = COUNT, "Submission Queue Identifier";
        /// The command.
        10[16:16] cid: u16 = HEX, "Command Identifier";
    }
}

command! {
    /// Asynchronous Event Request: completes when something happens.
    /// NVM Express Base Specification, "Asynchronous Event Request command".
    pub struct AsyncEventRequest = AdminOpcode::ASYNC_EVENT_REQUEST, "Asynchronous Event Request" {}
}

codes! {
    /// SEL: which of a feature's values Get Features returns.
    pub struct FeatureSelect(u8, 3) {
        /// The value in force.
        0 CURRENT "current";
        /// The value that the vendor set.
        1 DEFAULT "default";
        /// The value that outlasts a reset.
        2 SAVED "saved";
        /// What can be done with the feature.
        3 SUPPORTED "supported capabilities";
    }
}

command! {
    /// Get Features. NVM Express Base Specification, "Get Features command".
    pub struct GetFeatures = AdminOpcode::GET_FEATURES, "Get Features" {
        /// The namespace, where the feature is of one.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
        /// The feature.
        10[0:8] fid: u8 = HEX, "Feature Identifier";
        /// Which value.
        10[8:3] sel: FeatureSelect = choice(FeatureSelect::MEANINGS), "Select";
        /// What the feature makes of it.
        11[0:32] value: u32 = HEX, "Command Dword 11";
        /// Index of the vendor's UUID in the UUID list; 0 for none.
        14[0:7] uuid_index: UInt<7> = COUNT, "UUID Index";
    }
}

command! {
    /// Set Features. NVM Express Base Specification, "Set Features command".
    pub struct SetFeatures = AdminOpcode::SET_FEATURES, "Set Features" {
        /// The namespace, where the feature is of one.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
        /// The feature.
        10[0:8] fid: u8 = HEX, "Feature Identifier";
        /// The value outlasts a reset and a loss of power.
        10[31:1] sv: bool = FLAG, "Save";
        /// The value.
        11[0:32] value: u32 = HEX, "Command Dword 11";
        /// More of the value.
        12[0:32] cdw12: u32 = HEX, "Command Dword 12";
        /// More of the value.
        13[0:32] cdw13: u32 = HEX, "Command Dword 13";
        /// Index of the vendor's UUID in the UUID list; 0 for none.
        14[0:7] uuid_index: UInt<7> = COUNT, "UUID Index";
        /// More of the value.
        15[0:32] cdw15: u32 = HEX, "Command Dword 15";
    }
}
