//! Identify Namespace of the NVM command set: how large the namespace is and how its blocks are made.
#![forbid(unsafe_code)]

use super::namespace_bits::{
    Dlfeat, Dpc, Dps, FormattedLbaSize, Fpi, Kpios, LbaFormatPerformance, Mc, Nmic, Nsattr, Nsfeat, Rescap,
};
use crate::describe::View;
use crate::number::{ZeroBasedLe16, ZeroBasedU8};
use crate::structure;
use ::core::fmt;
use zerocopy::FromBytes;
use zerocopy::little_endian::{U16, U32, U64, U128};

structure! {
    /// LBA Format. NVM Express NVM Command Set Specification, "LBA Format Data Structure".
    pub struct LbaFormat: 4, "lbaf", summary summary {
        /// Metadata per logical block in bytes.
        0 ms: U16 = amount(1, "bytes"), "Metadata Size";
        /// Data of a logical block, 2^LBADS bytes; 0 where the format is not available.
        2 lbads: u8 = power_of_two(1, "bytes").zero("not available"), "LBA Data Size";
        /// How fast the format is against the others.
        3 performance: LbaFormatPerformance = bits(LbaFormatPerformance::PARTS), "Relative Performance";
    }
}

structure! {
    /// Identify Namespace, CNS 00h. NVM Express NVM Command Set Specification, "Identify Namespace Data Structure".
    pub struct Namespace: 4096, "ns" {
        /// Size in logical blocks.
        0 nsze: U64 = COUNT, "Namespace Size";
        /// Logical blocks that may be allocated at a time.
        8 ncap: U64 = COUNT, "Namespace Capacity";
        /// Logical blocks that are allocated.
        16 nuse: U64 = COUNT, "Namespace Utilization";
        /// Features.
        24 nsfeat: Nsfeat = bits(Nsfeat::PARTS), "Namespace Features";
        /// Number of LBA formats, 0's based.
        25 nlbaf: ZeroBasedU8 = ZERO_BASED, "Number of LBA Formats";
        /// The LBA format in use.
        26 flbas: FormattedLbaSize = bits(FormattedLbaSize::PARTS), "Formatted LBA Size";
        /// How metadata may be transferred.
        27 mc: Mc = bits(Mc::PARTS), "Metadata Capabilities";
        /// Protection that may be chosen.
        28 dpc: Dpc = bits(Dpc::PARTS), "End-to-end Data Protection Capabilities";
        /// Protection in use.
        29 dps: Dps = bits(Dps::PARTS), "End-to-end Data Protection Type Settings";
        /// Sharing and paths.
        30 nmic: Nmic = bits(Nmic::PARTS), "Namespace Multi-path I/O and Namespace Sharing Capabilities";
        /// Kinds of reservation.
        31 rescap: Rescap = bits(Rescap::PARTS), "Reservation Capabilities";
        /// Progress of a format.
        32 fpi: Fpi = bits(Fpi::PARTS), "Format Progress Indicator";
        /// What deallocated blocks read as.
        33 dlfeat: Dlfeat = bits(Dlfeat::PARTS), "Deallocate Logical Block Features";
        /// Blocks written atomically in normal operation, 0's based.
        34 nawun: ZeroBasedLe16 = ZERO_BASED, "Namespace Atomic Write Unit Normal";
        /// Blocks written atomically at power fail, 0's based.
        36 nawupf: ZeroBasedLe16 = ZERO_BASED, "Namespace Atomic Write Unit Power Fail";
        /// Blocks compared and written atomically, 0's based.
        38 nacwu: ZeroBasedLe16 = ZERO_BASED, "Namespace Atomic Compare and Write Unit";
        /// Atomic boundary size in normal operation, 0's based; a raw 0 means that there is none.
        40 nabsn: ZeroBasedLe16 = ZERO_BASED.zero("no boundary"), "Namespace Atomic Boundary Size Normal";
        /// First block of the first atomic boundary.
        42 nabo: U16 = COUNT, "Namespace Atomic Boundary Offset";
        /// Atomic boundary size at power fail, 0's based; a raw 0 means that there is none.
        44 nabspf: ZeroBasedLe16 = ZERO_BASED.zero("no boundary"), "Namespace Atomic Boundary Size Power Fail";
        /// Reads and writes should not cross multiples of this many blocks.
        46 noiob: U16 = COUNT.zero("not reported"), "Namespace Optimal I/O Boundary";
        /// Bytes of media that the namespace takes.
        48 nvmcap: U128 = amount(1, "bytes"), "NVM Capacity";
        /// Smallest write that is written well, 0's based.
        64 npwg: ZeroBasedLe16 = ZERO_BASED, "Namespace Preferred Write Granularity";
        /// Alignment for such writes, 0's based.
        66 npwa: ZeroBasedLe16 = ZERO_BASED, "Namespace Preferred Write Alignment";
        /// Granularity for deallocation, 0's based.
        68 npdg: ZeroBasedLe16 = ZERO_BASED, "Namespace Preferred Deallocate Granularity";
        /// Alignment for deallocation, 0's based.
        70 npda: ZeroBasedLe16 = ZERO_BASED, "Namespace Preferred Deallocate Alignment";
        /// Write size that is best, 0's based.
        72 nows: ZeroBasedLe16 = ZERO_BASED, "Namespace Optimal Write Size";
        /// Most blocks in one source range of a copy.
        74 mssrl: U16 = COUNT, "Maximum Single Source Range Length";
        /// Most blocks in one copy.
        76 mcl: U32 = COUNT, "Maximum Copy Length";
        /// Most source ranges in one copy, 0's based.
        80 msrc: ZeroBasedU8 = ZERO_BASED, "Maximum Source Range Count";
        /// Key per I/O.
        81 kpios: Kpios = bits(Kpios::PARTS), "Key Per I/O Status";
        /// LBA formats beyond `nlbaf` that have unique attributes.
        82 nulbaf: u8 = COUNT, "Number of Unique Attribute LBA Formats";
        /// Reserved.
        83 reserved_83: u8 = RESERVED, "Reserved";
        /// Key per I/O alignment and granularity.
        84 kpiodaag: U32 = COUNT, "Key Per I/O Data Access Alignment and Granularity";
        /// Reserved.
        88 reserved_88: [u8; 4] = RESERVED, "Reserved";
        /// The ANA group of the namespace.
        92 anagrpid: U32 = COUNT, "ANA Group Identifier";
        /// Reserved.
        96 reserved_96: [u8; 3] = RESERVED, "Reserved";
        /// Attributes: write protection.
        99 nsattr: Nsattr = bits(Nsattr::PARTS), "Namespace Attributes";
        /// The NVM set of the namespace.
        100 nvmsetid: U16 = COUNT, "NVM Set Identifier";
        /// The endurance group of the namespace.
        102 endgid: U16 = COUNT, "Endurance Group Identifier";
        /// Globally unique, 16 bytes, most significant first; 0 where not reported.
        104 nguid: [u8; 16] = DIGITS.zero("not reported"), "Namespace Globally Unique Identifier";
        /// Globally unique, 8 bytes, most significant first; 0 where not reported.
        120 eui64: [u8; 8] = DIGITS.zero("not reported"), "IEEE Extended Unique Identifier";
        /// The LBA formats.
        128 lbaf: [LbaFormat; 64] = nested(&LbaFormat::DESCRIPTOR), "LBA Format";
        /// The vendor's own.
        384 vendor: [u8; 3712] = BYTES, "Vendor Specific";
    }
}

impl Namespace {
    /// Index of the LBA format in use. The upper two bits count only where more than 16 formats are offered.
    pub const fn format_index(&self) -> u8 {
        let low = self.flbas.index_low();
        if self.nlbaf.into_bits() as u16 + self.nulbaf as u16 > 15 { low | self.flbas.index_high() << 4 } else { low }
    }

    /// Number of LBA formats, those with unique attributes included.
    pub const fn format_count(&self) -> usize {
        self.nlbaf.count() as usize + self.nulbaf as usize
    }

    /// The LBA format in use, or `None` where the index is beyond the formats.
    pub fn format(&self) -> Option<&LbaFormat> {
        let index = usize::from(self.format_index());
        self.lbaf.get(..self.format_count().min(self.lbaf.len()))?.get(index)
    }
}

/// `4096 + 8 bytes, best`: data and metadata of a block.
fn summary(view: View<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Ok((format, _)) = LbaFormat::read_from_prefix(view.bytes) else { return f.write_str("not available") };
    match format.data_bytes() {
        Some(bytes) => write!(f, "{bytes} + {} bytes, {}", format.ms, format.performance.rp()),
        None => write!(f, "not available (LBADS {}, MS {})", format.lbads, format.ms),
    }
}

impl LbaFormat {
    /// Data of a logical block in bytes, or `None` where the format is not available: LBADS 0 marks a format that is not
    /// offered, anything below 9 (512 bytes) is not allowed, and 2^31 bytes or more is no block of a real drive.
    pub const fn data_bytes(&self) -> Option<u32> {
        match self.lbads {
            9..=30 => Some(1 << self.lbads),
            _ => None,
        }
    }
}
