//! `decode` and `explain` as a person runs them: what they print, and what they say to nonsense.
//!
//! Each test compares with a file in `snapshots/decode`; `SNAPSHOTS=overwrite` writes them anew, to be read before they
//! are committed.
#![forbid(unsafe_code)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use snapbox::{Assert, Data};

/// The pages of core's tests.
fn page(name: &str) -> String {
    root().join("core/tests/data").join(name).display().to_string()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs nvmetal with these bytes on standard input; gives what it printed, and its exit code.
fn nvmetal(arguments: &[&str], input: &[u8]) -> (String, String, i32) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_nvmetal"))
        .args(arguments)
        .env("COLUMNS", "80")
        .env("NO_COLOR", "1")
        .env_remove("RUST_LOG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("nvmetal runs");
    // A run that refuses its arguments does not read.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    let output = child.wait_with_output().expect("nvmetal ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8").replace(&root().display().to_string(), "ROOT");
    (text(output.stdout), text(output.stderr), output.status.code().expect("no signal"))
}

/// Runs it and compares everything with the file of this name.
fn snapshot(name: &str, arguments: &[&str], input: &[u8]) {
    let (stdout, stderr, code) = nvmetal(arguments, input);
    let version = format!("\"nvmetal\": \"{}\"", env!("CARGO_PKG_VERSION"));
    let shown = format!("{stdout}--- standard error\n{stderr}--- exit code {code}\n");
    let shown = shown.replace(&version, "\"nvmetal\": \"VERSION\"");
    let path = root().join("tests/snapshots/decode").join(name).with_extension("txt");
    Assert::new().action_env("SNAPSHOTS").eq(shown, Data::read_from(&path, None));
}

/// A Read of eight blocks at LBA 1234h in slot 7.
fn read_entry() -> [u8; 64] {
    let mut entry = [0; 64];
    for (dword, value) in [(0, 0x0007_0002_u32), (1, 1), (6, 0x1000), (7, 1), (10, 0x1234), (12, 7)] {
        entry[4 * dword..4 * dword + 4].copy_from_slice(&value.to_le_bytes());
    }
    entry
}

#[test]
fn a01_a_health_log_is_shown_as_text() {
    snapshot("smart", &["decode", "smart", &page("smart_dc_ssd_314k.hex")], &[]);
}

#[test]
fn a01_a_health_log_is_shown_as_nvme_cli_does() {
    snapshot("smart-nvme-cli", &["decode", "smart-log", &page("smart_dc_ssd_314k.hex"), "-o", "nvme-cli"], &[]);
    snapshot("smart-nvme-cli-json", &["decode", "smart", &page("smart_dc_ssd_314k.hex"), "-o", "nvme-cli-json"], &[]);
}

#[test]
fn a_short_page_is_decoded_as_far_as_it_goes() {
    snapshot("smart-short", &["decode", "smart", "-"], &[0x00, 0x3a, 0x01, 98, 10]);
    snapshot("smart-short-json", &["decode", "smart", "-", "-o", "json"], &[0x00, 0x3a, 0x01, 98, 10]);
}

#[test]
fn b01_a_controller_is_shown_with_its_power_states_as_nvme_cli_does() {
    let page = page("idctrl_thnsn5512gpu7.hex");
    snapshot("id-ctrl-nvme-cli", &["decode", "id", "ctrl", &page, "-o", "nvme-cli"], &[]);
    assert_eq!(nvmetal(&["id-ctrl", &page, "-o", "nvme-cli"], &[]).2, 2, "a file is no device");
    let spelled = nvmetal(&["decode", "id-ctrl", &page, "--output-format", "nvme-cli"], &[]);
    assert_eq!(spelled, nvmetal(&["decode", "ctrl", &page, "-o", "nvme-cli"], &[]));
}

#[test]
fn a_namespace_is_shown_as_annotated_hex() {
    snapshot("id-ns-hex", &["decode", "id", "ns", &page("idns_flbas11_4k.hex"), "-o", "hex"], &[]);
}

#[test]
fn a18_an_error_entry_names_its_status() {
    let page = page("errlog_rebuilt_c502.hex");
    snapshot("error", &["decode", "log", "error", &page], &[]);
    snapshot("error-nvme-cli", &["decode", "error-log", &page, "-o", "nvme-cli"], &[]);
}

#[test]
fn a29_a_self_test_log_is_shown_as_nvme_cli_does() {
    snapshot("self-test-nvme-cli", &["decode", "self-test-log", &page("selftest_3results.hex"), "-o", "nvme-cli"], &[]);
}

#[test]
fn a37_a_firmware_log_is_shown_as_nvme_cli_does() {
    snapshot("firmware-nvme-cli", &["decode", "fw-log", &page("fwslot_nul_in_rev.hex"), "-o", "nvme-cli"], &[]);
}

#[test]
fn registers_are_shown_as_nvme_cli_does() {
    snapshot("registers-nvme-cli", &["decode", "show-regs", &page("regs_cap_2078030fff.hex"), "-o", "nvme-cli"], &[]);
}

#[test]
fn a_submission_entry_is_read_by_the_queue_that_it_is_of() {
    let entry = read_entry();
    snapshot("sqe-io", &["decode", "sqe", "io", "-"], &entry);
    snapshot("sqe-json", &["decode", "sqe", "-", "-o", "json"], &entry);
    let text = nvmetal(&["decode", "sqe", "-"], &entry).0;
    assert!(text.contains("On the admin queue: Get Log Page") && text.contains("On an I/O queue: Read"), "{text}");
}

#[test]
fn a_completion_names_its_status() {
    snapshot("cqe", &["decode", "cqe", "-"], b"00000000 00000000 0500 0300 2102 03c5\n");
}

#[test]
fn every_form_of_the_same_dump_is_decoded_to_the_same() {
    let bytes = read_entry();
    let expected = nvmetal(&["decode", "sqe", "io", "-"], &bytes);
    assert_eq!(expected.2, 0);
    let rows = |separator: &str, width: usize| {
        let digits =
            |chunk: &[u8]| chunk.iter().map(|byte| format!("{byte:02x}{separator}")).collect::<Vec<_>>().concat();
        bytes.chunks(width).enumerate().map(|(row, chunk)| (row * width, digits(chunk))).collect::<Vec<_>>()
    };
    let joined = |form: &dyn Fn(&(usize, String)) -> String, width| {
        rows(" ", width).iter().map(form).collect::<Vec<_>>().concat()
    };
    let forms = [
        rows("", 32).iter().map(|(_, row)| format!("{row}\n")).collect::<Vec<_>>().concat(),
        joined(&|(at, row)| format!("{at:08x}: {row} ................\n"), 16),
        joined(&|(at, row)| format!("{at:08x}  {row} |0000000000000000|\n"), 16) + "00000040\n",
        joined(&|(at, row)| format!("{at:04x}: {row}\"................\"\n"), 16),
        rows(", 0x", 16)
            .iter()
            .map(|(_, row)| format!("0x{},\n", row.trim_end_matches(", 0x")))
            .collect::<Vec<_>>()
            .concat(),
    ];
    for form in forms {
        assert_eq!(nvmetal(&["decode", "sqe", "io", "-"], form.as_bytes()), expected, "{form}");
    }
    let raw = nvmetal(&["decode", "cqe", "-", "-o", "raw"], b"41424344 45464748 494a4b4c 4d4e4f50").0;
    assert_eq!(raw, "ABCDEFGHIJKLMNOP");
    assert_eq!(nvmetal(&["decode", "cqe", "--binary", "-"], raw.as_bytes()).2, 0, "text can be taken as bytes");
}

#[test]
fn nonsense_is_answered_by_one_sentence_and_exit_code_2() {
    let cases: &[(&str, &[&str], &[u8])] = &[
        ("no-structure", &["decode", "zebra", "-"], b""),
        ("slip", &["decode", "smrt", "-"], b""),
        ("no-file", &["decode", "id", "ctrl"], b""),
        ("no-hex", &["decode", "smart", "-"], b"zebra\n"),
        ("no-bytes", &["decode", "smart", "-"], b""),
        ("no-text", &["decode", "smart", "--hex", "-"], &[0xff, 0x00]),
        ("no-such-form", &["decode", "sqe", "-", "-o", "nvme-cli"], b"00"),
        ("json-error", &["decode", "zebra", "-", "-o", "json"], b""),
        ("no-status", &["explain", "status", "zebra"], b""),
        ("no-field", &["explain", "field", "smart.zebra"], b""),
        ("no-command", &["explain", "command", "reed"], b""),
        ("no-register", &["explain", "register", "capp"], b""),
        ("no-feature", &["explain", "feature", "0x1ff"], b""),
        ("no-log", &["log", "zebra", "emulated"], b""),
    ];
    for (name, arguments, input) in cases {
        assert_eq!(nvmetal(arguments, input).2, 2, "{arguments:?}");
        snapshot(&format!("nonsense-{name}"), arguments, input);
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let (_, stderr, code) = nvmetal(&["decode", "smart", "/nonexistent/page.bin"], &[]);
    assert_eq!(code, 1);
    assert!(stderr.contains("cannot read /nonexistent/page.bin"), "{stderr}");
}

#[test]
fn a_status_is_explained_in_each_of_its_spellings() {
    snapshot("explain-status", &["explain", "status", "0x2002"], &[]);
    snapshot("explain-status-with-phase", &["explain", "status", "c503h"], &[]);
    snapshot("explain-status-json", &["explain", "status", "2/0x81", "-o", "json"], &[]);
    let number = nvmetal(&["explain", "status", "2"], &[]).0;
    for spelling in ["0/2", "0x2", "invalid-field-in-command", "Invalid Field in Command"] {
        assert_eq!(nvmetal(&["explain", "status", spelling], &[]).0, number, "{spelling}");
    }
}

#[test]
fn fields_commands_registers_and_features_are_explained() {
    snapshot("explain-field", &["explain", "field", "smart.critical_warning"], &[]);
    snapshot("explain-part", &["explain", "field", "smart.critical_warning.read_only"], &[]);
    snapshot("explain-mdts", &["explain", "field", "mdts"], &[]);
    snapshot("explain-command", &["explain", "command", "admin/0x06"], &[]);
    snapshot("explain-register", &["explain", "register", "csts"], &[]);
    snapshot("explain-feature", &["explain", "feature", "number-of-queues"], &[]);
}

#[test]
fn an_emulated_drives_logs_and_registers_have_the_same_forms() {
    for log in ["error", "smart", "firmware", "self-test"] {
        let (text, stderr, code) = nvmetal(&["log", log, "emulated", "-o", "nvme-cli"], &[]);
        if code == 9 {
            continue; // The emulator does not have every log.
        }
        assert_eq!(code, 0, "{log}: {stderr}");
        assert!(text.contains("emulated:ideal"), "the drive is named: {text}");
        let (json, ..) = nvmetal(&["log", log, "emulated", "-o", "nvme-cli-json"], &[]);
        assert!(json.contains("\"emulated\": true"), "{json}");
    }
    let (text, _, code) = nvmetal(&["show-regs", "emulated", "-o", "nvme-cli"], &[]);
    assert_eq!(code, 0);
    assert!(text.starts_with("cap     : 0x") && text.contains("\ncsts    : 0x1\n"), "{text}");
}
