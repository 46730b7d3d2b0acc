//! SMART / Health Information: how the drive is doing.
#![forbid(unsafe_code)]

use crate::{bits, structure};
use zerocopy::little_endian::{U16, U32, U64, U128};

bits! {
    /// Critical Warning: the states of the controller that need attention.
    pub struct CriticalWarning(u8 as u8) {
        /// The available spare has fallen below its threshold.
        0:1 available_spare: bool = FLAG, "available spare below threshold";
        /// A temperature is at or over an over-temperature threshold, or at or under an under-temperature threshold.
        1:1 temperature: bool = FLAG, "temperature out of its thresholds";
        /// Reliability is degraded by media errors or an internal error.
        2:1 reliability: bool = FLAG, "reliability degraded";
        /// The media has become read only, other than by write protection.
        3:1 read_only: bool = FLAG, "media read only";
        /// The volatile memory backup has failed.
        4:1 volatile_backup: bool = FLAG, "volatile memory backup failed";
        /// The persistent memory region is read only or unreliable.
        5:1 persistent_memory_region: bool = FLAG, "persistent memory region read only or unreliable";
        /// Reserved.
        6:2 __: u8 = RESERVED, "unknown warning";
    }
}

structure! {
    /// SMART / Health Information, log page 02h. NVM Express Base Specification, "SMART / Health Information".
    pub struct Smart: 512, "smart" {
        /// States that need attention; no bit set is the healthy state.
        0 critical_warning: CriticalWarning = bits(CriticalWarning::PARTS), "Critical Warning";
        /// The temperature that stands for the whole controller and its namespaces, in kelvin; 0 where not reported.
        1 composite_temperature: U16 = KELVIN, "Composite Temperature";
        /// Spare capacity that is left, in per cent of what there was.
        3 available_spare: u8 = PERCENT, "Available Spare";
        /// Below this available spare the drive warns.
        4 available_spare_threshold: u8 = PERCENT, "Available Spare Threshold";
        /// The vendor's estimate of the life used. May exceed 100; 255 stands for 255 and above.
        5 percentage_used: u8 = PERCENT, "Percentage Used";
        /// The critical warnings of all endurance groups, ORed.
        6 endurance_group_critical_warning: u8 = HEX, "Endurance Group Critical Warning Summary";
        /// Reserved.
        7 reserved_7: [u8; 25] = RESERVED, "Reserved";
        /// Data read by the host in thousands of 512 bytes, rounded up. Metadata is not counted.
        32 data_units_read: U128 = DATA_UNITS, "Data Units Read";
        /// Data written by the host in thousands of 512 bytes, rounded up.
        48 data_units_written: U128 = DATA_UNITS, "Data Units Written";
        /// Read commands completed.
        64 host_read_commands: U128 = COUNT, "Host Read Commands";
        /// Write commands completed.
        80 host_write_commands: U128 = COUNT, "Host Write Commands";
        /// Time that the controller was busy with I/O commands, in minutes.
        96 controller_busy_time: U128 = amount(1, "min"), "Controller Busy Time";
        /// Power cycles.
        112 power_cycles: U128 = COUNT, "Power Cycles";
        /// Power-on hours; time in non-operational power states may be left out.
        128 power_on_hours: U128 = amount(1, "h"), "Power On Hours";
        /// Power losses without a shutdown notification before.
        144 unsafe_shutdowns: U128 = COUNT, "Unsafe Shutdowns";
        /// Unrecovered data integrity errors: ECC, checksum, or LBA tag mismatch.
        160 media_errors: U128 = COUNT, "Media and Data Integrity Errors";
        /// Entries that the error information log has had over the controller's life.
        176 error_log_entries: U128 = COUNT, "Number of Error Information Log Entries";
        /// Minutes at or over the warning composite temperature threshold.
        192 warning_temperature_time: U32 = amount(1, "min"), "Warning Composite Temperature Time";
        /// Minutes at or over the critical composite temperature threshold.
        196 critical_temperature_time: U32 = amount(1, "min"), "Critical Composite Temperature Time";
        /// Temperature sensors 1 to 8 in kelvin; 0 where not implemented.
        200 temperature_sensor: [U16; 8] = KELVIN, "Temperature Sensor";
        /// How often host controlled thermal management went to its light throttling.
        216 thermal_management_1_transitions: U32 = COUNT, "Thermal Management Temperature 1 Transition Count";
        /// How often host controlled thermal management went to its heavy throttling.
        220 thermal_management_2_transitions: U32 = COUNT, "Thermal Management Temperature 2 Transition Count";
        /// Seconds of light throttling.
        224 thermal_management_1_time: U32 = amount(1, "s"), "Total Time For Thermal Management Temperature 1";
        /// Seconds of heavy throttling.
        228 thermal_management_2_time: U32 = amount(1, "s"), "Total Time For Thermal Management Temperature 2";
        /// Energy that the subsystem has taken over its life.
        232 lifetime_energy: U64 = COUNT.zero("not reported"), "Operational Lifetime Energy Consumed";
        /// Power measured last: value (bits 15:0), scale (17:16) and kind (25:20).
        240 interval_power: U32 = HEX.zero("not reported"), "Interval Power Measurement";
        /// Reserved.
        244 reserved_244: [u8; 268] = RESERVED, "Reserved";
    }
}

impl Smart {
    /// The composite temperature in kelvin, where it is reported.
    pub const fn temperature_kelvin(&self) -> Option<u16> {
        match self.composite_temperature.get() {
            0 => None,
            kelvin => Some(kelvin),
        }
    }

    /// What is left of the life that the vendor estimates, in per cent; 0 where more than all of it is used.
    ///
    /// Wear is an estimate and no defect: the critical warning decides whether the drive is in trouble.
    pub const fn remaining_percent(&self) -> u8 {
        100_u8.saturating_sub(self.percentage_used)
    }
}
