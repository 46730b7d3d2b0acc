//! Persistent Event Log: what happened to the drive over its life.
//!
//! The log is a head and then one event after another, each with a head of its own that says how long it is. An event
//! of a type that is not known is kept as bytes: the walk goes on behind it.
#![forbid(unsafe_code)]

mod event;
pub use event::*;

use crate::describe::{Describe, Descriptor, View};
use crate::feature::Timestamp;
use crate::log::Smart;
use crate::{bits, codes, structure};
use zerocopy::FromBytes;
use zerocopy::little_endian::{U16, U32, U64, U128};

bits! {
    /// RCI, who holds the context of the log.
    pub struct ReportingContext(u32 as U32) {
        /// The port that holds it.
        0:16 rcpid: u16 = COUNT, "reporting context port identifier";
        /// 0 none, 1 an NVM subsystem port, 2 a management endpoint.
        16:2 rcpit: u8 = COUNT, "reporting context port identifier type";
        /// A context exists.
        18:1 rce: bool = FLAG, "reporting context exists";
        /// Reserved.
        19:13 __: u16 = RESERVED, "reserved";
    }
}

structure! {
    /// The head of the persistent event log, log page 0Dh.
    /// NVM Express Base Specification, "Persistent Event Log Page".
    pub struct PersistentEventHeader: 512, "persistent-event" {
        /// Log page identifier, 0Dh.
        0 lid: u8 = HEX, "Log Page Identifier";
        /// Reserved.
        1 reserved_1: [u8; 3] = RESERVED, "Reserved";
        /// Events in the log.
        4 tnev: U32 = COUNT, "Total Number of Events";
        /// Length of the log, this head included.
        8 tll: U64 = amount(1, "bytes"), "Total Log Length";
        /// Revision of the log.
        16 rv: u8 = COUNT, "Log Revision";
        /// Reserved.
        17 reserved_17: u8 = RESERVED, "Reserved";
        /// Bytes of this head behind this field.
        18 lhl: U16 = amount(1, "bytes"), "Log Header Length";
        /// When the log was made.
        20 ts: Timestamp = nested(&Timestamp::DESCRIPTOR), "Timestamp";
        /// Power-on hours when the log was made.
        28 poh: U128 = amount(1, "h"), "Power On Hours";
        /// Power cycles when the log was made.
        44 pcc: U64 = COUNT, "Power Cycle Count";
        /// PCI vendor.
        52 vid: U16 = HEX, "PCI Vendor ID";
        /// PCI subsystem vendor.
        54 ssvid: U16 = HEX, "PCI Subsystem Vendor ID";
        /// Serial number.
        56 sn: [u8; 20] = TEXT, "Serial Number";
        /// Model number.
        76 mn: [u8; 40] = TEXT, "Model Number";
        /// Qualified name of the subsystem.
        116 subnqn: [u8; 256] = TEXT, "NVM Subsystem NVMe Qualified Name";
        /// Counts the logs that were made: a change while reading means to begin again.
        372 generation: U16 = COUNT, "Generation Number";
        /// Who holds the context.
        374 rci: ReportingContext = bits(ReportingContext::PARTS), "Reporting Context Information";
        /// Reserved.
        378 reserved_378: [u8; 102] = RESERVED, "Reserved";
        /// Event types that are supported, bit n for type n.
        480 seb: [u8; 32] = BYTES, "Supported Events Bitmap";
    }
}

codes! {
    /// Type of a persistent event.
    pub struct EventType(u8, 8) {
        /// A health log page as it was then.
        0x01 SMART "SMART / Health Log Snapshot";
        /// Firmware was committed.
        0x02 FIRMWARE_COMMIT "Firmware Commit";
        /// The timestamp was changed.
        0x03 TIMESTAMP_CHANGE "Timestamp Change";
        /// Power on or reset.
        0x04 POWER_ON_OR_RESET "Power-on or Reset";
        /// An error of the subsystem's hardware.
        0x05 HARDWARE_ERROR "NVM Subsystem Hardware Error";
        /// A namespace was made or deleted.
        0x06 CHANGE_NAMESPACE "Change Namespace";
        /// A format began.
        0x07 FORMAT_START "Format NVM Start";
        /// A format ended.
        0x08 FORMAT_COMPLETION "Format NVM Completion";
        /// A sanitize began.
        0x09 SANITIZE_START "Sanitize Start";
        /// A sanitize ended.
        0x0a SANITIZE_COMPLETION "Sanitize Completion";
        /// A feature was set.
        0x0b SET_FEATURE "Set Feature";
        /// Telemetry was made.
        0x0c TELEMETRY_CREATED "Telemetry Log Created";
        /// A temperature went beyond a threshold.
        0x0d THERMAL_EXCURSION "Thermal Excursion";
        /// The media verification state was entered.
        0x0e MEDIA_VERIFICATION "Sanitize Media Verification";
        /// The device personality was changed.
        0x0f PERSONALITY_CHANGE "Configurable Device Personality Change";
        /// An exported subsystem was changed.
        0x10 EXPORTED_CHANGE "Exported NVM Subsystem Change";
        /// The vendor's own.
        0xde VENDOR "Vendor Specific";
        /// Defined by the Trusted Computing Group.
        0xdf TCG "TCG Defined";
    }
}

bits! {
    /// EHAI, more on an event's head.
    pub struct EventPort(u8 as u8) {
        /// What the port identifier is: 0 not reported, 1 subsystem port, 2 management port, 3 none.
        0:2 pit: u8 = COUNT, "port identifier type";
        /// Reserved.
        2:6 __: u8 = RESERVED, "reserved";
    }
}

structure! {
    /// The head of a persistent event.
    /// NVM Express Base Specification, "Persistent Event Format".
    pub struct EventHeader: 24, "event" {
        /// What happened.
        0 kind: EventType = choice(EventType::MEANINGS), "Event Type";
        /// Revision of the type.
        1 revision: u8 = COUNT, "Event Type Revision";
        /// Bytes of the head behind this field.
        2 ehl: u8 = COUNT, "Event Header Length";
        /// More on the head.
        3 ehai: EventPort = bits(EventPort::PARTS), "Event Header Additional Info";
        /// The controller.
        4 cntlid: U16 = HEX, "Controller Identifier";
        /// When.
        6 timestamp: Timestamp = nested(&Timestamp::DESCRIPTOR), "Event Timestamp";
        /// The port.
        14 pelpid: U16 = HEX, "Port Identifier";
        /// Reserved.
        16 reserved_16: [u8; 4] = RESERVED, "Reserved";
        /// The vendor's bytes in front of the event's data.
        20 vsil: U16 = COUNT, "Vendor Specific Information Length";
        /// Bytes behind the head: the vendor's and the event's.
        22 el: U16 = COUNT, "Event Length";
    }
}

/// One event of the log.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Its head.
    pub header: EventHeader,
    /// The vendor's bytes.
    pub vendor: &'a [u8],
    /// The event's own bytes; what they are, [`Event::view`] knows where anyone does.
    pub data: &'a [u8],
}

impl Event<'_> {
    /// The data seen as what the type says it is; `None` for a type that is not known or has no fixed structure.
    pub fn view(&self) -> Option<View<'_>> {
        let descriptor: &'static Descriptor = match self.header.kind {
            EventType::SMART => const { &Smart::DESCRIPTOR },
            EventType::FIRMWARE_COMMIT => const { &FirmwareCommitEvent::DESCRIPTOR },
            EventType::TIMESTAMP_CHANGE => const { &TimestampChangeEvent::DESCRIPTOR },
            EventType::POWER_ON_OR_RESET => const { &PowerOnEvent::DESCRIPTOR },
            EventType::HARDWARE_ERROR => const { &HardwareErrorEvent::DESCRIPTOR },
            EventType::CHANGE_NAMESPACE => const { &ChangeNamespaceEvent::DESCRIPTOR },
            EventType::FORMAT_START => const { &FormatStartEvent::DESCRIPTOR },
            EventType::FORMAT_COMPLETION => const { &FormatCompletionEvent::DESCRIPTOR },
            EventType::SANITIZE_START => const { &SanitizeStartEvent::DESCRIPTOR },
            EventType::SANITIZE_COMPLETION => const { &SanitizeCompletionEvent::DESCRIPTOR },
            EventType::SET_FEATURE => const { &SetFeatureEvent::DESCRIPTOR },
            EventType::TELEMETRY_CREATED => const { &super::TelemetryHeader::DESCRIPTOR },
            EventType::THERMAL_EXCURSION => const { &ThermalExcursionEvent::DESCRIPTOR },
            EventType::VENDOR => const { &VendorEvent::DESCRIPTOR },
            _ => return None,
        };
        Some(descriptor.view(self.data))
    }
}

/// The events behind the log's head, in the order of the log. Made by [`events`].
#[derive(Clone, Debug)]
pub struct Events<'a> {
    rest: &'a [u8],
}

/// The events of a log of which these are the bytes, its head included.
///
/// The walk ends with the bytes, or with an event whose head does not fit into them; what an event's head claims beyond
/// the end of the bytes is cut off.
///
/// ```
/// use nvmetal_core::log::persistent::{EventType, events};
///
/// let mut log = vec![0_u8; 512];
/// log.extend([0x0d, 1, 21, 0, 0, 0]); // a thermal excursion, 24 bytes of head
/// log.extend([0; 14]);
/// log.extend([0, 0, 2, 0, 3, 1]); // no vendor's bytes, two of its own: 3 K over threshold 1
/// let event = events(&log).next().unwrap();
/// assert_eq!(event.header.kind, EventType::THERMAL_EXCURSION);
/// assert_eq!(event.view().unwrap().raw("over_temperature"), Some(3));
/// ```
pub fn events(log: &[u8]) -> Events<'_> {
    let head = PersistentEventHeader::read_from_prefix(log).map_or(512, |(head, _)| match head.lhl.get() {
        // The head's length counts from behind its own field; 0 is what logs say that do not say it.
        0 => 512,
        length => 20 + usize::from(length),
    });
    Events { rest: log.get(head..).unwrap_or_default() }
}

impl<'a> Iterator for Events<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        let (header, _) = EventHeader::read_from_prefix(self.rest).ok()?;
        // A head that claims to be shorter than it is cannot be walked over.
        let body_at = usize::from(header.ehl).checked_add(3).filter(|length| *length >= size_of::<EventHeader>())?;
        let body = self.rest.get(body_at..).unwrap_or_default();
        let body_length = usize::from(header.el.get()).min(body.len());
        let (body, rest) = body.split_at_checked(body_length)?;
        let (vendor, data) = body.split_at_checked(usize::from(header.vsil.get()).min(body.len()))?;
        self.rest = rest;
        Some(Event { header, vendor, data })
    }
}
