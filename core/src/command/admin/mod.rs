//! Admin commands.
//!
//! NVM Express Base Specification, "Admin Command Set".
#![forbid(unsafe_code)]

mod directive;
mod firmware;
mod management;
mod media;
pub use directive::*;
pub use firmware::*;
pub use management::*;
pub use media::*;

use super::{Command, CommandDescriptor, command};
use crate::codes;
use crate::feature::FeatureId;
use crate::log::LogId;
use crate::number::{UInt, ZeroBasedU16, ZeroBasedU32};

/// The admin commands that have a builder.
pub static COMMANDS: &[CommandDescriptor] = &[
    DeleteIoSubmissionQueue::DESCRIPTOR,
    CreateIoSubmissionQueue::DESCRIPTOR,
    GetLogPage::DESCRIPTOR,
    DeleteIoCompletionQueue::DESCRIPTOR,
    CreateIoCompletionQueue::DESCRIPTOR,
    Identify::DESCRIPTOR,
    Abort::DESCRIPTOR,
    SetFeatures::DESCRIPTOR,
    GetFeatures::DESCRIPTOR,
    AsyncEventRequest::DESCRIPTOR,
    NamespaceManagement::DESCRIPTOR,
    FirmwareCommit::DESCRIPTOR,
    FirmwareImageDownload::DESCRIPTOR,
    DeviceSelfTest::DESCRIPTOR,
    NamespaceAttachment::DESCRIPTOR,
    KeepAlive::DESCRIPTOR,
    DirectiveSend::DESCRIPTOR,
    DirectiveReceive::DESCRIPTOR,
    VirtualizationManagement::DESCRIPTOR,
    CapacityManagement::DESCRIPTOR,
    Lockdown::DESCRIPTOR,
    DoorbellBufferConfig::DESCRIPTOR,
    FormatNvm::DESCRIPTOR,
    SecuritySend::DESCRIPTOR,
    SecurityReceive::DESCRIPTOR,
    Sanitize::DESCRIPTOR,
    GetLbaStatus::DESCRIPTOR,
];

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
        /// Namespace Management.
        0x0d NAMESPACE_MANAGEMENT "Namespace Management";
        /// Firmware Commit.
        0x10 FIRMWARE_COMMIT "Firmware Commit";
        /// Firmware Image Download.
        0x11 FIRMWARE_IMAGE_DOWNLOAD "Firmware Image Download";
        /// Device Self-test.
        0x14 DEVICE_SELF_TEST "Device Self-test";
        /// Namespace Attachment.
        0x15 NAMESPACE_ATTACHMENT "Namespace Attachment";
        /// Keep Alive.
        0x18 KEEP_ALIVE "Keep Alive";
        /// Directive Send.
        0x19 DIRECTIVE_SEND "Directive Send";
        /// Directive Receive.
        0x1a DIRECTIVE_RECEIVE "Directive Receive";
        /// Virtualization Management.
        0x1c VIRTUALIZATION_MANAGEMENT "Virtualization Management";
        /// NVMe-MI Send.
        0x1d NVME_MI_SEND "NVMe-MI Send";
        /// NVMe-MI Receive.
        0x1e NVME_MI_RECEIVE "NVMe-MI Receive";
        /// Capacity Management.
        0x20 CAPACITY_MANAGEMENT "Capacity Management";
        /// Discovery Information Management.
        0x21 DISCOVERY_INFORMATION_MANAGEMENT "Discovery Information Management";
        /// Fabric Zoning Receive.
        0x22 FABRIC_ZONING_RECEIVE "Fabric Zoning Receive";
        /// Lockdown.
        0x24 LOCKDOWN "Lockdown";
        /// Fabric Zoning Lookup.
        0x25 FABRIC_ZONING_LOOKUP "Fabric Zoning Lookup";
        /// Clear Exported NVM Resource Configuration.
        0x28 CLEAR_EXPORTED_NVM_RESOURCE "Clear Exported NVM Resource Configuration";
        /// Fabric Zoning Send.
        0x29 FABRIC_ZONING_SEND "Fabric Zoning Send";
        /// Manage Exported NVM Subsystem Receive.
        0x2a MANAGE_EXPORTED_NVM_SUBSYSTEM_RECEIVE "Manage Exported NVM Subsystem Receive";
        /// Manage Exported NVM Subsystem Send.
        0x2d MANAGE_EXPORTED_NVM_SUBSYSTEM_SEND "Manage Exported NVM Subsystem Send";
        /// Manage Exported Namespace.
        0x31 MANAGE_EXPORTED_NAMESPACE "Manage Exported Namespace";
        /// Manage Exported Port.
        0x35 MANAGE_EXPORTED_PORT "Manage Exported Port";
        /// Cross-Controller Reset.
        0x38 CROSS_CONTROLLER_RESET "Cross-Controller Reset";
        /// Send Discovery Log Page.
        0x39 SEND_DISCOVERY_LOG_PAGE "Send Discovery Log Page";
        /// Track Send.
        0x3d TRACK_SEND "Track Send";
        /// Track Receive.
        0x3e TRACK_RECEIVE "Track Receive";
        /// Migration Send.
        0x41 MIGRATION_SEND "Migration Send";
        /// Migration Receive.
        0x42 MIGRATION_RECEIVE "Migration Receive";
        /// Controller Data Queue.
        0x45 CONTROLLER_DATA_QUEUE "Controller Data Queue";
        /// Doorbell Buffer Config.
        0x7c DOORBELL_BUFFER_CONFIG "Doorbell Buffer Config";
        /// Fabrics Commands.
        0x7f FABRICS "Fabrics Commands";
        /// Format NVM.
        0x80 FORMAT_NVM "Format NVM";
        /// Security Send.
        0x81 SECURITY_SEND "Security Send";
        /// Security Receive.
        0x82 SECURITY_RECEIVE "Security Receive";
        /// Sanitize.
        0x84 SANITIZE "Sanitize";
        /// Load Program.
        0x85 LOAD_PROGRAM "Load Program";
        /// Get LBA Status.
        0x86 GET_LBA_STATUS "Get LBA Status";
        /// Program Activation Management.
        0x88 PROGRAM_ACTIVATION_MANAGEMENT "Program Activation Management";
        /// Memory Range Set Management.
        0x89 MEMORY_RANGE_SET_MANAGEMENT "Memory Range Set Management";
        /// Sanitize Namespace.
        0x8c SANITIZE_NAMESPACE "Sanitize Namespace";
    }
}

codes! {
    /// CNS: what an Identify command asks for.
    pub struct Cns(u8, 8) {
        /// Identify Namespace data structure of the NVM command set.
        0x00 NAMESPACE "Identify Namespace data structure of the NVM command set";
        /// Identify Controller data structure.
        0x01 CONTROLLER "Identify Controller data structure";
        /// Active Namespace ID list.
        0x02 ACTIVE_NAMESPACES "Active Namespace ID list";
        /// Namespace Identification Descriptor list.
        0x03 NAMESPACE_DESCRIPTORS "Namespace Identification Descriptor list";
        /// NVM Set List.
        0x04 NVM_SETS "NVM Set List";
        /// I/O Command Set specific Identify Namespace data structure.
        0x05 COMMAND_SET_NAMESPACE "I/O Command Set specific Identify Namespace data structure";
        /// I/O Command Set specific Identify Controller data structure.
        0x06 COMMAND_SET_CONTROLLER "I/O Command Set specific Identify Controller data structure";
        /// I/O Command Set specific Active Namespace ID list.
        0x07 COMMAND_SET_ACTIVE_NAMESPACES "I/O Command Set specific Active Namespace ID list";
        /// I/O Command Set Independent Identify Namespace data structure.
        0x08 INDEPENDENT_NAMESPACE "I/O Command Set Independent Identify Namespace data structure";
        /// Identify Namespace data structure for a User Data Format.
        0x09 NAMESPACE_FORMAT "Identify Namespace data structure for a User Data Format";
        /// I/O Command Set specific Identify Namespace data structure for a User Data Format.
        0x0a COMMAND_SET_NAMESPACE_FORMAT "I/O Command Set specific Identify Namespace data structure for a User Data Format";
        /// Allocated Namespace ID list.
        0x10 ALLOCATED_NAMESPACES "Allocated Namespace ID list";
        /// Identify Namespace data structure of an allocated namespace.
        0x11 ALLOCATED_NAMESPACE "Identify Namespace data structure of an allocated namespace";
        /// Controller List of the controllers that a namespace is attached to.
        0x12 NAMESPACE_CONTROLLERS "Controller List of the controllers that a namespace is attached to";
        /// Controller List of the NVM subsystem.
        0x13 CONTROLLERS "Controller List of the NVM subsystem";
        /// Primary Controller Capabilities data structure.
        0x14 PRIMARY_CONTROLLER "Primary Controller Capabilities data structure";
        /// Secondary Controller List.
        0x15 SECONDARY_CONTROLLERS "Secondary Controller List";
        /// Namespace Granularity List.
        0x16 NAMESPACE_GRANULARITY "Namespace Granularity List";
        /// UUID List.
        0x17 UUID_LIST "UUID List";
        /// Domain List.
        0x18 DOMAINS "Domain List";
        /// Endurance Group List.
        0x19 ENDURANCE_GROUPS "Endurance Group List";
        /// I/O Command Set specific Allocated Namespace ID list.
        0x1a COMMAND_SET_ALLOCATED_NAMESPACES "I/O Command Set specific Allocated Namespace ID list";
        /// I/O Command Set specific Identify Namespace data structure of an allocated namespace.
        0x1b COMMAND_SET_ALLOCATED_NAMESPACE "I/O Command Set specific Identify Namespace data structure of an allocated namespace";
        /// Identify I/O Command Set data structure.
        0x1c COMMAND_SETS "Identify I/O Command Set data structure";
        /// Underlying Namespace List.
        0x1d UNDERLYING_NAMESPACES "Underlying Namespace List";
        /// Ports List.
        0x1e PORTS "Ports List";
        /// I/O Command Set Independent Identify Namespace data structure of an allocated namespace.
        0x1f INDEPENDENT_ALLOCATED_NAMESPACE "I/O Command Set Independent Identify Namespace data structure of an allocated namespace";
        /// Supported Controller State Formats.
        0x20 CONTROLLER_STATE_FORMATS "Supported Controller State Formats";
    }
}

codes! {
    /// CSI, Command Set Identifier.
    pub struct Csi(u8, 8) {
        /// NVM command set.
        0 NVM "NVM Command Set";
        /// Key value command set.
        1 KEY_VALUE "Key Value Command Set";
        /// Zoned namespace command set.
        2 ZONED "Zoned Namespace Command Set";
        /// Subsystem local memory command set.
        3 LOCAL_MEMORY "Subsystem Local Memory Command Set";
        /// Computational programs command set.
        4 COMPUTATIONAL "Computational Programs Command Set";
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
        10[0:8] lid: LogId = choice(LogId::MEANINGS), "Log Page Identifier";
        /// What the log page makes of it.
        10[8:7] lsp: UInt<7> = HEX, "Log Specific Parameter";
        /// Retain Asynchronous Event: reading does not clear the event.
        10[15:1] rae: bool = FLAG, "Retain Asynchronous Event";
        /// Dwords to return (NUMDL and NUMDU are one number).
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
        14[24:8] csi: Csi = choice(Csi::MEANINGS), "Command Set Identifier";
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
        11[24:8] csi: Csi = choice(Csi::MEANINGS), "Command Set Identifier";
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
        10[0:8] fid: FeatureId = choice(FeatureId::MEANINGS), "Feature Identifier";
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
        10[0:8] fid: FeatureId = choice(FeatureId::MEANINGS), "Feature Identifier";
        /// The value outlasts a reset and a loss of power.
        10[31:1] sv: bool = FLAG, "Save";
        /// The value.
        11[0:32] value: u32 = HEX, "Command Dword 11";
        /// More of the value.
        12[0:32] cdw12: u32 = HEX, "Command Dword 12";
        /// More of the value.
        13[0:32] cdw13: u32 = HEX, "Command Dword 13";
        /// More of the value for Host Memory Buffer; for other features the UUID index in bits 6:0.
        14[0:32] cdw14: u32 = HEX, "Command Dword 14";
        /// More of the value.
        15[0:32] cdw15: u32 = HEX, "Command Dword 15";
    }
}

command! {
    /// Keep Alive: tells the controller that the host is there.
    /// NVM Express Base Specification, "Keep Alive command".
    pub struct KeepAlive = AdminOpcode::KEEP_ALIVE, "Keep Alive" {}
}

command! {
    /// Doorbell Buffer Config: PRP1 is the page of shadow doorbells, PRP2 the page of event indexes.
    /// NVM Express Base Specification, "Doorbell Buffer Config command".
    pub struct DoorbellBufferConfig = AdminOpcode::DOORBELL_BUFFER_CONFIG, "Doorbell Buffer Config" {}
}
