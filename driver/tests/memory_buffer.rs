//! Submission queues in the controller's own memory, against the emulated drive.
#![cfg(feature = "emulated")]
#![forbid(unsafe_code)]
#![allow(missing_docs)]

use std::sync::Arc;

use nvmetal_core::register::{CmbMemorySpaceControl, CmbSize, CmbStatus, offset};
use nvmetal_driver::dma::DEVICE_MEMORY_BASE;
use nvmetal_driver::transport::Transport;
use nvmetal_driver::transport::emulated::EmulatedTransport;
use nvmetal_driver::workload::{self, Job, Limits, RunResult};
use nvmetal_driver::{Admin, Controller, ControllerOptions, DriverError, Wait};

const IOS: u64 = 300;
const READ: u8 = 2;

fn open(options: &str, io_queues: u16) -> (Arc<EmulatedTransport>, Arc<Controller>) {
    let transport = EmulatedTransport::open(options).expect("good options");
    let options = ControllerOptions { io_queues, interrupts: true, sq_in_cmb: true, ..ControllerOptions::default() };
    let controller = Controller::open(Arc::clone(&transport) as _, options).expect("it opens");
    (transport, controller)
}

fn run(controller: &Arc<Controller>, iodepth: u32, numjobs: u16, wait: Wait) -> Result<RunResult, DriverError> {
    let limits = Limits { ios: Some(IOS), ..Limits::default() };
    let job = Job { iodepth, numjobs, limits, wait, ..Job::new() };
    workload::run(controller, controller.namespace(1).expect("a namespace"), &job, &mut ())
}

/// The buffer's first bytes.
fn buffer(transport: &EmulatedTransport) -> [u8; 64] {
    let mut bytes = [0; 64];
    transport.with(|emulator| {
        let (_, file, _) = emulator.memory_buffer().expect("a buffer");
        rustix::io::pread(file, &mut bytes, 0).expect("it can be read");
    });
    bytes
}

#[test]
fn reads_are_submitted_in_the_controllers_memory_in_every_kind_of_time() {
    for (model, wait) in
        [("ideal", Wait::Poll), ("null", Wait::Poll), ("ideal,clock=real", Wait::Hybrid), ("ideal", Wait::Interrupt)]
    {
        for (iodepth, numjobs) in [(1, 1), (32, 1), (8, 2)] {
            let (transport, controller) = open(&format!("{model},cmb=1MiB"), numjobs);
            assert!(controller.has_sq_in_cmb());
            assert_eq!(buffer(&transport), [0; 64]);
            let result = run(&controller, iodepth, numjobs, wait).expect("it runs");
            assert_eq!((result.ios(), result.errors.failed), (IOS * u64::from(numjobs), 0), "{model}, depth {iodepth}");
            let first = buffer(&transport);
            assert_eq!((first[0], first[4]), (READ, 1), "an entry: Read of namespace 1");
            assert_eq!(transport.memory().fault_count(), 0);
        }
    }
}

#[test]
fn a_queue_made_anew_finds_its_place_and_begins_at_the_beginning() {
    let (_, controller) = open("ideal,cmb=4KiB", 1);
    for iodepth in [7, 3, 32, 63] {
        assert_eq!(run(&controller, iodepth, 1, Wait::Poll).expect("it runs").ios(), IOS);
    }
}

#[test]
fn a_queue_that_does_not_fit_is_refused_with_what_is_missing() {
    let (transport, controller) = open("ideal,cmb=4KiB", 2);
    let error = run(&controller, 64, 1, Wait::Poll).expect_err("65 entries take more than a page");
    assert!(error.to_string().contains("controller memory buffer"), "{error}");
    let error = run(&controller, 8, 2, Wait::Poll).expect_err("a queue has a page, and there is one");
    assert!(error.to_string().contains("controller memory buffer"), "{error}");
    assert_eq!(run(&controller, 63, 1, Wait::Poll).expect("nothing was left behind").ios(), IOS);
    assert_eq!(transport.memory().fault_count(), 0);
}

#[test]
fn a_drive_without_a_buffer_has_its_queues_in_the_host() {
    let (_, controller) = open("ideal", 1);
    assert!(!controller.has_sq_in_cmb());
    assert_eq!(run(&controller, 8, 1, Wait::Poll).expect("it runs").ios(), IOS);
}

#[test]
fn it_is_described_when_asked_for_and_switched_off_at_the_end() {
    let transport = EmulatedTransport::open("ideal,cmb=64KiB").expect("good options");
    let size = || CmbSize::from_bits(transport.read32(offset::CMBSZ).expect("a register"));
    assert_eq!(size().size_bytes(), Some(0), "not before CMBMSC.CRE");
    let options = ControllerOptions { sq_in_cmb: true, ..ControllerOptions::default() };
    let controller = Controller::open(Arc::clone(&transport) as _, options).expect("it opens");
    assert_eq!((size().size_bytes(), size().sqs(), size().cqs()), (Some(64 << 10), true, false));
    assert_eq!(transport.read64(offset::CMBMSC).expect("a register"), DEVICE_MEMORY_BASE | 3);
    controller.shutdown().expect("in good order");
    assert_eq!(transport.read64(offset::CMBMSC).expect("a register"), 0);
    drop(controller);
    assert_eq!(transport.memory().mapped().0, 0, "nothing can be reached any more");
}

#[test]
fn a_base_address_that_the_hosts_memory_has_is_refused() {
    let (transport, _controller) = open("ideal,cmb=64KiB", 1);
    let taken = 0x1_0000_0000; // The first address that this transport gives out: an admin ring has it.
    let control = CmbMemorySpaceControl::new().with_cre(true).with_cmse(true).with_cba(taken >> 12);
    transport.write64(offset::CMBMSC, control.into_bits()).expect("a register");
    assert!(CmbStatus::from_bits(transport.read32(offset::CMBSTS).expect("a register")).cbai());
    transport.write32(offset::CMBMSC, 0).expect("a register");
    assert!(!CmbStatus::from_bits(transport.read32(offset::CMBSTS).expect("a register")).cbai());
}
