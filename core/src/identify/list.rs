//! Lists that Identify returns: namespaces, controllers, NVM sets, endurance groups, UUIDs, domains.
#![forbid(unsafe_code)]

use crate::{bits, codes, structure};
use zerocopy::little_endian::{U16, U32, U64, U128};

structure! {
    /// Namespace List: up to 1,024 namespace identifiers, rising, ended by a zero.
    /// NVM Express Base Specification, "Namespace List".
    pub struct NamespaceList: 4096, "ns-list" {
        /// The identifiers; 0 for an unused place.
        0 nsid: [U32; 1024] = COUNT.zero("unused"), "Namespace Identifier";
    }
}

/// The active namespaces, CNS 02h.
pub type ActiveNamespaceList = NamespaceList;

impl NamespaceList {
    /// The identifiers up to the first zero.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.nsid.iter().map(|nsid| nsid.get()).take_while(|&nsid| nsid != 0)
    }
}

structure! {
    /// Controller List, CNS 12h and 13h, and the data of Namespace Attachment.
    /// NVM Express Base Specification, "Controller List".
    pub struct ControllerList: 4096, "ctrl-list" {
        /// Identifiers in the list.
        0 count: U16 = COUNT, "Number of Identifiers";
        /// The identifiers, rising.
        2 cntlid: [U16; 2047] = HEX, "Controller Identifier";
    }
}

impl ControllerList {
    /// The identifiers, as many as the list says and has room for.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        self.cntlid.iter().take(usize::from(self.count.get())).map(|cntlid| cntlid.get())
    }
}

structure! {
    /// Endurance Group List, CNS 19h. NVM Express Base Specification, "Endurance Group List".
    pub struct EnduranceGroupList: 4096, "endgrp-list" {
        /// Identifiers in the list.
        0 count: U16 = COUNT, "Number of Identifiers";
        /// The identifiers, rising.
        2 endgid: [U16; 2047] = COUNT.zero("unused"), "Endurance Group Identifier";
    }
}

structure! {
    /// NVM Set Attributes Entry.
    pub struct NvmSet: 128, "nvm-set" {
        /// The set.
        0 nvmsetid: U16 = COUNT, "NVM Set Identifier";
        /// Its endurance group.
        2 endgid: U16 = COUNT, "Endurance Group Identifier";
        /// Reserved.
        4 reserved_4: [u8; 4] = RESERVED, "Reserved";
        /// Typical time of a random read of 4 KiB, in units of 100 ns.
        8 rr4kt: U32 = amount(100, "ns").zero("not reported"), "Random 4 KiB Read Typical";
        /// Write size that is best, in bytes.
        12 ows: U32 = amount(1, "bytes").zero("not reported"), "Optimal Write Size";
        /// Capacity.
        16 tnvmsetcap: U128 = amount(1, "bytes"), "Total NVM Set Capacity";
        /// Capacity that is not allocated.
        32 unvmsetcap: U128 = amount(1, "bytes"), "Unallocated NVM Set Capacity";
        /// Reserved.
        48 reserved_48: [u8; 80] = RESERVED, "Reserved";
    }
}

structure! {
    /// NVM Set List, CNS 04h. NVM Express Base Specification, "NVM Set List".
    pub struct NvmSetList: 4096, "nvm-set-list" {
        /// Entries in the list.
        0 count: u8 = COUNT, "Number of Identifiers";
        /// Reserved.
        1 reserved_1: [u8; 127] = RESERVED, "Reserved";
        /// The entries.
        128 entry: [NvmSet; 31] = nested(&NvmSet::DESCRIPTOR), "NVM Set";
    }
}

codes! {
    /// Whose a UUID is.
    pub struct UuidAssociation(u8, 2) {
        /// Not said.
        0 NONE "no association reported";
        /// The vendor's.
        1 VENDOR "the PCI vendor's";
        /// The subsystem vendor's.
        2 SUBSYSTEM_VENDOR "the PCI subsystem vendor's";
    }
}

bits! {
    /// The head of a UUID list entry.
    pub struct UuidHeader(u8 as u8) {
        /// Whose the UUID is.
        0:2 association: UuidAssociation = choice(UuidAssociation::MEANINGS), "identifier association";
        /// Reserved.
        2:6 __: u8 = RESERVED, "reserved";
    }
}

structure! {
    /// UUID List Entry.
    pub struct UuidEntry: 32, "uuid" {
        /// Whose it is.
        0 header: UuidHeader = bits(UuidHeader::PARTS), "UUID List Entry Header";
        /// Reserved.
        1 reserved_1: [u8; 15] = RESERVED, "Reserved";
        /// The UUID.
        16 uuid: [u8; 16] = DIGITS.zero("end of list"), "UUID";
    }
}

structure! {
    /// UUID List, CNS 17h. NVM Express Base Specification, "UUID List".
    pub struct UuidList: 4096, "uuid-list" {
        /// Reserved: the list begins with the index 1.
        0 reserved_0: [u8; 32] = RESERVED, "Reserved";
        /// The entries from the index 1 on.
        32 entry: [UuidEntry; 127] = nested(&UuidEntry::DESCRIPTOR), "UUID";
    }
}

structure! {
    /// Domain Attributes Entry.
    pub struct Domain: 128, "domain" {
        /// The domain.
        0 domainid: U16 = COUNT, "Domain Identifier";
        /// Reserved.
        2 reserved_2: [u8; 14] = RESERVED, "Reserved";
        /// Capacity.
        16 total_capacity: U128 = amount(1, "bytes"), "Total Domain Capacity";
        /// Capacity that is not allocated.
        32 unallocated_capacity: U128 = amount(1, "bytes"), "Unallocated Domain Capacity";
        /// Capacity of the largest endurance group that can be made.
        48 max_endurance_group_capacity: U128 = amount(1, "bytes"), "Max Endurance Group Domain Capacity";
        /// Reserved.
        64 reserved_64: [u8; 64] = RESERVED, "Reserved";
    }
}

structure! {
    /// Domain List, CNS 18h. NVM Express Base Specification, "Domain List".
    pub struct DomainList: 4096, "domain-list" {
        /// Entries in the list.
        0 count: u8 = COUNT, "Number of Domain Entries";
        /// Reserved.
        1 reserved_1: [u8; 127] = RESERVED, "Reserved";
        /// The entries.
        128 entry: [Domain; 31] = nested(&Domain::DESCRIPTOR), "Domain";
    }
}

structure! {
    /// Namespace Granularity Descriptor.
    pub struct NamespaceGranularity: 16, "ns-granularity" {
        /// Bytes that a namespace's size is best a multiple of.
        0 nszegran: U64 = amount(1, "bytes"), "Namespace Size Granularity";
        /// Bytes that a namespace's capacity is best a multiple of.
        8 ncapgran: U64 = amount(1, "bytes"), "Namespace Capacity Granularity";
    }
}

structure! {
    /// Namespace Granularity List, CNS 16h.
    /// NVM Express NVM Command Set Specification, "Namespace Granularity List".
    pub struct NamespaceGranularityList: 4096, "ns-granularity-list" {
        /// Bit 0: one descriptor for each LBA format, not one for all.
        0 attributes: U32 = HEX, "Namespace Granularity Attributes";
        /// Descriptors, 0's based.
        4 count: u8 = ZERO_BASED, "Number of Descriptors";
        /// Reserved.
        5 reserved_5: [u8; 27] = RESERVED, "Reserved";
        /// The descriptors.
        32 entry: [NamespaceGranularity; 16] = nested(&NamespaceGranularity::DESCRIPTOR), "Namespace Granularity";
        /// Reserved.
        288 reserved_288: [u8; 3808] = RESERVED, "Reserved";
    }
}
