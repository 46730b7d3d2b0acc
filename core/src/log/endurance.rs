//! Endurance groups and NVM sets: parts of a drive that wear, and answer, apart from each other.
#![forbid(unsafe_code)]

use crate::{bits, codes, structure};
use zerocopy::little_endian::{U16, U64, U128};

bits! {
    /// Critical warnings of an endurance group.
    pub struct EnduranceWarning(u8 as u8) {
        /// The available spare has fallen below its threshold.
        0:1 available_spare: bool = FLAG, "available spare below threshold";
        /// Reserved.
        1:1 __: bool = RESERVED, "reserved";
        /// Reliability is degraded.
        2:1 reliability: bool = FLAG, "reliability degraded";
        /// All namespaces of the group are read only.
        3:1 read_only: bool = FLAG, "namespaces read only";
        /// Reserved.
        4:4 __: u8 = RESERVED, "reserved";
    }
}

bits! {
    /// Features of an endurance group.
    pub struct EnduranceFeatures(u8 as u8) {
        /// The group's media rotates.
        0:1 rotational: bool = FLAG, "rotational media";
        /// Reserved.
        1:7 __: u8 = RESERVED, "reserved";
    }
}

structure! {
    /// Endurance Group Information, log page 09h.
    /// NVM Express Base Specification, "Endurance Group Information".
    pub struct EnduranceGroup: 512, "endurance-group" {
        /// States that need attention.
        0 critical_warning: EnduranceWarning = bits(EnduranceWarning::PARTS), "Critical Warning";
        /// Features.
        1 features: EnduranceFeatures = bits(EnduranceFeatures::PARTS), "Endurance Group Features";
        /// Reserved.
        2 reserved_2: u8 = RESERVED, "Reserved";
        /// Spare capacity that is left.
        3 available_spare: u8 = PERCENT, "Available Spare";
        /// Below this available spare the drive warns.
        4 available_spare_threshold: u8 = PERCENT, "Available Spare Threshold";
        /// The vendor's estimate of the life used; may exceed 100.
        5 percentage_used: u8 = PERCENT, "Percentage Used";
        /// The domain of the group.
        6 domain_identifier: U16 = COUNT, "Domain Identifier";
        /// Reserved.
        8 reserved_8: [u8; 24] = RESERVED, "Reserved";
        /// Bytes that can be written over the group's life, in billions (10^9).
        32 endurance_estimate: U128 = amount(1_000_000_000, "bytes").zero("not reported"), "Endurance Estimate";
        /// Bytes read, in billions.
        48 data_units_read: U128 = amount(1_000_000_000, "bytes").zero("not reported"), "Data Units Read";
        /// Bytes written, in billions.
        64 data_units_written: U128 = amount(1_000_000_000, "bytes").zero("not reported"), "Data Units Written";
        /// Bytes written to the media, in billions, garbage collection included.
        80 media_units_written: U128 = amount(1_000_000_000, "bytes").zero("not reported"), "Media Units Written";
        /// Read commands completed.
        96 host_read_commands: U128 = COUNT, "Host Read Commands";
        /// Write commands completed.
        112 host_write_commands: U128 = COUNT, "Host Write Commands";
        /// Unrecovered data integrity errors.
        128 media_errors: U128 = COUNT, "Media and Data Integrity Errors";
        /// Error log entries over the controller's life that concern the group.
        144 error_log_entries: U128 = COUNT, "Number of Error Information Log Entries";
        /// Capacity of the group.
        160 total_capacity: U128 = amount(1, "bytes").zero("not reported"), "Total Endurance Group Capacity";
        /// Capacity of the group that is not allocated.
        176 unallocated_capacity: U128 = amount(1, "bytes"), "Unallocated Endurance Group Capacity";
        /// Reserved.
        192 reserved_192: [u8; 320] = RESERVED, "Reserved";
    }
}

structure! {
    /// The head of the event aggregate logs, log pages 0Bh (NVM sets) and 0Fh (endurance groups); as many identifiers of
    /// two bytes follow. NVM Express Base Specification, "Endurance Group Event Aggregate".
    pub struct AggregateHeader: 8, "aggregate-head" {
        /// Identifiers that follow.
        0 entries: U64 = COUNT, "Number of Entries Available";
    }
}

codes! {
    /// The window that an NVM set is in.
    pub struct PredictableLatencyWindow(u8, 3) {
        /// Predictable latency mode is off.
        0 OFF "not used";
        /// Deterministic.
        1 DETERMINISTIC "deterministic window";
        /// Non-deterministic.
        2 NON_DETERMINISTIC "non-deterministic window";
    }
}

bits! {
    /// Status of predictable latency mode.
    pub struct PredictableLatencyStatus(u8 as u8) {
        /// The window.
        0:3 window: PredictableLatencyWindow = choice(PredictableLatencyWindow::MEANINGS), "window";
        /// Reserved.
        3:5 __: u8 = RESERVED, "reserved";
    }
}

bits! {
    /// Events of predictable latency mode.
    pub struct PredictableLatencyEvents(u16 as U16) {
        /// Reads have reached the warning threshold.
        0:1 reads: bool = FLAG, "deterministic window reads warning";
        /// Writes have reached the warning threshold.
        1:1 writes: bool = FLAG, "deterministic window writes warning";
        /// Time has reached the warning threshold.
        2:1 time: bool = FLAG, "deterministic window time warning";
        /// Reserved.
        3:11 __: u16 = RESERVED, "reserved";
        /// The controller left the window because a limit was exceeded.
        14:1 limit: bool = FLAG, "left the window: typical or maximum amount exceeded";
        /// The controller left the window for a reason of its own.
        15:1 excursion: bool = FLAG, "left the window: deterministic excursion";
    }
}

structure! {
    /// Predictable Latency Per NVM Set, log page 0Ah.
    /// NVM Express Base Specification, "Predictable Latency Per NVM Set".
    pub struct PredictableLatencySet: 512, "predictable-latency" {
        /// The window.
        0 status: PredictableLatencyStatus = bits(PredictableLatencyStatus::PARTS), "Status";
        /// Reserved.
        1 reserved_1: u8 = RESERVED, "Reserved";
        /// Events that happened.
        2 event_type: PredictableLatencyEvents = bits(PredictableLatencyEvents::PARTS), "Event Type";
        /// Reserved.
        4 reserved_4: [u8; 28] = RESERVED, "Reserved";
        /// Reads of 4 KiB in a deterministic window, typical.
        32 dtwin_reads_typical: U64 = COUNT, "DTWIN Reads Typical";
        /// Writes in a deterministic window, typical, in optimal write sizes.
        40 dtwin_writes_typical: U64 = COUNT, "DTWIN Writes Typical";
        /// Longest time in a deterministic window.
        48 dtwin_time_maximum: U64 = amount(1, "ms"), "DTWIN Time Maximum";
        /// Shortest time in a non-deterministic window, high load before.
        56 ndwin_time_minimum_high: U64 = amount(1, "ms"), "NDWIN Time Minimum High";
        /// Shortest time in a non-deterministic window, low load before.
        64 ndwin_time_minimum_low: U64 = amount(1, "ms"), "NDWIN Time Minimum Low";
        /// Reserved.
        72 reserved_72: [u8; 56] = RESERVED, "Reserved";
        /// Reads that remain.
        128 dtwin_reads_estimate: U64 = COUNT, "DTWIN Reads Estimate";
        /// Writes that remain.
        136 dtwin_writes_estimate: U64 = COUNT, "DTWIN Writes Estimate";
        /// Time that remains.
        144 dtwin_time_estimate: U64 = amount(1, "ms"), "DTWIN Time Estimate";
        /// Reserved.
        152 reserved_152: [u8; 360] = RESERVED, "Reserved";
    }
}
