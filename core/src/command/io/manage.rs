//! Cancel and I/O Management.
#![forbid(unsafe_code)]

use super::{IoOpcode, command};
use crate::number::ZeroBasedU32;
use crate::{codes, structure};
use zerocopy::little_endian::{U16, U32, U64};

codes! {
    /// Action code of Cancel.
    pub struct CancelAction(u8, 2) {
        /// One command.
        0 SINGLE "single command";
        /// All commands of the queue and namespace but this one; the command identifier is FFFFh.
        1 MULTIPLE "multiple commands";
    }
}

command! {
    /// Cancel: aborts commands of the submission queue that it is sent on.
    /// NVM Express Base Specification, "Cancel command".
    pub struct Cancel = IoOpcode::CANCEL, "Cancel" {
        /// The namespace, or FFFFFFFFh for any.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
        /// The submission queue, which must be the one that the command is sent on.
        10[0:16] sqid: u16 = COUNT, "Submission Queue Identifier";
        /// The command.
        10[16:16] cid: u16 = HEX, "Command Identifier";
        /// One command or many.
        11[0:2] action: CancelAction = choice(CancelAction::MEANINGS), "Action Code";
    }
}

codes! {
    /// MO of I/O Management Receive and Send.
    pub struct ManagementOperation(u8, 8) {
        /// None.
        0 NONE "no action";
        /// Receive: status of the reclaim unit handles. Send: update the reclaim unit handles.
        1 RECLAIM_UNIT_HANDLES "reclaim unit handle status or update";
    }
}

command! {
    /// I/O Management Receive. NVM Express Base Specification, "I/O Management Receive command".
    pub struct IoManagementReceive = IoOpcode::IO_MANAGEMENT_RECEIVE, "I/O Management Receive" {
        /// The namespace.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
        /// What is asked for.
        10[0:8] mo: ManagementOperation = choice(ManagementOperation::MEANINGS), "Management Operation";
        /// What the operation makes of it.
        10[16:16] mos: u16 = HEX, "Management Operation Specific";
        /// Dwords to return.
        11[0:32] numd: ZeroBasedU32 = ZERO_BASED, "Number of Dwords";
    }
}

command! {
    /// I/O Management Send. NVM Express Base Specification, "I/O Management Send command".
    pub struct IoManagementSend = IoOpcode::IO_MANAGEMENT_SEND, "I/O Management Send" {
        /// The namespace.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
        /// What to do.
        10[0:8] mo: ManagementOperation = choice(ManagementOperation::MEANINGS), "Management Operation";
        /// What the operation makes of it: for an update, the number of placement identifiers, 0's based.
        10[16:16] mos: u16 = HEX, "Management Operation Specific";
    }
}

structure! {
    /// The head of the reclaim unit handle status; `nruhsd` descriptors follow.
    /// NVM Express Base Specification, "Reclaim Unit Handle Status".
    pub struct ReclaimUnitHandleStatusHeader: 16, "ruh-status-head" {
        /// Reserved.
        0 reserved_0: [u8; 14] = RESERVED, "Reserved";
        /// Descriptors that follow.
        14 nruhsd: U16 = COUNT, "Number of Reclaim Unit Handle Status Descriptors";
    }
}

structure! {
    /// Reclaim Unit Handle Status Descriptor.
    /// NVM Express Base Specification, "Reclaim Unit Handle Status Descriptor".
    pub struct ReclaimUnitHandleStatus: 32, "ruh-status" {
        /// Placement identifier.
        0 pid: U16 = HEX, "Placement Identifier";
        /// Reclaim unit handle.
        2 ruhid: U16 = HEX, "Reclaim Unit Handle Identifier";
        /// Seconds that the reclaim unit is expected to remain as it is; 0 where not reported.
        4 earutr: U32 = amount(1, "s").zero("not reported"), "Estimated Active Reclaim Unit Time Remaining";
        /// Logical blocks that can be written before the reclaim unit is full.
        8 ruamw: U64 = COUNT, "Reclaim Unit Available Media Writes";
        /// Reserved.
        16 reserved_16: [u8; 16] = RESERVED, "Reserved";
    }
}
