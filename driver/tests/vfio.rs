//! Real VFIO: opening, mapping, DMA, interrupts, reset and loss, through both kernel interfaces.
//!
//! These need NVMe functions in vfio-pci's hands and root, so they are ignored unless asked for; they write nothing to
//! the drive. In a guest that has all that:
//!
//! ```sh
//! tools/vm/run --bind -- target/debug/deps/vfio-HASH --ignored --test-threads 1
//! ```
#![forbid(unsafe_code)]

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use nvmetal_driver::clock::{MILLISECOND_NS, SECOND_NS};
use nvmetal_driver::dma::{BufferPool, DmaMemory, PageKind, leaked_bytes};
use nvmetal_driver::pci::PciAddress;
use nvmetal_driver::transport::vfio::VfioTransport;
use nvmetal_driver::transport::{Signals, Transport, TransportError, Waiting};
use nvmetal_driver::vfio::interrupt::InterruptKind;
use nvmetal_driver::vfio::{IommuChoice, IommuKind, VfioDevice, VfioError, VfioOptions};
use nvmetal_driver::{Admin, Controller, ControllerOptions};

/// CAP.
const CAP: u64 = 0;
/// VS.
const VS: u64 = 8;
/// CC.
const CC: u64 = 0x14;
/// CSTS.
const CSTS: u64 = 0x1c;
/// AQA.
const AQA: u64 = 0x24;
/// ASQ.
const ASQ: u64 = 0x28;

/// The functions that the guest has bound for us.
fn addresses() -> Vec<PciAddress> {
    let names = std::env::var("VM_BDFS").expect("VM_BDFS names the functions that are bound to vfio-pci");
    names.split([' ', ',']).filter(|name| !name.is_empty()).map(|name| name.parse().expect("an address")).collect()
}

fn address() -> PciAddress {
    addresses()[0]
}

/// The interfaces that this kernel has.
fn choices() -> Vec<IommuChoice> {
    if fs::exists("/dev/iommu").expect("/dev can be read") && fs::exists("/dev/vfio/devices").expect("/dev can be read")
    {
        vec![IommuChoice::Iommufd, IommuChoice::Type1]
    } else {
        vec![IommuChoice::Type1]
    }
}

fn options(iommu: IommuChoice) -> VfioOptions {
    VfioOptions { iommu, ..VfioOptions::default() }
}

fn open(iommu: IommuChoice) -> Arc<VfioTransport> {
    Arc::new(VfioTransport::open(address(), &options(iommu)).expect("the function opens"))
}

/// Our own descriptor on the open function, found the way another process would: by its name in `/proc`.
fn device_descriptor() -> OwnedFd {
    let number = fs::read_dir("/proc/self/fd")
        .expect("/proc can be read")
        .flatten()
        .find_map(|entry| {
            let target = fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned();
            let is_device = target.contains("[vfio-device]") || target.starts_with("/dev/vfio/devices/");
            is_device.then(|| entry.file_name().to_string_lossy().parse().expect("a descriptor's number"))
        })
        .expect("the function is open");
    let this = rustix::process::getpid();
    let process =
        rustix::process::pidfd_open(this, rustix::process::PidfdFlags::empty()).expect("a descriptor of this process");
    rustix::process::pidfd_getfd(process, number, rustix::process::PidfdGetfdFlags::empty()).expect("a copy of it")
}

/// The command register, in the file of the open function.
const COMMAND_OFFSET: u64 = (7 << 40) + 4;

fn command(device: &OwnedFd) -> u16 {
    let mut bytes = [0; 2];
    assert_eq!(rustix::io::pread(device, &mut bytes, COMMAND_OFFSET), Ok(2));
    u16::from_le_bytes(bytes)
}

#[test]
#[ignore = "needs a function bound to vfio-pci"]
fn registers_are_read_the_same_through_every_interface() {
    let mut seen = Vec::new();
    for choice in choices() {
        for split_registers in [false, true] {
            let options = VfioOptions { split_registers, ..options(choice) };
            let transport = VfioTransport::open(address(), &options).expect("the function opens");
            let info = transport.info();
            let (cap, vs) = (transport.read64(CAP).expect("CAP"), transport.read32(VS).expect("VS"));
            println!(
                "{}: CAP {cap:#018x}, VS {vs:#010x}, CSTS {:#x}, BAR0 {:#x} bytes, mapped {:x?}, kept out {:x?}, {:?}",
                info.detail,
                transport.read32(CSTS).expect("CSTS"),
                info.register_bytes,
                transport.device().registers().mappable,
                transport.device().registers().forbidden,
                transport.device().interrupts(),
            );
            assert_ne!(cap, u64::MAX);
            assert_eq!(vs >> 16, 1, "version 1 of NVMe");
            assert!(!transport.device().windows().is_empty(), "BAR0 is mapped");
            assert!(!transport.signals().lost);
            seen.push((cap, vs, info.register_bytes, info.vectors, info.pci_id));
        }
    }
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "{seen:x?}");
}

#[test]
#[ignore = "needs a function bound to vfio-pci"]
fn the_better_interface_is_chosen_where_there_is_one() {
    let kind = open(IommuChoice::Auto).device().space().kind();
    let expected = if choices().contains(&IommuChoice::Iommufd) { IommuKind::Iommufd } else { IommuKind::Type1 };
    assert_eq!(kind, expected);
}

#[test]
#[ignore = "needs a function bound to vfio-pci"]
fn iommufd_is_refused_with_a_reason_on_a_kernel_without() {
    if !choices().contains(&IommuChoice::Iommufd) {
        let error = VfioDevice::open(address(), &options(IommuChoice::Iommufd)).expect_err("there is none");
        println!("{error}");
        assert!(matches!(error, VfioError::NoIommufd { .. }), "{error}");
    }
}

#[test]
#[ignore = "needs a function bound to vfio-pci"]
fn d20_the_msix_table_cannot_be_touched_and_nothing_beyond_bar0() {
    for choice in choices() {
        let transport = open(choice);
        for part in &transport.device().registers().forbidden {
            assert!(matches!(transport.read32(part.start), Err(TransportError::OutOfRange { .. })));
            assert!(matches!(transport.doorbell(part.start), Err(TransportError::OutOfRange { .. })));
        }
        let end = transport.info().register_bytes;
        assert!(matches!(transport.read32(end), Err(TransportError::OutOfRange { .. })));
        assert!(matches!(transport.read64(end - 4), Err(TransportError::OutOfRange { .. })));
        assert!(matches!(transport.read32(2), Err(TransportError::OutOfRange { .. })));
    }
}

#[test]
#[ignore = "needs a function bound to vfio-pci"]
fn memory_is_mapped_and_unmapped_and_its_addresses_are_used_again() {
    for choice in choices() {
        let open = open(choice);
        let transport: Arc<dyn Transport> = Arc::clone(&open) as _;
        let mut before = None;
        for _ in 0..3 {
            let small = DmaMemory::new(Arc::clone(&transport), 1).expect("a page");
            let large = DmaMemory::new(Arc::clone(&transport), 5 << 20).expect("5 MiB");
            println!("{}: {small:?}, {large:?}", transport.info().detail);
            assert_eq!(small.len(), 4096);
            assert_eq!(large.iova() % (2 << 20), 0, "a large mapping is aligned to a huge page");
            assert_eq!(open.device().space().mapped_bytes(), (small.len() + large.len()) as u64);
            let now = (small.iova(), large.iova());
            assert_eq!(*before.get_or_insert(now), now);
        }
        assert_eq!(open.device().space().mapped_bytes(), 0);
    }
}

#[test]
#[ignore = "needs a function bound to vfio-pci"]
fn huge_pages_are_taken_where_there_are_some() {
    let pool = fs::read_to_string("/proc/sys/vm/nr_hugepages").expect("the number of huge pages");
    let there = pool.trim().parse::<u64>().expect("a number") > 0;
    let transport: Arc<dyn Transport> = open(IommuChoice::Auto);
    let memory = DmaMemory::new(transport, 4 << 20).expect("4 MiB");
    assert_eq!(memory.pages(), if there { PageKind::Huge } else { PageKind::Normal });
}

#[test]
#[ignore = "needs a function bound to vfio-pci"]
fn a_controller_comes_up_and_reads_by_polling_and_by_interrupt() {
    for choice in choices() {
        for interrupts in [false, true] {
            let transport: Arc<dyn Transport> = open(choice);
            let options = ControllerOptions { io_queues: 2, interrupts, ..ControllerOptions::default() };
            let controller = Controller::open(Arc::clone(&transport), options).expect("the controller comes up");
            let vectors = controller.interrupts().len();
            println!(
                "{}: {} vectors in use, {:?}",
                transport.info().detail,
                vectors,
                controller.smart().expect("SMART").percentage_used
            );
            assert_eq!(vectors > 0, interrupts);
            controller.shutdown().expect("an orderly end");
        }
    }
}

#[test]
#[ignore = "needs a function bound to vfio-pci"]
fn an_idle_wait_for_an_interrupt_ends_at_its_deadline() {
    let transport = open(IommuChoice::Auto);
    let vectors = transport.enable_interrupts(u16::MAX).expect("interrupts");
    assert_eq!(vectors.len(), usize::from(transport.info().vectors), "as many as there are");
    let clock = transport.clock();
    let until_ns = clock.now_ns() + 20 * MILLISECOND_NS;
    while clock.now_ns() < until_ns {
        transport.idle(until_ns, Waiting::Interrupt(&vectors[0]));
    }
    assert!(clock.now_ns() < until_ns + SECOND_NS);
    assert!(transport.enable_interrupts(1).is_err(), "once is all");
}

#[test]
#[ignore = "needs a function bound to vfio-pci"]
fn d27_an_ordinary_user_opens_the_drive_once_the_node_is_his() {
    use rustix::thread::{Gid, Uid, set_thread_res_gid, set_thread_res_uid};
    const USER: u32 = 1000;
    let become_user = |user: u32| {
        // Of this thread alone, and with the way back kept open.
        let (root, user, group) = (Uid::ROOT, Uid::from_raw(user), Gid::from_raw(user));
        if user.is_root() {
            set_thread_res_uid(root, root, root).expect("root again");
            set_thread_res_gid(group, group, Gid::ROOT).expect("root's group again");
        } else {
            set_thread_res_gid(group, group, Gid::ROOT).expect("another group");
            set_thread_res_uid(user, user, root).expect("another user");
        }
    };
    for choice in choices() {
        let node = match choice {
            IommuChoice::Type1 => format!("/dev/vfio/{}", std::env::var("VM_GROUP").expect("VM_GROUP")),
            _ => format!("/dev/vfio/devices/{}", std::env::var("VM_CDEV").expect("VM_CDEV")),
        };
        let give_to = |user: u32| {
            for path in [node.as_str(), "/dev/iommu"].iter().filter(|path| fs::exists(path).expect("/dev can be read"))
            {
                std::os::unix::fs::chown(path, Some(user), None).expect("root may");
            }
        };
        let attempt = || {
            become_user(USER);
            let opened = VfioTransport::open(address(), &options(choice)).map(|transport| {
                let transport: Arc<dyn Transport> = Arc::new(transport);
                let controller = Controller::open(Arc::clone(&transport), ControllerOptions::default());
                controller.and_then(|controller| controller.shutdown().map(|_| ()))
            });
            become_user(0);
            opened
        };
        let refused = attempt().expect_err("the node is root's");
        println!("{refused}");
        assert!(matches!(&refused, VfioError::Permission { .. }), "{refused}");
        give_to(USER);
        let opened = attempt();
        give_to(0);
        opened.expect("the node is all that is needed").expect("and it works");
    }
}

#[test]
#[ignore = "needs a function bound to vfio-pci"]
fn the_interrupt_line_serves_where_message_signalled_ones_are_not_wanted() {
    for choice in choices() {
        let options = VfioOptions { interrupts: Some(InterruptKind::Intx), ..options(choice) };
        let transport: Arc<dyn Transport> = Arc::new(VfioTransport::open(address(), &options).expect("it opens"));
        println!("{}: {:?}", transport.info().detail, transport.info().vectors);
        let options = ControllerOptions { interrupts: true, ..ControllerOptions::default() };
        let controller = Controller::open(Arc::clone(&transport), options).expect("the controller comes up");
        assert_eq!(controller.interrupts().len(), 1);
        for _ in 0..20 {
            let before_ns = transport.clock().now_ns();
            controller.smart().expect("SMART");
            assert!(transport.clock().now_ns() - before_ns < SECOND_NS, "the interrupt came, not the deadline");
        }
        controller.shutdown().expect("an orderly end");
    }
}

#[test]
#[ignore = "needs a function bound to vfio-pci"]
fn bus_mastering_is_off_until_asked_for_and_after_the_end() {
    for choice in choices() {
        let transport = open(choice);
        let device = device_descriptor();
        assert_eq!(command(&device) & 4, 0, "off at the start");
        transport.set_bus_master(true).expect("the command register is written");
        assert_eq!(command(&device) & 4, 4);
        // The copy of the descriptor keeps the function open, so that it can be looked at afterwards.
        drop(transport);
        assert_eq!(command(&device) & 4, 0, "off at the end");
    }
}

#[test]
#[ignore = "needs a function bound to vfio-pci"]
fn a_reset_forgets_everything_and_keeps_the_mapping() {
    for choice in choices() {
        let transport = open(choice);
        assert!(transport.device().can_reset());
        let memory = DmaMemory::new(Arc::clone(&transport) as Arc<dyn Transport>, 8192).expect("memory");
        transport.set_bus_master(true).expect("the command register is written");
        transport.write32(AQA, 1 << 16 | 1).expect("AQA");
        transport.write64(ASQ, memory.iova()).expect("ASQ");
        transport.write64(ASQ + 8, memory.iova() + 4096).expect("ACQ");
        transport.write32(CC, 1 | 6 << 16 | 4 << 20).expect("CC");
        let deadline_ns = transport.clock().now_ns() + 10 * SECOND_NS;
        while transport.read32(CSTS).expect("CSTS") & 1 == 0 {
            assert!(transport.clock().now_ns() < deadline_ns, "the controller becomes ready");
            transport.idle(deadline_ns, Waiting::Polling);
        }
        transport.reset().expect("the function resets");
        assert_eq!(transport.read32(CC).expect("CC") & 1, 0, "disabled");
        assert_eq!(transport.read32(CSTS).expect("CSTS") & 1, 0, "not ready");
        assert_ne!(transport.read64(CAP).expect("CAP"), u64::MAX);
        assert_eq!(command(&device_descriptor()) & 6, 2, "registers can be reached, transfers are off");
        assert_eq!(transport.signals(), Signals::default());
    }
}

#[test]
#[ignore = "needs a function bound to vfio-pci"]
fn a_fault_in_the_real_mapping_reads_all_ones_and_is_told() {
    for choice in choices() {
        let transport = open(choice);
        let doorbell = transport.doorbell(0x1000).expect("a doorbell");
        let device = device_descriptor();
        let memory_off = (command(&device) & !2).to_le_bytes();
        assert_eq!(rustix::io::pwrite(&device, &memory_off, COMMAND_OFFSET), Ok(2));
        nvmetal_core::queue::doorbell::Doorbell::ring(&doorbell, 1);
        assert_eq!(transport.read32(CSTS).expect("a value"), u32::MAX);
        assert_eq!(transport.read64(CAP).expect("a value"), u64::MAX);
        assert!(transport.signals().lost);
    }
}

#[test]
#[ignore = "needs a function bound to vfio-pci"]
fn d03_a_function_that_is_open_already_is_said_to_be() {
    for choice in choices() {
        let _first = open(choice);
        let error = VfioDevice::open(address(), &options(choice)).expect_err("open already");
        println!("{error}");
        assert!(error.to_string().contains("already opened by a process (this process)"), "{error}");
    }
}

#[test]
#[ignore = "needs a function bound to vfio-pci"]
fn d03_a_group_that_another_holds_is_said_to_be_open() {
    let group = std::env::var("VM_GROUP").expect("VM_GROUP");
    let node = format!("/dev/vfio/{group}");
    let held = fs::OpenOptions::new().read(true).write(true).open(&node).expect("the group opens");
    let error = VfioDevice::open(address(), &options(IommuChoice::Type1)).expect_err("held");
    println!("{error}");
    assert!(matches!(&error, VfioError::Busy { node: busy, .. } if busy.to_string_lossy() == node), "{error}");
    assert!(error.to_string().contains(&format!("PID {}", std::process::id())), "{error}");
    drop(held);
    open(IommuChoice::Type1);
}

#[test]
#[ignore = "needs a function bound to vfio-pci"]
fn the_limit_of_mappings_is_named_when_it_is_met() {
    let parameter = "/sys/module/vfio_iommu_type1/parameters/dma_entry_limit";
    let before = fs::read_to_string(parameter).expect("the parameter");
    fs::write(parameter, "4").expect("root may change it");
    let transport: Arc<dyn Transport> = open(IommuChoice::Type1);
    fs::write(parameter, before.trim()).expect("root may change it");
    let held: Vec<_> = (0..4).map(|_| DmaMemory::new(Arc::clone(&transport), 1).expect("the first four fit")).collect();
    let error = DmaMemory::new(Arc::clone(&transport), 1).expect_err("the fifth does not");
    println!("{error}");
    assert!(error.to_string().contains("dma_entry_limit"), "{error}");
    drop(held);
    DmaMemory::new(transport, 1).expect("there is room again");
}

#[test]
#[ignore = "needs a function bound to vfio-pci"]
fn d13_a_small_memlock_limit_is_named_before_the_kernel_says_enomem() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    let (limit_before, own) = (getrlimit(Resource::Memlock), capabilities(None).expect("our capabilities"));
    for choice in choices() {
        let transport: Arc<dyn Transport> = open(choice);
        setrlimit(Resource::Memlock, Rlimit { current: Some(4 << 20), maximum: limit_before.maximum }).expect("lower");
        let mut without = own;
        without.effective.remove(CapabilitySet::IPC_LOCK);
        set_capabilities(None, without).expect("a capability can be laid down");
        let fits = DmaMemory::new(Arc::clone(&transport), 3 << 20);
        let exceeds = DmaMemory::new(Arc::clone(&transport), 3 << 20);
        set_capabilities(None, own).expect("and taken up again");
        setrlimit(Resource::Memlock, limit_before).expect("and raised");
        drop(fits.expect("3 MiB fit into 4 MiB"));
        let message = exceeds.expect_err("6 MiB do not").to_string();
        println!("{message}");
        assert!(message.contains("RLIMIT_MEMLOCK is 4 MiB"), "{message}");
    }
}

#[test]
#[ignore = "needs a function bound to vfio-pci"]
fn d26_closing_one_drive_leaves_the_other_mapped() {
    let [first, second, ..] = addresses()[..] else {
        println!("one drive only: nothing to close");
        return;
    };
    for choice in choices() {
        let open = |address| Arc::new(VfioTransport::open(address, &options(choice)).expect("the function opens"));
        let (one, other) = (open(first), open(second));
        let memory = DmaMemory::new(Arc::clone(&other) as Arc<dyn Transport>, 1 << 20).expect("memory");
        drop(one);
        assert_eq!(other.device().space().mapped_bytes(), memory.len() as u64);
        let transport: Arc<dyn Transport> = other;
        let controller = Controller::open(transport, ControllerOptions::default()).expect("the other still works");
        controller.shutdown().expect("an orderly end");
        open(first);
    }
}

#[test]
#[ignore = "needs a function bound to vfio-pci"]
fn many_cycles_leave_no_descriptor_and_no_mapping_behind() {
    let count = |directory: &str| fs::read_dir(directory).expect("/proc can be read").count();
    for choice in choices() {
        let cycle = || {
            let transport: Arc<dyn Transport> = open(choice);
            transport.enable_interrupts(4).expect("interrupts");
            let pool = BufferPool { count: 16, bytes_each: 131_072, page_bytes: 4096, metadata_bytes: 0 };
            pool.allocate(&transport).expect("a pool")
        };
        cycle();
        let maps = || fs::read_to_string("/proc/self/maps").expect("/proc can be read").lines().count();
        let before = (count("/proc/self/fd"), maps());
        for _ in 0..25 {
            cycle();
        }
        assert_eq!(count("/proc/self/fd"), before.0);
        // The allocator of this process may add a mapping of its own; two dozen would be ours.
        assert!(maps() < before.1 + 20, "{before:?}, now {}", maps());
    }
}

/// Sends a line to the machine's monitor.
fn monitor(request: &str) {
    let line = std::env::var("VM_CTL").expect("VM_CTL is the monitor's line");
    let control = fs::OpenOptions::new().read(true).write(true).open(line).expect("the monitor's line opens");
    rustix::io::write(control.as_fd(), format!("{request}\n").as_bytes()).expect("a request");
}

/// Waits until the transport's signals are as wanted.
fn wait_for(transport: &VfioTransport, wanted: impl Fn(Signals) -> bool) {
    let deadline_ns = transport.clock().now_ns() + 20 * SECOND_NS;
    while !wanted(transport.signals()) {
        assert!(transport.clock().now_ns() < deadline_ns, "the notice arrives");
        transport.idle(transport.clock().now_ns() + 10 * MILLISECOND_NS, Waiting::Register);
    }
}

/// Needs PCIe's own hot plug: `--boot --qemu-arg "-global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off"`.
#[test]
#[ignore = "needs a function bound to vfio-pci, a monitor, and error reporting of the root port"]
fn a_fatal_error_on_the_link_is_told() {
    let transport = open(IommuChoice::Auto);
    assert!(!transport.signals().error);
    monitor("hmp pcie_aer_inject_error rp0 SDN");
    wait_for(&transport, |signals| signals.error);
}

/// Its name makes it the last one in order, for it takes the first drive away.
#[test]
#[ignore = "needs a function bound to vfio-pci and a monitor"]
fn when_the_drive_is_politely_taken_away_we_are_told() {
    let transport = open(IommuChoice::Auto);
    assert!(!transport.signals().release_requested);
    monitor("qmp {\"execute\":\"device_del\",\"arguments\":{\"id\":\"nvme0\"}}");
    wait_for(&transport, |signals| signals.release_requested);
}

/// On a machine without an IOMMU, with `vfio.enable_unsafe_noiommu_mode=1`.
#[test]
#[ignore = "needs a function in no-IOMMU mode"]
fn d21_without_an_iommu_the_drive_is_refused_unless_asked_for_by_name() {
    let refused = VfioDevice::open(address(), &options(IommuChoice::Auto)).expect_err("no IOMMU");
    println!("{refused}");
    assert!(matches!(refused, VfioError::NoIommuMode { .. }), "{refused}");
    let options = VfioOptions { unsafe_no_iommu: true, ..options(IommuChoice::Auto) };
    let transport: Arc<dyn Transport> = Arc::new(VfioTransport::open(address(), &options).expect("by name it opens"));
    assert_eq!(transport.info().detail, "no-iommu");
    let options = ControllerOptions { io_queues: 1, ..ControllerOptions::default() };
    let controller = Controller::open(Arc::clone(&transport), options).expect("the controller comes up");
    println!("{:?}", controller.smart().expect("SMART").percentage_used);
    controller.shutdown().expect("an orderly end");
    let before = leaked_bytes();
    let memory = DmaMemory::new(transport, 4096).expect("a huge page");
    assert_eq!(memory.pages(), PageKind::Huge);
    drop(memory);
    assert_eq!(leaked_bytes(), before + (2 << 20), "nothing is ever called quiet");
}
