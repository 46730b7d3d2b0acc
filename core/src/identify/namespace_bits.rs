//! The bit fields of Identify Namespace, in the order of the structure.
#![forbid(unsafe_code)]

use crate::{bits, codes};

bits! {
    /// FLBAS, the format in use.
    pub struct FormattedLbaSize(u8 as u8) {
        /// Lower four bits of the format index.
        0:4 index_low: u8 = COUNT, "Format Index (lower)";
        /// Metadata is transferred at the end of the data, not in a buffer of its own.
        4:1 extended: bool = FLAG, "Metadata Extended LBA";
        /// Upper two bits of the format index; only valid where more than 16 formats are offered.
        5:2 index_high: u8 = COUNT, "Format Index (upper)";
        /// Reserved.
        7:1 __: u8 = RESERVED, "Reserved";
    }
}

bits! {
    /// NSFEAT, Namespace Features.
    pub struct Nsfeat(u8 as u8) {
        /// The namespace may be larger than its capacity.
        0:1 thin: bool = FLAG, "thin provisioning";
        /// NAWUN, NAWUPF and NACWU are of this namespace, not the controller's.
        1:1 atomics: bool = FLAG, "namespace atomic write units";
        /// Deallocated or Unwritten Logical Block error can be enabled.
        2:1 deallocated_error: bool = FLAG, "deallocated or unwritten logical block error";
        /// NGUID and EUI-64 are never used again.
        3:1 uid_reuse: bool = FLAG, "unique identifiers are not reused";
        /// Which of the preferred sizes (NPWG to NOWS) are reported.
        4:2 preferred_sizes: u8 = HEX, "optimal performance fields";
        /// Multiple atomicity mode.
        6:1 multiple_atomicity: bool = FLAG, "multiple atomicity mode";
        /// NPRG, NPRA and NORS are reported.
        7:1 read_sizes: bool = FLAG, "optimal read fields";
    }
}

bits! {
    /// MC, Metadata Capabilities.
    pub struct Mc(u8 as u8) {
        /// Metadata at the end of the data.
        0:1 extended: bool = FLAG, "metadata as part of an extended data LBA";
        /// Metadata in a buffer of its own.
        1:1 separate: bool = FLAG, "metadata in a separate buffer";
        /// Reserved.
        2:6 __: u8 = RESERVED, "reserved";
    }
}

bits! {
    /// DPC, End-to-end Data Protection Capabilities.
    pub struct Dpc(u8 as u8) {
        /// Type 1.
        0:1 type_1: bool = FLAG, "protection information type 1";
        /// Type 2.
        1:1 type_2: bool = FLAG, "protection information type 2";
        /// Type 3.
        2:1 type_3: bool = FLAG, "protection information type 3";
        /// Protection information as the first bytes of the metadata.
        3:1 first: bool = FLAG, "protection information in the first bytes";
        /// Protection information as the last bytes of the metadata.
        4:1 last: bool = FLAG, "protection information in the last bytes";
        /// Reserved.
        5:3 __: u8 = RESERVED, "reserved";
    }
}

codes! {
    /// The type of protection information.
    pub struct ProtectionType(u8, 3) {
        /// None.
        0 NONE "disabled";
        /// Guard, application tag and a reference tag that follows the LBA.
        1 TYPE_1 "type 1";
        /// Guard, application tag and a reference tag that the command gives.
        2 TYPE_2 "type 2";
        /// Guard and application tag; the reference tag is the application's.
        3 TYPE_3 "type 3";
    }
}

bits! {
    /// DPS, End-to-end Data Protection Type Settings.
    pub struct Dps(u8 as u8) {
        /// The type in use.
        0:3 kind: ProtectionType = choice(ProtectionType::MEANINGS), "protection information type";
        /// The protection information is the first bytes of the metadata, not the last.
        3:1 first: bool = FLAG, "protection information in the first bytes";
        /// Reserved.
        4:4 __: u8 = RESERVED, "reserved";
    }
}

bits! {
    /// NMIC, Namespace Multi-path I/O and Namespace Sharing Capabilities.
    pub struct Nmic(u8 as u8) {
        /// Two or more controllers may use the namespace at once.
        0:1 shared: bool = FLAG, "shared namespace";
        /// The namespace is dispersed over more than one subsystem.
        1:1 dispersed: bool = FLAG, "dispersed namespace";
        /// Reserved.
        2:6 __: u8 = RESERVED, "reserved";
    }
}

bits! {
    /// RESCAP, Reservation Capabilities.
    pub struct Rescap(u8 as u8) {
        /// Reservations can outlast a loss of power.
        0:1 persist: bool = FLAG, "persist through power loss";
        /// Write Exclusive.
        1:1 write_exclusive: bool = FLAG, "write exclusive";
        /// Exclusive Access.
        2:1 exclusive_access: bool = FLAG, "exclusive access";
        /// Write Exclusive - Registrants Only.
        3:1 write_exclusive_registrants: bool = FLAG, "write exclusive, registrants only";
        /// Exclusive Access - Registrants Only.
        4:1 exclusive_access_registrants: bool = FLAG, "exclusive access, registrants only";
        /// Write Exclusive - All Registrants.
        5:1 write_exclusive_all: bool = FLAG, "write exclusive, all registrants";
        /// Exclusive Access - All Registrants.
        6:1 exclusive_access_all: bool = FLAG, "exclusive access, all registrants";
        /// Ignore Existing Key as of version 1.3.
        7:1 ignore_existing_key: bool = FLAG, "ignore existing key as of 1.3";
    }
}

bits! {
    /// FPI, Format Progress Indicator.
    pub struct Fpi(u8 as u8) {
        /// Per cent of the namespace still to be formatted.
        0:7 remaining: u8 = PERCENT, "remaining";
        /// The indicator is supported.
        7:1 supported: bool = FLAG, "format progress is reported";
    }
}

codes! {
    /// DLFEAT.DRB: what deallocated blocks read as.
    pub struct DeallocatedRead(u8, 3) {
        /// Not reported.
        0 NOT_REPORTED "not reported";
        /// All bytes 00h.
        1 ZEROES "all bytes 00h";
        /// All bytes FFh.
        2 ONES "all bytes FFh";
    }
}

bits! {
    /// DLFEAT, Deallocate Logical Block Features.
    pub struct Dlfeat(u8 as u8) {
        /// What deallocated blocks read as.
        0:3 read: DeallocatedRead = choice(DeallocatedRead::MEANINGS), "deallocated blocks read as";
        /// Write Zeroes can deallocate.
        3:1 write_zeroes: bool = FLAG, "deallocate in Write Zeroes";
        /// The guard of deallocated blocks is the CRC of what is read, not FFFFh.
        4:1 guard_crc: bool = FLAG, "guard of deallocated blocks is the CRC";
        /// Reserved.
        5:3 __: u8 = RESERVED, "reserved";
    }
}

bits! {
    /// KPIOS, Key Per I/O Status.
    pub struct Kpios(u8 as u8) {
        /// Key per I/O is enabled in the namespace.
        0:1 enabled: bool = FLAG, "key per I/O enabled";
        /// The namespace supports it.
        1:1 supported: bool = FLAG, "key per I/O supported";
        /// Reserved.
        2:6 __: u8 = RESERVED, "reserved";
    }
}

bits! {
    /// NSATTR, Namespace Attributes.
    pub struct Nsattr(u8 as u8) {
        /// The namespace is write protected.
        0:1 write_protected: bool = FLAG, "write protected";
        /// Reserved.
        1:7 __: u8 = RESERVED, "reserved";
    }
}

codes! {
    /// LBAF.RP: how fast a format is against the others of the same controller.
    pub struct RelativePerformance(u8, 2) {
        /// Best.
        0 BEST "best";
        /// Better.
        1 BETTER "better";
        /// Good.
        2 GOOD "good";
        /// Degraded.
        3 DEGRADED "degraded";
    }
}

bits! {
    /// The last byte of an LBA format.
    pub struct LbaFormatPerformance(u8 as u8) {
        /// How fast the format is.
        0:2 rp: RelativePerformance = choice(RelativePerformance::MEANINGS), "relative performance";
        /// Reserved.
        2:6 __: u8 = RESERVED, "reserved";
    }
}
