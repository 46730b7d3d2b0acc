//! PCI configuration space, as the function and the port above it would show it.
//!
//! PCI Express Base Specification: header, capability list, extended capabilities. It is made from the options, so that
//! the same decoder that reads a real drive's configuration space finds the link, the payload size and the interrupt
//! vectors of an emulated one.
#![forbid(unsafe_code)]

use crate::controller::memory_buffer;
use crate::emulator::Emulator;
use crate::link::PcieLink;

/// The vendor: reserved for what is no real device (the one that QEMU's own devices have).
pub const VENDOR: u16 = 0x1b36;
/// The device.
pub const DEVICE: u16 = 0x4e56;

/// Bytes of a configuration space.
const BYTES: usize = 4096;
/// Where the capabilities lie.
const POWER: u8 = 0x40;
const PCIE: u8 = 0x60;
pub(crate) const MSIX: u8 = 0xb0;
const AER: u16 = 0x100;

/// Puts little-endian numbers into a configuration space.
struct Space(Vec<u8>);

impl Space {
    fn put<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        if let Some(place) = self.0.get_mut(at..at + N) {
            place.copy_from_slice(&bytes);
        }
    }

    fn put16(&mut self, at: usize, value: u16) {
        self.put(at, value.to_le_bytes());
    }

    fn put32(&mut self, at: usize, value: u32) {
        self.put(at, value.to_le_bytes());
    }

    fn header(class: u32, device: u16, header_type: u8) -> Self {
        let mut space = Self(vec![0; BYTES]);
        space.put16(0x00, VENDOR);
        space.put16(0x02, device);
        space.put16(0x04, 0x0406); // Memory space, bus master, INTx disabled.
        space.put16(0x06, 0x0010); // Capability list.
        space.put32(0x08, class << 8 | 1);
        space.put(0x0e, [header_type]);
        space.put(0x34, [POWER]);
        space.put32(usize::from(POWER), 0x0003_0001 | u32::from(PCIE) << 8);
        space.put32(usize::from(POWER) + 4, 0x0000_0008); // D0, no soft reset.
        // AER, the only extended capability: nothing has happened.
        space.put32(usize::from(AER), 0x0002_0001);
        space.put32(usize::from(AER) + 0x0c, 0x0006_2030);
        space.put32(usize::from(AER) + 0x14, 0x0000_2000);
        space
    }

    fn pcie(&mut self, next: u8, port_type: u8, able: PcieLink, now: PcieLink, payload: u32, read_request: u32) {
        let at = usize::from(PCIE);
        let code = |bytes: u32| (bytes.trailing_zeros().saturating_sub(7) as u16) & 7;
        self.put16(at, u16::from_le_bytes([0x10, next]));
        self.put16(at + 2, 0x0002 | u16::from(port_type) << 4);
        // Device capabilities: payload 512, function level reset (endpoint), role based error reporting.
        self.put32(at + 4, 0x0000_8002 | u32::from(port_type == 0) << 28);
        self.put16(at + 8, 0x000f | code(payload) << 5 | code(read_request) << 12);
        self.put16(at + 10, 0);
        self.put32(at + 12, u32::from(able.generation) | u32::from(able.width) << 4);
        self.put16(at + 16, 0);
        // A root port reports that the link is up (data link layer link active).
        self.put16(at + 18, u16::from(now.generation) | u16::from(now.width) << 4 | u16::from(port_type != 0) << 13);
        self.put32(at + 36, 0);
        self.put32(at + 44, (2u32 << able.generation) - 2);
        self.put16(at + 48, u16::from(able.generation));
    }
}

impl Emulator {
    /// The configuration space of the drive's own function.
    pub fn endpoint_config(&self) -> Vec<u8> {
        let model = &self.options.model;
        if self.removed {
            return vec![0xff; BYTES];
        }
        let mut space = Space::header(0x01_08_02, DEVICE, 0);
        space.put32(0x10, 0xf000_0004);
        if self.memory_buffer.is_some() {
            space.put32(0x10 + 4 * usize::from(memory_buffer::BAR), 0xf800_000c); // 64 bits, prefetchable.
        }
        space.put16(0x2c, VENDOR);
        space.put16(0x2e, DEVICE);
        space.pcie(MSIX, 0, model.link, self.options.link(), model.payload, model.read_request);
        let msix = usize::from(MSIX);
        space.put16(msix, 0x0011);
        space.put16(msix + 2, 0x8000 | (self.vectors() - 1));
        // The table lies behind the doorbells, the pending bits behind the table.
        space.put32(msix + 4, 0x0010_0000);
        space.put32(msix + 8, 0x0011_0000);
        space.0
    }

    /// The configuration space of the root port that the drive is behind.
    pub fn port_config(&self) -> Vec<u8> {
        // Correctable errors, each of another kind, since AER keeps one bit for each.
        const KINDS: [u32; 5] = [1 << 0, 1 << 6, 1 << 7, 1 << 12, 1 << 8];
        let model = &self.options.model;
        let mut space = Space::header(0x06_04_00, 0x000c, 1);
        space.put(0x18, [0, 1, 1]); // Primary, secondary, subordinate bus.
        let happened = (self.moved_bytes >> 26).min(self.options.link_errors.into()) as usize;
        let correctable: u32 = KINDS.iter().take(happened).sum();
        space.put32(usize::from(AER) + 0x10, correctable);
        space.pcie(0, 4, model.slot, self.options.link(), model.payload, model.read_request);
        space.0
    }
}
