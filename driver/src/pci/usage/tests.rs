//! The public cases of drives in use, on machines made of files.
#![forbid(unsafe_code)]

use super::*;
use crate::pci::PciAddress;
use crate::pci::testing::{AtPause, FakeHost};

fn function(host: &FakeHost, drive: PciAddress) -> NvmeFunction {
    NvmeFunction::read(&host.sysfs, drive).unwrap()
}

/// What a claim of the drive answers, as a person reads it; empty when it was granted.
fn refusals(host: &FakeHost, drive: PciAddress) -> Vec<String> {
    match Claim::take(&host.sysfs, &function(host, drive)) {
        Ok(claim) => {
            assert_eq!(claim.namespaces(), function(host, drive).controller.unwrap().namespaces.len());
            Vec::new()
        }
        Err(in_use) => {
            let chains = in_use.usage.chains.iter().map(ToString::to_string);
            chains.chain(in_use.usage.doubts.iter().map(ToString::to_string)).collect()
        }
    }
}

fn busy(host: &FakeHost, nodes: &[&str]) {
    for node in nodes {
        let path = host.sysfs.dev(node);
        host.kernel.with(|behaviour| behaviour.busy.insert(path));
    }
}

#[test]
fn a_drive_that_nobody_uses_is_held() {
    let (host, drive) = FakeHost::with_drive();
    host.namespace(drive, "nvme0", 2, &[]);
    assert_eq!(refusals(&host, drive), [""; 0]);
    assert!(Usage::survey(&host.sysfs, &function(&host, drive)).is_free());
}

#[test]
fn d05_a_mounted_partition_refuses_the_whole_drive() {
    let (host, drive) = FakeHost::with_drive();
    host.file("proc/1/mountinfo", "22 1 259:102 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n");
    busy(&host, &["nvme0n1", "nvme0n1p2"]);
    assert_eq!(refusals(&host, drive), ["namespace 1 -> partition 2 -> mounted at /"]);
}

#[test]
fn e14_the_whole_disk_is_refused_although_only_a_partition_is_mounted() {
    let (host, drive) = FakeHost::with_drive();
    host.file("proc/1/mountinfo", "22 1 259:101 / /boot/my\\040efi rw - vfat /dev/nvme0n1p1 rw\n");
    // Even if the kernel's answer to the exclusive open were lost, the mount is found.
    assert_eq!(refusals(&host, drive), ["namespace 1 -> partition 1 -> mounted at /boot/my efi"]);
}

#[test]
fn d05_the_chain_goes_through_lvm_on_luks_to_the_mount() {
    let (host, drive) = FakeHost::with_drive();
    host.block("sys/devices/virtual/block/dm-0", "dm-0", "253:0", 2048);
    host.file("sys/devices/virtual/block/dm-0/dm/name", "luks-cellar\n");
    host.block("sys/devices/virtual/block/dm-1", "dm-1", "253:1", 1024);
    host.file("sys/devices/virtual/block/dm-1/dm/name", "vg-root\n");
    host.block("sys/devices/virtual/block/dm-2", "dm-2", "253:2", 1024);
    host.file("sys/devices/virtual/block/dm-2/dm/name", "vg-spare\n");
    host.hold("nvme0n1p2", "dm-0");
    host.hold("dm-0", "dm-1");
    host.hold("dm-0", "dm-2");
    host.file("proc/1/mountinfo", "22 1 253:1 / / rw - ext4 /dev/mapper/vg-root rw\n");
    busy(&host, &["nvme0n1", "nvme0n1p2"]);
    assert_eq!(
        refusals(&host, drive),
        [
            "namespace 1 -> partition 2 -> dm \"luks-cellar\" -> dm \"vg-root\" -> mounted at /",
            "namespace 1 -> partition 2 -> dm \"luks-cellar\" -> dm \"vg-spare\"",
        ]
    );
}

#[test]
fn d05_a_member_of_a_raid_with_a_mounted_partition_is_in_use() {
    let (host, drive) = FakeHost::with_drive();
    host.block("sys/devices/virtual/block/md127", "md127", "9:127", 2048);
    host.directory("sys/devices/virtual/block/md127/md");
    host.block("sys/devices/virtual/block/md127/md127p1", "md127p1", "259:30", 1024);
    host.file("sys/devices/virtual/block/md127/md127p1/partition", "1\n");
    host.hold("nvme0n1", "md127");
    host.file("proc/1/mountinfo", "40 22 259:30 / /srv rw - xfs /dev/md127p1 rw\n");
    busy(&host, &["nvme0n1"]);
    assert_eq!(refusals(&host, drive), ["namespace 1 -> md md127 -> partition 1 -> mounted at /srv"]);
}

#[test]
fn d05_swap_is_a_use_on_a_partition_and_on_a_volume() {
    let (host, drive) = FakeHost::with_drive();
    host.block("sys/devices/virtual/block/dm-0", "dm-0", "253:0", 2048);
    host.file("sys/devices/virtual/block/dm-0/dm/name", "vg-swap\n");
    host.hold("nvme0n1p2", "dm-0");
    host.link("dev/mapper/vg-swap", "../dm-0");
    host.file(
        "proc/swaps",
        "Filename Type Size Used Priority\n/dev/nvme0n1p1 partition 1024 0 -2\n/dev/mapper/vg-swap partition 1 0 -3\n",
    );
    busy(&host, &["nvme0n1", "nvme0n1p1", "nvme0n1p2"]);
    assert_eq!(
        refusals(&host, drive),
        ["namespace 1 -> partition 1 -> swap", "namespace 1 -> partition 2 -> dm \"vg-swap\" -> swap"]
    );
}

#[test]
fn d05_zfs_names_itself_nowhere_and_is_still_refused() {
    let (host, drive) = FakeHost::with_drive();
    busy(&host, &["nvme0n1", "nvme0n1p1"]);
    let refusals = refusals(&host, drive);
    assert_eq!(refusals.len(), 1);
    assert!(refusals[0].starts_with("namespace 1 -> partition 1 -> claimed within the kernel"), "{}", refusals[0]);
}

#[test]
fn a_claim_of_the_whole_disk_is_not_blamed_on_its_partitions() {
    let (host, drive) = FakeHost::with_drive();
    busy(&host, &["nvme0n1", "nvme0n1p1", "nvme0n1p2"]);
    let refusals = refusals(&host, drive);
    assert_eq!(refusals.len(), 1);
    assert!(refusals[0].starts_with("namespace 1 -> claimed within the kernel"), "{}", refusals[0]);
}

#[test]
fn d05_every_member_of_a_btrfs_is_in_use_also_the_one_that_mountinfo_does_not_name() {
    let (host, drive) = FakeHost::with_drive();
    host.directory("sys/fs/btrfs/features");
    host.link("sys/fs/btrfs/0b1c2d3e/devices/nvme0n1p1", "../../../../class/block/nvme0n1p1");
    host.file("proc/1/mountinfo", "41 22 0:35 /@ /data rw - btrfs /dev/nvme0n1p2 rw\n");
    busy(&host, &["nvme0n1", "nvme0n1p1", "nvme0n1p2"]);
    assert_eq!(
        refusals(&host, drive),
        ["namespace 1 -> partition 1 -> btrfs 0b1c2d3e", "namespace 1 -> partition 2 -> mounted at /data"]
    );
}

#[test]
fn d05_a_mount_in_another_mount_namespace_is_found_and_says_whose() {
    let (host, drive) = FakeHost::with_drive();
    host.link("proc/self/ns/mnt", "mnt:[4026531841]");
    host.file("proc/self/mountinfo", "");
    host.link("proc/1/ns/mnt", "mnt:[4026531841]");
    host.process(812, "containerd-shim", &[]);
    host.link("proc/812/ns/mnt", "mnt:[4026532200]");
    host.file("proc/812/mountinfo", "99 98 259:101 / /data rw - ext4 /dev/nvme0n1p1 rw\n");
    assert_eq!(
        refusals(&host, drive),
        ["namespace 1 -> partition 1 -> mounted at /data in the mount namespace of PID 812 (containerd-shim)"]
    );
}

#[test]
fn an_open_handle_on_any_node_of_the_drive_refuses_it() {
    for (node, chain) in [
        ("nvme0", "controller nvme0"),
        ("ng0n1", "namespace 1"),
        ("nvme0n1", "namespace 1"),
        ("nvme0n1p2", "namespace 1 -> partition 2"),
    ] {
        let (host, drive) = FakeHost::with_drive();
        let path = host.sysfs.dev(node);
        host.process(815, "dd", &[&path, &path]);
        let expected = format!("{chain} -> {} open in PID 815 (dd)", path.display());
        assert_eq!(refusals(&host, drive), [expected], "{node}");
    }
}

#[test]
fn a_namespace_without_a_block_device_is_in_use_through_its_generic_node() {
    let (host, drive) = FakeHost::with_drive();
    host.file("sys/class/nvme/nvme0/ng0n9/dev", "241:9\n");
    host.link("sys/class/nvme-generic/ng0n9", host.path("sys/class/nvme/nvme0/ng0n9"));
    let node = host.character_node("ng0n9", "241:9");
    assert_eq!(refusals(&host, drive), [""; 0]);
    host.process(815, "zns-tool", &[&node]);
    let expected = format!("namespace ng0n9 -> {} open in PID 815 (zns-tool)", node.display());
    assert_eq!(refusals(&host, drive), [expected]);
}

#[test]
fn an_open_handle_under_another_name_is_found_by_its_number() {
    let (host, drive) = FakeHost::with_drive();
    let other = host.block_node("renamed-disk", "259:100");
    host.process(815, "qemu", &[&other]);
    let refusals = refusals(&host, drive);
    assert!(refusals[0].contains("open in PID 815 (qemu)"), "{refusals:?}");
}

#[test]
fn a_character_device_of_the_same_number_is_another_device() {
    let (host, drive) = FakeHost::with_drive();
    let other = host.character_node("other", "259:100");
    host.process(815, "other", &[&other]);
    assert_eq!(refusals(&host, drive), [""; 0]);
}

#[test]
fn a_loop_device_and_an_nvme_target_are_uses_although_no_process_has_the_drive_open() {
    let (host, drive) = FakeHost::with_drive();
    host.block("sys/devices/virtual/block/loop3", "loop3", "7:3", 2048);
    host.file("sys/devices/virtual/block/loop3/loop/backing_file", "/dev/nvme0n1p1\n");
    let target = "sys/kernel/config/nvmet/subsystems/nqn.test";
    host.directory("sys/module/nvmet");
    host.file(&format!("{target}/namespaces/1/device_path"), "/dev/nvme0n1\n");
    host.file(&format!("{target}/namespaces/1/enable"), "1\n");
    host.file(&format!("{target}/namespaces/2/device_path"), "/dev/nvme0n1p2\n");
    host.file(&format!("{target}/namespaces/2/enable"), "0\n");
    host.file(&format!("{target}/passthru/device_path"), "/dev/nvme0\n");
    host.file(&format!("{target}/passthru/enable"), "1\n");
    assert_eq!(
        refusals(&host, drive),
        [
            "controller nvme0 -> NVMe target nqn.test (passthrough)",
            "namespace 1 -> NVMe target nqn.test namespace 1",
            "namespace 1 -> partition 1 -> loop device loop3",
        ]
    );
}

#[test]
fn a_target_whose_configuration_cannot_be_seen_is_a_doubt() {
    let (host, drive) = FakeHost::with_drive();
    host.directory("sys/module/nvmet");
    let refusals = refusals(&host, drive);
    assert!(refusals[0].contains("configfs"), "{refusals:?}");
}

#[test]
fn d27_a_missing_right_is_a_doubt_and_refuses() {
    let (host, drive) = FakeHost::with_drive();
    let node = host.sysfs.dev("nvme0n1");
    host.kernel.with(|behaviour| behaviour.denied.insert(node.clone()));
    let in_use = Claim::take(&host.sysfs, &function(&host, drive)).unwrap_err();
    assert!(in_use.usage.doubts[0].is_permission());
    let text = in_use.to_string();
    assert!(text.contains("cannot be told") && text.contains(&node.display().to_string()), "{text}");
}

#[test]
fn a_machine_whose_first_process_is_hidden_is_a_doubt() {
    let (host, drive) = FakeHost::with_drive();
    host.remove("proc/1");
    assert_eq!(refusals(&host, drive), ["1 process(es) of other users could not be looked into; run as root"]);
}

#[test]
fn a_container_with_processes_of_its_own_is_a_doubt() {
    let (host, drive) = FakeHost::with_drive();
    host.link("proc/self/ns/pid", "pid:[4026532500]");
    let text = refusals(&host, drive);
    assert!(text[0].contains("container"), "{text:?}");
    host.remove("proc/self/ns/pid");
    host.link("proc/self/ns/pid", "pid:[4026531836]");
    assert_eq!(refusals(&host, drive), [""; 0]);
}

#[test]
fn a_node_that_is_not_the_device_it_is_named_for_is_a_doubt() {
    let (host, drive) = FakeHost::with_drive();
    host.block_node("nvme0n1", "8:0");
    let refusals = refusals(&host, drive);
    assert!(refusals[0].ends_with("is not the device that it is named for"), "{refusals:?}");
}

#[test]
fn a_missing_node_is_a_doubt() {
    let (host, drive) = FakeHost::with_drive();
    host.remove("dev/nvme0n1");
    let refusals = refusals(&host, drive);
    assert!(refusals[0].contains("there is no such node"), "{refusals:?}");
}

#[test]
fn a_controller_in_a_reset_is_a_doubt_and_a_dead_one_is_not() {
    let (host, drive) = FakeHost::with_drive();
    host.file("sys/class/nvme/nvme0/state", "resetting\n");
    assert_eq!(refusals(&host, drive), ["the kernel's controller is resetting; wait and try again"]);
    host.file("sys/class/nvme/nvme0/state", "dead\n");
    assert_eq!(refusals(&host, drive), [""; 0]);
}

#[test]
fn layers_that_hold_each_other_end_in_a_doubt() {
    let (host, drive) = FakeHost::with_drive();
    host.block("sys/devices/virtual/block/dm-0", "dm-0", "253:0", 2048);
    host.block("sys/devices/virtual/block/dm-1", "dm-1", "253:1", 2048);
    host.hold("nvme0n1", "dm-0");
    host.hold("dm-0", "dm-1");
    host.hold("dm-1", "dm-0");
    let refusals = refusals(&host, drive);
    assert!(refusals.iter().any(|text| text.contains("do not end")), "{refusals:?}");
}

#[test]
fn udev_is_waited_for() {
    let (host, drive) = FakeHost::with_drive();
    let node = host.sysfs.dev("nvme0n1");
    host.process(77, "(udev-worker)", &[&node]);
    let descriptors = host.path("proc/77/fd");
    host.kernel.with(|behaviour| {
        behaviour.at_pause = Some(AtPause(Box::new(move || std::fs::remove_dir_all(descriptors).unwrap())));
    });
    assert_eq!(refusals(&host, drive), [""; 0]);
}

#[test]
fn udev_that_does_not_let_go_refuses_in_the_end() {
    let (host, drive) = FakeHost::with_drive();
    let node = host.sysfs.dev("nvme0n1");
    host.process(77, "systemd-udevd", &[&node]);
    assert!(refusals(&host, drive)[0].contains("systemd-udevd"));
}

#[test]
fn a_drive_without_a_kernel_driver_has_no_users_here() {
    let (host, drive) = FakeHost::with_drive();
    host.kernel.write_unbind(drive);
    let function = function(&host, drive);
    assert_eq!(function.controller, None);
    assert_eq!(Claim::take(&host.sysfs, &function).unwrap().namespaces(), 0);
}

#[test]
fn the_answer_names_the_drive_and_every_chain() {
    let (host, drive) = FakeHost::with_drive();
    host.file("proc/1/mountinfo", "22 1 259:102 / / rw - ext4 /dev/nvme0n1p2 rw\n");
    let in_use = Claim::take(&host.sysfs, &function(&host, drive)).unwrap_err();
    assert_eq!(in_use.to_string(), "0000:01:00.0 is in use: namespace 1 -> partition 2 -> mounted at /");
    let json = serde_json::to_value(&in_use.usage).unwrap();
    assert_eq!(json["chains"][0]["layers"][1]["layer"], "partition");
    assert_eq!(json["chains"][0]["user"]["at"], "/");
}

#[test]
fn mountinfo_lines_are_read_by_their_fields() {
    let line = b"36 35 98:0 /mnt1 /mnt\\0112 rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue";
    let mount = mounts::parse_mount(line).unwrap();
    assert_eq!(mount.device.unwrap().to_string(), "98:0");
    assert_eq!(
        (mount.at.as_str(), mount.filesystem.as_str(), mount.source.as_str()),
        ("/mnt\\x092", "ext3", "/dev/root")
    );
    for broken in ["", "36 35 98:0", "36 35 98:0 / / rw -", "1 - 2"] {
        assert_eq!(mounts::parse_mount(broken.as_bytes()), None, "{broken}");
    }
    assert_eq!(mounts::unescaped(b"/a\\134b\\040"), "/a\\b ");
    assert_eq!(mounts::unescaped(b"\\77\\"), "\\77\\");
}

proptest::proptest! {
    #[test]
    fn no_mountinfo_makes_the_parser_panic(line: Vec<u8>) {
        let _ = mounts::parse_mount(&line);
        let _ = mounts::unescaped(&line);
    }
}
