//! How the drive is doing: the counters behind the SMART log, and the error log.
//!
//! Every counter counts what really happened to this drive since it was made. A drive that began with the program has been
//! on for as long as the program's clock says.
#![forbid(unsafe_code)]

use std::collections::VecDeque;

use nvmetal_core::command::SubmissionEntry;
use nvmetal_core::log::{CriticalWarning, Smart};
use nvmetal_core::status::Status;
use zerocopy::little_endian::{U16, U32, U128};

use crate::model::Model;
use crate::options::Options;
use crate::thermal::Thermal;

/// Entries that the error log keeps.
pub(crate) const ERROR_ENTRIES: usize = 64;
/// Nanoseconds of an hour.
pub(crate) const HOUR_NS: u64 = 3_600_000_000_000;
/// Nanoseconds of a minute.
const MINUTE_NS: u64 = 60_000_000_000;

/// The counters.
#[derive(Debug)]
pub(crate) struct Health {
    pub(crate) critical_warning: u8,
    pub(crate) thermal: Thermal,
    warning_kelvin: u16,
    second_sensor: bool,
    spare: u8,
    spare_threshold: u8,
    used: u8,
    spare_per_error: u8,
    power_cycles: u64,
    hours_before: u64,
    pub(crate) read_commands: u64,
    pub(crate) write_commands: u64,
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
    pub(crate) media_errors: u64,
    /// Time during which at least one I/O command was outstanding.
    busy_ns: u64,
    /// Since when one has been.
    busy_since_ns: Option<u64>,
    shutdowns: u64,
}

impl Health {
    pub(crate) fn new(options: &Options) -> Self {
        let model = &options.model;
        Self {
            critical_warning: options.critical_warning,
            thermal: Thermal::new(model, options.temperature_held),
            warning_kelvin: model.warning_temperature,
            second_sensor: model.second_sensor != 0,
            spare: model.spare,
            spare_threshold: model.spare_threshold,
            used: model.used,
            spare_per_error: model.spare_per_error,
            power_cycles: model.power_cycles,
            hours_before: model.hours_before,
            read_commands: 0,
            write_commands: 0,
            read_bytes: model.read_before,
            written_bytes: model.written_before,
            media_errors: model.media_errors,
            busy_ns: 0,
            busy_since_ns: None,
            shutdowns: 0,
        }
    }

    /// An I/O command was taken up.
    pub(crate) fn busy(&mut self, now_ns: u64) {
        self.busy_since_ns.get_or_insert(now_ns);
    }

    /// No command is outstanding any more.
    pub(crate) fn rests(&mut self, now_ns: u64) {
        if let Some(since_ns) = self.busy_since_ns.take() {
            self.busy_ns += now_ns.saturating_sub(since_ns);
        }
    }

    /// The media could not give back data.
    pub(crate) fn media_error(&mut self) {
        self.media_errors += 1;
        self.spare = self.spare.saturating_sub(self.spare_per_error);
    }

    /// The controller was shut down in good order.
    pub(crate) fn shutdown(&mut self) {
        self.shutdowns += 1;
    }

    /// Critical warning: what was set from outside, and what the counters say.
    pub(crate) fn warning(&self) -> CriticalWarning {
        let set = CriticalWarning::from_bits(self.critical_warning);
        let set = if self.thermal.kelvin() >= self.warning_kelvin { set.with_temperature(true) } else { set };
        if self.spare < self.spare_threshold { set.with_available_spare(true) } else { set }
    }

    /// The SMART log page.
    pub(crate) fn smart(&self, model: &Model, now_ns: u64, error_entries: u64) -> Smart {
        let units = |bytes: u64| U128::new(u128::from(bytes.div_ceil(512_000)));
        let minutes = |ns: u64| U32::new((ns / MINUTE_NS) as u32);
        let seconds = |ns: u64| U32::new((ns / 1_000_000_000) as u32);
        let heat = &self.thermal.counters;
        let busy_ns = self.busy_ns + self.busy_since_ns.map_or(0, |since_ns| now_ns.saturating_sub(since_ns));
        let mut sensors = [U16::new(0); 8];
        sensors[0] = U16::new(self.thermal.kelvin());
        if self.second_sensor {
            sensors[1] = U16::new(self.thermal.second_kelvin(model));
        }
        Smart {
            critical_warning: self.warning(),
            composite_temperature: U16::new(self.thermal.kelvin()),
            available_spare: self.spare,
            available_spare_threshold: self.spare_threshold,
            percentage_used: self.used,
            data_units_read: units(self.read_bytes),
            data_units_written: units(self.written_bytes),
            host_read_commands: U128::new(u128::from(self.read_commands)),
            host_write_commands: U128::new(u128::from(self.write_commands)),
            controller_busy_time: U128::new(u128::from(busy_ns / MINUTE_NS)),
            power_cycles: U128::new(u128::from(self.power_cycles)),
            power_on_hours: U128::new(u128::from(self.hours_before + now_ns / HOUR_NS)),
            media_errors: U128::new(u128::from(self.media_errors)),
            error_log_entries: U128::new(u128::from(error_entries)),
            warning_temperature_time: minutes(heat.warning_ns),
            critical_temperature_time: minutes(heat.critical_ns),
            temperature_sensor: sensors,
            thermal_management_1_transitions: U32::new(heat.light),
            thermal_management_2_transitions: U32::new(heat.heavy),
            thermal_management_1_time: seconds(heat.light_ns),
            thermal_management_2_time: seconds(heat.heavy_ns),
            ..Smart::default()
        }
    }
}

/// One error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ErrorEntry {
    pub(crate) count: u64,
    pub(crate) sqid: u16,
    pub(crate) cid: u16,
    pub(crate) status: Status,
    pub(crate) lba: u64,
    pub(crate) nsid: u32,
    pub(crate) opcode: u8,
}

/// The error information log.
#[derive(Debug, Default)]
pub(crate) struct ErrorLog {
    /// The newest first.
    entries: VecDeque<ErrorEntry>,
    pub(crate) count: u64,
}

impl ErrorLog {
    /// Notes a command that failed.
    pub(crate) fn note(&mut self, sqid: u16, entry: &SubmissionEntry, status: Status, lba: u64) {
        self.count += 1;
        self.entries.truncate(ERROR_ENTRIES - 1);
        self.entries.push_front(ErrorEntry {
            count: self.count,
            sqid,
            cid: entry.cid(),
            status,
            lba,
            nsid: entry.nsid(),
            opcode: entry.opcode(),
        });
    }

    /// The log page: 64 bytes for each entry, the newest first.
    pub(crate) fn page(&self) -> Vec<u8> {
        let mut page = vec![0; ERROR_ENTRIES * 64];
        for (place, entry) in page.as_chunks_mut::<64>().0.iter_mut().zip(&self.entries) {
            let mut put = |at: usize, bytes: &[u8]| {
                if let Some(place) = place.get_mut(at..at + bytes.len()) {
                    place.copy_from_slice(bytes);
                }
            };
            put(0, &entry.count.to_le_bytes());
            put(8, &entry.sqid.to_le_bytes());
            put(10, &entry.cid.to_le_bytes());
            put(12, &(entry.status.into_bits() << 1).to_le_bytes());
            put(14, &[0xff, 0xff]);
            put(16, &entry.lba.to_le_bytes());
            put(24, &entry.nsid.to_le_bytes());
            put(32, &[entry.opcode]);
        }
        page
    }
}
