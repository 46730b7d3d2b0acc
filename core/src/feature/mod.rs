//! Features: what Set Features sets and Get Features returns.
//!
//! NVM Express Base Specification, "Feature Identifiers"; NVM Command Set Specification for LBA Range Type, Error
//! Recovery and Write Atomicity. A feature's value is dword 11 of Set Features and dword 0 of the completion of Get
//! Features; a few have more dwords, or a data structure. [`FEATURES`] says which has what.
//!
//! ```
//! use nvmetal_core::command::{Command, admin::SetFeatures};
//! use nvmetal_core::feature::{FeatureId, NumberOfQueues};
//! use nvmetal_core::number::ZeroBased;
//!
//! let sixteen = ZeroBased::<u16>::from_count(16).unwrap();
//! let queues = NumberOfQueues::new().with_nsqr(sixteen).with_ncqr(sixteen);
//! let set = SetFeatures { fid: FeatureId::NUMBER_OF_QUEUES, value: queues.into_bits(), ..SetFeatures::default() };
//! assert_eq!(set.entry().cdw11(), 0x000f_000f);
//! ```
#![forbid(unsafe_code)]

mod data;
mod dword;
pub use data::*;
pub use dword::*;

use crate::codes;
use crate::describe::{Describe, Descriptor, Part};

codes! {
    /// Feature Identifier.
    pub struct FeatureId(u8, 8) {
        /// Arbitration.
        0x01 ARBITRATION "Arbitration";
        /// Power Management.
        0x02 POWER_MANAGEMENT "Power Management";
        /// LBA Range Type.
        0x03 LBA_RANGE_TYPE "LBA Range Type";
        /// Temperature Threshold.
        0x04 TEMPERATURE_THRESHOLD "Temperature Threshold";
        /// Error Recovery.
        0x05 ERROR_RECOVERY "Error Recovery";
        /// Volatile Write Cache.
        0x06 VOLATILE_WRITE_CACHE "Volatile Write Cache";
        /// Number of Queues.
        0x07 NUMBER_OF_QUEUES "Number of Queues";
        /// Interrupt Coalescing.
        0x08 INTERRUPT_COALESCING "Interrupt Coalescing";
        /// Interrupt Vector Configuration.
        0x09 INTERRUPT_VECTOR "Interrupt Vector Configuration";
        /// Write Atomicity Normal.
        0x0a WRITE_ATOMICITY "Write Atomicity Normal";
        /// Asynchronous Event Configuration.
        0x0b ASYNC_EVENT "Asynchronous Event Configuration";
        /// Autonomous Power State Transition.
        0x0c AUTONOMOUS_POWER "Autonomous Power State Transition";
        /// Host Memory Buffer.
        0x0d HOST_MEMORY_BUFFER "Host Memory Buffer";
        /// Timestamp.
        0x0e TIMESTAMP "Timestamp";
        /// Keep Alive Timer.
        0x0f KEEP_ALIVE_TIMER "Keep Alive Timer";
        /// Host Controlled Thermal Management.
        0x10 HOST_THERMAL "Host Controlled Thermal Management";
        /// Non-Operational Power State Config.
        0x11 NON_OPERATIONAL_POWER "Non-Operational Power State Config";
        /// Read Recovery Level Config.
        0x12 READ_RECOVERY_LEVEL "Read Recovery Level Config";
        /// Predictable Latency Mode Config.
        0x13 PREDICTABLE_LATENCY "Predictable Latency Mode Config";
        /// Predictable Latency Mode Window.
        0x14 PREDICTABLE_LATENCY_WINDOW "Predictable Latency Mode Window";
        /// LBA Status Information Report Interval.
        0x15 LBA_STATUS_INTERVAL "LBA Status Information Report Interval";
        /// Host Behavior Support.
        0x16 HOST_BEHAVIOR "Host Behavior Support";
        /// Sanitize Config.
        0x17 SANITIZE "Sanitize Config";
        /// Endurance Group Event Configuration.
        0x18 ENDURANCE_GROUP_EVENT "Endurance Group Event Configuration";
        /// I/O Command Set Profile.
        0x19 COMMAND_SET_PROFILE "I/O Command Set Profile";
        /// Spinup Control.
        0x1a SPINUP_CONTROL "Spinup Control";
        /// Power Loss Signaling Config.
        0x1b POWER_LOSS_SIGNALING "Power Loss Signaling Config";
        /// Performance Characteristics.
        0x1c PERFORMANCE "Performance Characteristics";
        /// Flexible Data Placement.
        0x1d FLEXIBLE_DATA_PLACEMENT "Flexible Data Placement";
        /// Flexible Data Placement Events.
        0x1e FDP_EVENTS "Flexible Data Placement Events";
        /// Namespace Admin Label.
        0x1f NAMESPACE_LABEL "Namespace Admin Label";
        /// Key Value Configuration.
        0x20 KEY_VALUE "Key Value Configuration";
        /// Controller Data Queue.
        0x21 CONTROLLER_DATA_QUEUE "Controller Data Queue";
        /// Configurable Device Personality.
        0x22 DEVICE_PERSONALITY "Configurable Device Personality";
        /// Power Limit.
        0x23 POWER_LIMIT "Power Limit";
        /// Power Threshold.
        0x24 POWER_THRESHOLD "Power Threshold";
        /// Power Measurement.
        0x25 POWER_MEASUREMENT "Power Measurement";
        /// Voltage Threshold.
        0x26 VOLTAGE_THRESHOLD "Voltage Threshold";
        /// Voltage Measurement.
        0x27 VOLTAGE_MEASUREMENT "Voltage Measurement";
        /// Rate Limiting.
        0x28 RATE_LIMITING "Rate Limiting";
        /// Embedded Management Controller Address.
        0x78 MANAGEMENT_CONTROLLER_ADDRESS "Embedded Management Controller Address";
        /// Host Management Agent Address.
        0x79 MANAGEMENT_AGENT_ADDRESS "Host Management Agent Address";
        /// Enhanced Controller Metadata.
        0x7d ENHANCED_CONTROLLER_METADATA "Enhanced Controller Metadata";
        /// Controller Metadata.
        0x7e CONTROLLER_METADATA "Controller Metadata";
        /// Namespace Metadata.
        0x7f NAMESPACE_METADATA "Namespace Metadata";
        /// Software Progress Marker.
        0x80 SOFTWARE_PROGRESS "Software Progress Marker";
        /// Host Identifier.
        0x81 HOST_IDENTIFIER "Host Identifier";
        /// Reservation Notification Mask.
        0x82 RESERVATION_NOTIFICATION "Reservation Notification Mask";
        /// Reservation Persistence.
        0x83 RESERVATION_PERSISTENCE "Reservation Persistence";
        /// Namespace Write Protection Config.
        0x84 WRITE_PROTECTION "Namespace Write Protection Config";
        /// Boot Partition Write Protection Config.
        0x85 BOOT_PARTITION_WRITE_PROTECTION "Boot Partition Write Protection Config";
    }
}

/// What a feature's value consists of.
#[derive(Clone, Copy, Debug)]
pub struct FeatureDescriptor {
    /// The feature.
    pub id: FeatureId,
    /// The value: dword 11 of Set Features, dword 0 of the completion of Get Features.
    pub value: &'static [Part],
    /// The data structure that comes with it, where there is one.
    pub data: Option<&'static Descriptor>,
}

const fn dword(id: FeatureId, value: &'static [Part]) -> FeatureDescriptor {
    FeatureDescriptor { id, value, data: None }
}

const fn with_data(id: FeatureId, value: &'static [Part], data: &'static Descriptor) -> FeatureDescriptor {
    FeatureDescriptor { id, value, data: Some(data) }
}

/// The features whose value is described here.
pub static FEATURES: &[FeatureDescriptor] = &[
    dword(FeatureId::ARBITRATION, ArbitrationFeature::PARTS),
    dword(FeatureId::POWER_MANAGEMENT, PowerManagement::PARTS),
    with_data(FeatureId::LBA_RANGE_TYPE, LbaRangeTypes::PARTS, &LbaRange::DESCRIPTOR),
    dword(FeatureId::TEMPERATURE_THRESHOLD, TemperatureThreshold::PARTS),
    dword(FeatureId::ERROR_RECOVERY, ErrorRecovery::PARTS),
    dword(FeatureId::VOLATILE_WRITE_CACHE, VolatileWriteCache::PARTS),
    dword(FeatureId::NUMBER_OF_QUEUES, NumberOfQueues::PARTS),
    dword(FeatureId::INTERRUPT_COALESCING, InterruptCoalescing::PARTS),
    dword(FeatureId::INTERRUPT_VECTOR, InterruptVector::PARTS),
    dword(FeatureId::WRITE_ATOMICITY, WriteAtomicity::PARTS),
    dword(FeatureId::ASYNC_EVENT, AsyncEventConfiguration::PARTS),
    with_data(FeatureId::AUTONOMOUS_POWER, AutonomousPower::PARTS, &AutonomousPowerTable::DESCRIPTOR),
    with_data(FeatureId::HOST_MEMORY_BUFFER, HostMemoryBuffer::PARTS, &HostMemoryBufferAttributes::DESCRIPTOR),
    with_data(FeatureId::TIMESTAMP, &[], &Timestamp::DESCRIPTOR),
    dword(FeatureId::KEEP_ALIVE_TIMER, KeepAliveTimer::PARTS),
    dword(FeatureId::HOST_THERMAL, HostThermal::PARTS),
    dword(FeatureId::NON_OPERATIONAL_POWER, NonOperationalPower::PARTS),
    dword(FeatureId::READ_RECOVERY_LEVEL, ReadRecoveryLevel::PARTS),
    with_data(FeatureId::PREDICTABLE_LATENCY, PredictableLatency::PARTS, &PredictableLatencyConfig::DESCRIPTOR),
    dword(FeatureId::PREDICTABLE_LATENCY_WINDOW, PredictableLatencyWindow::PARTS),
    dword(FeatureId::LBA_STATUS_INTERVAL, LbaStatusInterval::PARTS),
    with_data(FeatureId::HOST_BEHAVIOR, &[], &HostBehavior::DESCRIPTOR),
    dword(FeatureId::SANITIZE, SanitizeConfig::PARTS),
    dword(FeatureId::ENDURANCE_GROUP_EVENT, EnduranceGroupEvent::PARTS),
    dword(FeatureId::COMMAND_SET_PROFILE, CommandSetProfile::PARTS),
    dword(FeatureId::SPINUP_CONTROL, SpinupControl::PARTS),
    dword(FeatureId::POWER_LOSS_SIGNALING, PowerLossSignaling::PARTS),
    dword(FeatureId::PERFORMANCE, PerformanceCharacteristics::PARTS),
    dword(FeatureId::FLEXIBLE_DATA_PLACEMENT, FlexibleDataPlacement::PARTS),
    dword(FeatureId::FDP_EVENTS, FdpEvents::PARTS),
    dword(FeatureId::POWER_LIMIT, PowerLimit::PARTS),
    dword(FeatureId::POWER_THRESHOLD, PowerThreshold::PARTS),
    dword(FeatureId::POWER_MEASUREMENT, PowerMeasurement::PARTS),
    dword(FeatureId::SOFTWARE_PROGRESS, SoftwareProgress::PARTS),
    with_data(FeatureId::HOST_IDENTIFIER, HostIdentifier::PARTS, &HostIdentifierData::DESCRIPTOR),
    dword(FeatureId::RESERVATION_NOTIFICATION, ReservationNotification::PARTS),
    dword(FeatureId::RESERVATION_PERSISTENCE, ReservationPersistence::PARTS),
    dword(FeatureId::WRITE_PROTECTION, WriteProtection::PARTS),
    dword(FeatureId::BOOT_PARTITION_WRITE_PROTECTION, BootPartitionWriteProtection::PARTS),
];

impl FeatureId {
    /// What the value of the feature consists of, where it is described here.
    pub fn descriptor(self) -> Option<&'static FeatureDescriptor> {
        FEATURES.iter().find(|feature| feature.id == self)
    }
}
