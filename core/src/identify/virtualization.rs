//! Primary and secondary controllers: how a controller shares its queues and interrupts with virtual ones.
#![forbid(unsafe_code)]

use crate::{bits, structure};
use zerocopy::little_endian::{U16, U32};

bits! {
    /// CRT, Controller Resource Types.
    pub struct ResourceTypes(u8 as u8) {
        /// Queues.
        0:1 queues: bool = FLAG, "VQ resources";
        /// Interrupts.
        1:1 interrupts: bool = FLAG, "VI resources";
        /// Reserved.
        2:6 __: u8 = RESERVED, "reserved";
    }
}

structure! {
    /// Primary Controller Capabilities, CNS 14h.
    /// NVM Express Base Specification, "Primary Controller Capabilities Structure".
    pub struct PrimaryController: 4096, "primary-ctrl" {
        /// The controller.
        0 cntlid: U16 = HEX, "Controller Identifier";
        /// The port.
        2 portid: U16 = HEX, "Port Identifier";
        /// Kinds of resource that are shared.
        4 crt: ResourceTypes = bits(ResourceTypes::PARTS), "Controller Resource Types";
        /// Reserved.
        5 reserved_5: [u8; 27] = RESERVED, "Reserved";
        /// Flexible queues.
        32 vqfrt: U32 = COUNT, "VQ Resources Flexible Total";
        /// Flexible queues that secondary controllers have.
        36 vqrfa: U32 = COUNT, "VQ Resources Flexible Assigned";
        /// Flexible queues that the primary controller has.
        40 vqrfap: U16 = COUNT, "VQ Resources Flexible Allocated to Primary";
        /// Queues that are the primary controller's own.
        42 vqprt: U16 = COUNT, "VQ Resources Private Total";
        /// Most queues of a secondary controller.
        44 vqfrsm: U16 = COUNT, "VQ Resources Flexible Secondary Maximum";
        /// Queues are assigned in multiples of this.
        46 vqgran: U16 = COUNT, "VQ Flexible Resource Preferred Granularity";
        /// Reserved.
        48 reserved_48: [u8; 16] = RESERVED, "Reserved";
        /// Flexible interrupts.
        64 vifrt: U32 = COUNT, "VI Resources Flexible Total";
        /// Flexible interrupts that secondary controllers have.
        68 virfa: U32 = COUNT, "VI Resources Flexible Assigned";
        /// Flexible interrupts that the primary controller has.
        72 virfap: U16 = COUNT, "VI Resources Flexible Allocated to Primary";
        /// Interrupts that are the primary controller's own.
        74 viprt: U16 = COUNT, "VI Resources Private Total";
        /// Most interrupts of a secondary controller.
        76 vifrsm: U16 = COUNT, "VI Resources Flexible Secondary Maximum";
        /// Interrupts are assigned in multiples of this.
        78 vigran: U16 = COUNT, "VI Flexible Resource Preferred Granularity";
        /// Reserved.
        80 reserved_80: [u8; 4016] = RESERVED, "Reserved";
    }
}

bits! {
    /// SCS, Secondary Controller State.
    pub struct SecondaryState(u8 as u8) {
        /// The controller is online.
        0:1 online: bool = FLAG, "online";
        /// Reserved.
        1:7 __: u8 = RESERVED, "reserved";
    }
}

structure! {
    /// Secondary Controller Entry.
    pub struct SecondaryController: 32, "secondary-ctrl" {
        /// The secondary controller.
        0 scid: U16 = HEX, "Secondary Controller Identifier";
        /// Its primary controller.
        2 pcid: U16 = HEX, "Primary Controller Identifier";
        /// Its state.
        4 scs: SecondaryState = bits(SecondaryState::PARTS), "Secondary Controller State";
        /// Reserved.
        5 reserved_5: [u8; 3] = RESERVED, "Reserved";
        /// The SR-IOV virtual function; 0 where it is none.
        8 vfn: U16 = COUNT.zero("not an SR-IOV virtual function"), "Virtual Function Number";
        /// Queues.
        10 nvq: U16 = COUNT, "Number of VQ Flexible Resources Assigned";
        /// Interrupts.
        12 nvi: U16 = COUNT, "Number of VI Flexible Resources Assigned";
        /// Reserved.
        14 reserved_14: [u8; 18] = RESERVED, "Reserved";
    }
}

structure! {
    /// Secondary Controller List, CNS 15h. NVM Express Base Specification, "Secondary Controller List".
    pub struct SecondaryControllerList: 4096, "secondary-ctrl-list" {
        /// Entries in the list.
        0 count: u8 = COUNT, "Number of Identifiers";
        /// Reserved.
        1 reserved_1: [u8; 31] = RESERVED, "Reserved";
        /// The entries.
        32 entry: [SecondaryController; 127] = nested(&SecondaryController::DESCRIPTOR), "Secondary Controller";
    }
}
