//! The controller's registers: where they lie and what their bits mean.
//!
//! NVM Express Base Specification, "Controller Properties"; NVMe over PCIe Transport Specification for the doorbells.
//! [`Registers`] is the map; [`offset`] has the place of each, taken from the map.
//!
//! A register whose bits are all ones is what a vanished device answers: ask [`is_all_ones`] before believing a bit.
//!
//! ```
//! use nvmetal_core::register::{Capabilities, is_all_ones_u64};
//!
//! let raw = 0x0020_7803_0fff; // as read from offset::CAP
//! assert!(!is_all_ones_u64(raw));
//! let cap = Capabilities::from_bits(raw);
//! assert_eq!(cap.mqes().count(), 4096);
//! assert_eq!(cap.timeout_ms(), 60_000);
//! assert_eq!(cap.doorbell_stride_bytes(), 4);
//! ```
#![forbid(unsafe_code)]

mod control;
mod memory;
pub use control::*;
pub use memory::*;

use crate::structure;
use zerocopy::little_endian::U32;

structure! {
    /// The registers of a controller as they lie in BAR0, up to the first doorbell.
    /// NVM Express Base Specification, "Controller Properties".
    pub struct Registers: 3612, "registers" {
        /// What the controller can do.
        0x00 cap: Capabilities = bits(Capabilities::PARTS), "Controller Capabilities";
        /// The version of the specification that it follows.
        0x08 vs: Version = VERSION, "Version";
        /// Interrupt vectors to be masked. Not used with MSI-X.
        0x0c intms: U32 = HEX, "Interrupt Mask Set";
        /// Interrupt vectors to be unmasked. Not used with MSI-X.
        0x10 intmc: U32 = HEX, "Interrupt Mask Clear";
        /// What the host has configured.
        0x14 cc: Configuration = bits(Configuration::PARTS), "Controller Configuration";
        /// Reserved.
        0x18 reserved_18: [u8; 4] = RESERVED, "Reserved";
        /// How the controller is.
        0x1c csts: ControllerStatus = bits(ControllerStatus::PARTS), "Controller Status";
        /// Writing "NVMe" here resets the whole subsystem.
        0x20 nssr: U32 = HEX, "NVM Subsystem Reset";
        /// Sizes of the admin queues.
        0x24 aqa: AdminQueueAttributes = bits(AdminQueueAttributes::PARTS), "Admin Queue Attributes";
        /// Where the admin submission queue lies.
        0x28 asq: QueueBase = HEX, "Admin Submission Queue Base Address";
        /// Where the admin completion queue lies.
        0x30 acq: QueueBase = HEX, "Admin Completion Queue Base Address";
        /// Where the controller memory buffer lies.
        0x38 cmbloc: CmbLocation = bits(CmbLocation::PARTS), "Controller Memory Buffer Location";
        /// How large the controller memory buffer is and what for.
        0x3c cmbsz: CmbSize = bits(CmbSize::PARTS), "Controller Memory Buffer Size";
        /// The boot partitions.
        0x40 bpinfo: BootPartitionInformation = bits(BootPartitionInformation::PARTS), "Boot Partition Information";
        /// Which part of a boot partition to read.
        0x44 bprsel: BootPartitionReadSelect = bits(BootPartitionReadSelect::PARTS), "Boot Partition Read Select";
        /// Where to read the boot partition to, a page of 4 KiB.
        0x48 bpmbl: QueueBase = HEX, "Boot Partition Memory Buffer Location";
        /// The controller memory buffer's place in the controller's address space.
        0x50 cmbmsc: CmbMemorySpaceControl = bits(CmbMemorySpaceControl::PARTS), "Controller Memory Buffer Memory Space Control";
        /// How the controller memory buffer is.
        0x58 cmbsts: CmbStatus = bits(CmbStatus::PARTS), "Controller Memory Buffer Status";
        /// How much the controller memory buffer takes in a burst.
        0x5c cmbebs: ElasticityBuffer = bits(ElasticityBuffer::PARTS), "Controller Memory Buffer Elasticity Buffer Size";
        /// How fast the controller memory buffer takes writes.
        0x60 cmbswtp: WriteThroughput = bits(WriteThroughput::PARTS), "Controller Memory Buffer Sustained Write Throughput";
        /// Writing "Nrml" or "Abpt" here shuts the whole subsystem down.
        0x64 nssd: U32 = HEX, "NVM Subsystem Shutdown";
        /// How long the controller may take to become ready.
        0x68 crto: ReadyTimeouts = bits(ReadyTimeouts::PARTS), "Controller Ready Timeouts";
        /// Reserved.
        0x6c reserved_6c: [u8; 3476] = RESERVED, "Reserved";
        /// What the persistent memory region can do.
        0xe00 pmrcap: PmrCapabilities = bits(PmrCapabilities::PARTS), "Persistent Memory Region Capabilities";
        /// Whether the persistent memory region is enabled.
        0xe04 pmrctl: PmrControl = bits(PmrControl::PARTS), "Persistent Memory Region Control";
        /// How the persistent memory region is.
        0xe08 pmrsts: PmrStatus = bits(PmrStatus::PARTS), "Persistent Memory Region Status";
        /// How much the persistent memory region takes in a burst.
        0xe0c pmrebs: ElasticityBuffer = bits(ElasticityBuffer::PARTS), "Persistent Memory Region Elasticity Buffer Size";
        /// How fast the persistent memory region takes writes.
        0xe10 pmrswtp: WriteThroughput = bits(WriteThroughput::PARTS), "Persistent Memory Region Sustained Write Throughput";
        /// The persistent memory region's place in the controller's address space, lower half.
        0xe14 pmrmscl: PmrMemorySpaceControlLower = bits(PmrMemorySpaceControlLower::PARTS), "Persistent Memory Region Memory Space Control Lower";
        /// The persistent memory region's place in the controller's address space, upper half.
        0xe18 pmrmscu: U32 = HEX, "Persistent Memory Region Memory Space Control Upper";
    }
}

/// Byte offsets of the registers in BAR0.
pub mod offset {
    use super::Registers;
    use ::core::mem::offset_of;

    /// Controller Capabilities, 8 bytes.
    pub const CAP: u64 = offset_of!(Registers, cap) as u64;
    /// Version, 4 bytes.
    pub const VS: u64 = offset_of!(Registers, vs) as u64;
    /// Interrupt Mask Set, 4 bytes.
    pub const INTMS: u64 = offset_of!(Registers, intms) as u64;
    /// Interrupt Mask Clear, 4 bytes.
    pub const INTMC: u64 = offset_of!(Registers, intmc) as u64;
    /// Controller Configuration, 4 bytes.
    pub const CC: u64 = offset_of!(Registers, cc) as u64;
    /// Controller Status, 4 bytes.
    pub const CSTS: u64 = offset_of!(Registers, csts) as u64;
    /// NVM Subsystem Reset, 4 bytes.
    pub const NSSR: u64 = offset_of!(Registers, nssr) as u64;
    /// Admin Queue Attributes, 4 bytes.
    pub const AQA: u64 = offset_of!(Registers, aqa) as u64;
    /// Admin Submission Queue base address, 8 bytes.
    pub const ASQ: u64 = offset_of!(Registers, asq) as u64;
    /// Admin Completion Queue base address, 8 bytes.
    pub const ACQ: u64 = offset_of!(Registers, acq) as u64;
    /// Controller Memory Buffer Location, 4 bytes.
    pub const CMBLOC: u64 = offset_of!(Registers, cmbloc) as u64;
    /// Controller Memory Buffer Size, 4 bytes.
    pub const CMBSZ: u64 = offset_of!(Registers, cmbsz) as u64;
    /// Boot Partition Information, 4 bytes.
    pub const BPINFO: u64 = offset_of!(Registers, bpinfo) as u64;
    /// Boot Partition Read Select, 4 bytes.
    pub const BPRSEL: u64 = offset_of!(Registers, bprsel) as u64;
    /// Boot Partition Memory Buffer Location, 8 bytes.
    pub const BPMBL: u64 = offset_of!(Registers, bpmbl) as u64;
    /// Controller Memory Buffer Memory Space Control, 8 bytes.
    pub const CMBMSC: u64 = offset_of!(Registers, cmbmsc) as u64;
    /// Controller Memory Buffer Status, 4 bytes.
    pub const CMBSTS: u64 = offset_of!(Registers, cmbsts) as u64;
    /// Controller Memory Buffer Elasticity Buffer Size, 4 bytes.
    pub const CMBEBS: u64 = offset_of!(Registers, cmbebs) as u64;
    /// Controller Memory Buffer Sustained Write Throughput, 4 bytes.
    pub const CMBSWTP: u64 = offset_of!(Registers, cmbswtp) as u64;
    /// NVM Subsystem Shutdown, 4 bytes.
    pub const NSSD: u64 = offset_of!(Registers, nssd) as u64;
    /// Controller Ready Timeouts, 4 bytes.
    pub const CRTO: u64 = offset_of!(Registers, crto) as u64;
    /// Persistent Memory Region Capabilities, 4 bytes.
    pub const PMRCAP: u64 = offset_of!(Registers, pmrcap) as u64;
    /// Persistent Memory Region Control, 4 bytes.
    pub const PMRCTL: u64 = offset_of!(Registers, pmrctl) as u64;
    /// Persistent Memory Region Status, 4 bytes.
    pub const PMRSTS: u64 = offset_of!(Registers, pmrsts) as u64;
    /// Persistent Memory Region Elasticity Buffer Size, 4 bytes.
    pub const PMREBS: u64 = offset_of!(Registers, pmrebs) as u64;
    /// Persistent Memory Region Sustained Write Throughput, 4 bytes.
    pub const PMRSWTP: u64 = offset_of!(Registers, pmrswtp) as u64;
    /// Persistent Memory Region Memory Space Control, lower half, 4 bytes.
    pub const PMRMSCL: u64 = offset_of!(Registers, pmrmscl) as u64;
    /// Persistent Memory Region Memory Space Control, upper half, 4 bytes.
    pub const PMRMSCU: u64 = offset_of!(Registers, pmrmscu) as u64;
    /// First doorbell.
    pub const DOORBELLS: u64 = 0x1000;
}

/// What a write to NSSR must carry for a subsystem reset: the ASCII letters "NVMe".
pub const NSSR_RESET: u32 = 0x4e56_4d65;

/// What a write to NSSD must carry for a shutdown of the subsystem in good order: the ASCII letters "Nrml".
pub const NSSD_NORMAL: u32 = 0x4e72_6d6c;

/// What a write to NSSD must carry for a shutdown of the subsystem at once: the ASCII letters "Abpt".
pub const NSSD_ABRUPT: u32 = 0x4162_7074;

/// Whether a 32-bit register reads as all ones, as it does when the device is gone.
pub const fn is_all_ones(value: u32) -> bool {
    value == u32::MAX
}

/// Whether a 64-bit register reads as all ones, as it does when the device is gone.
pub const fn is_all_ones_u64(value: u64) -> bool {
    value == u64::MAX
}

/// Byte offset in BAR0 of a queue's doorbell: the submission queue's tail, or the completion queue's head.
///
/// `dstrd` is the field CAP.DSTRD (four bits), the distance of two doorbells being `4 << dstrd` bytes.
pub const fn doorbell_offset(qid: u16, completion: bool, dstrd: u8) -> u64 {
    offset::DOORBELLS + (2 * qid as u64 + completion as u64) * (4 << (dstrd & 0xf))
}
