//! The values of the features, a dword each.
#![forbid(unsafe_code)]

use crate::number::ZeroBasedU16;
use crate::{bits, codes};

bits! {
    /// Arbitration: how many commands are taken from a queue at a time, and the weights of the classes.
    pub struct ArbitrationFeature(u32 as U32) {
        /// Commands taken from a queue at a time, 2^AB; 7 for no limit.
        0:3 ab: u8 = power_of_two(1, "commands").ones("no limit"), "Arbitration Burst";
        /// Reserved.
        3:5 __: u8 = RESERVED, "Reserved";
        /// Weight of the low priority class, 0's based.
        8:8 lpw: u8 = ZERO_BASED, "Low Priority Weight";
        /// Weight of the medium priority class, 0's based.
        16:8 mpw: u8 = ZERO_BASED, "Medium Priority Weight";
        /// Weight of the high priority class, 0's based.
        24:8 hpw: u8 = ZERO_BASED, "High Priority Weight";
    }
}

bits! {
    /// Power Management: the power state.
    pub struct PowerManagement(u32 as U32) {
        /// The power state.
        0:5 ps: u8 = COUNT, "Power State";
        /// The kind of workload to be expected; 0 for none.
        5:3 wh: u8 = COUNT, "Workload Hint";
        /// Reserved.
        8:24 __: u32 = RESERVED, "Reserved";
    }
}

bits! {
    /// LBA Range Type: how many ranges the data structure has.
    pub struct LbaRangeTypes(u32 as U32) {
        /// Ranges, 0's based.
        0:6 num: u8 = ZERO_BASED, "Number of LBA Ranges";
        /// Reserved.
        6:26 __: u32 = RESERVED, "Reserved";
    }
}

codes! {
    /// THSEL: which side of a threshold is meant.
    pub struct ThresholdSide(u8, 2) {
        /// Too warm.
        0 OVER "over temperature";
        /// Too cold.
        1 UNDER "under temperature";
    }
}

codes! {
    /// TMPSEL: which temperature is meant.
    pub struct TemperatureSelect(u8, 4) {
        /// The composite temperature.
        0 COMPOSITE "composite temperature";
        /// Sensor 1.
        1 SENSOR_1 "temperature sensor 1";
        /// Sensor 2.
        2 SENSOR_2 "temperature sensor 2";
        /// Sensor 3.
        3 SENSOR_3 "temperature sensor 3";
        /// Sensor 4.
        4 SENSOR_4 "temperature sensor 4";
        /// Sensor 5.
        5 SENSOR_5 "temperature sensor 5";
        /// Sensor 6.
        6 SENSOR_6 "temperature sensor 6";
        /// Sensor 7.
        7 SENSOR_7 "temperature sensor 7";
        /// Sensor 8.
        8 SENSOR_8 "temperature sensor 8";
        /// All of them (Set Features only).
        0xf ALL "all temperatures";
    }
}

bits! {
    /// Temperature Threshold: where the drive warns.
    pub struct TemperatureThreshold(u32 as U32) {
        /// The threshold in kelvin.
        0:16 tmpth: u16 = KELVIN, "Temperature Threshold";
        /// Which temperature.
        16:4 tmpsel: TemperatureSelect = choice(TemperatureSelect::MEANINGS), "Threshold Temperature Select";
        /// Which side.
        20:2 thsel: ThresholdSide = choice(ThresholdSide::MEANINGS), "Threshold Type Select";
        /// Kelvin that the temperature must come back from the threshold before the event is over.
        22:3 tmpthh: u8 = amount(1, "K"), "Temperature Threshold Hysteresis";
        /// Reserved.
        25:7 __: u8 = RESERVED, "Reserved";
    }
}

bits! {
    /// Error Recovery.
    pub struct ErrorRecovery(u32 as U32) {
        /// Longest time for retries with Limited Retry, in units of 100 ms; 0 for no limit.
        0:16 tler: u16 = amount(100, "ms").zero("no limit"), "Time Limited Error Recovery";
        /// Reads of blocks that hold no data fail.
        16:1 dulbe: bool = FLAG, "Deallocated or Unwritten Logical Block Error Enable";
        /// Reserved.
        17:15 __: u16 = RESERVED, "Reserved";
    }
}

bits! {
    /// Volatile Write Cache.
    pub struct VolatileWriteCache(u32 as U32) {
        /// The cache is used.
        0:1 wce: bool = FLAG, "Volatile Write Cache Enable";
        /// Reserved.
        1:31 __: u32 = RESERVED, "Reserved";
    }
}

bits! {
    /// Number of Queues: as asked for in Set Features, as granted in its completion and in Get Features.
    pub struct NumberOfQueues(u32 as U32) {
        /// I/O submission queues, 0's based; FFFFh is not allowed.
        0:16 nsqr: ZeroBasedU16 = ZERO_BASED, "Number of I/O Submission Queues";
        /// I/O completion queues, 0's based; FFFFh is not allowed.
        16:16 ncqr: ZeroBasedU16 = ZERO_BASED, "Number of I/O Completion Queues";
    }
}

impl NumberOfQueues {
    /// The request for this many of each, at most 65,535; `None` for 0 or more than that.
    pub const fn request(submission: u32, completion: u32) -> Option<Self> {
        if submission > 65_535 || completion > 65_535 {
            return None;
        }
        match (ZeroBasedU16::from_count(submission), ZeroBasedU16::from_count(completion)) {
            (Some(nsqr), Some(ncqr)) => Some(Self::new().with_nsqr(nsqr).with_ncqr(ncqr)),
            _ => None,
        }
    }
}

bits! {
    /// Interrupt Coalescing: when completions are gathered into one interrupt.
    pub struct InterruptCoalescing(u32 as U32) {
        /// Completions before an interrupt, 0's based.
        0:8 thr: u8 = ZERO_BASED, "Aggregation Threshold";
        /// Longest delay in units of 100 microseconds; 0 for none.
        8:8 time: u8 = amount(100, "us").zero("no delay"), "Aggregation Time";
        /// Reserved.
        16:16 __: u16 = RESERVED, "Reserved";
    }
}

bits! {
    /// Interrupt Vector Configuration.
    pub struct InterruptVector(u32 as U32) {
        /// The vector.
        0:16 iv: u16 = COUNT, "Interrupt Vector";
        /// Interrupts of this vector are not coalesced.
        16:1 cd: bool = FLAG, "Coalescing Disable";
        /// Reserved.
        17:15 __: u16 = RESERVED, "Reserved";
    }
}

bits! {
    /// Write Atomicity Normal.
    pub struct WriteAtomicity(u32 as U32) {
        /// The host does without the atomicity of AWUN and NAWUN.
        0:1 dn: bool = FLAG, "Disable Normal";
        /// Reserved.
        1:31 __: u32 = RESERVED, "Reserved";
    }
}

bits! {
    /// Asynchronous Event Configuration: which events are reported.
    pub struct AsyncEventConfiguration(u32 as U32) {
        /// Available spare below its threshold.
        0:1 available_spare: bool = FLAG, "critical warning: available spare";
        /// Temperature.
        1:1 temperature: bool = FLAG, "critical warning: temperature";
        /// Reliability.
        2:1 reliability: bool = FLAG, "critical warning: reliability";
        /// Read only.
        3:1 read_only: bool = FLAG, "critical warning: read only";
        /// Volatile memory backup.
        4:1 volatile_backup: bool = FLAG, "critical warning: volatile memory backup";
        /// Persistent memory region.
        5:1 persistent_memory_region: bool = FLAG, "critical warning: persistent memory region";
        /// Reserved.
        6:2 __: u8 = RESERVED, "Reserved";
        /// Attached namespaces.
        8:1 attached_namespace: bool = FLAG, "attached namespace attribute notices";
        /// Firmware activation.
        9:1 firmware_activation: bool = FLAG, "firmware activation notices";
        /// Telemetry log.
        10:1 telemetry: bool = FLAG, "telemetry log notices";
        /// Asymmetric namespace access.
        11:1 ana_change: bool = FLAG, "asymmetric namespace access change notices";
        /// Predictable latency.
        12:1 predictable_latency: bool = FLAG, "predictable latency event aggregate log change notices";
        /// LBA status.
        13:1 lba_status: bool = FLAG, "LBA status information alert notices";
        /// Endurance groups.
        14:1 endurance_group: bool = FLAG, "endurance group event aggregate log change notices";
        /// Subsystem shutdown.
        15:1 subsystem_shutdown: bool = FLAG, "normal NVM subsystem shutdown notices";
        /// Temperature hysteresis.
        16:1 temperature_hysteresis: bool = FLAG, "temperature threshold hysteresis recovery notices";
        /// Reachability associations.
        17:1 reachability_association: bool = FLAG, "reachability association change notices";
        /// Reachability groups.
        18:1 reachability_group: bool = FLAG, "reachability group change notices";
        /// Allocated namespaces.
        19:1 allocated_namespace: bool = FLAG, "allocated namespace attribute notices";
        /// Reserved.
        20:7 __: u8 = RESERVED, "Reserved";
        /// Zone descriptors.
        27:1 zone_descriptor: bool = FLAG, "zone descriptor changed notices";
        /// Pull model discovery requests.
        28:1 pull_model: bool = FLAG, "pull model DDC request log change notices";
        /// AVE discovery log.
        29:1 ave_discovery: bool = FLAG, "AVE discovery log change notices";
        /// Host discovery log.
        30:1 host_discovery: bool = FLAG, "host discovery log change notices";
        /// Discovery log.
        31:1 discovery_log: bool = FLAG, "discovery log change notices";
    }
}

bits! {
    /// Autonomous Power State Transition.
    pub struct AutonomousPower(u32 as U32) {
        /// The controller changes power states by itself, by the table.
        0:1 apste: bool = FLAG, "Autonomous Power State Transition Enable";
        /// Reserved.
        1:31 __: u32 = RESERVED, "Reserved";
    }
}

bits! {
    /// Host Memory Buffer, dword 11. Size, list address and entry count are dwords 12 to 15.
    pub struct HostMemoryBuffer(u32 as U32) {
        /// The controller may use the buffer.
        0:1 ehm: bool = FLAG, "Enable Host Memory";
        /// The buffer is the one that the controller had before, with its contents.
        1:1 mr: bool = FLAG, "Memory Return";
        /// The controller keeps away from the buffer in non-operational states.
        2:1 hmnare: bool = FLAG, "Host Memory Non-operational Access Restriction Enable";
        /// The controller keeps away from the buffer in non-operational states now (Get Features).
        3:1 hmnars: bool = FLAG, "Host Memory Non-operational Access Restriction Status";
        /// Reserved.
        4:28 __: u32 = RESERVED, "Reserved";
    }
}

bits! {
    /// Keep Alive Timer.
    pub struct KeepAliveTimer(u32 as U32) {
        /// Milliseconds without a sign of life after which the controller ends the association; 0 for never.
        0:32 kato: u32 = amount(1, "ms").zero("disabled"), "Keep Alive Timeout";
    }
}

bits! {
    /// Host Controlled Thermal Management: where the drive throttles.
    pub struct HostThermal(u32 as U32) {
        /// Temperature of heavy throttling in kelvin; 0 for none.
        0:16 tmt2: u16 = KELVIN.zero("disabled"), "Thermal Management Temperature 2";
        /// Temperature of light throttling in kelvin; 0 for none.
        16:16 tmt1: u16 = KELVIN.zero("disabled"), "Thermal Management Temperature 1";
    }
}

bits! {
    /// Non-Operational Power State Config.
    pub struct NonOperationalPower(u32 as U32) {
        /// The controller may draw more for background work.
        0:1 noppme: bool = FLAG, "Non-Operational Power State Permissive Mode Enable";
        /// Reserved.
        1:31 __: u32 = RESERVED, "Reserved";
    }
}

bits! {
    /// Read Recovery Level Config, dword 12 of Set Features and dword 0 of the completion of Get Features.
    pub struct ReadRecoveryLevel(u32 as U32) {
        /// The level, 0 to 15: higher tries less.
        0:4 rrl: u8 = COUNT, "Read Recovery Level";
        /// Reserved.
        4:28 __: u32 = RESERVED, "Reserved";
    }
}

bits! {
    /// Predictable Latency Mode Config, dword 12 of Set Features.
    pub struct PredictableLatency(u32 as U32) {
        /// The mode is on.
        0:1 lpe: bool = FLAG, "Predictable Latency Enable";
        /// Reserved.
        1:31 __: u32 = RESERVED, "Reserved";
    }
}

codes! {
    /// The window of predictable latency mode.
    pub struct LatencyWindow(u8, 3) {
        /// Deterministic.
        1 DETERMINISTIC "deterministic window";
        /// Non-deterministic.
        2 NON_DETERMINISTIC "non-deterministic window";
    }
}

bits! {
    /// Predictable Latency Mode Window, dword 12 of Set Features.
    pub struct PredictableLatencyWindow(u32 as U32) {
        /// The window.
        0:3 ws: LatencyWindow = choice(LatencyWindow::MEANINGS), "Window Select";
        /// Reserved.
        3:29 __: u32 = RESERVED, "Reserved";
    }
}

bits! {
    /// LBA Status Information Report Interval.
    pub struct LbaStatusInterval(u32 as U32) {
        /// Shortest time between two reports, in units of 100 ms.
        0:16 lsiri: u16 = amount(100, "ms"), "LBA Status Information Report Interval";
        /// How often the controller looks, in units of 100 ms.
        16:16 lsipi: u16 = amount(100, "ms"), "LBA Status Information Poll Interval";
    }
}

bits! {
    /// Sanitize Config.
    pub struct SanitizeConfig(u32 as U32) {
        /// A sanitize with No-Deallocate ends with a warning rather than an error where that is inhibited.
        0:1 nodrm: bool = FLAG, "No-Deallocate Response Mode";
        /// Reserved.
        1:31 __: u32 = RESERVED, "Reserved";
    }
}

bits! {
    /// Endurance Group Event Configuration.
    pub struct EnduranceGroupEvent(u32 as U32) {
        /// The endurance group.
        0:16 endgid: u16 = COUNT, "Endurance Group Identifier";
        /// Which critical warnings are reported.
        16:8 egcw: u8 = HEX, "Endurance Group Critical Warnings";
        /// Reserved.
        24:8 __: u8 = RESERVED, "Reserved";
    }
}

bits! {
    /// I/O Command Set Profile.
    pub struct CommandSetProfile(u32 as U32) {
        /// The combination, an index into the Identify I/O Command Set data structure.
        0:9 iocsci: u16 = COUNT, "I/O Command Set Combination Index";
        /// Reserved.
        9:23 __: u32 = RESERVED, "Reserved";
    }
}

bits! {
    /// Spinup Control.
    pub struct SpinupControl(u32 as U32) {
        /// Rotational media does not spin up at power on.
        0:1 spinup: bool = FLAG, "Spinup Control Enable";
        /// Reserved.
        1:31 __: u32 = RESERVED, "Reserved";
    }
}

codes! {
    /// The mode of power loss signaling.
    pub struct PowerLossMode(u8, 2) {
        /// Off.
        0 DISABLED "not enabled";
        /// Emergency power fail.
        1 EMERGENCY "emergency power fail";
        /// Forced quiescence.
        2 QUIESCENCE "forced quiescence";
    }
}

bits! {
    /// Power Loss Signaling Config.
    pub struct PowerLossSignaling(u32 as U32) {
        /// The mode.
        0:2 mode: PowerLossMode = choice(PowerLossMode::MEANINGS), "Power Loss Signaling Mode";
        /// Reserved.
        2:30 __: u32 = RESERVED, "Reserved";
    }
}

bits! {
    /// Performance Characteristics.
    pub struct PerformanceCharacteristics(u32 as U32) {
        /// The attribute: 0 standard, C0h the list of identifiers, C1h to FFh the vendor's.
        0:8 attri: u8 = HEX, "Attribute Index";
        /// The vendor's attribute goes back to what it was.
        8:1 rvspa: bool = FLAG, "Revert Vendor Specific Performance Attribute";
        /// Reserved.
        9:23 __: u32 = RESERVED, "Reserved";
    }
}

bits! {
    /// Flexible Data Placement, dword 12 of Set Features and dword 0 of the completion of Get Features.
    pub struct FlexibleDataPlacement(u32 as U32) {
        /// It is on.
        0:1 fdpe: bool = FLAG, "Flexible Data Placement Enable";
        /// Reserved.
        1:7 __: u8 = RESERVED, "Reserved";
        /// The configuration, an index into the FDP configurations log.
        8:8 fdpcidx: u8 = COUNT, "FDP Configuration Index";
        /// Reserved.
        16:16 __: u16 = RESERVED, "Reserved";
    }
}

bits! {
    /// Flexible Data Placement Events.
    pub struct FdpEvents(u32 as U32) {
        /// The placement handle.
        0:16 phndl: u16 = HEX, "Placement Handle";
        /// Event types in the data structure.
        16:8 noet: u8 = COUNT, "Number of FDP Event Types";
        /// Reserved.
        24:8 __: u8 = RESERVED, "Reserved";
    }
}

bits! {
    /// Power Limit.
    pub struct PowerLimit(u32 as U32) {
        /// The limit in the unit; 0 for none.
        0:16 plv: u16 = COUNT.zero("no limit"), "Power Limit Value";
        /// The unit, as in power states: 1 is 0.0001 W, 2 is 0.01 W.
        16:2 pls: u8 = COUNT, "Power Limit Scale";
        /// Reserved.
        18:14 __: u16 = RESERVED, "Reserved";
    }
}

bits! {
    /// Power Threshold.
    pub struct PowerThreshold(u32 as U32) {
        /// The threshold in the unit.
        0:16 ptv: u16 = COUNT, "Power Threshold Value";
        /// The unit, as in power states: 1 is 0.0001 W, 2 is 0.01 W.
        16:2 pts: u8 = COUNT, "Power Threshold Scale";
        /// Reserved.
        18:2 __: u8 = RESERVED, "Reserved";
        /// What is measured; 0 is the whole subsystem.
        20:4 pmts: u8 = HEX, "Power Measurement Type Select";
        /// Reserved.
        24:7 __: u8 = RESERVED, "Reserved";
        /// The threshold is on.
        31:1 ept: bool = FLAG, "Enable Power Threshold";
    }
}

bits! {
    /// Power Measurement.
    pub struct PowerMeasurement(u32 as U32) {
        /// 0 stops, 1 starts.
        0:4 act: u8 = COUNT, "Action";
        /// What is measured; 0 is the whole subsystem.
        4:4 pmts: u8 = HEX, "Power Measurement Type Select";
        /// Reserved.
        8:8 __: u8 = RESERVED, "Reserved";
        /// Time after which the measurement stops by itself.
        16:16 smt: u16 = COUNT, "Stop Measurement Time";
    }
}

bits! {
    /// Software Progress Marker.
    pub struct SoftwareProgress(u32 as U32) {
        /// How often firmware has loaded software that did not come as far as to clear the marker.
        0:8 pbslc: u8 = COUNT, "Pre-boot Software Load Count";
        /// Reserved.
        8:24 __: u32 = RESERVED, "Reserved";
    }
}

bits! {
    /// Host Identifier.
    pub struct HostIdentifier(u32 as U32) {
        /// The identifier has 128 bits, not 64.
        0:1 exhid: bool = FLAG, "Enable Extended Host Identifier";
        /// Reserved.
        1:31 __: u32 = RESERVED, "Reserved";
    }
}

bits! {
    /// Reservation Notification Mask: which notices are not given.
    pub struct ReservationNotification(u32 as U32) {
        /// Reserved.
        0:1 __: bool = RESERVED, "Reserved";
        /// Registration preempted.
        1:1 regpre: bool = FLAG, "Mask Registration Preempted Notification";
        /// Reservation released.
        2:1 resrel: bool = FLAG, "Mask Reservation Released Notification";
        /// Reservation preempted.
        3:1 respre: bool = FLAG, "Mask Reservation Preempted Notification";
        /// Reserved.
        4:28 __: u32 = RESERVED, "Reserved";
    }
}

bits! {
    /// Reservation Persistence.
    pub struct ReservationPersistence(u32 as U32) {
        /// Reservations outlast a loss of power.
        0:1 ptpl: bool = FLAG, "Persist Through Power Loss";
        /// Reserved.
        1:31 __: u32 = RESERVED, "Reserved";
    }
}

codes! {
    /// WPS: how a namespace is write protected.
    pub struct WriteProtectionState(u8, 3) {
        /// Not.
        0 NONE "no write protection";
        /// Until the host takes it away.
        1 PROTECTED "write protect";
        /// Until the next power cycle.
        2 UNTIL_POWER_CYCLE "write protect until power cycle";
        /// For good.
        3 PERMANENT "permanent write protect";
    }
}

bits! {
    /// Namespace Write Protection Config.
    pub struct WriteProtection(u32 as U32) {
        /// How the namespace is write protected.
        0:3 wps: WriteProtectionState = choice(WriteProtectionState::MEANINGS), "Write Protection State";
        /// Reserved.
        3:29 __: u32 = RESERVED, "Reserved";
    }
}

codes! {
    /// How a boot partition is write protected.
    pub struct BootPartitionProtection(u8, 3) {
        /// As it was (Set Features).
        0 NO_CHANGE "no change";
        /// Not.
        1 UNLOCKED "write unlocked";
        /// Until the host takes it away.
        2 LOCKED "write locked";
        /// Until the next power cycle.
        3 LOCKED_UNTIL_POWER_CYCLE "write locked until power cycle";
        /// By the replay protected memory block.
        4 BY_RPMB "write protection controlled by RPMB";
    }
}

bits! {
    /// Boot Partition Write Protection Config.
    pub struct BootPartitionWriteProtection(u32 as U32) {
        /// Boot partition 0.
        0:3 bp0wps: BootPartitionProtection = choice(BootPartitionProtection::MEANINGS), "Boot Partition 0 Write Protection State";
        /// Boot partition 1.
        3:3 bp1wps: BootPartitionProtection = choice(BootPartitionProtection::MEANINGS), "Boot Partition 1 Write Protection State";
        /// Reserved.
        6:26 __: u32 = RESERVED, "Reserved";
    }
}
