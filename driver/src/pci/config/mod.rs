//! The configuration space of a PCI function, decoded from bytes.
//!
//! The bytes come from sysfs (`config`: 64 of them for an ordinary user, 256 or 4096 for root), from VFIO's
//! configuration region, or from an emulator; this decoder does not care, and takes as much as there is. Nothing in
//! them is believed: capability lists are linked lists kept by the device, so every step is checked for range and for
//! having been there before, and how a list ended is part of the answer.
//!
//! A function that is gone answers every read with ones, and one that was reset behind our back answers with its
//! registers at their reset values; [`ConfigSpace::presence`] tells these apart before anything else is read.
//!
//! Layout: PCI Express Base Specification, chapter 7. [`express`] holds the PCI Express capability (links, payload
//! sizes, slots), [`capability`] the small ones (power management, MSI-X), [`aer`] advanced error reporting.
#![forbid(unsafe_code)]

pub mod aer;
pub mod capability;
pub mod express;

use serde::Serialize;

use super::PciAddress;
use super::sysfs::{Sysfs, SysfsError};

/// The bytes of the header and the capabilities of conventional PCI.
const CONVENTIONAL_BYTES: usize = 256;
/// All bytes of a PCI Express function's configuration space.
const EXTENDED_BYTES: usize = 4096;
/// The first byte after the header: no capability lies below it.
const HEADER_BYTES: usize = 64;
/// The Status bit that says that there is a capability list.
const STATUS_CAPABILITIES_LIST: u16 = 1 << 4;

/// The configuration space of one function, as many bytes of it as could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigSpace {
    bytes: Vec<u8>,
}

/// Whether the function behind a configuration space is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// It answers.
    Alive,
    /// It answers, but memory decoding and bus mastering are off and its memory base registers are empty: it came back from a reset that
    /// nobody here asked for, or was never set up.
    Unconfigured,
    /// Every bit reads as one: the device, or the link to it, is gone.
    Gone,
    /// There are too few bytes to tell.
    Unknown,
}

/// The header's fields that every function has, and the base registers of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Header {
    /// Vendor ID.
    pub vendor: u16,
    /// Device ID.
    pub device: u16,
    /// The Command register.
    pub command: u16,
    /// The Status register.
    pub status: u16,
    /// Revision ID.
    pub revision: u8,
    /// Class code: base class, sub-class and programming interface, 24 bits.
    pub class: u32,
    /// The header's layout: 0 endpoint, 1 bridge.
    pub layout: u8,
    /// Whether the device has more functions.
    pub multi_function: bool,
    /// The base address registers as they stand: six of an endpoint, two of a bridge.
    pub base_registers: Vec<u32>,
}

impl Header {
    /// Whether the function decodes memory accesses (Command bit 1).
    pub fn memory_enabled(&self) -> bool {
        self.command & (1 << 1) != 0
    }

    /// Whether the function may start accesses of its own, DMA that is (Command bit 2).
    pub fn bus_master(&self) -> bool {
        self.command & (1 << 2) != 0
    }
}

/// One entry of a capability list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CapabilityEntry {
    /// Capability ID: 8 bits, or 16 in the extended list.
    pub id: u16,
    /// Where it starts.
    pub offset: u16,
    /// The version of an extended capability; 0 in the conventional list.
    pub version: u8,
}

/// How a capability list ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ListEnd {
    /// With a null pointer, as it should.
    Complete,
    /// There is no list, or the function is gone.
    Absent,
    /// The bytes at hand end before the entry at this offset.
    Short {
        /// Where the entry would be.
        offset: u16,
    },
    /// An entry points back to one that was already seen.
    Loop {
        /// The entry that was met twice.
        offset: u16,
    },
    /// A pointer leads into the header (or, of the extended list, below 100h).
    OutOfRange {
        /// Where it leads.
        offset: u16,
    },
}

/// The entries of a capability list in the device's order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CapabilityList {
    /// What was found.
    pub entries: Vec<CapabilityEntry>,
    /// Why the walk stopped.
    pub end: ListEnd,
}

impl CapabilityList {
    /// The offset of the first capability with this ID.
    pub fn find(&self, id: u16) -> Option<usize> {
        self.entries.iter().find(|entry| entry.id == id).map(|entry| usize::from(entry.offset))
    }
}

impl ConfigSpace {
    /// A configuration space of these bytes; what is beyond 4096 is ignored.
    pub fn new(mut bytes: Vec<u8>) -> Self {
        bytes.truncate(EXTENDED_BYTES);
        Self { bytes }
    }

    /// The configuration space of a function as sysfs gives it to this user.
    pub fn read(sysfs: &Sysfs, address: PciAddress) -> Result<Self, SysfsError> {
        Ok(Self::new(sysfs.read_bytes(sysfs.pci_device(address).join("config"))?))
    }

    /// How many bytes there are.
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The byte at an offset.
    pub fn u8(&self, offset: usize) -> Option<u8> {
        self.bytes.get(offset).copied()
    }

    /// The little-endian word at an offset.
    pub fn u16(&self, offset: usize) -> Option<u16> {
        let bytes = self.bytes.get(offset..offset.checked_add(2)?)?;
        Some(u16::from_le_bytes(bytes.try_into().ok()?))
    }

    /// The little-endian double word at an offset.
    pub fn u32(&self, offset: usize) -> Option<u32> {
        let bytes = self.bytes.get(offset..offset.checked_add(4)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    /// Whether the function is there. Ask before believing anything else.
    pub fn presence(&self) -> Presence {
        let (Some(identity), Some(control)) = (self.u32(0), self.u32(4)) else { return Presence::Unknown };
        if identity == u32::MAX || control == u32::MAX {
            return Presence::Gone;
        }
        // Bits 2:1 of Command: memory decoding and bus mastering. Firmware leaves an unused device with its addresses
        // assigned, so both must be off *and* the addresses lost.
        let asleep = control & 0b110 == 0;
        match self.header() {
            Some(header) if asleep && header.layout == 0 => {
                let assigned = header.base_registers.iter().any(|register| register & !0xf != 0);
                if assigned { Presence::Alive } else { Presence::Unconfigured }
            }
            Some(_) => Presence::Alive,
            None => Presence::Unknown,
        }
    }

    /// The header; `None` when there are fewer than its 64 bytes or the function is gone.
    pub fn header(&self) -> Option<Header> {
        if self.bytes.len() < HEADER_BYTES || self.u32(0)? == u32::MAX {
            return None;
        }
        let layout_byte = self.u8(0x0e)?;
        let layout = layout_byte & 0x7f;
        let registers = if layout == 0 { 6 } else { 2 };
        Some(Header {
            vendor: self.u16(0)?,
            device: self.u16(2)?,
            command: self.u16(4)?,
            status: self.u16(6)?,
            revision: self.u8(8)?,
            class: self.u32(8)? >> 8,
            layout,
            multi_function: layout_byte & 0x80 != 0,
            base_registers: (0..registers).filter_map(|index| self.u32(0x10 + 4 * index)).collect(),
        })
    }

    /// The conventional capability list.
    pub fn capabilities(&self) -> CapabilityList {
        let mut entries = Vec::new();
        let has_list = self.header().is_some_and(|header| header.status & STATUS_CAPABILITIES_LIST != 0);
        let Some(first) = self.u8(0x34).filter(|_| has_list) else {
            return CapabilityList { entries, end: ListEnd::Absent };
        };
        let mut seen = [false; CONVENTIONAL_BYTES];
        // The two low bits of a pointer are reserved and masked off (PCI 3.0, 6.7).
        let mut pointer = first & !3;
        let end = loop {
            let offset = u16::from(pointer);
            let at = usize::from(pointer);
            if pointer == 0 {
                break ListEnd::Complete;
            } else if at < HEADER_BYTES {
                break ListEnd::OutOfRange { offset };
            } else if core::mem::replace(&mut seen[at], true) {
                break ListEnd::Loop { offset };
            }
            let (Some(id), Some(next)) = (self.u8(at), self.u8(at + 1)) else { break ListEnd::Short { offset } };
            if id == 0xff && next == 0xff {
                break ListEnd::Absent;
            }
            entries.push(CapabilityEntry { id: u16::from(id), offset, version: 0 });
            pointer = next & !3;
        };
        CapabilityList { entries, end }
    }

    /// The extended capability list, which starts at 100h and needs the whole 4096 bytes.
    pub fn extended_capabilities(&self) -> CapabilityList {
        let mut entries = Vec::new();
        let mut seen = vec![false; EXTENDED_BYTES];
        let mut offset = CONVENTIONAL_BYTES as u16;
        let end = loop {
            let at = usize::from(offset);
            if at < CONVENTIONAL_BYTES {
                break ListEnd::OutOfRange { offset };
            }
            // `at` has 12 bits: it was masked out of a header, or is 100h.
            if seen.get_mut(at).is_none_or(|seen| core::mem::replace(seen, true)) {
                break ListEnd::Loop { offset };
            }
            let Some(header) = self.u32(at) else { break ListEnd::Short { offset } };
            if header == 0 || header == u32::MAX {
                break if entries.is_empty() { ListEnd::Absent } else { ListEnd::Complete };
            }
            entries.push(CapabilityEntry { id: header as u16, offset, version: (header >> 16) as u8 & 0xf });
            offset = (header >> 20) as u16 & 0xffc;
            if offset == 0 {
                break ListEnd::Complete;
            }
        };
        CapabilityList { entries, end }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An NVMe function's header with a capability list that starts at `first`.
    fn header(first: u8, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        bytes[..4].copy_from_slice(&[0x4d, 0x14, 0x0a, 0xa8]);
        bytes[4..8].copy_from_slice(&[0x06, 0x04, 0x10, 0x00]);
        bytes[8..12].copy_from_slice(&[0x00, 0x02, 0x08, 0x01]);
        bytes[0x10..0x14].copy_from_slice(&[0x04, 0x00, 0x10, 0xa1]);
        bytes[0x34] = first;
        bytes
    }

    #[test]
    fn a_header_is_decoded_from_64_bytes() {
        let config = ConfigSpace::new(header(0x40, 64));
        let header = config.header().unwrap();
        assert_eq!((header.vendor, header.device, header.class), (0x144d, 0xa80a, 0x010802));
        assert!(header.memory_enabled() && header.bus_master());
        assert_eq!(config.presence(), Presence::Alive);
        assert_eq!(config.capabilities().end, ListEnd::Short { offset: 0x40 });
        assert_eq!(config.extended_capabilities().end, ListEnd::Short { offset: 0x100 });
    }

    #[test]
    fn a_space_shorter_than_a_header_says_nothing() {
        for length in [0, 3, 7, 63] {
            let config = ConfigSpace::new(vec![0; length]);
            assert_eq!(config.header(), None);
            assert_eq!(config.capabilities().end, ListEnd::Absent);
            assert_eq!(config.presence(), Presence::Unknown);
        }
    }

    #[test]
    fn c08_all_ones_is_gone_and_nothing_is_decoded_from_it() {
        let config = ConfigSpace::new(vec![0xff; 4096]);
        assert_eq!(config.presence(), Presence::Gone);
        assert_eq!(config.header(), None);
        assert_eq!(config.capabilities(), CapabilityList { entries: vec![], end: ListEnd::Absent });
        assert_eq!(config.extended_capabilities(), CapabilityList { entries: vec![], end: ListEnd::Absent });
    }

    #[test]
    fn c08_status_0010h_with_an_empty_command_is_a_function_that_was_reset() {
        let mut bytes = header(0x40, 64);
        bytes[4..8].copy_from_slice(&[0x00, 0x00, 0x10, 0x00]);
        bytes[0x10..0x14].copy_from_slice(&[0x04, 0x00, 0x00, 0x00]);
        assert_eq!(ConfigSpace::new(bytes).presence(), Presence::Unconfigured);
    }

    #[test]
    fn a_function_at_rest_that_keeps_its_addresses_is_alive() {
        let mut bytes = header(0x40, 64);
        bytes[4..6].copy_from_slice(&[0x00, 0x00]);
        assert_eq!(ConfigSpace::new(bytes).presence(), Presence::Alive);
    }

    #[test]
    fn a_capability_list_that_bites_its_tail_ends() {
        let mut bytes = header(0x40, 256);
        bytes[0x40..0x42].copy_from_slice(&[0x01, 0x50]);
        bytes[0x50..0x52].copy_from_slice(&[0x11, 0x40]);
        let list = ConfigSpace::new(bytes).capabilities();
        assert_eq!(list.end, ListEnd::Loop { offset: 0x40 });
        assert_eq!(list.entries.len(), 2);
        assert_eq!(list.find(0x11), Some(0x50));
    }

    #[test]
    fn a_capability_pointer_into_the_header_is_not_followed() {
        let mut bytes = header(0x40, 256);
        bytes[0x40..0x42].copy_from_slice(&[0x01, 0x10]);
        assert_eq!(ConfigSpace::new(bytes).capabilities().end, ListEnd::OutOfRange { offset: 0x10 });
    }

    #[test]
    fn an_extended_list_that_bites_its_tail_ends() {
        let mut bytes = header(0x40, 4096);
        bytes[0x100..0x104].copy_from_slice(&(0x0001 | 2 << 16 | 0x200u32 << 20).to_le_bytes());
        bytes[0x200..0x204].copy_from_slice(&(0x001e | 1 << 16 | 0x100u32 << 20).to_le_bytes());
        let list = ConfigSpace::new(bytes).extended_capabilities();
        assert_eq!(list.end, ListEnd::Loop { offset: 0x100 });
        assert_eq!(list.find(0x001e), Some(0x200));
    }

    #[test]
    fn an_extended_pointer_below_100h_is_not_followed() {
        let mut bytes = header(0x40, 4096);
        bytes[0x100..0x104].copy_from_slice(&(0x0001 | 2 << 16 | 0x40u32 << 20).to_le_bytes());
        assert_eq!(ConfigSpace::new(bytes).extended_capabilities().end, ListEnd::OutOfRange { offset: 0x40 });
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic_or_run_on(bytes in proptest::collection::vec(any::<u8>(), 0..4200)) {
            let config = ConfigSpace::new(bytes);
            prop_assert!(config.capabilities().entries.len() <= 48);
            prop_assert!(config.extended_capabilities().entries.len() <= 960);
            let _ = (config.presence(), config.express(), config.msix(), config.power_management(), config.aer());
            let _ = config.l1_substates();
        }
    }
}
