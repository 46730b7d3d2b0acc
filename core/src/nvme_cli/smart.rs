//! `smart-log`.
#![forbid(unsafe_code)]

use super::Radix::{DataUnits, Decimal, Hex, Kelvin, Percent};
use super::{Form, row, shown};
use crate::describe::Describe;
use crate::log::Smart;
use ::core::fmt::Display;

#[rustfmt::skip]
pub(super) const FORM: Form = Form {
    descriptor: Smart::DESCRIPTOR_REF,
    rows: &[
        row("critical_warning", "critical_warning\t\t\t", "critical_warning", Hex),
        row("composite_temperature", "temperature\t\t\t\t", "temperature", Kelvin),
        row("available_spare", "available_spare\t\t\t\t", "avail_spare", Percent),
        row("available_spare_threshold", "available_spare_threshold\t\t", "spare_thresh", Percent),
        row("percentage_used", "percentage_used\t\t\t\t", "percent_used", Percent),
        row("endurance_group_critical_warning", "endurance group critical warning summary",
            "endurance_grp_critical_warning_summary", Hex),
        row("data_units_read", "Data Units Read\t\t\t\t", "data_units_read", DataUnits),
        row("data_units_written", "Data Units Written\t\t\t", "data_units_written", DataUnits),
        row("host_read_commands", "host_read_commands\t\t\t", "host_read_commands", Decimal),
        row("host_write_commands", "host_write_commands\t\t\t", "host_write_commands", Decimal),
        row("controller_busy_time", "controller_busy_time\t\t\t", "controller_busy_time", Decimal),
        row("power_cycles", "power_cycles\t\t\t\t", "power_cycles", Decimal),
        row("power_on_hours", "power_on_hours\t\t\t\t", "power_on_hours", Decimal),
        row("unsafe_shutdowns", "unsafe_shutdowns\t\t\t", "unsafe_shutdowns", Decimal),
        row("media_errors", "media_errors\t\t\t\t", "media_errors", Decimal),
        row("error_log_entries", "num_err_log_entries\t\t\t", "num_err_log_entries", Decimal),
        row("warning_temperature_time", "Warning Temperature Time\t\t", "warning_temp_time", Decimal),
        row("critical_temperature_time", "Critical Composite Temperature Time\t", "critical_comp_time", Decimal),
        row("temperature_sensor", "Temperature Sensor N\t\t\t", "temperature_sensor", Kelvin),
        row("thermal_management_1_transitions", "Thermal Management T1 Trans Count\t", "thm_temp1_trans_count", Decimal),
        row("thermal_management_2_transitions", "Thermal Management T2 Trans Count\t", "thm_temp2_trans_count", Decimal),
        row("thermal_management_1_time", "Thermal Management T1 Total Time\t", "thm_temp1_total_time", Decimal),
        row("thermal_management_2_time", "Thermal Management T2 Total Time\t", "thm_temp2_total_time", Decimal),
    ],
    left_out: &["lifetime_energy", "interval_power"],
};

/// `smart-log` of a health log page; `device` is nvme-cli's name of the device, `nvme0`.
pub fn smart<'a>(page: &'a [u8], device: &'a str, nsid: u32) -> impl Display + 'a {
    shown(move |f| {
        writeln!(f, "Smart Log for NVME device:{device} namespace-id:{nsid:x}")?;
        FORM.lines(f, page, 0, |_| false)
    })
}

/// `smart-log -o json` of a health log page. With `verbose`, the critical warning is an object of its bits.
pub fn smart_json(page: &[u8], verbose: bool) -> impl Display + '_ {
    shown(move |f| {
        f.write_str("{")?;
        let warning = FORM.view(page).raw("critical_warning");
        match warning {
            Some(bits) if verbose => {
                write!(f, "\"critical_warning\":{{\"value\":{bits}")?;
                let names =
                    ["available_spare", "temp_threshold", "reliability_degraded", "ro", "vmbu_failed", "pmr_ro"];
                for (bit, name) in names.iter().enumerate() {
                    write!(f, ",\"{name}\":{}", bits >> bit & 1)?;
                }
                f.write_str(if page.len() > 2 { "}," } else { "}" })?;
                FORM.members(f, page, |row| row.field == "critical_warning")?;
            }
            _ => FORM.members(f, page, |_| false)?,
        }
        f.write_str("}")
    })
}
