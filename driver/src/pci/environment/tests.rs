//! The public cases of machines that are not ready, on machines made of files.
#![forbid(unsafe_code)]

use super::*;
use crate::pci::PciAddress;
use crate::pci::testing::FakeHost;
use crate::vfio::memlock::Accounting;

const RELEASE: &str = "6.12.38+deb13-amd64";

fn locked_memory(limit_bytes: Option<u64>) -> LockedMemory {
    LockedMemory { accounting: Accounting::Process, limit_bytes, used_bytes: 0, exempt: false }
}

/// A machine on which nothing is missing.
fn ready() -> (FakeHost, PciAddress) {
    let (host, drive) = FakeHost::with_drive();
    host.file("proc/sys/kernel/osrelease", format!("{RELEASE}\n"));
    host.file("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1 quiet\n");
    host.directory("sys/class/iommu/dmar0");
    host.directory("sys/module/vfio_pci");
    host.directory("sys/module/vfio_iommu_type1");
    host.attribute(drive, "reset_method", "flr bus\n");
    host.file("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "64\n");
    host.file("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "60\n");
    host.file("sys/devices/system/cpu/online", "0-3\n");
    (host, drive)
}

fn environment(host: &FakeHost, drive: PciAddress) -> Environment {
    let function = NvmeFunction::read(&host.sysfs, drive).unwrap();
    let question = Question { function: Some(&function), locked_memory: locked_memory(None), needed_bytes: 64 << 20 };
    Environment::read(&host.sysfs, &question)
}

fn get(host: &FakeHost, drive: PciAddress, what: &str) -> Finding {
    environment(host, drive).get(what).unwrap_or_else(|| panic!("no finding {what}")).clone()
}

#[track_caller]
fn is(finding: &Finding, status: Status, text: &str) {
    assert_eq!(finding.status, status, "{finding:?}");
    let remedy = finding.remedy.as_deref().unwrap_or_default();
    assert!(finding.evidence.contains(text) || remedy.contains(text), "{finding:?} does not say {text}");
    assert_eq!(finding.remedy.is_none(), status == Status::Ok, "all but a good finding say what to do");
}

#[test]
fn a_machine_on_which_nothing_is_missing_is_ready_without_a_warning() {
    let (host, drive) = ready();
    let environment = environment(&host, drive);
    assert!(environment.is_ready());
    let bad: Vec<_> = environment.findings.iter().filter(|finding| finding.status != Status::Ok).collect();
    assert!(bad.is_empty(), "{bad:?}");
}

#[test]
fn asking_changes_nothing() {
    let (host, drive) = ready();
    environment(&host, drive);
    assert_eq!(host.kernel.writes(), []);
}

#[test]
fn d11_iommu_off_module_missing_and_group_missing_are_three_findings() {
    let (host, drive) = ready();
    host.remove("sys/class/iommu");
    host.remove("sys/kernel/iommu_groups");
    host.remove("sys/bus/pci/devices/0000:01:00.0/iommu_group");
    is(&get(&host, drive, "iommu"), Status::Blocker, "VT-d");
    assert_eq!(environment(&host, drive).get("group"), None, "one cause, one finding");
    host.file("proc/cmdline", "quiet intel_iommu=off\n");
    is(&get(&host, drive, "iommu"), Status::Blocker, "remove the word");

    let (host, drive) = ready();
    host.remove("sys/module/vfio_iommu_type1");
    is(&get(&host, drive, "module.interface"), Status::Blocker, "modprobe vfio_iommu_type1");
    assert!(!environment(&host, drive).is_ready());

    let (host, drive) = ready();
    host.remove("sys/bus/pci/devices/0000:01:00.0/iommu_group");
    is(&get(&host, drive, "iommu"), Status::Ok, "dmar0");
    is(&get(&host, drive, "group"), Status::Blocker, "in no IOMMU group");
}

#[test]
fn a_module_that_is_not_loaded_but_on_disk_is_fine_whatever_its_file_is_called() {
    let (host, drive) = ready();
    host.remove("sys/bus/pci/drivers/vfio-pci");
    host.remove("sys/module/vfio_pci");
    is(&get(&host, drive, "module.vfio-pci"), Status::Blocker, RELEASE);
    host.file(&format!("lib/modules/{RELEASE}/modules.builtin"), "kernel/drivers/nvme/host/nvme.ko\n");
    let dependencies = "kernel/drivers/vfio/pci/vfio-pci.ko.xz: kernel/drivers/vfio/vfio.ko.xz\n";
    host.file(&format!("lib/modules/{RELEASE}/modules.dep"), dependencies);
    is(&get(&host, drive, "module.vfio-pci"), Status::Ok, "loaded when needed");
}

#[test]
fn either_interface_is_enough() {
    let (host, drive) = ready();
    host.remove("sys/module/vfio_iommu_type1");
    host.character_node("iommu", "10:124");
    is(&get(&host, drive, "module.interface"), Status::Ok, "iommufd loaded");
}

#[test]
fn d01_the_other_members_of_a_group_are_named() {
    let (host, _) = ready();
    let drive = host.function(&["0000:00:02.0", "0000:05:00.0"], "0x010802");
    let network = host.function(&["0000:00:02.0", "0000:05:00.1"], "0x020000");
    host.bind(network, "e1000e");
    host.group(7, &[drive, network]);
    is(&get(&host, drive, "group"), Status::Blocker, "0000:05:00.1 (e1000e)");
}

#[test]
fn d05_who_uses_the_drive_is_said() {
    let (host, drive) = ready();
    host.file("proc/1/mountinfo", "22 1 259:102 / / rw - ext4 /dev/nvme0n1p2 rw\n");
    is(&get(&host, drive, "usage"), Status::Blocker, "namespace 1 -> partition 2 -> mounted at /");
}

#[test]
fn d12_the_driver_of_the_drive_is_what_is_reported() {
    let (host, drive) = ready();
    is(&get(&host, drive, "driver"), Status::Ok, "nvme");
    host.kernel.write_unbind(drive);
    host.bind(drive, "uio_pci_generic");
    is(&get(&host, drive, "driver"), Status::Blocker, "uio_pci_generic");
}

#[test]
fn d10_an_override_that_was_left_is_said() {
    let (host, drive) = ready();
    host.attribute(drive, "driver_override", "vfio-pci\n");
    is(&get(&host, drive, "driver.override"), Status::Warn, "nvmetal release 0000:01:00.0");
}

#[test]
fn d13_too_little_locked_memory_is_a_blocker_with_both_values() {
    let (host, _) = ready();
    let question = Question { function: None, locked_memory: locked_memory(Some(4_194_304)), needed_bytes: 64 << 20 };
    let environment = Environment::read(&host.sysfs, &question);
    let finding = environment.get("memlock").unwrap();
    is(finding, Status::Blocker, "RLIMIT_MEMLOCK is 4 MiB and 64 MiB more");
}

#[test]
fn d21_the_no_iommu_mode_is_recognised() {
    let (host, drive) = ready();
    host.file("sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "N\n");
    assert_eq!(environment(&host, drive).get("iommu.none"), None);
    host.file("sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y\n");
    is(&get(&host, drive, "iommu.none"), Status::Warn, "no-IOMMU mode is on");
    host.file("sys/kernel/iommu_groups/14/name", "vfio-noiommu\n");
    is(&get(&host, drive, "group"), Status::Blocker, "noiommu-14");
}

#[test]
fn d21_a_group_made_up_by_vfio_is_no_iommu() {
    let (host, drive) = ready();
    host.remove("sys/class/iommu");
    host.file("sys/kernel/iommu_groups/14/name", "vfio-noiommu\n");
    is(&get(&host, drive, "iommu"), Status::Blocker, "off");
}

#[test]
fn d27_an_ordinary_user_needs_one_node_and_is_told_which() {
    let (host, drive) = ready();
    host.kernel.write_unbind(drive);
    host.bind(drive, "vfio-pci");
    is(&get(&host, drive, "rights.node"), Status::Ok, "may open");
    let node = host.sysfs.dev("vfio/14");
    host.kernel.with(|behaviour| behaviour.denied.insert(node.clone()));
    let finding = get(&host, drive, "rights.node");
    is(&finding, Status::Blocker, &node.display().to_string());
    assert!(!finding.remedy.unwrap().contains("root"), "one node is no reason for root");
}

#[test]
fn d27_the_other_way_in_will_do() {
    let (host, drive) = ready();
    host.kernel.write_unbind(drive);
    host.bind(drive, "vfio-pci");
    let group = host.sysfs.dev("vfio/14");
    host.kernel.with(|behaviour| behaviour.denied.insert(group));
    host.character_node("iommu", "10:124");
    host.directory("sys/bus/pci/devices/0000:01:00.0/vfio-dev/vfio0");
    is(&get(&host, drive, "rights.node"), Status::Blocker, "vfio/14");
    host.character_node("vfio/devices/vfio0", "511:0");
    is(&get(&host, drive, "rights.node"), Status::Ok, "may open");
}

#[test]
fn d27_binding_needs_the_right_to_write_the_override() {
    let (host, drive) = ready();
    let attribute = host.sysfs.pci_device(drive).join("driver_override");
    host.kernel.with(|behaviour| behaviour.denied.insert(attribute));
    is(&get(&host, drive, "rights.bind"), Status::Blocker, "nvmetal bind 0000:01:00.0");
}

#[test]
fn d03_the_process_that_holds_a_drive_on_vfio_is_named() {
    let (host, drive) = ready();
    host.kernel.write_unbind(drive);
    host.bind(drive, "vfio-pci");
    is(&get(&host, drive, "usage"), Status::Ok, "nobody");
    let group = host.sysfs.dev("vfio/14");
    host.process(4711, "qemu-system-x86", &[&group]);
    is(&get(&host, drive, "usage"), Status::Blocker, "PID 4711 (qemu-system-x86)");
}

#[test]
fn a_drive_that_reads_all_ones_is_gone() {
    let (host, drive) = ready();
    host.attribute(drive, "config", [0xff; 64]);
    is(&get(&host, drive, "presence"), Status::Blocker, "all ones");
}

#[test]
fn reset_and_lockdown_are_told() {
    let (host, drive) = ready();
    is(&get(&host, drive, "reset"), Status::Ok, "flr bus");
    host.attribute(drive, "reset_method", "\n");
    is(&get(&host, drive, "reset"), Status::Warn, "no way to reset");
    host.file("sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
    is(&get(&host, drive, "lockdown"), Status::Ok, "integrity");
}

#[test]
fn an_old_kernel_is_told_that_it_has_groups_only() {
    let (host, drive) = ready();
    host.file("proc/sys/kernel/osrelease", "6.1.0-37-amd64\n");
    is(&get(&host, drive, "kernel"), Status::Ok, "type1");
    host.file("proc/sys/kernel/osrelease", "6.10.0\n");
    assert_eq!(get(&host, drive, "kernel").evidence, "6.10.0");
}

#[test]
fn vmd_and_raid_mode_are_told() {
    let (host, drive) = ready();
    let vmd = host.function(&["0000:00:0e.0"], "0x010400");
    host.attribute(vmd, "vendor", "0x8086\n");
    host.attribute(vmd, "device", "0x467f\n");
    let sata = host.function(&["0000:00:17.0"], "0x010601");
    host.attribute(sata, "remapped_nvme", "1\n");
    is(&get(&host, drive, "vmd"), Status::Warn, "modprobe vmd");
    is(&get(&host, drive, "raid"), Status::Warn, "AHCI");
}

#[test]
fn what_costs_speed_is_a_warning_and_no_blocker() {
    let (host, drive) = ready();
    for core in 0..4 {
        let governor = if core == 0 { "performance\n" } else { "powersave\n" };
        host.file(&format!("sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor"), governor);
    }
    for (state, name, latency) in [("state0", "POLL", 0), ("state1", "C1E", 10), ("state2", "C10", 890)] {
        host.file(&format!("sys/devices/system/cpu/cpu0/cpuidle/{state}/name"), format!("{name}\n"));
        host.file(&format!("sys/devices/system/cpu/cpu0/cpuidle/{state}/latency"), format!("{latency}\n"));
        host.file(&format!("sys/devices/system/cpu/cpu0/cpuidle/{state}/disable"), "0\n");
    }
    host.file("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0\n");
    is(&get(&host, drive, "governor"), Status::Warn, "3 of 4 cores are on powersave");
    is(&get(&host, drive, "cstates"), Status::Warn, "C10, which takes 890 us");
    is(&get(&host, drive, "hugepages"), Status::Warn, "none of 2 MiB");
    assert!(environment(&host, drive).is_ready());
    host.file("sys/devices/system/cpu/cpu0/cpuidle/state2/disable", "1\n");
    is(&get(&host, drive, "cstates"), Status::Ok, "C1E");
    host.file("sys/devices/system/cpu/online", "0\n");
    is(&get(&host, drive, "cores"), Status::Warn, "one core");
}

#[test]
fn the_cores_near_the_drive_are_named() {
    let (host, drive) = ready();
    host.file("sys/devices/system/node/online", "0-1\n");
    host.file("sys/devices/system/node/node1/cpulist", "2-3\n");
    is(&get(&host, drive, "numa"), Status::Warn, "does not tell");
    host.attribute(drive, "numa_node", "1\n");
    is(&get(&host, drive, "numa"), Status::Ok, "cores 2-3");
    host.file("proc/self/status", "Name:\tnvmetal\nCpus_allowed_list:\t0-1\n");
    is(&get(&host, drive, "numa"), Status::Warn, "taskset -c 2-3");
}

#[test]
fn lists_of_cores_are_read_and_nonsense_is_no_list() {
    assert_eq!(speed::cores_of("0-3,8,10-11"), [0, 1, 2, 3, 8, 10, 11]);
    assert_eq!(speed::cores_of("0"), [0]);
    for wrong in ["", "x", "3-1", "0-4294967295", "-", "1-"] {
        assert_eq!(speed::cores_of(wrong), [0; 0], "{wrong}");
    }
}

#[test]
fn findings_are_told_as_json() {
    let (host, drive) = ready();
    let json = serde_json::to_value(environment(&host, drive)).unwrap();
    assert_eq!(json["findings"][1]["what"], "iommu");
    assert_eq!(json["findings"][1]["status"], "ok");
}
