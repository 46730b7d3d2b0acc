//! A drive that something uses is not taken: exit code 5, the use is named, and the drive stays where it is.
#![forbid(unsafe_code)]

use std::process::Command;

use nvmetal_driver::pci::Sysfs;
use nvmetal_driver::pci::enumerate::NvmeFunction;
use nvmetal_driver::pci::usage::Claim;

use crate::machine::{Drive, Shell, drive, nvmetal, run};

/// Every command that would take the drive refuses, naming WORDS.
#[track_caller]
fn is_refused(drive: &Drive, words: &[&str]) {
    let address = drive.address.as_str();
    let ways: [&[&str]; 5] = [
        &["bind", address],
        &["bench", address, "--runtime", "1"],
        &["validate", "--quick", address, "--via", "vfio"],
        &["smart", address, "--via", "vfio"],
        &["bench", &drive.disk(), "--runtime", "1"],
    ];
    for way in ways {
        nvmetal(way).exits(5).says(&[&["in use", address], words].concat());
        assert_eq!(drive.driver(), "nvme", "{way:?}");
    }
    let error = nvmetal(&["bench", address, "--runtime", "1", "-o", "json"]).exits(5).json();
    assert_eq!((error["error"]["kind"].as_str(), error["exit_code"].as_i64()), (Some("in-use"), Some(5)));
    assert!(error["error"]["remedy"].as_str().is_some_and(|remedy| !remedy.is_empty()));
}

/// The use has ended, and the refusals have left nothing behind: the drive can be had now, and goes back.
#[track_caller]
fn is_free(drive: &Drive) {
    drive.is_the_kernels();
    nvmetal(&["bench", &drive.address, "--size", "64k"]).exits(0);
    drive.is_the_kernels();
}

#[test]
#[ignore = "overwrites the guest's drive"]
fn a_mounted_drive_is_refused_and_stays_mounted() {
    let drive = drive();
    let disk = drive.disk();
    run("mkfs.ext4", &["-q", &disk]);
    run("mkdir", &["-p", "/tmp/mounted"]);
    {
        let _mounted = Shell::holding(&format!("mount -t ext4 {disk} /tmp/mounted"), "umount /tmp/mounted");
        is_refused(&drive, &["mounted at /tmp/mounted"]);
        run("sh", &["-c", "echo alive > /tmp/mounted/file && sync && grep alive /tmp/mounted/file"]);
    }
    is_free(&drive);
}

#[test]
#[ignore = "overwrites the guest's drive"]
fn a_mount_in_another_mount_namespace_is_seen_and_its_process_named() {
    let drive = drive();
    let disk = drive.disk();
    run("mkfs.ext4", &["-q", &disk]);
    run("mkdir", &["-p", "/tmp/elsewhere"]);
    {
        let other = Shell::apart(&format!("mount -t ext4 {disk} /tmp/elsewhere"), "umount /tmp/elsewhere");
        is_refused(&drive, &["mounted at /tmp/elsewhere", &format!("mount namespace of PID {}", other.pid())]);
    }
    is_free(&drive);
}

#[test]
#[ignore = "overwrites the guest's drive"]
fn a_drive_that_the_kernel_swaps_to_is_refused() {
    let drive = drive();
    let disk = drive.disk();
    run("mkswap", &[&disk]);
    {
        let _swap = Shell::holding(&format!("swapon {disk}"), &format!("swapoff {disk}"));
        is_refused(&drive, &["swap"]);
    }
    is_free(&drive);
}

#[test]
#[ignore = "overwrites the guest's drive"]
fn a_drive_under_a_device_mapper_volume_is_refused() {
    let drive = drive();
    let create = format!("dmsetup create held --table '0 65536 linear {} 0'", drive.disk());
    {
        let _volume = Shell::holding(&create, "dmsetup remove held");
        is_refused(&drive, &["dm \"held\""]);
    }
    is_free(&drive);
}

#[test]
#[ignore = "overwrites the guest's drive"]
fn a_member_of_a_raid_is_refused() {
    let drive = drive();
    let disk = drive.disk();
    let create = format!("mdadm --create /dev/md9 --run --force --level=1 --raid-devices=2 {disk} missing 2>/dev/null");
    {
        let _raid = Shell::holding(&create, "mdadm --stop /dev/md9 2>/dev/null");
        is_refused(&drive, &["md md9"]);
    }
    is_free(&drive);
}

#[test]
#[ignore = "needs the guest's drive"]
fn a_process_that_only_has_the_disk_open_is_named() {
    let drive = drive();
    {
        let reader = Shell::holding(&format!("exec 9<{}", drive.disk()), "exec 9<&-");
        is_refused(&drive, &[&format!("open in PID {} (sh)", reader.pid())]);
    }
    is_free(&drive);
}

#[test]
#[ignore = "needs the guest's drive"]
fn a_process_that_only_has_the_controller_open_is_named() {
    let drive = drive();
    let controller = drive.controller();
    {
        let reader = Shell::holding(&format!("exec 9<{controller}"), "exec 9<&-");
        is_refused(&drive, &[&format!("open in PID {} (sh)", reader.pid())]);
    }
    is_free(&drive);
}

/// Whether the disk can be mounted now; it is not mounted afterwards.
fn mounts(disk: &str) -> bool {
    let mounted = Command::new("mount").args(["-t", "ext4", disk, "/tmp/late"]).output().expect("mount runs");
    if mounted.status.success() {
        run("umount", &["/tmp/late"]);
    }
    mounted.status.success()
}

#[test]
#[ignore = "overwrites the guest's drive"]
fn between_the_check_and_the_unbinding_nobody_can_mount() {
    let drive = drive();
    let disk = drive.disk();
    run("mkfs.ext4", &["-q", &disk]);
    run("mkdir", &["-p", "/tmp/late"]);
    assert!(mounts(&disk), "before the check");
    let sysfs = Sysfs::host();
    let function = NvmeFunction::read(&sysfs, drive.address.parse().expect("an address")).expect("a drive");
    let claim = Claim::take(&sysfs, &function).expect("nobody uses it");
    assert!(!mounts(&disk), "from the check on, until it is unbound, the drive is held");
    drop(claim);
    assert!(mounts(&disk), "and no longer");
}

#[test]
#[ignore = "overwrites the guest's drive"]
fn a_drive_that_is_being_mounted_all_the_time_is_taken_whole_or_not_at_all() {
    let drive = drive();
    let disk = drive.disk();
    run("mkfs.ext4", &["-q", &disk]);
    run("mkdir", &["-p", "/tmp/racing"]);
    {
        let mount = format!("mount -t ext4 {disk} /tmp/racing && umount /tmp/racing");
        let race = format!("while [ ! -e /tmp/enough ]; do {mount}; done 2>/dev/null & racer=$!");
        let _racer = Shell::holding(&race, "touch /tmp/enough; wait $racer || true; rm /tmp/enough");
        for _ in 0..10 {
            let done = nvmetal(&["bench", &drive.address, "--size", "64k"]);
            assert!(matches!(done.code, 0 | 5), "{}{}", done.out, done.err);
            assert_eq!(drive.driver(), "nvme");
        }
    }
    is_free(&drive);
    run("mount", &["-t", "ext4", &disk, "/tmp/racing"]);
    run("umount", &["/tmp/racing"]);
}
