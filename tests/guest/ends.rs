//! However a run ends, the drive goes back to the kernel; after the one end that no program sees, `release` repairs it.
#![forbid(unsafe_code)]

use crate::machine::{Running, drive, drives, interfaces, nvmetal, nvmetal_begin};

/// A run that would take ten minutes, busy with the drive.
fn long_run(drive: &crate::machine::Drive, interface: &str) -> Running {
    let address = drive.address.as_str();
    let mut running =
        nvmetal_begin(&["bench", address, "--runtime", "600", "--numjobs", "2", "--iommu", interface, "-o", "json"]);
    running.is_busy_with(drive);
    running
}

#[test]
#[ignore = "needs the guest's drive"]
fn ctrl_c_ends_a_run_with_what_was_measured_until_then() {
    let drive = drive();
    for interface in interfaces() {
        let running = long_run(&drive, &interface);
        running.signal("INT");
        let result = running.end().exits(130).json();
        drive.is_the_kernels();
        assert_eq!(result["end"], "interrupted");
        assert!(result["read"]["ios"].as_u64().is_some_and(|ios| ios > 0), "{result:#}");
        assert!(result["elapsed_ns"].as_u64().is_some_and(|elapsed| elapsed < 600_000_000_000), "{result:#}");
        assert_eq!(result["closed"]["shutdown_complete"], true);
    }
}

#[test]
#[ignore = "needs the guest's drive"]
fn sigterm_ends_a_run_with_143_and_its_result() {
    let drive = drive();
    for interface in interfaces() {
        let running = long_run(&drive, &interface);
        running.signal("TERM");
        let result = running.end().exits(143).json();
        drive.is_the_kernels();
        assert!(result["read"]["ios"].as_u64().is_some_and(|ios| ios > 0), "{result:#}");
    }
}

#[test]
#[ignore = "needs the guest's drive"]
fn ctrl_c_ends_a_validation_and_gives_the_drive_back() {
    let drive = drive();
    let mut running = nvmetal_begin(&["validate", &drive.address]);
    running.is_busy_with(&drive);
    running.signal("INT");
    running.end().exits(130);
    drive.is_the_kernels();
}

#[test]
#[ignore = "needs the guest's drive"]
fn what_a_killed_run_left_behind_is_repaired_by_release() {
    let drive = drive();
    for interface in interfaces() {
        for which in [&["release", "--all"][..], &["release", &drive.address]] {
            let running = long_run(&drive, &interface);
            running.signal("KILL");
            assert_eq!(running.end().code, 128 + 9);
            assert_eq!(drive.driver(), "vfio-pci", "a killed program gives nothing back");
            let dry = nvmetal(&[which, &["--dry-run"]].concat()).exits(0);
            assert!(dry.out.contains(&drive.address) && drive.driver() == "vfio-pci", "{}", dry.out);
            let done = nvmetal(which).exits(0);
            assert!(done.out.contains(&drive.address), "{}", done.out);
            drive.is_the_kernels();
            nvmetal(which).exits(0);
            drive.is_the_kernels();
        }
    }
}

#[test]
#[ignore = "needs the guest's drive"]
fn a_killed_run_needs_no_release_before_the_next_one() {
    let drive = drive();
    for interface in interfaces() {
        let running = long_run(&drive, &interface);
        running.signal("KILL");
        assert_eq!(running.end().code, 128 + 9);
        let result = nvmetal(&["bench", &drive.address, "--runtime", "1", "-o", "json"]).exits(0).json();
        assert_eq!(result["errors"]["failed"], 0);
        nvmetal(&["release", "--all"]).exits(0);
        drive.is_the_kernels();
    }
}

#[test]
#[ignore = "needs the guest's drive"]
fn release_does_not_take_a_drive_from_a_run_that_is_alive() {
    let drive = drive();
    for interface in interfaces() {
        let running = long_run(&drive, &interface);
        let holder = format!("PID {}", running.pid());
        for which in [&["release", "--all"][..], &["release", &drive.address]] {
            nvmetal(which).exits(5).says(&[&holder, "nvmetal", &drive.address]);
            assert_eq!(drive.driver(), "vfio-pci");
        }
        nvmetal(&["bench", &drive.address, "--runtime", "1"]).exits(5).says(&[&holder]);
        running.signal("INT");
        let result = running.end().exits(130).json();
        assert_eq!(result["errors"]["failed"], 0, "the run was not disturbed");
        drive.is_the_kernels();
    }
}

#[test]
#[ignore = "needs the guest's drives"]
fn bind_leaves_a_drive_with_vfio_until_release_and_both_may_be_repeated() {
    let drives = drives();
    let drive = &drives[0];
    nvmetal(&["bind", &drive.address, "--dry-run"]).exits(0);
    drive.is_the_kernels();
    for _ in 0..2 {
        nvmetal(&["bind", &drive.address]).exits(0);
        assert_eq!(drive.driver(), "vfio-pci");
    }
    nvmetal(&["bench", &drive.address, "--size", "64k"]).exits(0);
    assert_eq!(drive.driver(), "vfio-pci", "bound before the run, so bound after it");
    for _ in 0..2 {
        nvmetal(&["release", &drive.address]).exits(0);
        drive.is_the_kernels();
    }
    drives[1].is_the_kernels();
}
