//! The drive is seen, judged and measured through every interface, and is afterwards as it was before.
#![forbid(unsafe_code)]

use serde_json::Value;

use crate::machine::{Drive, Running, drive, drives, interfaces, nvmetal, nvmetal_begin, run};

/// The opcodes that a run without `--write` may send: admin commands, then NVM commands.
const READING_ADMIN: [u64; 10] = [0x00, 0x01, 0x02, 0x04, 0x05, 0x06, 0x08, 0x09, 0x0a, 0x0c];
const READING_IO: [u64; 2] = [0x02, 0x0c];

/// A result of DRIVE through INTERFACE: nothing failed, nothing that writes was sent, the drive was shut down in order.
#[track_caller]
fn is_good(result: &Value, drive: &Drive, interface: &str) {
    let device = &result["device"];
    assert_eq!((&device["address"], &result["emulated"]), (&drive.address.as_str().into(), &false.into()));
    assert_eq!((&device["transport"], &device["transport_detail"]), (&"vfio".into(), &interface.into()));
    let sent = result["commands_sent"].as_array().expect("the commands that were sent");
    assert!(sent.len() > 5, "{sent:?}");
    for command in sent {
        let opcode = command["opcode"].as_u64().expect("an opcode");
        let allowed = if command["admin"] == true { &READING_ADMIN[..] } else { &READING_IO };
        assert!(allowed.contains(&opcode), "{command}");
    }
    assert_eq!(result["closed"]["shutdown_complete"], true);
    assert_eq!(result["closed"]["given_back"]["driver"], "nvme");
    drive.is_the_kernels();
}

#[track_caller]
fn is_measured(result: &Value) {
    assert_eq!(result["end"], "runtime");
    assert_eq!((&result["errors"]["failed"], &result["errors"]["recovered"]), (&0.into(), &0.into()));
    assert!(result["read"]["ios"].as_u64().is_some_and(|ios| ios > 0), "{result:#}");
    assert_eq!(result["write"]["ios"], 0);
}

#[test]
#[ignore = "needs the guest's drives"]
fn list_shows_every_drive_and_who_has_it() {
    let drives = drives();
    for (held_by, change) in [("nvme", None), ("vfio-pci", Some("bind")), ("nvme", Some("release"))] {
        if let Some(change) = change {
            nvmetal(&[change, &drives[0].address]).exits(0);
        }
        let text = nvmetal(&["list"]).exits(0).out;
        let json = nvmetal(&["list", "-o", "json"]).exits(0).json();
        let listed = json["drives"].as_array().expect("the drives");
        assert_eq!(listed.len(), drives.len(), "{json:#}");
        for (number, drive) in drives.iter().enumerate() {
            assert!(text.contains(&drive.address), "{text}");
            let entry = listed.iter().find(|entry| entry["address"] == drive.address.as_str()).expect("it is listed");
            assert_eq!(entry["driver"], if number == 0 { held_by } else { "nvme" });
        }
    }
    drives.iter().for_each(Drive::is_the_kernels);
}

#[test]
#[ignore = "needs the guest's drive"]
fn link_names_the_hop_to_the_root_port_and_leaves_the_drive_alone() {
    let drive = drive();
    let text = nvmetal(&["link", &drive.address]).exits(0).out;
    assert!(text.contains(&drive.address) && text.contains("GT/s"), "{text}");
    nvmetal(&["link", &drive.address, "-o", "json"]).exits(0).json();
    drive.is_the_kernels();
}

/// Speeds and latencies of a guest say nothing and are not looked at here; all the rest of QEMU's drive is known.
#[test]
#[ignore = "needs the guest's drive"]
fn validate_judges_through_every_interface_and_gives_the_drive_back() {
    let drive = drive();
    for interface in interfaces() {
        let done = nvmetal(&["validate", "--quick", &drive.address, "--iommu", &interface, "-o", "json"]);
        let result = done.json();
        is_good(&result, &drive, &interface);
        let checks = result["checks"].as_array().expect("the checks");
        let status = |id: &str| checks.iter().find(|check| check["id"] == id).map(|check| check["status"].clone());
        for id in ["identity", "link.width", "link.speed", "smart.critical_warning", "smart.media_errors", "io.errors"]
        {
            assert_eq!(status(id), Some("PASS".into()), "{id}: {checks:#?}");
        }
        let failed = checks.iter().filter(|check| check["status"] == "FAIL").count();
        assert_eq!(done.code, if failed > 0 { 3 } else { 0 }, "{checks:#?}");
        for check in checks {
            for part in ["id", "status", "evidence", "limit", "basis"] {
                assert!(check[part].is_string(), "{part} of {check}");
            }
        }
    }
}

#[test]
#[ignore = "needs the guest's drives"]
fn bench_reads_blocks_of_every_size_and_waits_in_every_way_on_one_and_on_many_queues() {
    for drive in drives() {
        for interface in interfaces() {
            for (block, queues, wait) in
                [("4k", "1", "poll"), ("4k", "3", "interrupt"), ("64k", "2", "hybrid"), ("128k", "1", "interrupt")]
            {
                let mut words = vec!["bench", &drive.address, "--runtime", "1", "--iommu", &interface, "-o", "json"];
                words.extend(["--bs", block, "--numjobs", queues, "--iodepth", "8"]);
                words.extend(["--wait", wait]);
                let result = nvmetal(&words).exits(0).json();
                is_good(&result, &drive, &interface);
                is_measured(&result);
                assert_eq!(result["job"]["numjobs"].to_string(), queues);
                assert_eq!(result["waiting"], wait);
                assert!(result["processor"]["percent"].as_f64().is_some_and(|percent| percent > 0.0), "{result:#}");
            }
        }
    }
}

/// QEMU's controller looks at the shadows instead of its registers once it has been told of them.
#[test]
#[ignore = "needs the guest's drive"]
fn shadow_doorbells_serve_every_way_of_waiting_on_one_and_on_two_queues() {
    const DOORBELL_BUFFER_CONFIG: u64 = 0x7c;
    let drive = drive();
    for interface in interfaces() {
        for (wait, queues) in [("hybrid", "1"), ("hybrid", "2"), ("interrupt", "1"), ("poll", "2")] {
            let mut words = vec!["bench", &drive.address, "--runtime", "1", "--iommu", &interface, "-o", "json"];
            words.extend(["--shadow-doorbells", "--wait", wait, "--numjobs", queues, "--iodepth", "8"]);
            let result = nvmetal(&words).exits(0).json();
            is_measured(&result);
            assert_eq!((&result["shadow_doorbells"], &result["waiting"]), (&true.into(), &wait.into()));
            let sent = result["commands_sent"].as_array().expect("the commands that were sent");
            assert!(sent.iter().any(|sent| sent["admin"] == true && sent["opcode"] == DOORBELL_BUFFER_CONFIG));
            assert_eq!(result["closed"]["shutdown_complete"], true);
            drive.is_the_kernels();
        }
    }
}

/// The second drive has a controller memory buffer in a BAR of its own.
#[test]
#[ignore = "needs the guest's drives"]
fn submission_queues_lie_in_the_drives_memory_where_it_has_some() {
    let drives = drives();
    for interface in interfaces() {
        for (wait, queues) in [("poll", "1"), ("interrupt", "2")] {
            let mut words = vec!["bench", &drives[1].address, "--runtime", "1", "--iommu", &interface, "-o", "json"];
            words.extend(["--sq-in-cmb", "--wait", wait, "--numjobs", queues, "--iodepth", "8"]);
            let result = nvmetal(&words).exits(0).json();
            is_good(&result, &drives[1], &interface);
            is_measured(&result);
            assert_eq!(result["sq_in_cmb"], true);
        }
    }
    let refused = nvmetal(&["bench", &drives[0].address, "--runtime", "1", "--sq-in-cmb"]).exits(9);
    assert!(refused.err.contains("controller memory buffer"), "{}", refused.err);
    drives.iter().for_each(Drive::is_the_kernels);
}

#[test]
#[ignore = "needs the guest's drives"]
fn an_io_above_the_largest_transfer_is_split_and_the_result_says_so() {
    let drives = drives();
    let drive = &drives[1];
    let words = ["bench", &drive.address, "--rw", "read", "--bs", "128k", "--size", "8M", "-o", "json"];
    let result = nvmetal(&words).exits(0).json();
    assert_eq!(result["device"]["namespace"]["lba_bytes"], 4096);
    assert_eq!((&result["read"]["ios"], &result["commands_per_io"]), (&64.into(), &8.into()), "16 KiB at most");
    let reads = result["commands_sent"].as_array().expect("the commands").iter().find(|sent| sent["name"] == "Read");
    assert!(reads.is_some_and(|reads| reads["count"].as_u64() >= Some(64 * 8)), "{reads:?}");
    drive.is_the_kernels();
}

#[test]
#[ignore = "needs the guest's drives"]
fn two_drives_are_measured_at_the_same_time() {
    let drives = drives();
    let begin = |drive: &Drive| nvmetal_begin(&["bench", &drive.address, "--runtime", "5", "-o", "json"]);
    let running: Vec<Running> = drives.iter().map(begin).collect();
    for (running, drive) in running.into_iter().zip(&drives) {
        let result = running.end().exits(0).json();
        assert_eq!(result["device"]["address"], drive.address.as_str());
        is_measured(&result);
    }
    drives.iter().for_each(Drive::is_the_kernels);
}

/// No command shows a block's bytes; that what the kernel wrote arrives is told by the sampling of written places.
#[test]
#[ignore = "overwrites the guest's drives"]
fn what_the_kernel_wrote_is_seen_and_what_it_wrote_stays() {
    let drives = drives();
    let drive = &drives[1];
    let bench = || nvmetal(&["bench", &drive.address, "--runtime", "1", "-o", "json"]).exits(0).json();
    let written = |result: &Value| result["written"]["state"].as_str().expect("a state").to_owned();

    let wipe = format!("dd if=/dev/zero of={} bs=1M count=64 conv=fsync 2>/dev/null", drive.disk());
    run("sh", &["-c", &wipe]);
    assert_eq!(written(&bench()), "never");
    let fill = format!("dd if=/dev/urandom of={} bs=1M count=64 conv=fsync 2>/dev/null", drive.disk());
    run("sh", &["-c", &fill]);
    let before = drive.checksum(64);
    let result = bench();
    assert_eq!(written(&result), "yes", "{:#}", result["written"]);
    assert_eq!(drive.checksum(64), before, "a run only reads");
    drive.is_the_kernels();
}

#[test]
#[ignore = "needs the guest's drive"]
fn what_the_drive_says_of_itself_is_shown_through_every_interface() {
    let drive = drive();
    for interface in interfaces() {
        for (words, field) in
            [(&["id"][..], "Model Number"), (&["id", "ns"], "Namespace Size"), (&["smart"], "Composite Temperature")]
        {
            let words = [words, &[drive.address.as_str(), "--iommu", &interface]].concat();
            let text = nvmetal(&words).exits(0).out;
            assert!(text.contains(field) && text.contains(&drive.address), "{words:?}: {text}");
            drive.is_the_kernels();
            let json = nvmetal(&[&words[..], &["-o", "json"]].concat()).exits(0).json();
            let device = &json["device"];
            assert_eq!(
                (&device["transport"], &device["transport_detail"]),
                (&"vfio".into(), &interface.as_str().into())
            );
            drive.is_the_kernels();
        }
    }
}

#[test]
#[ignore = "needs the guest's drive"]
fn link_tells_both_ends_their_settings_and_both_ceilings() {
    let drive = drive();
    let json = nvmetal(&["link", &drive.address, "-o", "json"]).exits(0).json();
    let hop = &json["path"]["hops"][0];
    assert_eq!(hop["lower"]["address"], drive.address.as_str());
    for end in [&hop["lower"], &hop["upper"]] {
        for part in
            ["speed_now", "width_now", "speed_able", "width_able", "payload_bytes", "read_request_bytes", "aspm"]
        {
            assert!(!end[part].is_null(), "{part} of {end:#}");
        }
    }
    assert_eq!(json["narrowest_hop"], 0);
    for direction in ["read_mb_s", "write_mb_s"] {
        assert!(json["ceiling"][direction].as_f64().is_some_and(|rate| rate > 100.0), "{:#}", json["ceiling"]);
    }
    drive.is_the_kernels();
}

#[test]
#[ignore = "needs the guest's drive"]
fn doctor_finds_this_guest_ready_and_leaves_the_drive_alone() {
    let drive = drive();
    let done = nvmetal(&["doctor", &drive.address]).exits(0);
    assert!(done.out.contains(&drive.address), "{}", done.out);
    nvmetal(&["doctor", &drive.address, "-o", "json"]).exits(0).json();
    drive.is_the_kernels();
}

#[test]
#[ignore = "needs the guest's drive"]
fn two_saved_runs_of_one_drive_are_compared() {
    let drive = drive();
    for file in ["/tmp/one.json", "/tmp/two.json"] {
        nvmetal(&["bench", &drive.address, "--runtime", "1", "--save", file]).exits(0);
    }
    drive.is_the_kernels();
    let done = nvmetal(&["diff", "/tmp/one.json", "/tmp/two.json"]).exits(0);
    assert!(done.out.contains("iops"), "{}", done.out);
    nvmetal(&["bench", &drive.address, "--runtime", "1", "--bs", "8k", "--save", "/tmp/two.json"]).exits(0);
    nvmetal(&["diff", "/tmp/one.json", "/tmp/two.json"]).exits(2).says(&["8192"]);
    drive.is_the_kernels();
}
