//! Real Linux: what sysfs says about a drive, who uses it, taking it and giving it back.
//!
//! These need a scratch drive in the hands of the kernel's driver and root, and they *overwrite* that drive, so they are
//! ignored unless asked for. In a guest that has all that:
//!
//! ```sh
//! tools/vm/run --no-bind --with dmsetup,e2fsprogs,mdadm --module dm-mod,ext4,raid1,loop,nvmet -- \
//!     target/debug/deps/pci-HASH --ignored --test-threads 1
//! ```
#![forbid(unsafe_code)]

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nvmetal_driver::pci::binding::{
    BindError, BindErrorKind, BindOptions, Handover, VfioNodes, WriteError, holders, left_behind, release,
};
use nvmetal_driver::pci::config::{ConfigSpace, Presence};
use nvmetal_driver::pci::device_spec::resolve;
use nvmetal_driver::pci::enumerate::{Kind, NvmeFunction};
use nvmetal_driver::pci::environment::{Environment, Question, Status};
use nvmetal_driver::pci::link::{LinkErrors, LinkPath, LinkState};
use nvmetal_driver::pci::usage::{Claim, Usage};
use nvmetal_driver::pci::{PciAddress, Sysfs, ThisHost};
use nvmetal_driver::transport::vfio::VfioTransport;
use nvmetal_driver::vfio::VfioOptions;
use nvmetal_driver::vfio::memlock::{Accounting, LockedMemory};

fn addresses() -> Vec<PciAddress> {
    assert_eq!(std::env::var("NVMETAL_VM").as_deref(), Ok("1"), "these overwrite the drive: only in the guest");
    let names = std::env::var("VM_BDFS").expect("VM_BDFS names the drives of the guest");
    names.split([' ', ',']).filter(|name| !name.is_empty()).map(|name| name.parse().expect("an address")).collect()
}

fn sysfs() -> Sysfs {
    Sysfs::host()
}

/// The first drive, in the kernel's hands, with an empty first mebibyte and no partitions.
fn fresh() -> NvmeFunction {
    let address = addresses()[0];
    release(&sysfs(), address, BindOptions::default()).expect("the drive is free");
    let function = NvmeFunction::read(&sysfs(), address).expect("an NVMe function");
    let disk = disk(&function);
    let mut node = OpenOptions::new().write(true).open(&disk).expect("the disk opens");
    node.write_all(&vec![0; 1 << 20]).expect("the disk can be written");
    node.sync_all().expect("the disk can be flushed");
    drop(node);
    run("blockdev", &["--rereadpt", &disk]);
    if !fs::exists("/sys/kernel/config/nvmet").expect("/sys can be read") {
        run("mount", &["-t", "configfs", "none", "/sys/kernel/config"]);
    }
    function
}

fn disk(function: &NvmeFunction) -> String {
    let controller = function.controller.as_ref().expect("the kernel holds the drive");
    format!("/dev/{}", controller.namespaces.first().expect("a namespace").name)
}

#[track_caller]
fn run(program: &str, arguments: &[&str]) {
    assert!(succeeds(program, arguments), "{program} {arguments:?} failed");
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let status = Command::new(program).args(arguments).stdin(Stdio::null()).status();
    status.unwrap_or_else(|error| panic!("{program}: {error}")).success()
}

/// Makes one partition over the whole disk.
fn partition(disk: &str) -> String {
    let mut child =
        Command::new("fdisk").arg(disk).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("fdisk starts");
    child.stdin.take().expect("its input").write_all(b"n\np\n1\n\n\nw\n").expect("it listens");
    assert!(child.wait().expect("it ends").success(), "fdisk failed");
    format!("{disk}p1")
}

/// Every chain that refuses a claim of the drive; none when it was granted.
fn refusals(function: &NvmeFunction) -> Vec<String> {
    match Claim::take(&sysfs(), function) {
        Ok(_) => Vec::new(),
        Err(in_use) => {
            assert_eq!(in_use.usage.doubts, [], "root in the guest sees everything");
            in_use.usage.chains.iter().map(ToString::to_string).collect()
        }
    }
}

fn driver_of(address: PciAddress) -> Option<String> {
    NvmeFunction::read(&sysfs(), address).expect("an NVMe function").driver
}

#[test]
#[ignore = "needs the guest's drive"]
fn sysfs_tells_the_drive_that_qemu_has_made() {
    let function = fresh();
    assert_eq!((function.kind, function.driver.as_deref()), (Kind::Io, Some("nvme")));
    assert_eq!(function.bar0_bytes, Some(16384));
    let group = function.iommu_group.as_ref().expect("an IOMMU group");
    assert!(group.members.iter().any(|member| member.address == function.address));
    let controller = function.controller.as_ref().expect("the kernel's controller");
    assert_eq!(controller.model.as_deref(), Some("QEMU NVMe Ctrl"));
    assert!(controller.serial.is_some() && controller.firmware.is_some());
    assert_eq!(controller.state.as_deref(), Some("live"));
    let namespace = &controller.namespaces[0];
    assert_eq!((namespace.nsid, namespace.size_bytes, namespace.lba_bytes), (Some(1), Some(1 << 30), Some(512)));
    for name in [controller.name.clone(), namespace.name.clone(), namespace.name.replace("nvme", "ng")] {
        assert_eq!(resolve(&sysfs(), &format!("/dev/{name}")).expect("it is found").address, function.address);
    }
}

#[test]
#[ignore = "needs the guest's drive"]
fn the_link_is_read_from_sysfs_and_from_the_registers_alike() {
    let function = fresh();
    let path = LinkPath::read(&sysfs(), function.address).expect("a path");
    assert_eq!(path.hops.len(), 1);
    let hop = &path.hops[0];
    assert_eq!(hop.state(), LinkState::Up);
    assert!(hop.upper.is_some() && hop.speed_now().is_some() && hop.speed_best().is_some());
    assert_eq!((&hop.lower.contradictions, path.payload_bytes()), (&Vec::new(), Some(128)));
    assert!(path.ceiling().is_some());
    let before = LinkErrors::read(&sysfs(), &path);
    let change = LinkErrors::read(&sysfs(), &path).since(&before);
    assert_eq!((change.correctable.unwrap_or(0), change.uncorrectable.unwrap_or(0)), (0, 0));
    let config = ConfigSpace::read(&sysfs(), function.address).expect("the configuration space");
    assert_eq!((config.presence(), config.len_bytes()), (Presence::Alive, 4096));
    assert!(config.msix().is_some_and(|msix| msix.vectors > 1 && msix.table_bar == 0));
}

#[test]
#[ignore = "overwrites the guest's drive"]
fn a_free_drive_is_held_and_swap_cannot_be_put_on_it_meanwhile() {
    let function = fresh();
    let disk = disk(&function);
    let part = partition(&disk);
    run("mkswap", &[&part]);
    let claim = Claim::take(&sysfs(), &function).expect("nobody uses it");
    assert_eq!(claim.namespaces(), 1);
    assert!(!succeeds("swapon", &[&part]), "the drive is held");
    drop(claim);
    run("swapon", &[&part]);
    let name = part.trim_start_matches("/dev/").to_owned();
    let found = refusals(&function);
    run("swapoff", &[&part]);
    assert_eq!(found, ["namespace 1 -> partition 1 -> swap"], "{name}");
    assert_eq!(refusals(&function), [""; 0]);
}

#[test]
#[ignore = "overwrites the guest's drive"]
fn a_mount_is_found_here_and_in_another_mount_namespace() {
    let function = fresh();
    let part = partition(&disk(&function));
    run("mkfs.ext4", &["-q", &part]);
    fs::create_dir_all("/tmp/pci-mount").expect("a directory");
    run("mount", &["-t", "ext4", &part, "/tmp/pci-mount"]);
    let here = refusals(&function);
    run("umount", &["/tmp/pci-mount"]);
    assert_eq!(here, ["namespace 1 -> partition 1 -> mounted at /tmp/pci-mount"]);

    let script = format!("mount -t ext4 {part} /tmp/pci-mount && echo mounted && read line");
    let mut other = Command::new("unshare")
        .args(["-m", "sh", "-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("unshare starts");
    let mut told = [0; 8];
    std::io::Read::read_exact(other.stdout.as_mut().expect("its output"), &mut told).expect("it is mounted");
    let elsewhere = refusals(&function);
    drop(other.stdin.take());
    let _ = other.wait();
    assert_eq!(elsewhere.len(), 1);
    assert!(
        elsewhere[0]
            .starts_with("namespace 1 -> partition 1 -> mounted at /tmp/pci-mount in the mount namespace of PID"),
        "{elsewhere:?}"
    );
    assert_eq!(refusals(&function), [""; 0]);
}

#[test]
#[ignore = "overwrites the guest's drive"]
fn a_device_mapper_volume_is_named_with_and_without_a_user() {
    let function = fresh();
    let part = partition(&disk(&function));
    let table = format!("0 65536 linear {part} 0");
    run("dmsetup", &["create", "vg-test", "--table", &table]);
    let held = refusals(&function);
    let node = fs::read_dir("/sys/class/block")
        .expect("the class")
        .flatten()
        .find(|entry| fs::read_to_string(entry.path().join("dm/name")).is_ok_and(|name| name.trim() == "vg-test"))
        .map(|entry| format!("/dev/{}", entry.file_name().to_string_lossy()))
        .expect("the volume's block device");
    run("mkswap", &[&node]);
    run("swapon", &[&node]);
    let used = refusals(&function);
    run("swapoff", &[&node]);
    run("dmsetup", &["remove", "vg-test"]);
    assert_eq!(held, ["namespace 1 -> partition 1 -> dm \"vg-test\""]);
    assert_eq!(used, ["namespace 1 -> partition 1 -> dm \"vg-test\" -> swap"]);
    assert_eq!(refusals(&function), [""; 0]);
}

#[test]
#[ignore = "overwrites the guest's drive"]
fn a_member_of_a_raid_is_in_use() {
    let function = fresh();
    let part = partition(&disk(&function));
    let create = ["--create", "/dev/md9", "--run", "--force", "--level=1", "--raid-devices=2", &part, "missing"];
    run("mdadm", &create);
    let found = refusals(&function);
    run("mdadm", &["--stop", "/dev/md9"]);
    assert_eq!(found, ["namespace 1 -> partition 1 -> md md9"]);
    assert_eq!(refusals(&function), [""; 0]);
}

#[test]
#[ignore = "needs the guest's drive"]
fn a_loop_device_is_a_use_that_no_exclusive_open_shows() {
    let function = fresh();
    let disk = disk(&function);
    run("losetup", &["/dev/loop5", &disk]);
    let found = refusals(&function);
    run("losetup", &["-d", "/dev/loop5"]);
    assert_eq!(found, ["namespace 1 -> loop device loop5"]);
    assert_eq!(refusals(&function), [""; 0]);
}

#[test]
#[ignore = "needs the guest's drive"]
fn an_nvme_target_is_a_use_and_a_doubt_while_its_configuration_is_hidden() {
    let function = fresh();
    run("umount", &["/sys/kernel/config"]);
    let Err(hidden) = Claim::take(&sysfs(), &function) else { panic!("nvmet is loaded and configfs is not mounted") };
    assert!(hidden.to_string().contains("mount -t configfs"), "{hidden}");
    run("mount", &["-t", "configfs", "none", "/sys/kernel/config"]);
    let subsystem = "/sys/kernel/config/nvmet/subsystems/nqn.test";
    let namespace = format!("{subsystem}/namespaces/7");
    fs::create_dir(subsystem).expect("a subsystem");
    fs::create_dir(&namespace).expect("a namespace");
    fs::write(format!("{namespace}/device_path"), disk(&function)).expect("its path");
    assert_eq!(refusals(&function), [""; 0], "not enabled yet");
    fs::write(format!("{namespace}/enable"), "1").expect("enabled");
    let found = refusals(&function);
    fs::remove_dir(&namespace).expect("the namespace goes");
    fs::remove_dir(subsystem).expect("the subsystem goes");
    let free = refusals(&function);
    assert_eq!(found, ["namespace 1 -> NVMe target nqn.test namespace 7"]);
    assert_eq!(free, [""; 0]);
}

#[test]
#[ignore = "needs the guest's drive"]
fn an_open_node_of_another_process_and_of_our_own_is_a_use() {
    let function = fresh();
    let controller = function.controller.as_ref().expect("the kernel's controller");
    let nodes = [format!("/dev/{}", controller.name), disk(&function), disk(&function).replace("nvme", "ng")];
    for node in nodes {
        let own = File::open(&node).expect("it opens");
        let found = refusals(&function);
        assert!(
            found.len() == 1 && found[0].contains(&format!("{node} open in PID {}", std::process::id())),
            "{found:?}"
        );
        drop(own);
        assert_eq!(refusals(&function), [""; 0], "{node}");
    }
    let node = disk(&function);
    let script = format!("exec sleep 1000 < {node}");
    let mut child = Command::new("sh").args(["-c", &script]).spawn().expect("sh starts");
    let expected = format!("namespace 1 -> {node} open in PID {} (sleep)", child.id());
    // It takes a moment until the shell has opened the node and become `sleep`.
    let found = (0..1000).find_map(|_| {
        let found = refusals(&function);
        #[expect(clippy::disallowed_methods, reason = "another process is waited for")]
        std::thread::sleep(Duration::from_millis(10));
        found.contains(&expected).then_some(found)
    });
    child.kill().expect("it lives");
    child.wait().expect("it ends");
    assert!(found.is_some(), "{expected}");
    assert!(Usage::survey(&sysfs(), &function).is_free());
}

#[test]
#[ignore = "needs the guest's drive"]
fn the_drive_goes_to_vfio_and_comes_back() {
    let function = fresh();
    let address = function.address;
    let handover = Handover::take(&sysfs(), address, BindOptions::default()).expect("it is taken");
    assert!(handover.is_taken());
    assert_eq!(driver_of(address).as_deref(), Some("vfio-pci"));
    let nodes = handover.nodes();
    assert!(nodes.group.is_some(), "{nodes:?}");
    assert!(matches!(Handover::take(&sysfs(), address, BindOptions::default()), Err(BindError::Locked(_))));
    let given = handover.give_back().expect("it goes back").expect("it was taken");
    assert_eq!((given.driver.as_str(), given.is_live), ("nvme", true));
    assert_eq!(given.override_cleared.as_deref(), Some("vfio-pci"));
    let back = NvmeFunction::read(&sysfs(), address).expect("an NVMe function");
    assert_eq!((back.driver.as_deref(), back.driver_override), (Some("nvme"), None));
    assert!(!fs::exists(format!("/run/lock/nvmetal-{address}")).expect("a directory"));
}

#[test]
#[ignore = "needs the guest's drive"]
fn a_second_bind_is_a_success_and_leaves_the_drive_where_it_was() {
    let function = fresh();
    let address = function.address;
    Handover::take(&sysfs(), address, BindOptions::default()).expect("it is taken").keep();
    let second = Handover::take(&sysfs(), address, BindOptions::default()).expect("it is there");
    assert!(!second.is_taken());
    drop(second);
    assert_eq!(driver_of(address).as_deref(), Some("vfio-pci"));
    assert_eq!(left_behind(&sysfs()).expect("the bus"), [address]);
    release(&sysfs(), address, BindOptions::default()).expect("it goes back");
    assert_eq!(left_behind(&sysfs()).expect("the bus"), []);
}

#[test]
#[ignore = "needs the guest's drive"]
fn a_held_drive_is_not_released_and_says_by_whom() {
    let function = fresh();
    let address = function.address;
    Handover::take(&sysfs(), address, BindOptions::default()).expect("it is taken").keep();
    let nodes = VfioNodes::of(&sysfs(), address);
    for node in [nodes.group, nodes.device].into_iter().flatten() {
        let held = OpenOptions::new().read(true).write(true).open(&node).expect("it opens");
        let error = release(&sysfs(), address, BindOptions::default()).expect_err("it is held");
        assert_eq!(error.kind(), BindErrorKind::Refused);
        assert!(error.to_string().contains(&format!("PID {}", std::process::id())), "{error}");
        assert_eq!(holders(&sysfs(), address).len(), 1);
        drop(held);
        assert_eq!(holders(&sysfs(), address), []);
    }
    release(&sysfs(), address, BindOptions::default()).expect("it goes back");
}

#[test]
#[ignore = "needs the guest's drive"]
fn an_unbind_that_blocks_ends_at_its_deadline_and_is_repaired_later() {
    let function = fresh();
    let address = function.address;
    Handover::take(&sysfs(), address, BindOptions::default()).expect("it is taken").keep();
    let transport = VfioTransport::open(address, &VfioOptions::default()).expect("it opens");
    // A host whose processes cannot be seen: the holder is not found beforehand.
    let blind = tempfile::tempdir().expect("a directory");
    fs::create_dir(blind.path().join("tmp")).expect("a directory");
    for name in ["sys", "dev"] {
        std::os::unix::fs::symlink(format!("/{name}"), blind.path().join(name)).expect("a link");
    }
    let options = BindOptions { deadline: Duration::from_millis(500), ..BindOptions::default() };
    let blind = Sysfs::at(blind.path(), Arc::new(ThisHost));
    let error = release(&blind, address, options).expect_err("the function is open");
    assert!(matches!(error, BindError::Write { source: WriteError::Blocked { .. }, .. }), "{error}");
    assert!(error.remedy().contains(&format!("nvmetal release {address}")), "{}", error.remedy());
    drop(transport);
    let given = release(&sysfs(), address, BindOptions::default()).expect("it goes back");
    assert_eq!((given.driver.as_str(), given.is_live), ("nvme", true));
}

#[test]
#[ignore = "needs the guest's drive"]
fn a_guest_with_an_iommu_is_ready() {
    let function = fresh();
    let question = Question {
        function: Some(&function),
        locked_memory: LockedMemory::now(Accounting::Process),
        needed_bytes: 64 << 20,
    };
    let environment = Environment::read(&sysfs(), &question);
    let blockers: Vec<_> = environment.findings.iter().filter(|finding| finding.status == Status::Blocker).collect();
    assert!(environment.is_ready(), "{blockers:#?}");
    println!("{environment:#?}");
}
