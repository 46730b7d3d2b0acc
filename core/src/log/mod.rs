//! What Get Log Page returns.
//!
//! One file holds one log page, or a few that belong together, as a table of its fields; adding a page is adding a file
//! and a line in [`descriptor`]. Pages that are a head and a list of unknown length have a structure for the head and
//! one for an element.
#![forbid(unsafe_code)]

mod access;
mod chunk;
mod endurance;
mod error;
mod firmware;
mod media;
pub mod persistent;
mod placement;
mod self_test;
mod smart;
mod support;
mod telemetry;
pub mod vendor;
pub use access::*;
pub use chunk::{Chunk, Chunks, LengthError};
pub use endurance::*;
pub use error::{ErrorEntry, ParameterErrorLocation, TransportType};
pub use firmware::{ActiveFirmware, FirmwareSlots};
pub use media::*;
pub use placement::*;
pub use self_test::*;
pub use smart::{CriticalWarning, Smart};
pub use support::*;
pub use telemetry::TelemetryHeader;

use crate::codes;
use crate::describe::{Describe, Descriptor};
use crate::identify::NamespaceList;

codes! {
    /// Log Page Identifier. C0h to FFh are the vendor's.
    pub struct LogId(u8, 8) {
        /// Supported Log Pages.
        0x00 SUPPORTED_PAGES "Supported Log Pages";
        /// Error Information.
        0x01 ERROR "Error Information";
        /// SMART / Health Information.
        0x02 SMART "SMART / Health Information";
        /// Firmware Slot Information.
        0x03 FIRMWARE_SLOT "Firmware Slot Information";
        /// Changed Attached Namespace List.
        0x04 CHANGED_NAMESPACES "Changed Attached Namespace List";
        /// Commands Supported and Effects.
        0x05 COMMAND_EFFECTS "Commands Supported and Effects";
        /// Device Self-test.
        0x06 SELF_TEST "Device Self-test";
        /// Telemetry Host-Initiated.
        0x07 TELEMETRY_HOST "Telemetry Host-Initiated";
        /// Telemetry Controller-Initiated.
        0x08 TELEMETRY_CONTROLLER "Telemetry Controller-Initiated";
        /// Endurance Group Information.
        0x09 ENDURANCE_GROUP "Endurance Group Information";
        /// Predictable Latency Per NVM Set.
        0x0a PREDICTABLE_LATENCY "Predictable Latency Per NVM Set";
        /// Predictable Latency Event Aggregate.
        0x0b PREDICTABLE_LATENCY_AGGREGATE "Predictable Latency Event Aggregate";
        /// Asymmetric Namespace Access.
        0x0c ANA "Asymmetric Namespace Access";
        /// Persistent Event Log.
        0x0d PERSISTENT_EVENT "Persistent Event Log";
        /// LBA Status Information.
        0x0e LBA_STATUS "LBA Status Information";
        /// Endurance Group Event Aggregate.
        0x0f ENDURANCE_GROUP_AGGREGATE "Endurance Group Event Aggregate";
        /// Media Unit Status.
        0x10 MEDIA_UNIT_STATUS "Media Unit Status";
        /// Supported Capacity Configuration List.
        0x11 CAPACITY_CONFIGURATIONS "Supported Capacity Configuration List";
        /// Feature Identifiers Supported and Effects.
        0x12 FEATURE_EFFECTS "Feature Identifiers Supported and Effects";
        /// NVMe-MI Commands Supported and Effects.
        0x13 MI_EFFECTS "NVMe-MI Commands Supported and Effects";
        /// Command and Feature Lockdown.
        0x14 LOCKDOWN "Command and Feature Lockdown";
        /// Boot Partition.
        0x15 BOOT_PARTITION "Boot Partition";
        /// Rotational Media Information.
        0x16 ROTATIONAL_MEDIA "Rotational Media Information";
        /// Dispersed Namespace Participating NVM Subsystems.
        0x17 DISPERSED_NAMESPACE "Dispersed Namespace Participating NVM Subsystems";
        /// Management Address List.
        0x18 MANAGEMENT_ADDRESSES "Management Address List";
        /// Physical Interface Receiver Eye Opening Measurement.
        0x19 EYE_OPENING "Physical Interface Receiver Eye Opening Measurement";
        /// Reachability Groups.
        0x1a REACHABILITY_GROUPS "Reachability Groups";
        /// Reachability Associations.
        0x1b REACHABILITY_ASSOCIATIONS "Reachability Associations";
        /// Changed Allocated Namespace List.
        0x1c CHANGED_ALLOCATED_NAMESPACES "Changed Allocated Namespace List";
        /// Device Personalities.
        0x1d DEVICE_PERSONALITIES "Device Personalities";
        /// Cross-Controller Reset.
        0x1e CROSS_CONTROLLER_RESET "Cross-Controller Reset";
        /// Lost Host Communication.
        0x1f LOST_HOST_COMMUNICATION "Lost Host Communication";
        /// FDP Configurations.
        0x20 FDP_CONFIGURATIONS "FDP Configurations";
        /// Reclaim Unit Handle Usage.
        0x21 FDP_HANDLE_USAGE "Reclaim Unit Handle Usage";
        /// FDP Statistics.
        0x22 FDP_STATISTICS "FDP Statistics";
        /// FDP Events.
        0x23 FDP_EVENTS "FDP Events";
        /// Power Measurement.
        0x25 POWER_MEASUREMENT "Power Measurement";
        /// Voltage Measurement.
        0x27 VOLTAGE_MEASUREMENT "Voltage Measurement";
        /// Rate Limiting.
        0x28 RATE_LIMITING "Rate Limiting";
        /// Discovery.
        0x70 DISCOVERY "Discovery";
        /// Host Discovery.
        0x71 HOST_DISCOVERY "Host Discovery";
        /// AVE Discovery.
        0x72 AVE_DISCOVERY "AVE Discovery";
        /// Pull Model DDC Request.
        0x73 PULL_MODEL_DDC "Pull Model DDC Request";
        /// Reservation Notification.
        0x80 RESERVATION "Reservation Notification";
        /// Sanitize Status.
        0x81 SANITIZE "Sanitize Status";
        /// Changed Zone List.
        0xbf CHANGED_ZONES "Changed Zone List";
    }
}

/// What a log page is: the structure, or its head where a list follows. For a vendor's page see [`vendor::identify`].
pub const fn descriptor(lid: LogId) -> Option<&'static Descriptor> {
    Some(match lid {
        LogId::SUPPORTED_PAGES => const { &SupportedLogPages::DESCRIPTOR },
        LogId::ERROR => const { &ErrorEntry::DESCRIPTOR },
        LogId::SMART => const { &Smart::DESCRIPTOR },
        LogId::FIRMWARE_SLOT => const { &FirmwareSlots::DESCRIPTOR },
        LogId::CHANGED_NAMESPACES | LogId::CHANGED_ALLOCATED_NAMESPACES => const { &NamespaceList::DESCRIPTOR },
        LogId::COMMAND_EFFECTS => const { &CommandEffects::DESCRIPTOR },
        LogId::SELF_TEST => const { &SelfTest::DESCRIPTOR },
        LogId::TELEMETRY_HOST | LogId::TELEMETRY_CONTROLLER => const { &TelemetryHeader::DESCRIPTOR },
        LogId::ENDURANCE_GROUP => const { &EnduranceGroup::DESCRIPTOR },
        LogId::PREDICTABLE_LATENCY => const { &PredictableLatencySet::DESCRIPTOR },
        LogId::PREDICTABLE_LATENCY_AGGREGATE | LogId::ENDURANCE_GROUP_AGGREGATE => {
            const { &AggregateHeader::DESCRIPTOR }
        }
        LogId::ANA => const { &AnaHeader::DESCRIPTOR },
        LogId::PERSISTENT_EVENT => const { &persistent::PersistentEventHeader::DESCRIPTOR },
        LogId::LBA_STATUS => const { &LbaStatusHeader::DESCRIPTOR },
        LogId::FEATURE_EFFECTS => const { &FeatureEffects::DESCRIPTOR },
        LogId::LOCKDOWN => const { &LockdownLog::DESCRIPTOR },
        LogId::BOOT_PARTITION => const { &BootPartitionHeader::DESCRIPTOR },
        LogId::ROTATIONAL_MEDIA => const { &RotationalMedia::DESCRIPTOR },
        LogId::FDP_CONFIGURATIONS => const { &FdpConfigurationsHeader::DESCRIPTOR },
        LogId::FDP_HANDLE_USAGE => const { &HandleUsageHeader::DESCRIPTOR },
        LogId::FDP_STATISTICS => const { &FdpStatistics::DESCRIPTOR },
        LogId::FDP_EVENTS => const { &FdpEvents::DESCRIPTOR },
        LogId::RESERVATION => const { &ReservationNotification::DESCRIPTOR },
        LogId::SANITIZE => const { &Sanitize::DESCRIPTOR },
        LogId::CHANGED_ZONES => const { &ChangedZones::DESCRIPTOR },
        _ => return None,
    })
}
