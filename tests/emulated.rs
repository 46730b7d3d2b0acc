//! The real binary against the emulator: verdicts, exit codes, output forms, wrong input, signals.
//!
//! Everything here runs on a virtual clock unless it is about real time, so that nothing depends on the machine.
#![forbid(unsafe_code)]

mod support;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use serde_json::Value;
use support::{Ran, command, nvmetal};

// ------------------------------------------------------------------------------------------------------ the main job

/// The status of each check by its id.
fn statuses(document: &Value) -> impl Fn(&str) -> String + '_ {
    |id| {
        let checks = document["checks"].as_array().expect("checks");
        let check = checks.iter().find(|check| check["id"] == id).unwrap_or_else(|| panic!("no check {id}"));
        check["status"].as_str().expect("a status").to_owned()
    }
}

#[test]
fn a_good_drive_passes_and_the_report_fits_eighty_columns() {
    let ran = nvmetal("validate emulated --quick --strict").exits(0);
    assert!(ran.out.starts_with("EMULATED  nvmetal EMULATED ideal\n"), "{}", ran.out);
    assert!(ran.out.lines().all(|line| line.chars().count() <= 80), "{}", ran.out);
    let last = ran.out.lines().rfind(|line| line.starts_with("PASS  EMULATED"));
    assert!(last.is_some(), "{}", ran.out);
}

#[test]
fn the_json_of_a_validation_has_what_scripts_need() {
    let document = nvmetal("validate emulated --quick -o json").exits(0).json();
    assert_eq!(document["schema"], "nvmetal.validate/1");
    assert_eq!(document["emulated"], true);
    assert_eq!(document["verdict"], "PASS");
    for key in ["model", "serial", "firmware", "address", "transport"] {
        assert!(document["device"][key].is_string(), "device.{key}: {}", document["device"]);
    }
    let checks = document["checks"].as_array().expect("checks");
    assert!(checks.len() >= 17, "{checks:?}");
    for check in checks {
        for key in ["id", "status", "evidence", "limit", "basis"] {
            assert!(check[key].is_string(), "{key}: {check}");
        }
        assert!(check.get("advice").is_some(), "{check}");
    }
    sends_nothing_but_commands_that_read(&document);
}

fn sends_nothing_but_commands_that_read(document: &Value) {
    let sent = document["commands_sent"].as_array().expect("commands");
    let allowed = [
        "Identify",
        "Get Log Page",
        "Get Features",
        "Set Features",
        "Read",
        "Create I/O Submission Queue",
        "Create I/O Completion Queue",
        "Delete I/O Submission Queue",
        "Delete I/O Completion Queue",
        "Abort",
        "Asynchronous Event Request",
    ];
    assert!(!sent.is_empty());
    for command in sent {
        assert!(allowed.iter().any(|name| command["name"] == *name), "{command}");
    }
    assert_eq!(document["read_only"], true);
}

/// An option of the emulator (and what else the command line has), the exit code, the status of some checks.
type Case = (&'static str, i32, &'static [(&'static str, &'static str)]);

#[test]
fn each_option_changes_its_check_and_the_exit_code() {
    let table: &[Case] = &[
        ("link=gen1x1", 3, &[("link.speed", "FAIL"), ("link.width", "FAIL")]),
        ("critical-warning=4", 3, &[("smart.critical_warning", "FAIL"), ("temperature", "PASS")]),
        ("temperature=95", 3, &[("temperature", "FAIL")]),
        ("temperature=86 --strict", 4, &[("temperature", "WARN")]),
        ("fault=read-error@100", 3, &[("io.errors", "FAIL"), ("smart.media_errors", "FAIL")]),
        ("written=no", 0, &[("speed.read", "SKIP"), ("speed.random_read", "SKIP"), ("link.throughput", "PASS")]),
        ("removed@1000", 7, &[("io.errors", "FAIL")]),
    ];
    for (option, code, expected) in table {
        let document = nvmetal(&format!("validate emulated:ideal,{option} --quick -o json")).exits(*code).json();
        let status = statuses(&document);
        for (check, wanted) in *expected {
            assert_eq!(status(check), *wanted, "{option}: {check}");
        }
        let all_passed = expected.iter().all(|(_, wanted)| ["PASS", "SKIP"].contains(wanted));
        assert_eq!(document["verdict"] == "PASS", all_passed, "{option}: {}", document["verdict"]);
    }
}

#[test]
fn a_failed_check_says_what_to_do() {
    nvmetal("validate emulated:ideal,link=gen1x1 --quick").exits(3).says(&[
        "FAIL link.speed",
        "2.5 GT/s",
        "can 8 GT/s",
        "Reseat",
    ]);
}

#[test]
fn the_same_run_gives_the_same_figures_every_time() {
    let run = || nvmetal("bench emulated --rw randread --bs 4k --iodepth 32 --runtime 1 -o json").exits(0).json();
    let (one, other) = (run(), run());
    for figure in ["iops", "bytes_per_second", "read", "elapsed_ns", "per_second"] {
        assert_eq!(one[figure], other[figure], "{figure}");
    }
}

// ------------------------------------------------------------------------------------------------- the other commands

#[test]
fn a_trace_tells_the_bring_up_in_the_order_of_the_specification() {
    let ran = nvmetal("id emulated --trace").exits(0);
    let at = |part: &str| ran.err.find(part).unwrap_or_else(|| panic!("no {part:?} in\n{}", ran.err));
    let order = [
        "read   CAP",
        "write  AQA",
        "write  ASQ",
        "write  ACQ",
        "en=yes",
        "rdy=yes",
        "  Identify  cns=Identify Controller",
        "ring   SQ0 tail 1",
        "  Successful Completion",
        "ring   CQ0 head 1",
        "shn=normal",
        "shutdown complete",
        "bus master off",
    ];
    assert!(order.is_sorted_by_key(|part| at(part)), "{}", ran.err);
    assert!(ran.out.starts_with("EMULATED  Identify Controller"), "{}", ran.out);
}

#[test]
fn a_drive_in_software_is_said_to_be_one_by_every_command() {
    for line in ["id emulated", "id ns emulated", "smart emulated", "link emulated", "bench emulated --size 64k"] {
        let ran = nvmetal(line).exits(0);
        assert!(ran.out.starts_with("EMULATED"), "{line}: {}", ran.out);
        let document = nvmetal(&format!("{line} -o json")).exits(0).json();
        assert_eq!(document["emulated"], true, "{line}");
    }
}

#[test]
fn a_machine_without_drives_is_no_error() {
    let document = nvmetal("list -o json").exits(0).json();
    assert_eq!(document["schema"], "nvmetal.list/1");
    assert!(document["drives"].is_array(), "{document}");
}

#[test]
fn two_results_are_compared_and_different_jobs_are_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (one, slow, other) = (file("one.json"), file("slow.json"), file("other.json"));
    let job = "--rw randread --bs 4k --iodepth 32 --runtime 1";
    nvmetal(&format!("bench emulated {job} --save {one}")).exits(0);
    nvmetal(&format!("bench emulated:ideal,link=gen1x1 {job} --save {slow}")).exits(0);
    nvmetal(&format!("bench emulated --rw randread --bs 8k --iodepth 32 --runtime 1 --save {other}")).exits(0);
    nvmetal(&format!("diff {one} {slow}")).exits(0).says(&["2.5 GT/s", "iops 8", "worse"]);
    nvmetal(&format!("diff {one} {slow} --fail-if-worse 10")).exits(3);
    nvmetal(&format!("diff {one} {one} --fail-if-worse 10")).exits(0);
    nvmetal(&format!("diff {one} {other}")).exits(2).says(&["block_bytes"]);
}

#[test]
fn a_run_says_whether_doorbells_were_rung_in_memory() {
    let run = |words: &str| nvmetal(&format!("bench {words} --size 1m -o json")).exits(0).json();
    assert_eq!(run("emulated:ideal,shadow-doorbells=yes --shadow-doorbells")["shadow_doorbells"], true);
    assert_eq!(run("emulated")["shadow_doorbells"], false);
    nvmetal("bench emulated:ideal,shadow-doorbells=yes --shadow-doorbells --size 1m")
        .exits(0)
        .says(&["doorbells in memory"]);
}

#[test]
fn blocks_with_metadata_are_judged_like_any_others() {
    for options in ["metadata=8", "metadata=16,metadata-extended=yes"] {
        let document = nvmetal(&format!("validate emulated:ideal,{options} --quick -o json")).exits(0).json();
        assert_eq!(document["verdict"], "PASS", "{options}");
    }
}

#[test]
fn words_of_fio_are_taken_and_said_to_have_no_effect() {
    nvmetal("bench emulated --name=t --filename=/dev/nvme0n1 --ioengine=libaio --direct=1 --rw=randread --bs=4k --size=1m --group_reporting --time_based=0")
        .exits(0)
        .says(&["--ioengine", "no effect"]);
}

#[test]
fn nothing_is_opened_by_a_dry_run() {
    let ran = nvmetal("bench emulated:ideal,removed@0 --runtime 1 --dry-run").exits(0).says(&["nothing was opened"]);
    assert!(!ran.out.contains("IOPS"), "{}", ran.out);
}

// --------------------------------------------------------------------------------------------------------- wrong input

#[test]
fn wrong_input_is_answered_by_what_is_wrong_and_what_to_do() {
    let table: &[(&str, &[&str])] = &[
        ("", &["Usage"]),
        ("frobnicate", &["frobnicate"]),
        ("validate", &["DEVICE"]),
        ("validate zebra", &["zebra", "nvmetal list"]),
        ("validate 0000:01:00", &["not a PCI address", "0000:03:00.0"]),
        ("validate 99999999:77:00.0", &["99999999:77:00.0"]),
        ("validate emulated:nosuch", &["no emulated model `nosuch`", "ideal"]),
        ("validate emulated:ideal,zebra=3", &["no option `zebra`", "link"]),
        ("validate emulated:ideal,link=gen9x3", &["gen9x3", "gen1x1"]),
        ("bench emulated --runtime 0", &["runtime of 0", "above 0"]),
        ("bench emulated --runtime abc", &["'abc' is not a duration"]),
        ("bench emulated --bs 4x", &["'x' is not a unit"]),
        ("bench emulated --bs 0", &["block size of 0"]),
        ("bench emulated --bs 1000", &["1000", "512", "Give --bs a multiple of 512."]),
        ("bench emulated:ideal,lba=4096 --bs 512", &["512", "4096"]),
        ("bench emulated --iodepth 0", &["at least 1"]),
        ("bench emulated --iodepth 100000", &["100000", "4095"]),
        ("bench emulated --numjobs 1000", &["1000 jobs", "--numjobs at most"]),
        ("bench emulated --offset 2T --size 1m", &["no room"]),
        ("bench emulated --size 2T", &["end behind the drive", "Give --size at most 1000000000000"]),
        ("bench emulated --size 1", &["no room for one I/O of 4096 bytes: it has 0 bytes"]),
        ("validate emulated --expect-write 1000", &["validate only reads"]),
        ("bench emulated --offset 100 --size 1m", &["multiple of 512"]),
        ("bench emulated -n 9 --size 4k", &["namespace 9 is not active", "Active namespaces: 1."]),
        ("bench emulated --iommu nothing", &["nothing", "type1"]),
        ("bench emulated -o hex --size 4k", &["no output form", "human, json"]),
        ("id emulated -o zebra", &["zebra", "json"]),
        ("bind emulated", &["the emulator is in no slot"]),
        ("release emulated", &["the emulator is in no slot"]),
    ];
    for (line, expected) in table {
        let ran = nvmetal(line).exits(2).says(expected);
        assert!(ran.out.is_empty(), "{line}: {}", ran.out);
        assert!(!ran.err.contains("panicked"), "{line}: {}", ran.err);
    }
}

#[test]
fn an_error_is_json_where_json_was_asked_for() {
    for line in ["bench emulated --bs 1000 -o json", "bench emulated --bs zebra -o json", "frobnicate -ojson"] {
        let document = nvmetal(line).exits(2).json();
        assert_eq!(document["error"]["kind"], "usage", "{line}");
        assert!(document["error"]["message"].is_string() && document["error"]["remedy"].is_string(), "{document}");
    }
}

#[test]
fn a_file_that_is_no_result_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("nonsense.json");
    std::fs::write(&path, "[1, 2").expect("a file");
    let path = path.display().to_string();
    let ran = nvmetal(&format!("diff {path} {path}"));
    assert!(matches!(ran.code, Some(1 | 2)), "{ran:?}");
    ran.says(&["nonsense.json"]);
    nvmetal("diff /nonexistent/a /nonexistent/b").exits(1).says(&["/nonexistent/a", "--save"]);
}

#[test]
fn a_drive_that_moves_no_data_says_so() {
    nvmetal("bench emulated:null --size 64k").exits(0).says(&["data moved: no"]);
    assert_eq!(nvmetal("bench emulated:null --size 64k -o json").exits(0).json()["data_moved"], false);
    assert_eq!(nvmetal("bench emulated --size 64k -o json").exits(0).json()["data_moved"], true);
}

#[test]
fn what_the_drive_does_not_have_is_an_exit_code_of_its_own() {
    nvmetal("bench emulated --shadow-doorbells --size 64k").exits(9).says(&["Doorbell Buffer Config"]);
    nvmetal("bench emulated:ideal,shadow-doorbells=yes --shadow-doorbells --size 64k").exits(0);
    nvmetal("bench emulated --sq-in-cmb --size 64k").exits(9).says(&["controller memory buffer", "--sq-in-cmb"]);
    nvmetal("bench emulated:ideal,cmb=1MiB --sq-in-cmb --size 64k").exits(0).says(&["controller memory buffer"]);
}

#[test]
fn raw_bytes_are_what_the_drive_sent_and_can_be_decoded_again() {
    for (line, noun, bytes) in [("smart emulated", "smart", 512), ("id ctrl emulated", "id ctrl", 4096)] {
        let words: Vec<_> = line.split(' ').chain(["-o", "raw"]).collect();
        let raw = command(&words).output().expect("it runs").stdout;
        assert_eq!(raw.len(), bytes, "{line}");
        let folder = tempfile::tempdir().expect("a folder");
        let (page, dump) = (folder.path().join("page"), folder.path().join("dump"));
        std::fs::write(&page, &raw).expect("a file");
        std::fs::write(&dump, nvmetal(&format!("{line} -o hex")).exits(0).out).expect("a file");
        let decoded =
            |file: &std::path::Path| nvmetal(&format!("decode {noun} {} -o json", file.display())).exits(0).json();
        let (from_raw, from_hex) = (decoded(&page), decoded(&dump));
        let key = noun.rsplit(' ').next().unwrap_or_default();
        assert!(from_raw.get(key).is_some(), "{from_raw}");
        // A dump ends with the last field that is worth a row; up to there it is the same.
        let same = |field: &str| assert_eq!(from_raw[key][field], from_hex[key][field], "{line}: {field}");
        ["critical_warning", "data_units_read", "sn", "mn", "oncs", "wctemp"].into_iter().for_each(same);
    }
}

#[test]
fn a_drive_that_vanishes_is_noticed_soon_and_what_was_sent_is_told() {
    let document = nvmetal("validate emulated:ideal,removed@1000 --quick -o json").exits(7).json();
    let read =
        document["commands_sent"].as_array().and_then(|sent| sent.iter().find(|command| command["name"] == "Read"));
    assert!(read.and_then(|read| read["count"].as_u64()) > Some(800), "{}", document["commands_sent"]);
}

// -------------------------------------------------------------------------------------------------- signals and pipes

/// A run in real time that goes on until it is told to end, once it has said that it measures.
fn long_run() -> Child {
    let words = "bench emulated:ideal,clock=real --runtime 600 --status-interval 1 -o json";
    let words: Vec<_> = words.split(' ').collect();
    command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts")
}

/// Sends the signal when the first line of progress has come, and gives what was said until the end.
fn ended_by(signal: rustix::process::Signal) -> Ran {
    let mut child = long_run();
    let mut progress = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    progress.read_line(&mut line).expect("a line of progress");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, signal).expect("the process is there");
    let mut rest = String::new();
    progress.read_to_string(&mut rest).expect("text");
    let output = child.wait_with_output().expect("it ends");
    Ran::new("bench in real time", &output)
}

#[test]
fn an_interrupted_run_ends_with_what_there_is() {
    for (signal, code) in [(rustix::process::Signal::INT, 130), (rustix::process::Signal::TERM, 143)] {
        let document = ended_by(signal).exits(code).json();
        assert_eq!(document["end"], "interrupted", "{document}");
        assert!(document["read"]["ios"].as_u64() > Some(0), "{document}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_defect() {
    let mut child = command(&["id", "emulated"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    Ran::new("id emulated, nobody reads", &output).exits(0);
}

// ------------------------------------------------------------------------------------------------------------ writing

/// The emulated drive's serial number.
fn serial() -> String {
    let document = nvmetal("bench emulated --runtime 0.01 -o json").exits(0).json();
    document["device"]["serial"].as_str().expect("a serial number").to_owned()
}

#[test]
fn a_run_that_writes_needs_both_words_and_the_right_drive() {
    nvmetal("bench emulated --rw randwrite").exits(5).says(&["nothing allows it", "--write --serial SN"]);
    nvmetal("bench emulated --rw randwrite --write").exits(5).says(&["--serial is missing"]);
    nvmetal("bench emulated --rw randwrite --write --serial WRONG").exits(5).says(&["not 'WRONG'", &serial()]);
    for rw in ["write", "rw", "randrw", "trim", "randtrim", "writezeroes"] {
        let refused = nvmetal(&format!("bench emulated --rw {rw} --dry-run -o json")).exits(5).json();
        assert_eq!(refused["error"]["kind"], "refused", "{rw}");
    }
    for rw in ["read", "randread", "verify", "randverify"] {
        nvmetal(&format!("bench emulated --rw {rw} --dry-run")).exits(0);
    }
    let ran = nvmetal(&format!("bench emulated --rw randwrite --runtime 0.1 --write --serial {}", serial()));
    ran.exits(0).says(&["randwrite 4 KiB", "errors none"]);
}

#[test]
fn what_was_written_is_verified_and_the_result_says_so() {
    let line = format!("bench emulated --rw randwrite --verify --size 4m --write --serial {} -o json", serial());
    let document = nvmetal(&line).exits(0).json();
    assert_eq!((document["write"]["ios"].as_u64(), document["verified"]["ios"].as_u64()), (Some(1024), Some(1024)));
    assert_eq!(document["errors"]["miscompares"], 0);
    // Nothing that this run wrote is on a fresh drive, so a verifying read finds every block wrong.
    let ran = nvmetal("bench emulated --rw read --verify --size 64k").exits(8);
    ran.says(&["128 blocks are NOT what was written", "miscompare at LBA 0, byte 0"]);
}

#[test]
fn a_mix_shows_both_directions_and_the_json_has_everything() {
    let serial = serial();
    let line = format!("bench emulated --rw randrw --rwmixread 70 --runtime 1 --write --serial {serial}");
    nvmetal(&line).exits(0).says(&["randrw 70:30 4 KiB", "reads", "writes", "limit", "p99.999"]);
    let document = nvmetal(&format!("{line} -o json")).exits(0).json();
    let (read, write) = (&document["read"], &document["write"]);
    let ios = read["ios"].as_u64().expect("reads") + write["ios"].as_u64().expect("writes");
    let sum = |series: &Value| series.as_array().expect("a series").iter().filter_map(Value::as_u64).sum::<u64>();
    assert_eq!(sum(&document["course"]["ios"]), ios);
    assert_eq!(document["course"]["p99_ns"].as_array().map(Vec::len), Some(10));
    let classes = read["histogram_ns"].as_array().expect("classes");
    let counted: u64 = classes.iter().filter_map(|class| class[2].as_u64()).sum();
    assert_eq!(Some(counted), read["ios"].as_u64());
    for counter in document["smart"].as_array().expect("counters") {
        assert_eq!(counter["others"], 0, "the run's own commands are subtracted: {counter}");
    }
    assert!(document["limit"]["by"].is_string() && document["limit"]["evidence"].is_string());
}

#[test]
fn fios_json_has_what_scripts_read_and_says_that_it_is_emulated() {
    let document = nvmetal("bench emulated --name seq --rw read --bs 128k --runtime 1 -o fio").exits(0).json();
    let ours = nvmetal("bench emulated --name seq --rw read --bs 128k --runtime 1 -o json").exits(0).json();
    let job = &document["jobs"][0];
    assert_eq!((job["jobname"].as_str(), job["error"].as_u64()), (Some("EMULATED seq"), Some(0)));
    assert_eq!(document["nvmetal"]["emulated"], true);
    let read = &job["read"];
    assert_eq!(read["io_bytes"], ours["read"]["bytes"]);
    assert_eq!(read["total_ios"], ours["read"]["ios"]);
    assert_eq!(read["clat_ns"]["percentile"]["99.000000"], ours["read"]["latency_ns"]["p99"]);
    let (bw, bw_bytes) = (read["bw"].as_u64().expect("bw"), read["bw_bytes"].as_u64().expect("bw_bytes"));
    assert_eq!(bw, bw_bytes / 1024);
    assert!((read["iops"].as_f64().expect("iops") - ours["iops"].as_f64().expect("iops")).abs() < 1e-6);
    assert_eq!((read["iops_samples"].as_u64(), job["write"]["total_ios"].as_u64()), (Some(10), Some(0)));
    let shares: f64 = ["latency_ns", "latency_us", "latency_ms"]
        .iter()
        .flat_map(|table| job[table].as_object().expect("a table").values().filter_map(Value::as_f64))
        .sum();
    assert!((shares - 100.0).abs() < 0.01, "{shares}");
}

#[test]
fn csv_has_a_line_for_each_tenth_of_a_second() {
    let ran = nvmetal("bench emulated --runtime 1 -o csv").exits(0);
    let lines: Vec<_> = ran.out.lines().collect();
    assert_eq!(lines.len(), 11, "{}", ran.out);
    let columns = lines[0].split(',').count();
    assert!(lines.iter().all(|line| line.split(',').count() == columns), "{}", ran.out);
    assert!(lines[1].starts_with("true,\"EMU"), "{}", lines[1]);
}

#[test]
fn a_drive_without_the_command_is_told_apart_from_a_mistake() {
    nvmetal("bench emulated --rw compare --rate_iops 0 --runtime 0.1").exits(2).says(&["rate of 0"]);
    nvmetal("bench emulated --bssplit 4k/50 --runtime 0.1").exits(2).says(&["add up to 50 %"]);
    nvmetal("bench emulated --rw randread --random_distribution zipf:1.2 --runtime 0.1").exits(0);
}

/// The first article's two command lines, with `fio` replaced by `nvmetal bench DEVICE`.
#[test]
fn the_pasted_command_lines_of_the_first_article_run_as_they_are() {
    let pasted = "--ioengine=libaio --iodepth=32 --bs=1m --direct=1 --size=10G --numjobs=10 --runtime=0.2 \
                  --group_reporting --filename=/mnt/testfile";
    nvmetal(&format!("bench emulated --name=nvme-testread --rw=read {pasted}")).exits(0).says(&[
        "read 1 MiB, 32 in flight on each of 10 queues",
        "--ioengine",
        "--filename",
        "MiB/s",
    ]);
    nvmetal(&format!("bench emulated --name=nvme-testwrite --rw=write {pasted} --write --serial {}", serial()))
        .exits(0)
        .says(&["write 1 MiB, 32 in flight on each of 10 queues"]);
}
