//! The forms of nvme-cli, to the letter.
#![forbid(unsafe_code)]

mod common;

use common::page;
use nvmetal_core::log::Smart;
use nvmetal_core::nvme_cli;
use zerocopy::IntoBytes;

/// Two health logs as published: a page with the same values must give the same text.
const LOGS: [(&str, [u128; 17], &str); 2] = [
    (
        "nvme0",
        [
            326,
            100,
            10,
            2,
            174_848_744,
            118_461_179,
            1_499_974_106,
            1_112_992_715,
            4205,
            5430,
            6194,
            227,
            0,
            73_252,
            0,
            326,
            320,
        ],
        "Smart Log for NVME device:nvme0 namespace-id:ffffffff\n\
         critical_warning\t\t\t: 0\n\
         temperature\t\t\t\t: 53 °C (326 K)\n\
         available_spare\t\t\t\t: 100%\n\
         available_spare_threshold\t\t: 10%\n\
         percentage_used\t\t\t\t: 2%\n\
         endurance group critical warning summary: 0\n\
         Data Units Read\t\t\t\t: 174848744 (89.52 TB)\n\
         Data Units Written\t\t\t: 118461179 (60.65 TB)\n\
         host_read_commands\t\t\t: 1499974106\n\
         host_write_commands\t\t\t: 1112992715\n\
         controller_busy_time\t\t\t: 4205\n\
         power_cycles\t\t\t\t: 5430\n\
         power_on_hours\t\t\t\t: 6194\n\
         unsafe_shutdowns\t\t\t: 227\n\
         media_errors\t\t\t\t: 0\n\
         num_err_log_entries\t\t\t: 73252\n\
         Warning Temperature Time\t\t: 0\n\
         Critical Composite Temperature Time\t: 0\n\
         Temperature Sensor 1\t\t\t: 53 °C (326 K)\n\
         Temperature Sensor 2\t\t\t: 47 °C (320 K)\n\
         Thermal Management T1 Trans Count\t: 0\n\
         Thermal Management T2 Trans Count\t: 0\n\
         Thermal Management T1 Total Time\t: 0\n\
         Thermal Management T2 Total Time\t: 0\n",
    ),
    (
        "nvme2",
        [
            330,
            100,
            10,
            1,
            76_999_626,
            84_879_684,
            169_933_458,
            63_370_167,
            893,
            4465,
            3660,
            173,
            0,
            63_288,
            0,
            330,
            328,
        ],
        "Smart Log for NVME device:nvme2 namespace-id:ffffffff\n\
         critical_warning\t\t\t: 0\n\
         temperature\t\t\t\t: 57 °C (330 K)\n\
         available_spare\t\t\t\t: 100%\n\
         available_spare_threshold\t\t: 10%\n\
         percentage_used\t\t\t\t: 1%\n\
         endurance group critical warning summary: 0\n\
         Data Units Read\t\t\t\t: 76999626 (39.42 TB)\n\
         Data Units Written\t\t\t: 84879684 (43.46 TB)\n\
         host_read_commands\t\t\t: 169933458\n\
         host_write_commands\t\t\t: 63370167\n\
         controller_busy_time\t\t\t: 893\n\
         power_cycles\t\t\t\t: 4465\n\
         power_on_hours\t\t\t\t: 3660\n\
         unsafe_shutdowns\t\t\t: 173\n\
         media_errors\t\t\t\t: 0\n\
         num_err_log_entries\t\t\t: 63288\n\
         Warning Temperature Time\t\t: 0\n\
         Critical Composite Temperature Time\t: 0\n\
         Temperature Sensor 1\t\t\t: 57 °C (330 K)\n\
         Temperature Sensor 2\t\t\t: 55 °C (328 K)\n\
         Thermal Management T1 Trans Count\t: 0\n\
         Thermal Management T2 Trans Count\t: 0\n\
         Thermal Management T1 Total Time\t: 0\n\
         Thermal Management T2 Total Time\t: 0\n",
    ),
];

fn smart_page(values: &[u128; 17]) -> Smart {
    let mut smart = Smart::default();
    let v = |index: usize| values[index];
    smart.composite_temperature = (v(0) as u16).into();
    (smart.available_spare, smart.available_spare_threshold, smart.percentage_used) =
        (v(1) as u8, v(2) as u8, v(3) as u8);
    smart.data_units_read = v(4).into();
    smart.data_units_written = v(5).into();
    smart.host_read_commands = v(6).into();
    smart.host_write_commands = v(7).into();
    smart.controller_busy_time = v(8).into();
    smart.power_cycles = v(9).into();
    smart.power_on_hours = v(10).into();
    smart.unsafe_shutdowns = v(11).into();
    smart.media_errors = v(12).into();
    smart.error_log_entries = v(13).into();
    smart.warning_temperature_time = (v(14) as u32).into();
    smart.temperature_sensor[0] = (v(15) as u16).into();
    smart.temperature_sensor[1] = (v(16) as u16).into();
    smart
}

#[test]
fn two_published_health_logs_are_reproduced_to_the_letter() {
    for (device, values, expected) in LOGS {
        let smart = smart_page(&values);
        assert_eq!(nvme_cli::smart(smart.as_bytes(), device, u32::MAX).to_string(), expected);
    }
}

#[test]
fn a_health_log_as_json_has_the_known_keys_and_numbers() {
    let smart = smart_page(&LOGS[0].1);
    let json: serde_json::Value =
        serde_json::from_str(&nvme_cli::smart_json(smart.as_bytes(), false).to_string()).unwrap();
    assert_eq!(json["temperature"], 326, "kelvin");
    assert_eq!(json["avail_spare"], 100);
    assert_eq!(json["num_err_log_entries"], 73_252);
    assert_eq!((&json["temperature_sensor_1"], &json["temperature_sensor_2"]), (&326.into(), &320.into()));
    assert!(json.get("temperature_sensor_3").is_none());
    let verbose: serde_json::Value =
        serde_json::from_str(&nvme_cli::smart_json(&[0x14; 512], true).to_string()).unwrap();
    assert_eq!(verbose["critical_warning"]["value"], 0x14);
    assert_eq!(verbose["critical_warning"]["vmbu_failed"], 1);
    assert_eq!(verbose["critical_warning"]["ro"], 0);
    assert!(
        nvme_cli::smart_json(&[0xff; 512], false).to_string().contains(":340282366920938463463374607431768211455,")
    );
}

#[test]
fn an_identify_controller_has_its_lines_in_their_order() {
    let text = nvme_cli::controller(&page("idctrl_thnsn5512gpu7.hex")).to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..4],
        ["NVME Identify Controller:", "vid       : 0x1179", "ssvid     : 0x1179", "sn        :         TESTSERIAL01"]
    );
    for line in [
        "mdts      : 0",
        "ieee      : 0d0800",
        "wctemp    : 351",
        "sqes      : 0x66",
        "tnvmcap   : 0",
        "apsta     : 0x1",
    ] {
        assert!(lines.contains(&line), "{line}\n{text}");
    }
    let first = lines.iter().position(|line| line.starts_with("ps ")).unwrap();
    assert_eq!(lines[first], "ps    0 : mp:8.00W operational enlat:0 exlat:0 rrt:0 rrl:0");
    assert_eq!(lines[first + 1], "          rwt:0 rwl:0 idle_power:- active_power:-");
    assert_eq!(lines[first + 9], "ps    3 : mp:0.1200W non-operational enlat:1000 exlat:1000 rrt:3 rrl:3");
    let json: serde_json::Value =
        serde_json::from_str(&nvme_cli::controller_json(&page("idctrl_pm1733.hex")).to_string()).unwrap();
    assert_eq!((&json["vid"], &json["ieee"], &json["nn"]), (&0x144d.into(), &0x2538.into(), &8.into()));
    assert_eq!(json["tnvmcap"], 3_840_755_982_336_u64);
    assert_eq!(json["psds"][0]["max_power"], 2500);
}

#[test]
fn an_identify_namespace_marks_the_format_in_use() {
    let page = page("idns_flbas11_4k.hex");
    let text = nvme_cli::namespace(&page, 1).to_string();
    assert!(text.starts_with("NVME Identify Namespace 1:\nnsze    : 0x40000\n"), "{text}");
    assert!(text.contains("\nnguid   : 08000000010000005cd2e41122334455\n"));
    assert!(text.ends_with("lbaf  0 : ms:0   lbads:9  rp:0x2 \nlbaf  1 : ms:0   lbads:12 rp:0 (in use)\n"), "{text}");
    assert!(!text.contains("npwg"), "the preferred sizes are not reported");
    let json: serde_json::Value = serde_json::from_str(&nvme_cli::namespace_json(&page).to_string()).unwrap();
    assert_eq!((&json["nsze"], &json["lbafs"][1]["ds"]), (&0x40000.into(), &12.into()));
}

#[test]
fn an_error_entry_has_its_status_shifted_and_named() {
    let page = page("errlog_rebuilt_c502.hex");
    let text = nvme_cli::error_log(&page, "nvme0").to_string();
    let expected = "Error Log Entries for device:nvme0 entries:1\n.................\n Entry[ 0]\n.................\n\
        error_count\t: 9290042\nsqid\t\t: 52\ncmdid\t\t: 0x221\nstatus_field\t: 0x6281 (Unrecovered Read Error)\n\
        phase_tag\t: 0\nparm_err_loc\t: 0\nlba\t\t: 0x19408a50\nnsid\t\t: 0\nvs\t\t: 0\ntrtype\t\t: 0 (not indicated)\n";
    assert!(text.starts_with(expected), "{text}");
    let json: serde_json::Value = serde_json::from_str(&nvme_cli::error_log_json(&page).to_string()).unwrap();
    assert_eq!((&json["errors"][0]["status_field"], &json["errors"][0]["phase_tag"]), (&0x6281.into(), &0.into()));
}

#[test]
fn firmware_self_test_and_registers_have_their_forms() {
    let text = nvme_cli::firmware_log(&page("fwslot_nul_in_rev.hex"), "nvme0").to_string();
    let expected = "Firmware Log for device:nvme0\nafi  : 0x11\n\
        frs1 : 0x35315030444b504d (MPKD0P15)\nfrs3 : 0x315030444b504d (MPKD0P1)\n";
    assert_eq!(text, expected);
    let text = nvme_cli::self_test_log(&page("selftest_3results.hex"), "nvme0").to_string();
    assert!(text.contains("Current operation  : 0\nCurrent Completion : 0%\nSelf Test Result[0]:\n  Operation Result             : 0\n  Self Test Code               : 2\n"), "{text}");
    assert!(text.contains("  Power on hours (POH)         : 0x5f\n"));
    assert_eq!(text.matches("Operation Result             : 0xf").count(), 17);
    let text = nvme_cli::registers(&page("regs_cap_2078030fff.hex")).to_string();
    assert!(text.starts_with("cap     : 0x2078030fff\nversion : 0x10200\nintms   : 0\n"), "{text}");
    assert!(text.ends_with("aqa     : 0x1f001f\n"), "what the dump does not have is not printed: {text}");
}

#[test]
fn pages_of_any_length_give_json_and_no_panic() {
    for length in (0..600).step_by(7).chain([4095, 4096]) {
        let bytes = vec![0xff; length];
        let all = [
            nvme_cli::smart_json(&bytes, true).to_string(),
            nvme_cli::smart_json(&bytes, false).to_string(),
            nvme_cli::controller_json(&bytes).to_string(),
            nvme_cli::namespace_json(&bytes).to_string(),
            nvme_cli::error_log_json(&bytes).to_string(),
            nvme_cli::firmware_log_json(&bytes, "nvme0").to_string(),
            nvme_cli::self_test_log_json(&bytes).to_string(),
            nvme_cli::registers_json(&bytes).to_string(),
        ];
        for json in all {
            serde_json::from_str::<serde_json::Value>(&json)
                .unwrap_or_else(|error| panic!("{length}: {error}: {json}"));
        }
        let _ = nvme_cli::controller(&bytes).to_string() + &nvme_cli::namespace(&bytes, 1).to_string();
        let _ = nvme_cli::smart(&bytes, "nvme0", 1).to_string() + &nvme_cli::error_log(&bytes, "nvme0").to_string();
        let _ = nvme_cli::self_test_log(&bytes, "nvme0").to_string() + &nvme_cli::registers(&bytes).to_string();
    }
}
