//! Firmware Slot Information: which firmware is there and which runs.
#![forbid(unsafe_code)]

use crate::{bits, structure};

bits! {
    /// AFI, Active Firmware Info.
    pub struct ActiveFirmware(u8 as u8) {
        /// The slot whose firmware runs; there is no slot 0.
        0:3 active: u8 = COUNT.zero("not reported"), "active slot";
        /// Reserved.
        3:1 __: bool = RESERVED, "reserved";
        /// The slot whose firmware runs after the next reset; 0 where that is not said.
        4:3 next: u8 = COUNT.zero("not reported"), "slot active after the next reset";
        /// Reserved.
        7:1 __: bool = RESERVED, "reserved";
    }
}

structure! {
    /// Firmware Slot Information, log page 03h. NVM Express Base Specification, "Firmware Slot Information".
    pub struct FirmwareSlots: 512, "firmware" {
        /// Which slot is active.
        0 afi: ActiveFirmware = bits(ActiveFirmware::PARTS), "Active Firmware Info";
        /// Reserved.
        1 reserved_1: [u8; 7] = RESERVED, "Reserved";
        /// Revision in slot 1; no text where the slot is empty.
        8 frs1: [u8; 8] = TEXT, "Firmware Revision for Slot 1";
        /// Revision in slot 2.
        16 frs2: [u8; 8] = TEXT, "Firmware Revision for Slot 2";
        /// Revision in slot 3.
        24 frs3: [u8; 8] = TEXT, "Firmware Revision for Slot 3";
        /// Revision in slot 4.
        32 frs4: [u8; 8] = TEXT, "Firmware Revision for Slot 4";
        /// Revision in slot 5.
        40 frs5: [u8; 8] = TEXT, "Firmware Revision for Slot 5";
        /// Revision in slot 6.
        48 frs6: [u8; 8] = TEXT, "Firmware Revision for Slot 6";
        /// Revision in slot 7.
        56 frs7: [u8; 8] = TEXT, "Firmware Revision for Slot 7";
        /// Reserved.
        64 reserved_64: [u8; 448] = RESERVED, "Reserved";
    }
}

impl FirmwareSlots {
    /// The revisions of slots 1 to 7.
    pub const fn revisions(&self) -> [&[u8; 8]; 7] {
        [&self.frs1, &self.frs2, &self.frs3, &self.frs4, &self.frs5, &self.frs6, &self.frs7]
    }
}
