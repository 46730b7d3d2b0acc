//! A drive that the kernel keeps, mounted or not, is shown and judged through the kernel's driver, and notes nothing.
#![forbid(unsafe_code)]

use std::fs;

use serde_json::Value;

use crate::machine::{Drive, Shell, drive, interfaces, nvmetal, run};

/// The only commands that go through the kernel: Get Log Page, Identify, Get Features; and reads by its block layer.
const ADMIN: [u64; 3] = [0x02, 0x06, 0x0a];
const READ: u64 = 0x02;

/// Mounts the drive, with a file in it, until this is dropped.
#[must_use]
fn mounted(drive: &Drive) -> Shell {
    let disk = drive.disk();
    run("mkfs.ext4", &["-q", &disk]);
    run("mkdir", &["-p", "/tmp/kept"]);
    Shell::holding(&format!("mount -t ext4 {disk} /tmp/kept; echo alive > /tmp/kept/file; sync"), "umount /tmp/kept")
}

/// It is mounted still, and what is in it can be read from the drive.
#[track_caller]
fn is_still_mounted(drive: &Drive) {
    let mounts = fs::read_to_string("/proc/mounts").expect("the kernel tells its mounts");
    assert!(mounts.lines().any(|line| line.starts_with(&format!("{} /tmp/kept ", drive.disk()))), "{mounts}");
    run(
        "sh",
        &["-c", "echo 3 > /proc/sys/vm/drop_caches; grep -q alive /tmp/kept/file && echo more >> /tmp/kept/file"],
    );
    drive.is_the_kernels();
}

/// A verdict through the kernel: said so, with what it leaves out, and nothing sent that is not harmless.
#[track_caller]
fn is_a_verdict_via_kernel(result: &Value, drive: &Drive) {
    let device = &result["device"];
    assert_eq!((&device["transport"], &device["address"]), (&"kernel".into(), &drive.address.as_str().into()));
    assert_eq!(result["closed"]["given_back"], Value::Null, "nothing was taken");
    assert!(result["kernel"]["not_judged"].as_array().is_some_and(|list| !list.is_empty()), "{:#}", result["kernel"]);
    assert_eq!(result["kernel"]["controller"]["state"], "live");
    for command in result["commands_sent"].as_array().expect("the commands that were sent") {
        let opcode = command["opcode"].as_u64().expect("an opcode");
        let harmless = if command["admin"] == true { ADMIN.contains(&opcode) } else { opcode == READ };
        assert!(harmless, "{command}");
    }
    let checks = result["checks"].as_array().expect("the checks");
    let status = |id: &str| checks.iter().find(|check| check["id"] == id).map(|check| check["status"].clone());
    for id in ["identity", "link.width", "link.speed", "smart.critical_warning", "smart.media_errors", "io.errors"] {
        assert_eq!(status(id), Some("PASS".into()), "{id}: {checks:#?}");
    }
    for reads in ["sequential_read", "random_read", "latency"] {
        assert!(result["runs"][reads]["ios"].as_u64().is_some_and(|ios| ios > 0), "{reads}: {:#}", result["runs"]);
    }
    let changed = result["smart"]["changed"].as_array().expect("what changed in the health log");
    assert!(changed.iter().any(|change| change["field"] == "host_read_commands"), "{changed:#?}");
}

#[test]
#[ignore = "overwrites the guest's drive"]
fn a_mounted_drive_is_judged_through_the_kernel_and_stays_mounted() {
    let drive = drive();
    let _mounted = mounted(&drive);
    // Asked for, or chosen because the drive is in use.
    for way in [&["--via", "kernel"][..], &[]] {
        let done = nvmetal(&[&["validate", "--quick", &drive.address, "-o", "json"], way].concat());
        let result = done.json();
        is_a_verdict_via_kernel(&result, &drive);
        assert_eq!(done.code, if result["verdict"] == "FAIL" { 3 } else { 0 }, "{result:#}");
        assert_eq!(result["kernel"]["why"].is_string(), way.is_empty(), "{:#}", result["kernel"]);
        assert_eq!(done.err.contains("via kernel"), way.is_empty(), "{}", done.err);
        is_still_mounted(&drive);
    }
    nvmetal(&["validate", "--quick", &drive.address, "--via", "vfio"]).exits(5).says(&["in use", "/tmp/kept"]);
    is_still_mounted(&drive);
}

#[test]
#[ignore = "overwrites the guest's drive"]
fn a_mounted_drive_shows_itself_through_the_kernel() {
    let drive = drive();
    let _mounted = mounted(&drive);
    let disk = drive.disk();
    for words in [&["smart"][..], &["id"], &["id", "ns"]] {
        for device in [&drive.address, &disk] {
            let done = nvmetal(&[words, &[device.as_str()]].concat()).exits(0);
            assert!(done.out.contains("via kernel"), "{words:?}: {}", done.out);
        }
    }
    for words in [&["list"][..], &["link", &drive.address]] {
        for way in ["auto", "kernel", "vfio"] {
            let done = nvmetal(&[words, &["--via", way]].concat()).exits(0);
            assert!(done.out.contains(&drive.address), "{words:?}: {}", done.out);
        }
    }
    is_still_mounted(&drive);
}

#[test]
#[ignore = "needs the guest's drive"]
fn a_free_drive_says_the_same_of_itself_through_the_kernel_and_through_every_interface() {
    let drive = drive();
    // The lines after the first, which names the way.
    let fields = |words: &[&str]| {
        let out = nvmetal(words).exits(0).out;
        drive.is_the_kernels();
        out.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    for what in [&["id", "ctrl"][..], &["id", "ns"]] {
        let words = [what, &[drive.address.as_str(), "-o", "hex"]].concat();
        let kernel = fields(&[&words[..], &["--via", "kernel"]].concat());
        assert!(kernel.len() > 10, "{kernel:?}");
        for interface in interfaces() {
            assert_eq!(
                fields(&[&words[..], &["--iommu", &interface]].concat()),
                kernel,
                "{what:?} through {interface}"
            );
        }
    }
}

#[test]
#[ignore = "needs the guest's drive"]
fn a_drive_that_the_kernel_does_not_hold_is_not_reached_through_it() {
    let drive = drive();
    nvmetal(&["bind", &drive.address]).exits(0);
    for words in [&["smart"][..], &["id"], &["validate", "--quick"]] {
        nvmetal(&[words, &[&drive.address, "--via", "kernel"]].concat())
            .exits(6)
            .says(&["vfio-pci", "nvmetal release"]);
        assert_eq!(drive.driver(), "vfio-pci");
    }
    nvmetal(&["release", &drive.address]).exits(0);
    drive.is_the_kernels();
}
