//! What a run has changed in the drive's health log.
//!
//! Counters of a healthy drive move in a run, and which of them did is part of the evidence: data that was read must be
//! counted, errors must not. The fields are those of the structure's own table, so that none is forgotten.
#![forbid(unsafe_code)]

use nvmetal_core::describe::{Describe, Form, Value};
use nvmetal_core::log::Smart;
use serde::Serialize;
use zerocopy::IntoBytes;

use crate::units::{bytes, celsius, grouped};

/// A field that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The field, as in every output of the log.
    pub field: String,
    /// Its name for people.
    pub label: String,
    /// What it was, as the drive told it.
    pub before: u128,
    /// What it is.
    pub after: u128,
    /// The same for people: `27.0 GB -> 28.1 GB (+1.1 GB)`.
    #[serde(skip)]
    pub text: String,
}

/// The fields in which two readings differ, in the log's order.
pub fn between(before: &Smart, after: &Smart) -> Vec<Change> {
    let (before, after) = (Smart::DESCRIPTOR.view(before.as_bytes()), Smart::DESCRIPTOR.view(after.as_bytes()));
    let mut changes = Vec::new();
    for field in Smart::DESCRIPTOR.fields.iter().filter(|field| !field.is_reserved()) {
        for index in 0..field.repeat {
            let (Some(was), Some(is)) = (before.value(field, index), after.value(field, index)) else { continue };
            if was.raw() == is.raw() {
                continue;
            }
            let (mut id, mut label) = (field.id.to_owned(), field.label.to_owned());
            if field.repeat > 1 {
                id = format!("{id}[{index}]");
                label = format!("{label} {}", index + 1);
            }
            let by = difference(&was, &is).map_or(String::new(), |by| format!(" ({by})"));
            let text = format!("{} -> {}{by}", shown(&was), shown(&is));
            changes.push(Change { field: id, label, before: was.raw(), after: is.raw(), text });
        }
    }
    changes
}

/// A value in a few words.
fn shown(value: &Value<'_>) -> String {
    match value.shape.form {
        Form::Count => grouped(value.raw()),
        Form::Kelvin => format!("{} C", celsius(value.raw() as u16)),
        Form::Amount { each, unit } => amount(value.raw(), each, unit),
        _ => value.to_string(),
    }
}

/// By how much a number moved.
fn difference(was: &Value<'_>, is: &Value<'_>) -> Option<String> {
    let sign = if is.raw() > was.raw() { '+' } else { '-' };
    let by = is.raw().abs_diff(was.raw());
    match is.shape.form {
        Form::Count => Some(format!("{sign}{}", grouped(by))),
        Form::Kelvin => Some(format!("{sign}{by} K")),
        Form::Amount { each, unit } => Some(format!("{sign}{}", amount(by, each, unit))),
        _ => None,
    }
}

fn amount(count: u128, each: u64, unit: &str) -> String {
    let total = count.saturating_mul(each.into());
    match unit {
        "bytes" => bytes(total),
        "%" => format!("{total} %"),
        unit => format!("{} {unit}", grouped(total)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_moved_is_listed_in_the_logs_order_with_its_difference() {
        let before = Smart { composite_temperature: 310.into(), available_spare: 100, ..Smart::default() };
        let mut after = before;
        after.composite_temperature = 308.into();
        after.available_spare = 99;
        after.data_units_read = 2_000.into();
        after.host_read_commands = 1_234_567.into();
        after.temperature_sensor[1] = 300.into();
        let changes = between(&before, &after);
        let told: Vec<_> = changes.iter().map(|change| (change.field.as_str(), change.text.as_str())).collect();
        assert_eq!(
            told,
            [
                ("composite_temperature", "37 C -> 35 C (-2 K)"),
                ("available_spare", "100 % -> 99 % (-1 %)"),
                ("data_units_read", "0 B -> 1.02 GB (+1.02 GB)"),
                ("host_read_commands", "0 -> 1 234 567 (+1 234 567)"),
                ("temperature_sensor[1]", "-273 C -> 27 C (+300 K)"),
            ]
        );
        assert_eq!(changes[4].label, "Temperature Sensor 2");
    }

    #[test]
    fn two_equal_readings_differ_in_nothing() {
        let smart = Smart { power_cycles: 7.into(), ..Smart::default() };
        assert!(between(&smart, &smart).is_empty());
    }

    #[test]
    fn a_warning_that_came_up_is_a_change_though_it_is_no_number() {
        let before = Smart::default();
        let mut after = before;
        after.critical_warning = nvmetal_core::log::CriticalWarning::from_bits(4);
        let changes = between(&before, &after);
        assert_eq!((changes[0].field.as_str(), changes[0].text.as_str()), ("critical_warning", "0x00 -> 0x04"));
    }
}
