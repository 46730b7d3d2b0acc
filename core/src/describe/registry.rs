//! Every structure of the crate, to be found by its id.
#![forbid(unsafe_code)]

use super::{Describe, Descriptor};

/// The structures of one module.
macro_rules! of {
    ($module:path: $($name:ident),+ $(,)?) => {{
        use $module as module;
        const STRUCTURES: &[&Descriptor] = &[$( module::$name::DESCRIPTOR_REF ),+];
        STRUCTURES
    }};
}

/// The structures, by the modules that hold them.
static STRUCTURES: &[&[&Descriptor]] = &[
    of!(crate::command: SubmissionLayout),
    of!(crate::completion: CompletionLayout),
    of!(crate::command::admin: Directives, StreamsParameters, NewNamespace, LbaStatusHeader, LbaStatusDescriptor),
    of!(crate::command::io: DatasetRange, CopyRange, CopyRangeWide, ReclaimUnitHandleStatusHeader, ReclaimUnitHandleStatus, RegisterKeys, AcquireKeys, ReservationStatus, Registrant, RegistrantExtended),
    of!(crate::command::zoned: ZoneReport, ZoneDescriptor),
    of!(crate::feature: AutonomousPowerTable, HostMemoryDescriptor, HostMemoryBufferAttributes, Timestamp, LbaRange, PredictableLatencyConfig, HostBehavior, HostIdentifierData),
    of!(crate::identify: NvmController, NvmNamespace, IndependentNamespace, CommandSetCombinations, ZonedController, ZonedLbaFormat, ZonedNamespace, Controller, NamespaceList, ControllerList, EnduranceGroupList, NvmSet, NvmSetList, UuidEntry, UuidList, Domain, DomainList, NamespaceGranularity, NamespaceGranularityList, LbaFormat, Namespace, PowerState, PrimaryController, SecondaryController, SecondaryControllerList),
    of!(crate::log: AnaHeader, AnaGroup, ReservationNotification, EnduranceGroup, AggregateHeader, PredictableLatencySet, ErrorEntry, FirmwareSlots, LbaStatusHeader, LbaStatusElement, LbaStatusRange, Sanitize, ChangedZones, BootPartitionHeader, RotationalMedia, LockdownLog, FdpConfigurationsHeader, FdpConfiguration, ReclaimUnitHandle, HandleUsageHeader, HandleUsage, FdpStatistics, FdpEvent, FdpEvents, SelfTestResult, SelfTest, Smart, SupportedLogPages, CommandEffects, FeatureEffects, TelemetryHeader),
    of!(crate::log::persistent: FirmwareCommitEvent, TimestampChangeEvent, PowerOnEvent, ControllerReset, HardwareErrorEvent, ChangeNamespaceEvent, FormatStartEvent, FormatCompletionEvent, SanitizeStartEvent, SanitizeCompletionEvent, SetFeatureEvent, ThermalExcursionEvent, VendorEvent, PersistentEventHeader, EventHeader),
    of!(crate::log::vendor: AdditionalSmartItem, AdditionalSmart, IntelTemperature, MicronExtendedHealth, OcpSmart, WdcPerformance),
    of!(crate::register: Registers),
];

/// Every structure.
pub fn structures() -> impl Iterator<Item = &'static Descriptor> {
    STRUCTURES.iter().copied().flatten().copied()
}

/// The structure with this id: `smart`, `ctrl`, `ns`, ...
///
/// ```
/// use nvmetal_core::describe::structure;
/// let smart = structure("smart").unwrap();
/// assert_eq!(smart.field("critical_warning").unwrap().parts()[0].id, "available_spare");
/// ```
pub fn structure(id: &str) -> Option<&'static Descriptor> {
    structures().find(|descriptor| descriptor.id == id)
}
