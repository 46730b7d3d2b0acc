//! What the I/O command sets say of a controller and a namespace: NVM, zoned, and the structure that tells which there
//! are.
#![forbid(unsafe_code)]

use super::namespace_bits::{Fpi, Kpios, Nmic, Nsattr, Rescap};
use crate::{bits, codes, structure};
use zerocopy::little_endian::{U16, U32, U64};

structure! {
    /// Identify Controller of the NVM command set, CNS 06h with CSI 00h.
    /// NVM Express NVM Command Set Specification, "I/O Command Set specific Identify Controller Data Structure".
    pub struct NvmController: 4096, "nvm-ctrl" {
        /// Largest Verify, 2^VSL pages of CAP.MPSMIN.
        0 vsl: u8 = power_of_two(1, "pages").zero("no limit"), "Verify Size Limit";
        /// Largest Write Zeroes, 2^WZSL pages of CAP.MPSMIN.
        1 wzsl: u8 = power_of_two(1, "pages").zero("no limit"), "Write Zeroes Size Limit";
        /// Largest Write Uncorrectable, 2^WUSL pages of CAP.MPSMIN.
        2 wusl: u8 = power_of_two(1, "pages").zero("no limit"), "Write Uncorrectable Size Limit";
        /// Most ranges of one Dataset Management.
        3 dmrl: u8 = COUNT.zero("no limit"), "Dataset Management Ranges Limit";
        /// Most logical blocks in one range of Dataset Management.
        4 dmrsl: U32 = COUNT.zero("no limit"), "Dataset Management Range Size Limit";
        /// Most logical blocks in one Dataset Management.
        8 dmsl: U64 = COUNT.zero("no limit"), "Dataset Management Size Limit";
        /// Key per I/O.
        16 kpiocap: u8 = HEX, "Key Per I/O Capabilities";
        /// Largest Write Zeroes with Deallocate, 2^WZDSL pages of CAP.MPSMIN.
        17 wzdsl: u8 = power_of_two(1, "pages").zero("as WZSL"), "Write Zeroes With Deallocate Size Limit";
        /// Optional admin commands of the command set.
        18 aocs: U16 = HEX, "Admin Optional Command Support";
        /// Version of the NVM command set specification.
        20 ver: U32 = VERSION.zero("not reported"), "Version";
        /// Format of the LBA migration queue.
        24 lbamqf: u8 = HEX, "LBA Migration Queue Format";
        /// Reserved.
        25 reserved_25: [u8; 4071] = RESERVED, "Reserved";
    }
}

codes! {
    /// PIF, the guard of a format's protection information.
    pub struct ProtectionFormat(u8, 2) {
        /// 16 bits.
        0 GUARD_16 "16-bit guard";
        /// 32 bits.
        1 GUARD_32 "32-bit guard";
        /// 64 bits.
        2 GUARD_64 "64-bit guard";
        /// Told by QPIF.
        3 QUALIFIED "qualified type";
    }
}

bits! {
    /// ELBAF, what a format has beyond the LBA format of the same index.
    pub struct ExtendedLbaFormat(u32 as U32) {
        /// Bits of the storage tag.
        0:7 sts: u8 = COUNT, "storage tag size in bits";
        /// The guard.
        7:2 pif: ProtectionFormat = choice(ProtectionFormat::MEANINGS), "protection information format";
        /// The guard where PIF is 3.
        9:4 qpif: u8 = COUNT, "qualified protection information format";
        /// Reserved.
        13:19 __: u32 = RESERVED, "reserved";
    }
}

bits! {
    /// PIC, Protection Information Capabilities.
    pub struct Pic(u8 as u8) {
        /// A 16-bit guard may go with a storage tag.
        0:1 guard_16_storage_tag: bool = FLAG, "storage tag with a 16-bit guard";
        /// The storage tag of a 16-bit guard may be masked.
        1:1 guard_16_mask: bool = FLAG, "storage tag mask with a 16-bit guard";
        /// The storage tag check of the source is supported in Copy.
        2:1 storage_tag_check_read: bool = FLAG, "storage tag check read";
        /// QPIF is used.
        3:1 qualified: bool = FLAG, "qualified protection information formats";
        /// Reserved.
        4:4 __: u8 = RESERVED, "reserved";
    }
}

codes! {
    /// STMLA: how fine the mask of a storage tag may be.
    pub struct StorageTagMaskLevel(u8, 4) {
        /// Bit by bit.
        0 BIT "bit granularity";
        /// Byte by byte.
        1 BYTE "byte granularity";
        /// Not at all.
        2 NONE "masking not supported";
    }
}

bits! {
    /// PIFA, Protection Information Format Attribute.
    pub struct Pifa(u8 as u8) {
        /// How fine the mask of a storage tag may be.
        0:4 stmla: StorageTagMaskLevel = choice(StorageTagMaskLevel::MEANINGS), "storage tag masking level";
        /// Reserved.
        4:4 __: u8 = RESERVED, "reserved";
    }
}

structure! {
    /// Identify Namespace of the NVM command set beyond CNS 00h, CNS 05h with CSI 00h.
    /// NVM Express NVM Command Set Specification, "NVM Command Set Identify Namespace Data Structure".
    pub struct NvmNamespace: 4096, "nvm-ns" {
        /// Which bits of the storage tag are compared.
        0 lbstm: U64 = HEX, "Logical Block Storage Tag Mask";
        /// Protection information.
        8 pic: Pic = bits(Pic::PARTS), "Protection Information Capabilities";
        /// More on protection information.
        9 pifa: Pifa = bits(Pifa::PARTS), "Protection Information Format Attribute";
        /// Reserved.
        10 reserved_10: [u8; 2] = RESERVED, "Reserved";
        /// What each LBA format has beyond.
        12 elbaf: [ExtendedLbaFormat; 64] = bits(ExtendedLbaFormat::PARTS), "Extended LBA Format";
        /// Granularity for deallocation.
        268 npdgl: U32 = COUNT.zero("not reported"), "Namespace Preferred Deallocate Granularity Large";
        /// Read size that is read well.
        272 nprg: U32 = COUNT.zero("not reported"), "Namespace Preferred Read Granularity";
        /// Alignment for such reads.
        276 npra: U32 = COUNT.zero("not reported"), "Namespace Preferred Read Alignment";
        /// Read size that is best.
        280 nors: U32 = COUNT.zero("not reported"), "Namespace Optimal Read Size";
        /// Alignment for deallocation.
        284 npdal: U32 = COUNT.zero("not reported"), "Namespace Preferred Deallocate Alignment Large";
        /// Size of the shards in which the format places data.
        288 lbapss: U32 = COUNT.zero("not reported"), "LBA Format Placement Shard Size";
        /// Blocks that are tracked together.
        292 tlbaag: U32 = COUNT, "Tracked LBA Allocation Granularity";
        /// Reserved.
        296 reserved_296: [u8; 3800] = RESERVED, "Reserved";
    }
}

structure! {
    /// Identify Namespace for all command sets, CNS 08h.
    /// NVM Express Base Specification, "I/O Command Set Independent Identify Namespace Data Structure".
    pub struct IndependentNamespace: 4096, "independent-ns" {
        /// Features: bit 3 identifiers are not reused, bit 4 rotational media, bit 5 volatile write cache not present.
        0 nsfeat: u8 = HEX, "Common Namespace Features";
        /// Sharing and paths.
        1 nmic: Nmic = bits(Nmic::PARTS), "Namespace Multi-path I/O and Namespace Sharing Capabilities";
        /// Kinds of reservation.
        2 rescap: Rescap = bits(Rescap::PARTS), "Reservation Capabilities";
        /// Progress of a format.
        3 fpi: Fpi = bits(Fpi::PARTS), "Format Progress Indicator";
        /// The ANA group.
        4 anagrpid: U32 = COUNT, "ANA Group Identifier";
        /// Attributes: write protection.
        8 nsattr: Nsattr = bits(Nsattr::PARTS), "Namespace Attributes";
        /// Reserved.
        9 reserved_9: u8 = RESERVED, "Reserved";
        /// The NVM set.
        10 nvmsetid: U16 = COUNT, "NVM Set Identifier";
        /// The endurance group.
        12 endgid: U16 = COUNT, "Endurance Group Identifier";
        /// Bit 0: the namespace is ready.
        14 nstat: u8 = HEX, "Namespace Status";
        /// Key per I/O.
        15 kpios: Kpios = bits(Kpios::PARTS), "Key Per I/O Status";
        /// Largest key tag.
        16 maxkt: U16 = COUNT, "Maximum Key Tag";
        /// Reserved.
        18 reserved_18: [u8; 2] = RESERVED, "Reserved";
        /// The reachability group.
        20 rgrpid: U32 = COUNT, "Reachability Group Identifier";
        /// Reserved.
        24 reserved_24: [u8; 4072] = RESERVED, "Reserved";
    }
}

bits! {
    /// A combination of I/O command sets.
    pub struct CommandSets(u64 as U64) {
        /// NVM.
        0:1 nvm: bool = FLAG, "NVM";
        /// Key value.
        1:1 key_value: bool = FLAG, "key value";
        /// Zoned.
        2:1 zoned: bool = FLAG, "zoned namespaces";
        /// Subsystem local memory.
        3:1 local_memory: bool = FLAG, "subsystem local memory";
        /// Computational programs.
        4:1 computational: bool = FLAG, "computational programs";
        /// Reserved.
        5:59 __: u64 = RESERVED, "reserved";
    }
}

structure! {
    /// Identify I/O Command Set, CNS 1Ch: the combinations that the controller supports.
    /// NVM Express Base Specification, "Identify I/O Command Set Data Structure".
    pub struct CommandSetCombinations: 4096, "iocs" {
        /// The combinations, to be chosen by their index.
        0 combination: [CommandSets; 512] = bits(CommandSets::PARTS), "I/O Command Set Combination";
    }
}

structure! {
    /// Identify Controller of the zoned namespace command set, CNS 06h with CSI 02h.
    /// NVM Express Zoned Namespace Command Set Specification, "Identify Controller Data Structure".
    pub struct ZonedController: 4096, "zoned-ctrl" {
        /// Largest Zone Append, 2^ZASL pages of CAP.MPSMIN; 0 for MDTS.
        0 zasl: u8 = power_of_two(1, "pages").zero("as MDTS"), "Zone Append Size Limit";
        /// Reserved.
        1 reserved_1: [u8; 4095] = RESERVED, "Reserved";
    }
}

structure! {
    /// LBA Format Extension of a zoned namespace.
    pub struct ZonedLbaFormat: 16, "zoned-lbaf" {
        /// Size of a zone in logical blocks.
        0 zsze: U64 = COUNT, "Zone Size";
        /// Size of a zone descriptor extension in 64 bytes.
        8 zdes: u8 = amount(64, "bytes"), "Zone Descriptor Extension Size";
        /// Reserved.
        9 reserved_9: [u8; 7] = RESERVED, "Reserved";
    }
}

bits! {
    /// ZOC, Zone Operation Characteristics.
    pub struct Zoc(u16 as U16) {
        /// The capacity of a zone may change.
        0:1 variable_capacity: bool = FLAG, "variable zone capacity";
        /// The controller may change a zone's state by itself.
        1:1 active_excursions: bool = FLAG, "zone active excursions";
        /// Reserved.
        2:14 __: u16 = RESERVED, "reserved";
    }
}

bits! {
    /// OZCS, Optional Zoned Command Support.
    pub struct Ozcs(u16 as U16) {
        /// Reads may cross from one zone into the next.
        0:1 read_across: bool = FLAG, "read across zone boundaries";
        /// Zones can have a random write area.
        1:1 random_write_area: bool = FLAG, "zone random write area";
        /// Reserved.
        2:14 __: u16 = RESERVED, "reserved";
    }
}

structure! {
    /// Identify Namespace of the zoned namespace command set, CNS 05h with CSI 02h.
    /// NVM Express Zoned Namespace Command Set Specification, "Identify Namespace Data Structure".
    pub struct ZonedNamespace: 4096, "zoned-ns" {
        /// How zones behave.
        0 zoc: Zoc = bits(Zoc::PARTS), "Zone Operation Characteristics";
        /// What is optional.
        2 ozcs: Ozcs = bits(Ozcs::PARTS), "Optional Zoned Command Support";
        /// Zones that may be active at a time, 0's based.
        4 mar: U32 = ZERO_BASED.ones("no limit"), "Maximum Active Resources";
        /// Zones that may be open at a time, 0's based.
        8 mor: U32 = ZERO_BASED.ones("no limit"), "Maximum Open Resources";
        /// Seconds after which a reset of a zone is recommended.
        12 rrl: U32 = amount(1, "s").zero("not reported"), "Reset Recommended Limit";
        /// Seconds after which a finish of a zone is recommended.
        16 frl: U32 = amount(1, "s").zero("not reported"), "Finish Recommended Limit";
        /// Further limits.
        20 rrl1: U32 = amount(1, "s").zero("not reported"), "Reset Recommended Limit 1";
        /// Further limits.
        24 rrl2: U32 = amount(1, "s").zero("not reported"), "Reset Recommended Limit 2";
        /// Further limits.
        28 rrl3: U32 = amount(1, "s").zero("not reported"), "Reset Recommended Limit 3";
        /// Further limits.
        32 frl1: U32 = amount(1, "s").zero("not reported"), "Finish Recommended Limit 1";
        /// Further limits.
        36 frl2: U32 = amount(1, "s").zero("not reported"), "Finish Recommended Limit 2";
        /// Further limits.
        40 frl3: U32 = amount(1, "s").zero("not reported"), "Finish Recommended Limit 3";
        /// Zones that may have a random write area at a time, 0's based.
        44 numzrwa: U32 = ZERO_BASED.ones("no limit"), "Number of ZRWA Resources";
        /// Granularity of flushing a random write area in logical blocks.
        48 zrwafg: U16 = COUNT, "ZRWA Flush Granularity";
        /// Size of a random write area in logical blocks.
        50 zrwasz: U16 = COUNT, "ZRWA Size";
        /// Bit 0: a range of it can be flushed by command.
        52 zrwacap: u8 = HEX, "ZRWA Capability";
        /// Reserved.
        53 reserved_53: [u8; 2763] = RESERVED, "Reserved";
        /// What each LBA format has beyond.
        2816 lbafe: [ZonedLbaFormat; 64] = nested(&ZonedLbaFormat::DESCRIPTOR), "LBA Format Extension";
        /// The vendor's own.
        3840 vendor: [u8; 256] = BYTES, "Vendor Specific";
    }
}
