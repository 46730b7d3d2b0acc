//! Shadow doorbells against the emulated drive: they save register writes, and nobody waits for ever.
#![cfg(feature = "emulated")]
#![forbid(unsafe_code)]
#![allow(missing_docs)]

use std::sync::Arc;

use nvmetal_driver::transport::emulated::EmulatedTransport;
use nvmetal_driver::workload::{self, Job, Limits, RunResult};
use nvmetal_driver::{Admin, Controller, ControllerOptions, Wait};
use nvmetal_emulator::trace::Happening;

const IOS: u64 = 300;

fn open(options: &str, shadow_doorbells: bool, io_queues: u16) -> (Arc<EmulatedTransport>, Arc<Controller>) {
    let transport = EmulatedTransport::open(options).expect("good options");
    let options = ControllerOptions { io_queues, interrupts: true, shadow_doorbells, ..ControllerOptions::default() };
    let controller = Controller::open(Arc::clone(&transport) as _, options).expect("it opens");
    (transport, controller)
}

fn run(controller: &Arc<Controller>, iodepth: u32, numjobs: u16, wait: Wait) -> RunResult {
    let limits = Limits { ios: Some(IOS), ..Limits::default() };
    let job = Job { iodepth, numjobs, limits, wait, ..Job::new() };
    workload::run(controller, controller.namespace(1).expect("a namespace"), &job, &mut ()).expect("it runs")
}

/// Writes to the doorbell registers of I/O queues in a run.
fn doorbell_writes(shadow_doorbells: bool, iodepth: u32, numjobs: u16) -> usize {
    let (transport, controller) = open("ideal,shadow-doorbells=yes", shadow_doorbells, numjobs);
    assert_eq!(controller.has_shadow_doorbells(), shadow_doorbells);
    let result = run(&controller, iodepth, numjobs, Wait::Poll);
    assert_eq!((result.ios(), result.errors.failed), (IOS * u64::from(numjobs), 0));
    assert_eq!(transport.memory().fault_count(), 0);
    transport.with(|emulator| {
        assert_eq!(emulator.log().dropped(), 0, "the log holds the whole run");
        let rung = |what: &Happening| matches!(what, Happening::Doorbell { qid, .. } if *qid != 0);
        emulator.log().events().filter(|event| rung(&event.what)).count()
    })
}

/// Once in a lap of its ring an index passes the event index although the controller is awake: the rule is arithmetic.
#[test]
fn doorbell_writes_are_saved_and_the_run_is_the_same() {
    for (iodepth, numjobs) in [(8, 1), (16, 1), (32, 2)] {
        let (with, without) = (doorbell_writes(true, iodepth, numjobs), doorbell_writes(false, iodepth, numjobs));
        assert!(without > 100 && with * 3 < without, "depth {iodepth}, {numjobs} queues: {with} of {without}");
        assert!(with > 0, "the first one has to wake the controller");
    }
}

#[test]
fn a_threaded_controller_that_rests_is_woken_in_time() {
    for (model, wait) in
        [("null", Wait::Poll), ("ideal,clock=real", Wait::Hybrid), ("ideal,clock=real", Wait::Interrupt)]
    {
        for iodepth in [1, 16] {
            let (transport, controller) = open(&format!("{model},shadow-doorbells=yes"), true, 1);
            assert_eq!(run(&controller, iodepth, 1, wait).ios(), IOS, "{model}, depth {iodepth}");
            assert_eq!(transport.memory().fault_count(), 0);
        }
    }
}

#[test]
fn a_queue_made_anew_begins_at_the_beginning() {
    let (_, controller) = open("ideal,shadow-doorbells=yes", true, 1);
    for iodepth in [7, 3, 32] {
        assert_eq!(run(&controller, iodepth, 1, Wait::Poll).ios(), IOS);
    }
}

#[test]
fn a_drive_without_them_is_driven_by_its_registers() {
    let (_, controller) = open("ideal", true, 1);
    assert!(!controller.has_shadow_doorbells());
    assert_eq!(run(&controller, 8, 1, Wait::Poll).ios(), IOS);
}
