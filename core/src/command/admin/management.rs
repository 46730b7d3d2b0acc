//! Admin commands that change what the subsystem consists of: namespaces, capacity, virtual controllers, lockdown.
#![forbid(unsafe_code)]

use super::{AdminOpcode, Csi, command};
use crate::identify::{Dps, FormattedLbaSize, Nmic};
use crate::number::UInt;
use crate::{codes, structure};
use zerocopy::little_endian::{U16, U32, U64};

codes! {
    /// SEL of Namespace Management.
    pub struct NamespaceAction(u8, 4) {
        /// Create a namespace from the data sent with the command; its identifier comes in dword 0 of the completion.
        0 CREATE "create";
        /// Delete a namespace.
        1 DELETE "delete";
    }
}

command! {
    /// Namespace Management. NVM Express Base Specification, "Namespace Management command".
    pub struct NamespaceManagement = AdminOpcode::NAMESPACE_MANAGEMENT, "Namespace Management" {
        /// The namespace to be deleted, or FFFFFFFFh for all; 0 for a creation.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
        /// Create or delete.
        10[0:4] sel: NamespaceAction = choice(NamespaceAction::MEANINGS), "Select";
        /// The command set of the new namespace.
        11[24:8] csi: Csi = choice(Csi::MEANINGS), "Command Set Identifier";
    }
}

structure! {
    /// What the host gives for a new namespace of the NVM command set.
    /// NVM Express NVM Command Set Specification, "Namespace Management - Data Structure".
    pub struct NewNamespace: 4096, "new-ns" {
        /// Size in logical blocks.
        0 nsze: U64 = COUNT, "Namespace Size";
        /// Capacity in logical blocks.
        8 ncap: U64 = COUNT, "Namespace Capacity";
        /// Reserved.
        16 reserved_16: [u8; 10] = RESERVED, "Reserved";
        /// The LBA format.
        26 flbas: FormattedLbaSize = bits(FormattedLbaSize::PARTS), "Formatted LBA Size";
        /// Reserved.
        27 reserved_27: [u8; 2] = RESERVED, "Reserved";
        /// Protection information.
        29 dps: Dps = bits(Dps::PARTS), "End-to-end Data Protection Type Settings";
        /// Sharing.
        30 nmic: Nmic = bits(Nmic::PARTS), "Namespace Multi-path I/O and Namespace Sharing Capabilities";
        /// Reserved.
        31 reserved_31: [u8; 61] = RESERVED, "Reserved";
        /// The ANA group; 0 leaves the choice to the controller.
        92 anagrpid: U32 = COUNT, "ANA Group Identifier";
        /// Reserved.
        96 reserved_96: [u8; 4] = RESERVED, "Reserved";
        /// The NVM set; 0 leaves the choice to the controller.
        100 nvmsetid: U16 = COUNT, "NVM Set Identifier";
        /// The endurance group; 0 leaves the choice to the controller.
        102 endgid: U16 = COUNT, "Endurance Group Identifier";
        /// Reserved.
        104 reserved_104: [u8; 280] = RESERVED, "Reserved";
        /// Which bits of the storage tag are compared.
        384 lbstm: U64 = HEX, "Logical Block Storage Tag Mask";
        /// Number of placement handles in `phndl`.
        392 nphndls: U16 = COUNT, "Number of Placement Handles";
        /// Reserved.
        394 reserved_394: [u8; 118] = RESERVED, "Reserved";
        /// The placement handles (flexible data placement).
        512 phndl: [U16; 128] = COUNT, "Placement Handle";
        /// Reserved, and the vendor's own from byte 1024 on.
        768 reserved_768: [u8; 3328] = RESERVED, "Reserved";
    }
}

codes! {
    /// SEL of Namespace Attachment.
    pub struct AttachmentAction(u8, 4) {
        /// Attach to the controllers of the list sent with the command.
        0 ATTACH "attach";
        /// Detach from the controllers of the list sent with the command.
        1 DETACH "detach";
    }
}

command! {
    /// Namespace Attachment; the data is a list of controllers.
    /// NVM Express Base Specification, "Namespace Attachment command".
    pub struct NamespaceAttachment = AdminOpcode::NAMESPACE_ATTACHMENT, "Namespace Attachment" {
        /// The namespace.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
        /// Attach or detach.
        10[0:4] sel: AttachmentAction = choice(AttachmentAction::MEANINGS), "Select";
    }
}

codes! {
    /// OPER of Capacity Management.
    pub struct CapacityOperation(u8, 4) {
        /// Select a capacity configuration.
        0 SELECT_CONFIGURATION "select capacity configuration";
        /// Create an endurance group.
        1 CREATE_ENDURANCE_GROUP "create endurance group";
        /// Delete an endurance group.
        2 DELETE_ENDURANCE_GROUP "delete endurance group";
        /// Create an NVM set.
        3 CREATE_NVM_SET "create NVM set";
        /// Delete an NVM set.
        4 DELETE_NVM_SET "delete NVM set";
    }
}

command! {
    /// Capacity Management. NVM Express Base Specification, "Capacity Management command".
    pub struct CapacityManagement = AdminOpcode::CAPACITY_MANAGEMENT, "Capacity Management" {
        /// What to do.
        10[0:4] oper: CapacityOperation = choice(CapacityOperation::MEANINGS), "Operation";
        /// The element that the operation is about.
        10[16:16] elid: u16 = COUNT, "Element Identifier";
        /// Capacity in bytes (CAPL and CAPU are one number).
        11[0:64] cap: u64 = amount(1, "bytes"), "Capacity";
    }
}

codes! {
    /// ACT of Virtualization Management.
    pub struct VirtualizationAction(u8, 4) {
        /// Give flexible resources to the primary controller, after the next reset.
        1 PRIMARY_ALLOCATE "primary controller flexible allocation";
        /// Take a secondary controller offline.
        7 SECONDARY_OFFLINE "secondary controller offline";
        /// Give resources to a secondary controller that is offline.
        8 SECONDARY_ASSIGN "secondary controller assign";
        /// Put a secondary controller online.
        9 SECONDARY_ONLINE "secondary controller online";
    }
}

codes! {
    /// RT of Virtualization Management: the kind of resource.
    pub struct ResourceType(u8, 3) {
        /// Queues.
        0 QUEUES "VQ resources";
        /// Interrupts.
        1 INTERRUPTS "VI resources";
    }
}

command! {
    /// Virtualization Management. NVM Express Base Specification, "Virtualization Management command".
    pub struct VirtualizationManagement = AdminOpcode::VIRTUALIZATION_MANAGEMENT, "Virtualization Management" {
        /// What to do.
        10[0:4] act: VirtualizationAction = choice(VirtualizationAction::MEANINGS), "Action";
        /// The kind of resource.
        10[8:3] rt: ResourceType = choice(ResourceType::MEANINGS), "Resource Type";
        /// The controller.
        10[16:16] cntlid: u16 = HEX, "Controller Identifier";
        /// How many.
        11[0:16] nr: u16 = COUNT, "Number of Controller Resources";
    }
}

codes! {
    /// SCP of Lockdown: what is locked.
    pub struct LockdownScope(u8, 4) {
        /// An admin command, by its opcode.
        0 ADMIN_COMMAND "admin command opcode";
        /// A feature, by its identifier.
        2 FEATURE "feature identifier";
        /// A command of the Management Interface command set.
        3 MI_COMMAND "Management Interface command set opcode";
        /// A command of the PCIe command set.
        4 PCIE_COMMAND "PCIe command set opcode";
    }
}

command! {
    /// Lockdown: forbids, or allows again, a command or a feature.
    /// NVM Express Base Specification, "Lockdown command".
    pub struct Lockdown = AdminOpcode::LOCKDOWN, "Lockdown" {
        /// What is locked.
        10[0:4] scp: LockdownScope = choice(LockdownScope::MEANINGS), "Scope";
        /// Forbid, not allow.
        10[4:1] prhbt: bool = FLAG, "Prohibit";
        /// Which way of sending it is meant: 0 admin queue, 1 admin queue and out of band, 2 out of band.
        10[5:2] ifc: UInt<2> = COUNT, "Interface";
        /// The opcode or feature.
        10[8:8] ofi: u8 = HEX, "Opcode or Feature Identifier";
        /// Index of the vendor's UUID in the UUID list; 0 for none.
        14[0:7] uidx: UInt<7> = COUNT, "UUID Index";
    }
}
