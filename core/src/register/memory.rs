//! The registers of memory that lives in the controller: controller memory buffer, boot partitions, persistent memory
//! region.
#![forbid(unsafe_code)]

use crate::{bits, codes};

bits! {
    /// CMBLOC, Controller Memory Buffer Location. NVM Express Base Specification, "Offset 38h: CMBLOC".
    pub struct CmbLocation(u32 as U32) {
        /// Base Indicator Register: which BAR holds the buffer.
        0:3 bir: u8 = COUNT, "Base Indicator Register";
        /// Queues may lie partly in the buffer.
        3:1 cqmms: bool = FLAG, "Queue Mixed Memory Support";
        /// Queues in the buffer need not be contiguous.
        4:1 cqpds: bool = FLAG, "Queue Physically Discontiguous Support";
        /// Data pointer and data may lie in different memories.
        5:1 cdpmls: bool = FLAG, "Data Pointer Mixed Locations Support";
        /// Data pointer and command may lie in different memories.
        6:1 cdpcils: bool = FLAG, "Data Pointer and Command Independent Locations Support";
        /// Data and metadata may lie in different memories.
        7:1 cdmmms: bool = FLAG, "Data Metadata Mixed Memory Support";
        /// Queues in the buffer need not be aligned to dwords.
        8:1 cqda: bool = FLAG, "Queue Dword Alignment";
        /// Reserved.
        9:3 __: u8 = RESERVED, "Reserved";
        /// Where the buffer begins, in the units of CMBSZ.SZU.
        12:20 ofst: u32 = HEX, "Offset";
    }
}

bits! {
    /// CMBSZ, Controller Memory Buffer Size. NVM Express Base Specification, "Offset 3Ch: CMBSZ".
    pub struct CmbSize(u32 as U32) {
        /// Submission queues may lie in the buffer.
        0:1 sqs: bool = FLAG, "Submission Queue Support";
        /// Completion queues may lie in the buffer.
        1:1 cqs: bool = FLAG, "Completion Queue Support";
        /// PRP and SGL lists may lie in the buffer.
        2:1 lists: bool = FLAG, "PRP SGL List Support";
        /// Data of commands that transfer from the controller may lie in the buffer.
        3:1 rds: bool = FLAG, "Read Data Support";
        /// Data of commands that transfer to the controller may lie in the buffer.
        4:1 wds: bool = FLAG, "Write Data Support";
        /// Reserved.
        5:3 __: u8 = RESERVED, "Reserved";
        /// Unit of size and offset: 4 KiB times 16^SZU.
        8:4 szu: u8 = HEX, "Size Units";
        /// Size of the buffer in units of SZU.
        12:20 sz: u32 = COUNT, "Size";
    }
}

impl CmbSize {
    /// What one unit of size or offset is worth in bytes, or `None` for a reserved unit (7h and above).
    pub const fn unit_bytes(self) -> Option<u64> {
        if self.szu() > 6 { None } else { Some(4096 << (4 * self.szu())) }
    }

    /// Size of the buffer in bytes, or `None` for a reserved unit.
    pub const fn size_bytes(self) -> Option<u64> {
        match self.unit_bytes() {
            Some(unit) => Some(unit * self.sz() as u64),
            None => None,
        }
    }
}

bits! {
    /// CMBMSC, Controller Memory Buffer Memory Space Control.
    /// NVM Express Base Specification, "Offset 50h: CMBMSC".
    pub struct CmbMemorySpaceControl(u64 as U64) {
        /// CMBLOC and CMBSZ tell what they can.
        0:1 cre: bool = FLAG, "Capabilities Registers Enabled";
        /// The controller takes addresses within the buffer from commands.
        1:1 cmse: bool = FLAG, "Controller Memory Space Enable";
        /// Reserved.
        2:10 __: u16 = RESERVED, "Reserved";
        /// Where the buffer lies in the controller's address space, in pages of 4 KiB.
        12:52 cba: u64 = HEX, "Controller Base Address";
    }
}

bits! {
    /// CMBSTS, Controller Memory Buffer Status. NVM Express Base Specification, "Offset 58h: CMBSTS".
    pub struct CmbStatus(u32 as U32) {
        /// The base address was refused.
        0:1 cbai: bool = FLAG, "Controller Base Address Invalid";
        /// Reserved.
        1:31 __: u32 = RESERVED, "Reserved";
    }
}

codes! {
    /// The unit of a size or a throughput.
    pub struct MemoryUnit(u8, 4) {
        /// 1 byte.
        0 BYTE "bytes";
        /// 1 KiB.
        1 KIB "KiB";
        /// 1 MiB.
        2 MIB "MiB";
        /// 1 GiB.
        3 GIB "GiB";
    }
}

bits! {
    /// CMBEBS and PMREBS, elasticity buffer size.
    /// NVM Express Base Specification, "Offset 5Ch: CMBEBS" and "Offset E0Ch: PMREBS".
    pub struct ElasticityBuffer(u32 as U32) {
        /// Unit of the size.
        0:4 unit: MemoryUnit = choice(MemoryUnit::MEANINGS), "Elasticity Buffer Size Units";
        /// Reads do not wait for writes in the buffer.
        4:1 rbb: bool = FLAG, "Read Bypass Behavior";
        /// Reserved.
        5:3 __: u8 = RESERVED, "Reserved";
        /// Size in the unit.
        8:24 size: u32 = COUNT, "Elasticity Buffer Size Base";
    }
}

bits! {
    /// CMBSWTP and PMRSWTP, sustained write throughput.
    /// NVM Express Base Specification, "Offset 60h: CMBSWTP" and "Offset E10h: PMRSWTP".
    pub struct WriteThroughput(u32 as U32) {
        /// Unit of the throughput, per second.
        0:4 unit: MemoryUnit = choice(MemoryUnit::MEANINGS), "Sustained Write Throughput Units";
        /// Reserved.
        4:4 __: u8 = RESERVED, "Reserved";
        /// Throughput in the unit.
        8:24 value: u32 = COUNT, "Sustained Write Throughput";
    }
}

codes! {
    /// BPINFO.BRS: how a read of a boot partition goes.
    pub struct BootReadStatus(u8, 2) {
        /// None was asked for.
        0 NONE "no read requested";
        /// In progress.
        1 IN_PROGRESS "read in progress";
        /// Done.
        2 DONE "read completed";
        /// Failed.
        3 FAILED "read failed";
    }
}

bits! {
    /// BPINFO, Boot Partition Information. NVM Express Base Specification, "Offset 40h: BPINFO".
    pub struct BootPartitionInformation(u32 as U32) {
        /// Size of a boot partition in 128 KiB.
        0:15 bpsz: u16 = amount(131_072, "bytes"), "Boot Partition Size";
        /// Reserved.
        15:9 __: u16 = RESERVED, "Reserved";
        /// How a read goes.
        24:2 brs: BootReadStatus = choice(BootReadStatus::MEANINGS), "Boot Read Status";
        /// Reserved.
        26:5 __: u8 = RESERVED, "Reserved";
        /// The active boot partition.
        31:1 abpid: bool = FLAG, "Active Boot Partition ID";
    }
}

bits! {
    /// BPRSEL, Boot Partition Read Select. NVM Express Base Specification, "Offset 44h: BPRSEL".
    pub struct BootPartitionReadSelect(u32 as U32) {
        /// Size of the read in 4 KiB.
        0:10 bprsz: u16 = amount(4096, "bytes"), "Boot Partition Read Size";
        /// Offset of the read in 4 KiB.
        10:20 bprof: u32 = amount(4096, "bytes"), "Boot Partition Read Offset";
        /// Reserved.
        30:1 __: bool = RESERVED, "Reserved";
        /// The boot partition to be read.
        31:1 bpid: bool = FLAG, "Boot Partition Identifier";
    }
}

codes! {
    /// PMRCAP.PMRTU: the unit of the persistent memory region's time-out.
    pub struct PmrTimeUnit(u8, 2) {
        /// 500 milliseconds.
        0 MS_500 "500 ms";
        /// One minute.
        1 MINUTE "1 min";
    }
}

bits! {
    /// PMRCAP, Persistent Memory Region Capabilities. NVM Express Base Specification, "Offset E00h: PMRCAP".
    pub struct PmrCapabilities(u32 as U32) {
        /// Reserved.
        0:3 __: u8 = RESERVED, "Reserved";
        /// Data of commands that transfer from the controller may lie in the region.
        3:1 rds: bool = FLAG, "Read Data Support";
        /// Data of commands that transfer to the controller may lie in the region.
        4:1 wds: bool = FLAG, "Write Data Support";
        /// Base Indicator Register: which BAR holds the region.
        5:3 bir: u8 = COUNT, "Base Indicator Register";
        /// Unit of the time-out.
        8:2 pmrtu: PmrTimeUnit = choice(PmrTimeUnit::MEANINGS), "Persistent Memory Region Time Units";
        /// What makes sure that writes are persistent: bit 0 a read of memory, bit 1 a read of PMRSTS.
        10:4 pmrwbm: u8 = HEX, "Persistent Memory Region Write Barrier Mechanisms";
        /// Reserved.
        14:2 __: u8 = RESERVED, "Reserved";
        /// Longest time to become ready or not ready, in the unit.
        16:8 pmrto: u8 = COUNT, "Persistent Memory Region Timeout";
        /// The region has an address in the controller's address space.
        24:1 cmss: bool = FLAG, "Controller Memory Space Supported";
        /// Reserved.
        25:7 __: u8 = RESERVED, "Reserved";
    }
}

bits! {
    /// PMRCTL, Persistent Memory Region Control. NVM Express Base Specification, "Offset E04h: PMRCTL".
    pub struct PmrControl(u32 as U32) {
        /// The region can be used.
        0:1 en: bool = FLAG, "Enable";
        /// Reserved.
        1:31 __: u32 = RESERVED, "Reserved";
    }
}

codes! {
    /// PMRSTS.HSTS: how healthy the persistent memory region is.
    pub struct PmrHealth(u8, 3) {
        /// Normal.
        0 NORMAL "normal operation";
        /// Contents may be lost: restored with errors.
        1 RESTORE_ERROR "restore error";
        /// Read only.
        2 READ_ONLY "read only";
        /// Unreliable.
        3 UNRELIABLE "unreliable";
    }
}

bits! {
    /// PMRSTS, Persistent Memory Region Status. NVM Express Base Specification, "Offset E08h: PMRSTS".
    pub struct PmrStatus(u32 as U32) {
        /// Not zero: an earlier write may not be persistent.
        0:8 err: u8 = HEX, "Error";
        /// The region cannot be used yet.
        8:1 nrdy: bool = FLAG, "Not Ready";
        /// How healthy it is.
        9:3 hsts: PmrHealth = choice(PmrHealth::MEANINGS), "Health Status";
        /// The base address was refused.
        12:1 cbai: bool = FLAG, "Controller Base Address Invalid";
        /// Reserved.
        13:19 __: u32 = RESERVED, "Reserved";
    }
}

bits! {
    /// PMRMSCL, Persistent Memory Region Memory Space Control, lower half.
    /// NVM Express Base Specification, "Offset E14h: PMRMSCL".
    pub struct PmrMemorySpaceControlLower(u32 as U32) {
        /// Reserved.
        0:1 __: bool = RESERVED, "Reserved";
        /// The controller takes addresses within the region from commands.
        1:1 cmse: bool = FLAG, "Controller Memory Space Enable";
        /// Reserved.
        2:10 __: u16 = RESERVED, "Reserved";
        /// Lower part of where the region lies in the controller's address space, in pages of 4 KiB.
        12:20 cba: u32 = HEX, "Controller Base Address";
    }
}
