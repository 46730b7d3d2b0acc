//! The public cases of binding, against a kernel that acts on plain files.
#![forbid(unsafe_code)]

use super::*;
use crate::pci::testing::{AtPause, FakeHost};
use crate::pci::usage::User;

/// Long enough for a write to a file on any machine, and not waited for unless something is wrong.
const OPTIONS: BindOptions = BindOptions { deadline: Duration::from_secs(600), allow_no_iommu: false };
/// For writes that never return: any time will do.
const SHORT: BindOptions = BindOptions { deadline: Duration::from_millis(10), allow_no_iommu: false };

fn take(host: &FakeHost, drive: PciAddress) -> Result<Handover, BindError> {
    Handover::take(&host.sysfs, drive, OPTIONS)
}

fn attribute(host: &FakeHost, drive: PciAddress, name: &str) -> String {
    std::fs::read_to_string(host.sysfs.pci_device(drive).join(name)).unwrap()
}

fn write(path: &str, value: &str) -> (String, String) {
    (path.to_owned(), value.to_owned())
}

fn device(attribute: &str) -> String {
    format!("sys/bus/pci/devices/0000:01:00.0/{attribute}")
}

#[test]
fn a_free_drive_goes_to_vfio_and_back_by_override_and_probe_alone() {
    let (host, drive) = FakeHost::with_drive();
    let handover = take(&host, drive).unwrap();
    assert!(handover.is_taken());
    assert_eq!(host.driver(drive).as_deref(), Some("vfio-pci"));
    let given = handover.give_back().unwrap().unwrap();
    assert_eq!(host.driver(drive).as_deref(), Some("nvme"));
    assert_eq!((given.driver.as_str(), given.controller.as_deref(), given.is_live), ("nvme", Some("nvme0"), true));
    assert_eq!(given.override_cleared.as_deref(), Some("vfio-pci"));
    assert_eq!(
        host.kernel.writes(),
        [
            write(&device("driver_override"), "vfio-pci"),
            write("sys/bus/pci/drivers/nvme/unbind", "0000:01:00.0"),
            write("sys/bus/pci/drivers_probe", "0000:01:00.0"),
            write(&device("driver_override"), "\n"),
            write("sys/bus/pci/drivers/vfio-pci/unbind", "0000:01:00.0"),
            write("sys/bus/pci/drivers_probe", "0000:01:00.0"),
        ]
    );
}

#[test]
fn d10_no_override_is_left_behind() {
    let (host, drive) = FakeHost::with_drive();
    drop(take(&host, drive).unwrap());
    assert_eq!(attribute(&host, drive, "driver_override"), "(null)\n");
    assert_eq!(NvmeFunction::read(&host.sysfs, drive).unwrap().driver_override, None);
}

#[test]
fn a_drive_goes_back_when_its_user_panics() {
    let (host, drive) = FakeHost::with_drive();
    let handover = take(&host, drive).unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _handover = handover;
        panic!("a check that failed");
    }));
    assert!(panicked.is_err());
    assert_eq!(host.driver(drive).as_deref(), Some("nvme"));
}

#[test]
fn d07_a_drive_on_vfio_already_is_a_success_without_any_write_and_stays_there() {
    let (host, drive) = FakeHost::with_drive();
    take(&host, drive).unwrap().keep();
    let before = host.kernel.writes();
    let handover = take(&host, drive).unwrap();
    assert!(!handover.is_taken());
    assert_eq!(handover.give_back().unwrap(), None);
    assert_eq!(host.kernel.writes(), before);
    assert_eq!(host.driver(drive).as_deref(), Some("vfio-pci"));
}

#[test]
fn d07_a_sibling_with_the_same_id_is_left_alone() {
    let (host, drive) = FakeHost::with_drive();
    let sibling = host.function(&["0000:00:1d.0", "0000:02:00.0"], "0x010802");
    host.bind(sibling, "nvme");
    host.group(15, &[sibling]);
    take(&host, drive).unwrap().keep();
    assert_eq!(host.driver(sibling).as_deref(), Some("nvme"));
    assert!(host.kernel.writes().iter().all(|(path, _)| !path.contains("new_id") && !path.contains("02:00.0")));
}

#[test]
fn d08_when_vfio_does_not_take_the_drive_the_old_driver_does_and_it_is_said() {
    let (host, drive) = FakeHost::with_drive();
    host.kernel.with(|behaviour| behaviour.refusing.insert("vfio-pci".into()));
    let error = take(&host, drive).unwrap_err();
    assert!(matches!(&error, BindError::NotTaken { driver: Some(driver), .. } if driver == "nvme"), "{error}");
    assert!(error.to_string().contains("back on nvme"), "{error}");
    assert_eq!(host.driver(drive).as_deref(), Some("nvme"));
    assert_eq!(attribute(&host, drive, "driver_override"), "(null)\n");
}

#[test]
fn d08_a_drive_without_a_driver_is_taken_by_override() {
    let (host, drive) = FakeHost::with_drive();
    host.kernel.write_unbind(drive);
    let handover = take(&host, drive).unwrap();
    assert_eq!(host.driver(drive).as_deref(), Some("vfio-pci"));
    handover.give_back().unwrap().unwrap();
    assert_eq!(host.driver(drive).as_deref(), Some("nvme"));
}

#[test]
fn d01_a_group_with_another_member_on_a_driver_is_refused_before_any_write() {
    let (host, drive) = FakeHost::with_drive();
    let port = host.function(&["0000:00:02.0"], "0x060400");
    let mine = host.function(&["0000:00:02.0", "0000:05:00.0"], "0x010802");
    let network = host.function(&["0000:00:02.0", "0000:05:00.1"], "0x020000");
    host.bind(port, "pcieport");
    host.bind(mine, "nvme");
    host.bind(network, "e1000e");
    host.group(7, &[port, mine, network]);
    let error = take(&host, mine).unwrap_err();
    assert_eq!(error.to_string(), "0000:05:00.0 shares IOMMU group 7 with 0000:05:00.1 (e1000e)");
    assert_eq!(error.kind(), BindErrorKind::Environment);
    assert!(error.remedy().contains("0000:05:00.1") && error.remedy().contains("another slot"), "{}", error.remedy());
    assert_eq!(host.kernel.writes(), []);
    assert_eq!(host.driver(network).as_deref(), Some("e1000e"));
    let _free = take(&host, drive).unwrap();
}

#[test]
fn d05_a_drive_in_use_is_refused_before_any_write() {
    let (host, drive) = FakeHost::with_drive();
    host.file("proc/1/mountinfo", "22 1 259:102 / / rw - ext4 /dev/nvme0n1p2 rw\n");
    let error = take(&host, drive).unwrap_err();
    assert_eq!(error.to_string(), "0000:01:00.0 is in use: namespace 1 -> partition 2 -> mounted at /");
    assert_eq!(error.kind(), BindErrorKind::Refused);
    assert_eq!(host.kernel.writes(), []);
}

#[test]
fn d05_the_drive_is_still_held_when_its_driver_is_told_to_let_go() {
    let (host, drive) = FakeHost::with_drive();
    let handover = take(&host, drive).unwrap();
    assert_eq!(host.kernel.with(|behaviour| behaviour.open_at_unbind), 1, "the exclusive open of the one namespace");
    handover.give_back().unwrap().unwrap();
    assert_eq!(host.kernel.with(|behaviour| behaviour.open_at_unbind), 0, "nothing is left open on the way back");
}

#[test]
fn d11_an_iommu_that_is_off_a_group_that_is_missing_and_a_module_that_is_missing_are_three_messages() {
    let (host, _) = FakeHost::with_drive();
    let outside = host.function(&["0000:00:02.0", "0000:02:00.0"], "0x010802");
    let missing_group = take(&host, outside).unwrap_err();
    assert!(matches!(missing_group, BindError::NoGroup { .. }), "{missing_group}");

    let (host, drive) = FakeHost::with_drive();
    host.remove("sys/bus/pci/drivers/vfio-pci");
    let missing_module = take(&host, drive).unwrap_err();
    assert!(matches!(missing_module, BindError::ModuleMissing { .. }), "{missing_module}");
    assert!(missing_module.remedy().contains("modprobe vfio-pci"));

    let host = FakeHost::new();
    let drive = host.function(&["0000:00:1c.4", "0000:01:00.0"], "0x010802");
    let off = take(&host, drive).unwrap_err();
    assert!(matches!(off, BindError::IommuOff { .. }), "{off}");
    assert!(off.remedy().contains("VT-d"));

    let texts = [missing_group.to_string(), missing_module.to_string(), off.to_string()];
    assert!(texts[0] != texts[1] && texts[1] != texts[2] && texts[0] != texts[2]);
}

#[test]
fn a_module_that_can_be_loaded_is() {
    let (host, drive) = FakeHost::with_drive();
    host.remove("sys/bus/pci/drivers/vfio-pci");
    host.kernel.with(|behaviour| behaviour.loadable.insert("vfio-pci".into()));
    let _handover = take(&host, drive).unwrap();
    assert_eq!(host.driver(drive).as_deref(), Some("vfio-pci"));
}

#[test]
fn d12_a_loaded_vfio_module_says_nothing_about_this_drive() {
    let (host, drive) = FakeHost::with_drive();
    host.directory("sys/module/vfio_pci");
    let handover = take(&host, drive).unwrap();
    assert!(handover.is_taken(), "it was on nvme, whatever is loaded");
}

#[test]
fn d21_a_group_of_the_no_iommu_mode_is_refused_unless_it_is_allowed() {
    let (host, drive) = FakeHost::with_drive();
    host.file("sys/kernel/iommu_groups/14/name", "vfio-noiommu\n");
    let error = take(&host, drive).unwrap_err();
    assert!(error.to_string().contains("noiommu-14"), "{error}");
    assert_eq!(error.kind(), BindErrorKind::Refused);
    assert!(is_no_iommu(&host.sysfs, drive));
    let allowed = BindOptions { allow_no_iommu: true, ..OPTIONS };
    let _handover = Handover::take(&host.sysfs, drive, allowed).unwrap();
}

#[test]
fn a_drive_on_a_driver_of_somebody_elses_is_refused() {
    let (host, drive) = FakeHost::with_drive();
    host.kernel.write_unbind(drive);
    host.bind(drive, "uio_pci_generic");
    let error = take(&host, drive).unwrap_err();
    assert!(matches!(error, BindError::OtherDriver { .. }), "{error}");
    assert_eq!(error.kind(), BindErrorKind::Refused);
}

#[test]
fn d03_a_drive_on_vfio_that_a_process_holds_is_refused_with_its_pid() {
    let (host, drive) = FakeHost::with_drive();
    take(&host, drive).unwrap().keep();
    let group = host.sysfs.dev("vfio/14");
    host.process(4711, "qemu-system-x86", &[&group]);
    for error in [take(&host, drive).unwrap_err(), release(&host.sysfs, drive, OPTIONS).unwrap_err()] {
        let expected = format!("0000:01:00.0 is held by PID 4711 (qemu-system-x86) through {}", group.display());
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.kind(), BindErrorKind::Refused);
    }
    assert_eq!(host.driver(drive).as_deref(), Some("vfio-pci"));
}

#[test]
fn a_holder_of_the_functions_own_node_and_one_that_was_passed_a_descriptor_are_found() {
    let (host, drive) = FakeHost::with_drive();
    take(&host, drive).unwrap().keep();
    host.directory("sys/bus/pci/devices/0000:01:00.0/vfio-dev/vfio3");
    let node = host.character_node("vfio/devices/vfio3", "511:3");
    assert_eq!(VfioNodes::of(&host.sysfs, drive).device.as_deref(), Some(node.as_path()));
    host.process(4711, "fio", &[&node]);
    host.process(4712, "spdk_tgt", &[std::path::Path::new("anon_inode:[vfio-device]")]);
    host.file(
        "proc/4712/fdinfo/3",
        "pos:\t0\nvfio-device-syspath: /sys/devices/pci0000:00/0000:00:1c.4/0000:01:00.0\n",
    );
    let pids: Vec<_> = holders(&host.sysfs, drive).iter().map(|handle| handle.process.pid).collect();
    assert_eq!(pids, [4711, 4712]);
}

#[test]
fn d04_a_drive_that_another_process_works_on_is_neither_taken_nor_released() {
    let (host, drive) = FakeHost::with_drive();
    let _other = Lock::take(&host.sysfs, drive).unwrap();
    for error in [take(&host, drive).unwrap_err(), release(&host.sysfs, drive, OPTIONS).unwrap_err()] {
        assert!(matches!(error, BindError::Locked(LockError::Held { .. })), "{error}");
        assert_eq!(error.kind(), BindErrorKind::Refused);
    }
    assert_eq!(host.kernel.writes(), []);
}

#[test]
fn what_a_killed_process_left_is_found_and_repaired_without_any_memory_of_it() {
    let (host, drive) = FakeHost::with_drive();
    take(&host, drive).unwrap().keep();
    assert_eq!(left_behind(&host.sysfs).unwrap(), [drive]);
    let given = release(&host.sysfs, drive, OPTIONS).unwrap();
    assert_eq!(given.driver_before.as_deref(), Some("vfio-pci"));
    assert_eq!(host.driver(drive).as_deref(), Some("nvme"));
    assert_eq!(attribute(&host, drive, "driver_override"), "(null)\n");
    assert_eq!(left_behind(&host.sysfs).unwrap(), []);
}

#[test]
fn a_process_killed_between_unbind_and_probe_left_a_drive_without_a_driver_and_it_is_repaired() {
    let (host, drive) = FakeHost::with_drive();
    host.kernel.write_unbind(drive);
    host.attribute(drive, "driver_override", "vfio-pci\n");
    assert_eq!(left_behind(&host.sysfs).unwrap(), [drive]);
    let given = release(&host.sysfs, drive, OPTIONS).unwrap();
    assert_eq!((given.driver_before, given.driver.as_str()), (None, "nvme"));
}

#[test]
fn a_drive_that_vfio_has_by_its_id_is_not_ours_to_repair() {
    let (host, drive) = FakeHost::with_drive();
    host.kernel.write_unbind(drive);
    host.bind(drive, "vfio-pci");
    assert_eq!(left_behind(&host.sysfs).unwrap(), []);
    host.kernel.with(|behaviour| behaviour.greedy = Some("vfio-pci".into()));
    let error = release(&host.sysfs, drive, OPTIONS).unwrap_err();
    assert!(matches!(error, BindError::TakenAgain { .. }), "{error}");
    assert!(error.remedy().contains("remove_id"));
}

#[test]
fn d10_releasing_a_drive_that_the_kernel_has_writes_nothing() {
    let (host, drive) = FakeHost::with_drive();
    let given = release(&host.sysfs, drive, OPTIONS).unwrap();
    assert_eq!((given.driver.as_str(), given.override_cleared), ("nvme", None));
    assert_eq!(host.kernel.writes(), []);
}

#[test]
fn an_override_left_on_a_drive_that_the_kernel_has_is_cleared() {
    let (host, drive) = FakeHost::with_drive();
    host.attribute(drive, "driver_override", "vfio-pci\n");
    let given = release(&host.sysfs, drive, OPTIONS).unwrap();
    assert_eq!(given.override_cleared.as_deref(), Some("vfio-pci"));
    assert_eq!(host.kernel.writes(), [write(&device("driver_override"), "\n")]);
}

#[test]
fn a_kernel_without_its_nvme_module_loads_it_for_the_way_back() {
    let (host, drive) = FakeHost::with_drive();
    let handover = take(&host, drive).unwrap();
    host.remove("sys/bus/pci/drivers/nvme");
    host.kernel.with(|behaviour| behaviour.loadable.insert("nvme".into()));
    assert_eq!(handover.give_back().unwrap().unwrap().driver, "nvme");
}

#[test]
fn a_drive_that_no_driver_takes_back_is_an_error_and_not_a_success() {
    let (host, drive) = FakeHost::with_drive();
    let handover = take(&host, drive).unwrap();
    host.kernel.with(|behaviour| behaviour.refusing.insert("nvme".into()));
    let error = handover.give_back().unwrap_err();
    assert!(matches!(error, BindError::NotTakenBack { .. }), "{error}");
    assert!(error.remedy().contains("drivers_probe"));
}

#[test]
fn a_write_that_blocks_ends_at_its_deadline_and_says_how_to_go_on() {
    let (host, drive) = FakeHost::with_drive();
    take(&host, drive).unwrap().keep();
    host.kernel.with(|behaviour| behaviour.blocking.insert("unbind".into()));
    let error = release(&host.sysfs, drive, SHORT).unwrap_err();
    assert!(matches!(error, BindError::Write { source: WriteError::Blocked { .. }, .. }), "{error}");
    assert!(error.remedy().contains("nvmetal release 0000:01:00.0"), "{}", error.remedy());
    host.kernel.release_writes();
}

#[test]
fn d27_a_missing_right_says_that_binding_takes_root() {
    let (host, drive) = FakeHost::with_drive();
    let path = host.sysfs.pci_device(drive).join("driver_override");
    host.kernel.with(|behaviour| behaviour.denied.insert(path));
    let error = take(&host, drive).unwrap_err();
    assert_eq!(error.kind(), BindErrorKind::Environment);
    assert!(error.remedy().contains("sudo"), "{}", error.remedy());
    assert_eq!(host.driver(drive).as_deref(), Some("nvme"));
}

#[test]
fn a_drive_that_is_not_there_is_gone() {
    let (host, _) = FakeHost::with_drive();
    let error = take(&host, "0000:09:00.0".parse().unwrap()).unwrap_err();
    assert_eq!(error.kind(), BindErrorKind::Gone);
    let bridge = take(&host, "0000:00:1c.4".parse().unwrap()).unwrap_err();
    assert!(matches!(bridge, BindError::NotNvme { .. }));
}

#[test]
fn the_kernels_controller_is_waited_for() {
    let (host, drive) = FakeHost::with_drive();
    let handover = take(&host, drive).unwrap();
    let state = host.sysfs.pci_device(drive).join("nvme/nvme0/state");
    host.kernel.with(|behaviour| {
        behaviour.state_after_probe = Some("connecting\n".into());
        behaviour.at_pause = Some(AtPause(Box::new(move || std::fs::write(state, "live\n").unwrap())));
    });
    assert!(handover.give_back().unwrap().unwrap().is_live);
}

#[test]
fn a_controller_that_does_not_get_ready_is_told_as_that() {
    let (host, drive) = FakeHost::with_drive();
    let handover = take(&host, drive).unwrap();
    host.kernel.with(|behaviour| behaviour.state_after_probe = Some("dead\n".into()));
    let given = handover.give_back().unwrap().unwrap();
    assert_eq!((given.controller.as_deref(), given.is_live), (Some("nvme0"), false));
}

#[test]
fn the_user_of_a_drive_is_typed_for_machines() {
    let (host, drive) = FakeHost::with_drive();
    host.file("proc/swaps", "Filename Type Size Used Priority\n/dev/nvme0n1p2 partition 1 0 -2\n");
    let BindError::InUse(in_use) = take(&host, drive).unwrap_err() else { panic!("not in use") };
    assert_eq!(in_use.usage.chains[0].user, Some(User::Swap));
}
