//! The small capabilities: power management, MSI-X and L1 substates.
//!
//! PCI Bus Power Management 1.2 section 3.2; PCI Express Base Specification 7.7.2 (MSI-X) and 7.8.3 (L1 PM substates).
#![forbid(unsafe_code)]

use serde::Serialize;

use super::ConfigSpace;

/// Capability ID of power management.
const POWER_MANAGEMENT: u16 = 0x01;
/// Capability ID of MSI-X.
const MSIX: u16 = 0x11;
/// Extended capability ID of L1 PM substates.
const L1_SUBSTATES: u16 = 0x1e;

/// The Power Management capability: which state the function is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PowerManagement {
    /// The power state D0 to D3 (3 is D3hot: the registers behind the base address registers do not answer).
    pub state: u8,
    /// Whether the function keeps its registers when it goes from D3hot to D0 (No_Soft_Reset).
    pub keeps_state: bool,
}

/// The MSI-X capability: where the vector table is, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Msix {
    /// Whether MSI-X delivery is on.
    pub enabled: bool,
    /// Whether all vectors are masked.
    pub masked: bool,
    /// The number of vectors, 1 to 2048 (the register holds one less).
    pub vectors: u16,
    /// The base address register, 0 to 5, behind which the table lies.
    pub table_bar: u8,
    /// Where in it. Not always aligned to a page.
    pub table_offset_bytes: u32,
    /// The base address register of the pending bits.
    pub pending_bar: u8,
    /// Where in it.
    pub pending_offset_bytes: u32,
}

impl Msix {
    /// The bytes of the table: 16 for each vector.
    pub fn table_bytes(&self) -> u32 {
        16 * u32::from(self.vectors)
    }
}

/// Which of the deeper sleeps of a link in L1 are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct L1Substates {
    /// ASPM L1.1 is enabled.
    pub aspm_l1_1: bool,
    /// ASPM L1.2 is enabled.
    pub aspm_l1_2: bool,
    /// PCI-PM L1.1 is enabled.
    pub pci_pm_l1_1: bool,
    /// PCI-PM L1.2 is enabled.
    pub pci_pm_l1_2: bool,
}

impl ConfigSpace {
    /// The Power Management capability.
    pub fn power_management(&self) -> Option<PowerManagement> {
        let at = self.capabilities().find(POWER_MANAGEMENT)?;
        let status = self.u16(at + 4)?;
        Some(PowerManagement { state: (status & 0b11) as u8, keeps_state: status & (1 << 3) != 0 })
    }

    /// The MSI-X capability.
    pub fn msix(&self) -> Option<Msix> {
        let at = self.capabilities().find(MSIX)?;
        let (control, table, pending) = (self.u16(at + 2)?, self.u32(at + 4)?, self.u32(at + 8)?);
        Some(Msix {
            enabled: control & (1 << 15) != 0,
            masked: control & (1 << 14) != 0,
            vectors: (control & 0x7ff) + 1,
            table_bar: (table & 0b111) as u8,
            table_offset_bytes: table & !0b111,
            pending_bar: (pending & 0b111) as u8,
            pending_offset_bytes: pending & !0b111,
        })
    }

    /// The L1 PM Substates capability's enable bits.
    pub fn l1_substates(&self) -> Option<L1Substates> {
        let at = self.extended_capabilities().find(L1_SUBSTATES)?;
        let control = self.u32(at + 8)?;
        Some(L1Substates {
            pci_pm_l1_2: control & 1 != 0,
            pci_pm_l1_1: control & (1 << 1) != 0,
            aspm_l1_2: control & (1 << 2) != 0,
            aspm_l1_1: control & (1 << 3) != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pci::config::Presence;

    fn with_capability(at: usize, bytes: &[u8]) -> ConfigSpace {
        let mut space = vec![0; 256];
        space[..4].copy_from_slice(&[0x36, 0x1b, 0x10, 0x00]);
        space[4..8].copy_from_slice(&[0x06, 0x00, 0x10, 0x00]);
        space[0x34] = at as u8;
        space[at..at + bytes.len()].copy_from_slice(bytes);
        ConfigSpace::new(space)
    }

    #[test]
    fn d20_an_msix_table_that_does_not_start_on_a_page_is_placed_exactly() {
        // 67 vectors, table in BAR 0 at 5200h, pending bits in BAR 0 at 5700h.
        let config = with_capability(0xb0, &[0x11, 0, 0x42, 0x80, 0x00, 0x52, 0, 0, 0x00, 0x57, 0, 0]);
        assert_eq!(config.presence(), Presence::Alive);
        let msix = config.msix().unwrap();
        assert_eq!((msix.vectors, msix.table_bar, msix.table_offset_bytes), (67, 0, 0x5200));
        assert_eq!((msix.pending_bar, msix.pending_offset_bytes), (0, 0x5700));
        assert_eq!(msix.table_bytes(), 1072);
        assert!(msix.enabled && !msix.masked);
    }

    #[test]
    fn the_table_may_lie_behind_another_register() {
        let config = with_capability(0x40, &[0x11, 0, 0x00, 0x00, 0x04, 0x20, 0, 0, 0x04, 0x30, 0, 0]);
        let msix = config.msix().unwrap();
        assert_eq!((msix.vectors, msix.table_bar, msix.table_offset_bytes), (1, 4, 0x2000));
        assert!(!msix.enabled);
    }

    #[test]
    fn a_capability_cut_off_by_the_end_of_the_bytes_is_none() {
        let mut space = vec![0; 0x44];
        space[..4].copy_from_slice(&[0x36, 0x1b, 0x10, 0x00]);
        space[6] = 0x10;
        space[0x34] = 0x40;
        space[0x40] = 0x11;
        assert_eq!(ConfigSpace::new(space).msix(), None);
    }

    #[test]
    fn the_power_state_is_read() {
        let config = with_capability(0x40, &[0x01, 0, 0x03, 0x00, 0x0b, 0x00]);
        assert_eq!(config.power_management(), Some(PowerManagement { state: 3, keeps_state: true }));
    }
}
