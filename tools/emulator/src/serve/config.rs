//! Configuration space as a client may write it.
//!
//! What is there to be read comes from the emulator. Of that a few bits can be written, and are kept here: the command
//! register, the place of BAR0, and the enable bits of MSI-X. Everything else is read-only, as on a device.
#![forbid(unsafe_code)]

use crate::pci_config::MSIX;

/// The command register, and its bits that matter here.
const COMMAND: usize = 0x04;
const MEMORY_SPACE: u8 = 1 << 1;
const BUS_MASTER: u8 = 1 << 2;
/// INTx off, in the command register's second byte.
const INTX_OFF: u8 = 1 << 2;
const BAR0: usize = 0x10;
/// Bytes that can be written lie in the first 256.
const WRITABLE_BYTES: usize = 256;

/// The written bits.
#[derive(Debug)]
pub(super) struct Config {
    /// The bits that can be written.
    mask: [u8; WRITABLE_BYTES],
    written: [u8; WRITABLE_BYTES],
}

impl Config {
    /// As a function is handed over: its registers answer, and it may not master the bus.
    pub(super) fn new(bar0_bytes: u64) -> Self {
        let mut config = Self { mask: [0; WRITABLE_BYTES], written: [0; WRITABLE_BYTES] };
        let place = !(bar0_bytes - 1);
        config.writable(BAR0, &place.to_le_bytes());
        config.writable(COMMAND, &[0x47, 0x05]);
        config.writable(0x0c, &[0xff]); // Cache line size, which nothing depends on.
        config.writable(0x3c, &[0xff]); // Interrupt line: a note of the software's to itself.
        config.writable(usize::from(MSIX) + 3, &[0xc0]); // MSI-X enable, function mask.
        config.write(COMMAND, &[MEMORY_SPACE, INTX_OFF]);
        config.write(BAR0, &0xf000_0000_u64.to_le_bytes());
        config
    }

    fn writable(&mut self, at: usize, bits: &[u8]) {
        self.mask.iter_mut().skip(at).zip(bits).for_each(|(mask, bits)| *mask = *bits);
    }

    /// Bytes were written at `at`.
    pub(super) fn write(&mut self, at: usize, bytes: &[u8]) {
        self.written.iter_mut().skip(at).zip(bytes).for_each(|(written, byte)| *written = *byte);
    }

    /// Puts what was written into a configuration space.
    pub(super) fn apply(&self, space: &mut [u8]) {
        for ((byte, mask), written) in space.iter_mut().zip(self.mask).zip(self.written) {
            *byte = *byte & !mask | written & mask;
        }
    }

    /// Whether the function may master the bus.
    pub(super) fn bus_master(&self) -> bool {
        self.written.get(COMMAND).is_some_and(|command| command & BUS_MASTER != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_written_changes() {
        let mut config = Config::new(2 << 20);
        assert!(!config.bus_master());
        config.write(0, &[0xff; WRITABLE_BYTES]);
        config.write(WRITABLE_BYTES + 4, &[0xff]);
        config.write(usize::MAX, &[0xff]);
        let mut space = [0; 4096];
        config.apply(&mut space);
        assert_eq!(space[..4], [0; 4], "the identifiers are read-only");
        assert_eq!(space[0x10..0x18], (!0x1f_ffff_u64).to_le_bytes(), "a BAR tells its size");
        assert!(config.bus_master());
    }
}
