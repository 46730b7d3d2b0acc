//! Telemetry: the vendor's own data, with a head that everybody can read.
#![forbid(unsafe_code)]

use crate::structure;
use zerocopy::little_endian::{U16, U32};

structure! {
    /// The head of the telemetry logs, log pages 07h (host-initiated) and 08h (controller-initiated).
    /// NVM Express Base Specification, "Telemetry Host-Initiated" and "Telemetry Controller-Initiated".
    ///
    /// The data areas follow in blocks of 512 bytes; area n ends with its last block and begins behind area n - 1.
    pub struct TelemetryHeader: 512, "telemetry" {
        /// Log page identifier, 07h or 08h.
        0 lpi: u8 = HEX, "Log Page Identifier";
        /// Reserved.
        1 reserved_1: [u8; 4] = RESERVED, "Reserved";
        /// The vendor who knows what the data means.
        5 ieee: [u8; 3] = OUI, "IEEE OUI Identifier";
        /// Last block of data area 1.
        8 dalb1: U16 = COUNT, "Data Area 1 Last Block";
        /// Last block of data area 2.
        10 dalb2: U16 = COUNT, "Data Area 2 Last Block";
        /// Last block of data area 3.
        12 dalb3: U16 = COUNT, "Data Area 3 Last Block";
        /// Reserved.
        14 reserved_14: [u8; 2] = RESERVED, "Reserved";
        /// Last block of data area 4.
        16 dalb4: U32 = COUNT, "Data Area 4 Last Block";
        /// Reserved.
        20 reserved_20: [u8; 360] = RESERVED, "Reserved";
        /// Host-initiated: what the data is about.
        380 ths: u8 = COUNT.zero("not reported"), "Telemetry Host-Initiated Scope";
        /// Host-initiated: counts up with each new log. Controller-initiated: what the data is about.
        381 scope: u8 = COUNT, "Host-Initiated Generation Number or Controller-Initiated Scope";
        /// 1: the controller has data of its own accord.
        382 tcida: u8 = COUNT, "Telemetry Controller-Initiated Data Available";
        /// Counts up with each new log that the controller begins.
        383 tcidgn: u8 = COUNT, "Telemetry Controller-Initiated Data Generation Number";
        /// The vendor's reason.
        384 rid: [u8; 128] = BYTES, "Reason Identifier";
    }
}

impl TelemetryHeader {
    /// Size of head and data up to the end of area 1, 2, 3 or 4, in bytes; `None` for another area.
    pub const fn bytes_to_area(&self, area: u8) -> Option<u64> {
        let last = match area {
            1 => self.dalb1.get() as u64,
            2 => self.dalb2.get() as u64,
            3 => self.dalb3.get() as u64,
            4 => self.dalb4.get() as u64,
            _ => return None,
        };
        Some((last + 1) * 512)
    }
}
