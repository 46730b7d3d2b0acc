//! Health logs of real drives, and values that other tools got wrong.
#![forbid(unsafe_code)]

mod common;

use common::page;
use nvmetal_core::describe::{Describe, View};
use nvmetal_core::log::Smart;
use zerocopy::FromBytes;

fn shown(bytes: &[u8], id: &str) -> String {
    Smart::DESCRIPTOR_REF.view(bytes).get(id).expect(id).to_string()
}

fn sensor(view: View<'_>, index: usize) -> Option<String> {
    let field = view.descriptor.field("temperature_sensor")?;
    view.value(field, index).map(|value| value.to_string())
}

/// The value of the line that begins with this label.
fn line<'a>(text: &'a str, label: &str) -> &'a str {
    let line =
        text.lines().find(|line| line.starts_with(label)).unwrap_or_else(|| panic!("no line {label} in\n{text}"));
    line.split_once(" : ").expect("a value").1
}

#[test]
fn a01_small_values_of_a_data_centre_drive_are_not_rounded_away() {
    let page = page("smart_dc_ssd_314k.hex");
    let expected = [
        ("critical_warning", "0x00"),
        ("composite_temperature", "41 °C (314 K)"),
        ("available_spare", "98%"),
        ("available_spare_threshold", "10%"),
        ("percentage_used", "0%"),
        ("data_units_read", "1044 (534.53 MB)"),
        ("data_units_written", "15 (7.68 MB)"),
        ("host_read_commands", "1027083"),
        ("host_write_commands", "1905"),
        ("controller_busy_time", "0 min"),
        ("power_cycles", "4"),
        ("power_on_hours", "408 h"),
        ("unsafe_shutdowns", "1"),
        ("media_errors", "0"),
        ("error_log_entries", "0"),
        ("thermal_management_1_transitions", "0"),
        ("thermal_management_2_time", "0 s"),
    ];
    for (id, value) in expected {
        assert_eq!(shown(&page, id), value, "{id}");
    }
    let text = Smart::DESCRIPTOR_REF.view(&page).text().to_string();
    assert!(!text.contains("Temperature Sensor"), "sensors that are not there are not shown");
}

#[test]
fn a02_a_page_shorter_than_the_structure_is_read_as_far_as_it_goes() {
    let page = page("smart_two_sensors_short180.hex");
    assert_eq!(page.len(), 0x180);
    let view = Smart::DESCRIPTOR_REF.view(&page);
    assert_eq!(shown(&page, "composite_temperature"), "33 °C (306 K)");
    assert_eq!(shown(&page, "data_units_read"), "10579820 (5.42 TB)");
    assert_eq!(shown(&page, "data_units_written"), "9101665 (4.66 TB)");
    assert_eq!(view.raw("host_read_commands"), Some(57_115_156));
    assert_eq!(view.raw("host_write_commands"), Some(50_711_352));
    assert_eq!((view.raw("controller_busy_time"), view.raw("power_cycles")), (Some(225), Some(26)));
    assert_eq!(sensor(view, 0).as_deref(), Some("33 °C (306 K)"));
    assert_eq!(sensor(view, 1).as_deref(), Some("39 °C (312 K)"));
    assert_eq!(sensor(view, 2).as_deref(), Some("not reported"));

    let cut = Smart::DESCRIPTOR_REF.view(&page[..203]);
    assert_eq!(sensor(cut, 0).as_deref(), Some("33 °C (306 K)"));
    assert_eq!(sensor(cut, 1), None, "a sensor of which one byte is missing is not available");
    let text = cut.text().to_string();
    assert_eq!(line(&text, "Thermal Management Temperature 1 Transition Count"), "not available");
    let json: serde_json::Value = serde_json::from_str(&cut.json().to_string()).unwrap();
    assert_eq!(json["thermal_management_1_transitions"], serde_json::Value::Null);
}

#[test]
fn a05_zero_kelvin_keeps_its_raw_value_for_machines() {
    let json: serde_json::Value =
        serde_json::from_str(&Smart::DESCRIPTOR_REF.view(&[0; 512]).json().to_string()).unwrap();
    assert_eq!(json["composite_temperature"]["raw"], 0);
    assert_eq!(json["composite_temperature"]["meaning"], "not reported");
    assert_eq!(Smart::default().temperature_kelvin(), None);
}

#[test]
fn a08_a_temperature_is_in_celsius_with_its_unit_and_nothing_is_grouped() {
    let mut page = [0; 512];
    page[1..3].copy_from_slice(&318_u16.to_le_bytes());
    page[64..80].copy_from_slice(&1_234_567_u128.to_le_bytes());
    assert_eq!(shown(&page, "composite_temperature"), "45 °C (318 K)");
    assert_eq!(shown(&page, "host_read_commands"), "1234567");
}

#[test]
fn a09_counters_beyond_32_bits_are_exact() {
    let page = page("smart_rebuilt_p3700_16pb.hex");
    let view = Smart::DESCRIPTOR_REF.view(&page);
    assert_eq!(view.raw("data_units_written"), Some(32_381_395_004));
    assert_eq!(view.raw("host_write_commands"), Some(1_694_335_138_991));
    assert_eq!(shown(&page, "data_units_written"), "32381395004 (16.58 PB)");
    assert_eq!(shown(&page, "data_units_read"), "6933871372 (3.55 PB)");
    assert_eq!(shown(&page, "power_on_hours"), "57288 h");
    assert_eq!(shown(&page, "percentage_used"), "41%");
    assert_eq!(shown(&page, "composite_temperature"), "21 °C (294 K)");

    let json = Smart::DESCRIPTOR_REF.view(&[0xff; 512]).json().to_string();
    assert!(json.contains("\"media_errors\":340282366920938463463374607431768211455"), "all digits, unquoted");
    assert!(json.contains("\"data_units_read\":{\"raw\":340282366920938463463374607431768211455,\"unit\":\"bytes\"}"));
}

#[test]
fn a12_a_failed_volatile_backup_is_named() {
    let page = page("smart_rebuilt_cw10.hex");
    let text = Smart::DESCRIPTOR_REF.view(&page).text().to_string();
    assert_eq!(line(&text, "Critical Warning"), "0x10");
    assert!(text.contains("[4] volatile memory backup failed"));
    assert_eq!(shown(&page, "available_spare"), "100%");

    let text = Smart::DESCRIPTOR_REF.view(&[0xc0; 1]).text().to_string();
    assert!(text.contains("[7:6] unknown warning: 0x3"), "unknown bits are shown raw: {text}");
}

#[test]
fn a13_more_life_used_than_there_was_is_not_clamped_and_leaves_nothing() {
    let mut page = [0; 512];
    (page[0], page[3], page[4], page[5]) = (4, 100, 10, 200);
    let smart = Smart::read_from_bytes(&page).unwrap();
    assert_eq!(shown(&page, "percentage_used"), "200%");
    assert_eq!(smart.remaining_percent(), 0);
    assert!(smart.critical_warning.reliability());
    assert!(smart.view().text().to_string().contains("[2] reliability degraded"));
}

#[test]
fn a16_a_spare_threshold_of_zero_is_a_threshold() {
    let page = page("smart_rebuilt_optane_thr0.hex");
    assert_eq!(shown(&page, "available_spare"), "100%");
    assert_eq!(shown(&page, "available_spare_threshold"), "0%");
    assert_eq!(shown(&page, "composite_temperature"), "31 °C (304 K)");
    assert_eq!((shown(&page, "unsafe_shutdowns"), shown(&page, "power_cycles")), ("173".into(), "194".into()));
}

#[test]
fn a17_few_hours_are_shown_as_they_are() {
    let mut page = [0; 512];
    (page[128], page[112]) = (18, 24);
    assert_eq!((shown(&page, "power_on_hours"), shown(&page, "power_cycles")), ("18 h".into(), "24".into()));
}

#[test]
fn a36_thermal_counters_are_shown_where_the_sensors_are_absent() {
    let mut page = [0; 512];
    page[..5].copy_from_slice(&[0x00, 0x39, 0x01, 0x64, 0x0a]);
    (page[192], page[216], page[224]) = (1, 7, 30);
    let text = Smart::DESCRIPTOR_REF.view(&page).text().to_string();
    assert_eq!(line(&text, "Composite Temperature"), "40 °C (313 K)");
    assert_eq!(line(&text, "Warning Composite Temperature Time"), "1 min");
    assert_eq!(line(&text, "Thermal Management Temperature 1 Transition Count"), "7");
    assert_eq!(line(&text, "Total Time For Thermal Management Temperature 1"), "30 s");
    assert!(!text.contains("Temperature Sensor"));
}
