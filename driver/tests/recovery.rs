//! The driver against a drive that does what it should not, in virtual time: each fault alone on one queue, and hitting one
//! of 4 queues on 4 threads with 32 commands in flight. The outcome is the right one, within its time, every buffer comes
//! back, and the controller never touches memory that is not its own.
#![cfg(feature = "emulated")]
#![forbid(unsafe_code)]
#![allow(missing_docs)]

use std::sync::Arc;

use nvmetal_driver::controller::{Admin, Controller, ControllerOptions, Recoveries};
use nvmetal_driver::dma::{Buffer, BufferPool};
use nvmetal_driver::error::DriverError;
use nvmetal_driver::io_queue::{AnyIoQueue, Io, QueueOptions, Rescue, Wait};
use nvmetal_driver::transport::emulated::EmulatedTransport;
use nvmetal_driver::workload::{self, Job, Limits};
use nvmetal_emulator::{Fault, FaultKind};

const SECOND: u64 = 1_000_000_000;

fn open(options: &str, queues: u16, interrupts: bool) -> (Arc<EmulatedTransport>, Arc<Controller>) {
    let transport = EmulatedTransport::open(options).expect("good options");
    let options = ControllerOptions { io_queues: queues, interrupts, ..ControllerOptions::default() };
    let controller = Controller::open(Arc::clone(&transport) as _, options).expect("it opens");
    (transport, controller)
}

fn faults(texts: &[&str]) -> Vec<Fault> {
    texts.iter().map(|text| Fault::parse(text).expect("a fault")).collect()
}

/// What one queue's owner saw.
#[derive(Debug, Default)]
struct Seen {
    good: u32,
    failed: u32,
    /// Commands that came back without a completion; they were sent again.
    returned: u32,
    error: Option<DriverError>,
    /// Buffers that are the owner's again.
    buffers: usize,
}

/// Keeps `queue` full until `ios` reads have ended, and does what is to be done about those that do not.
fn drive((mut queue, mut buffers): (AnyIoQueue, Vec<Buffer>), ios: u32) -> (Seen, AnyIoQueue) {
    let mut seen = Seen::default();
    let blocks = 4096 >> queue.namespace().lba_shift;
    let slots = queue.namespace().blocks / u64::from(blocks);
    let (mut sent, mut parked) = (0, false);
    let outcome = loop {
        if seen.good + seen.failed == ios {
            break Ok(());
        }
        if parked {
            match queue.try_recover() {
                Err(error) => break Err(error),
                Ok(None) => queue.idle(queue.clock().now_ns() + 1_000_000),
                Ok(Some(back)) => {
                    parked = false;
                    seen.returned += back.len() as u32;
                    sent -= back.len() as u32;
                    buffers.extend(back);
                }
            }
            continue;
        }
        let now_ns = queue.clock().now_ns();
        while sent < ios
            && let Some(buffer) = buffers.pop()
        {
            // Far apart, so that half of them lie in either half.
            let lba = u64::from(sent).wrapping_mul(0x9e37_79b9_7f4a_7c15) % slots * u64::from(blocks);
            if let Err(rejected) = queue.submit(Io::read(lba, blocks), buffer, now_ns) {
                buffers.push(rejected.payload);
                break;
            }
            sent += 1;
        }
        queue.ring();
        let polled = queue.poll(u32::MAX, |done| {
            if done.status == 0 {
                seen.good += 1;
            } else if done.status & 0x7ff == 7 {
                // Aborted on our behalf: sent again.
                seen.returned += 1;
                sent -= 1;
            } else {
                seen.failed += 1;
            }
            buffers.push(done.buffer);
        });
        match polled {
            Err(DriverError::Parked { .. }) => parked = true,
            Err(error) => break Err(error),
            Ok(0) => queue.idle(now_ns + SECOND),
            Ok(_) => {}
        }
        if let Some(overdue) = queue.overdue(queue.clock().now_ns()) {
            match queue.rescue(overdue) {
                Err(error) => break Err(error),
                Ok(Rescue::Aborted | Rescue::Reset) => {}
                Ok(Rescue::Emptied(back)) => {
                    seen.returned += back.len() as u32;
                    sent -= back.len() as u32;
                    buffers.extend(back);
                }
            }
        }
    };
    seen.error = outcome.err();
    seen.buffers = buffers.len();
    (seen, queue)
}

/// What is expected of all queues together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// Every command ends well, in the end.
    AllGood,
    /// So many fail, at least, and the rest ends well.
    SomeFail,
    /// One queue stops because the controller broke the protocol; the others end well.
    OneFault,
    /// The controller is given up, or gone.
    Lost,
}

struct Case {
    faults: &'static [&'static str],
    expected: Expected,
    /// By what it was recovered: commands aborted, queues deleted, and the means of the reset.
    by: (u64, u64, Option<&'static str>),
    /// All is over within so many seconds of virtual time.
    within_s: u64,
}

const fn case(
    faults: &'static [&'static str],
    expected: Expected,
    by: (u64, u64, Option<&'static str>),
    within_s: u64,
) -> Case {
    Case { faults, expected, by, within_s }
}

const NOTHING: (u64, u64, Option<&str>) = (0, 0, None);
const DISABLED: (u64, u64, Option<&str>) = (0, 0, Some("disabling the controller"));
const FUNCTION: (u64, u64, Option<&str>) = (0, 0, Some("resetting the function"));

#[rustfmt::skip]
const CASES: &[Case] = &[
    case(&["read-error@50"], Expected::SomeFail, NOTHING, 3),
    case(&["read-error-dnr@50"], Expected::SomeFail, NOTHING, 3),
    case(&["namespace-gone@50"], Expected::SomeFail, NOTHING, 3),
    case(&["shrink@50"], Expected::SomeFail, NOTHING, 3),
    case(&["bad-id@50"], Expected::OneFault, NOTHING, 3),
    case(&["stale-id@50"], Expected::OneFault, NOTHING, 3),
    case(&["wrong-queue@50"], Expected::OneFault, NOTHING, 3),
    case(&["wrong-head@50"], Expected::OneFault, NOTHING, 3),
    case(&["torn@50"], Expected::OneFault, NOTHING, 3),
    case(&["double@50"], Expected::OneFault, NOTHING, 3),
    case(&["lost-interrupt@50"], Expected::AllGood, NOTHING, 3),
    case(&["timeout@50"], Expected::AllGood, (1, 0, None), 12),
    case(&["late@50"], Expected::AllGood, (1, 0, None), 12),
    case(&["timeout@50", "abort-refused@1"], Expected::AllGood, (0, 1, None), 12),
    case(&["late@50", "abort-refused@1"], Expected::AllGood, (0, 1, None), 12),
    case(&["timeout@50", "admin-timeout@1"], Expected::AllGood, (0, 1, None), 17),
    case(&["stale-phase@50"], Expected::AllGood, (0, 1, None), 12),
    case(&["timeout@50", "admin-timeout@1x2"], Expected::AllGood, DISABLED, 25),
    case(&["hang@50"], Expected::AllGood, DISABLED, 25),
    case(&["hang@50", "ready-late@1"], Expected::AllGood, DISABLED, 30),
    case(&["hang@50", "ready-never@1"], Expected::AllGood, FUNCTION, 40),
    case(&["hang@50", "fatal-enable@1"], Expected::AllGood, FUNCTION, 40),
    case(&["hang-hard@50"], Expected::AllGood, FUNCTION, 40),
    case(&["fatal@50"], Expected::AllGood, DISABLED, 15),
    case(&["hang@50", "ready-never@1x100"], Expected::Lost, NOTHING, 60),
    case(&["timeout@50", "all-ones@1x100000"], Expected::Lost, NOTHING, 15),
];

fn try_case(case: &Case, depth: u32, queues: u16) {
    let what = format!("{:?}, depth {depth}, {queues} queues", case.faults);
    let interrupts = case.faults[0].starts_with("lost");
    let (transport, controller) = open("ideal", queues, interrupts);
    let namespace = controller.namespace(1).expect("a namespace");
    let wait = if interrupts { Wait::Interrupt } else { Wait::Poll };
    let mut workers = Vec::new();
    for _ in 0..queues {
        let pool = BufferPool { count: depth as usize, bytes_each: 4096, page_bytes: 4096, metadata_bytes: 0 };
        let buffers = pool.allocate(controller.transport()).expect("there is memory");
        let options = QueueOptions { depth, wait, ..QueueOptions::default() };
        workers.push((controller.create_io_queue(namespace, options).expect("a queue"), buffers));
    }
    for fault in faults(case.faults) {
        transport.with(|emulator| emulator.inject(fault));
    }
    let began_ns = controller.clock().now_ns();
    let ios = 400;
    let driven: Vec<(Seen, AnyIoQueue)> = if queues == 1 {
        workers.into_iter().map(|worker| drive(worker, ios)).collect()
    } else {
        std::thread::scope(|scope| {
            let threads: Vec<_> = workers.into_iter().map(|worker| scope.spawn(move || drive(worker, ios))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        })
    };
    let took_ns = controller.clock().now_ns() - began_ns;
    let mut seen = Vec::new();
    for (mut of_one, queue) in driven {
        // A drive that is gone can prove nothing; else what was still in flight comes back now.
        match queue.delete() {
            Ok(back) => of_one.buffers += back.len(),
            Err(error) => assert_eq!(case.expected, Expected::Lost, "{what}: {error}"),
        }
        seen.push(of_one);
    }
    let total = |of: fn(&Seen) -> u32| seen.iter().map(of).sum::<u32>();
    let errors: Vec<&DriverError> = seen.iter().filter_map(|seen| seen.error.as_ref()).collect();
    let all = ios * u32::from(queues);
    match case.expected {
        Expected::AllGood => assert_eq!((total(|s| s.good), errors.len()), (all, 0), "{what}: {errors:?}"),
        Expected::SomeFail => {
            assert!(total(|s| s.failed) > 0, "{what}");
            assert_eq!((total(|s| s.good + s.failed), errors.len()), (all, 0), "{what}: {errors:?}");
        }
        Expected::OneFault => {
            assert!(matches!(errors[..], [DriverError::Fault { .. }]), "{what}: {errors:?}");
            assert_eq!(seen.iter().filter(|seen| seen.good == ios).count(), usize::from(queues) - 1, "{what}");
        }
        // Whoever looks finds out; queues that had no reason to look may have ended well before.
        Expected::Lost => {
            assert!(!errors.is_empty() && errors.iter().all(|error| error.is_lost()), "{what}: {errors:?}");
        }
    }
    // The admin queue takes one command at a time, so the rescues of several queues wait for each other.
    let within_ns = (case.within_s + 12 * (u64::from(queues) - 1)) * SECOND;
    assert!(took_ns <= within_ns, "{what}: took {} ms", took_ns / 1_000_000);
    let Recoveries { aborted_commands, deleted_queues, resets } = controller.recoveries();
    let by = (aborted_commands, deleted_queues, resets.first().map(|reset| reset.by));
    assert!(resets.len() <= 1, "{what}: {resets:?}");
    assert_eq!(by, case.by, "{what}: {resets:?}");
    if case.expected != Expected::Lost {
        let back: usize = seen.iter().map(|seen| seen.buffers).sum();
        assert_eq!(back, depth as usize * usize::from(queues), "{what}: every buffer has come back");
        controller.shutdown().expect("it shuts down");
    }
    assert_eq!(transport.memory().take_faults(), [], "{what}");
    drop(controller);
    if case.expected != Expected::Lost {
        assert_eq!(transport.memory().mapped().1, 0, "{what}: no mapping is left");
    }
}

#[test]
fn each_fault_on_one_queue_with_one_command_in_flight() {
    for case in CASES {
        try_case(case, 1, 1);
    }
}

#[test]
fn each_fault_on_one_of_four_queues_of_four_threads_with_32_in_flight() {
    let wrong: Vec<_> = CASES
        .iter()
        .filter(|case| std::panic::catch_unwind(|| try_case(case, 32, 4)).is_err())
        .map(|case| case.faults)
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// The engine takes turns with its queues on one thread, so nobody may wait for another there.
#[test]
fn a_run_of_the_engine_goes_on_after_an_abort_a_deletion_and_a_reset() {
    for (options, by) in [
        ("ideal,fault=timeout@500", (1, 0, None)),
        ("ideal,fault=timeout@500,fault=abort-refused@1", (0, 1, None)),
        ("ideal,fault=hang@500", DISABLED),
        ("ideal,fault=hang-hard@500", FUNCTION),
        ("ideal,fault=fatal@500", DISABLED),
        ("ideal,shadow-doorbells=yes,fault=hang@500", DISABLED),
    ] {
        for (iodepth, numjobs) in [(1, 1), (32, 4)] {
            let (transport, controller) = open(options, numjobs, false);
            let limits = Limits { ios: Some(2000), ..Limits::default() };
            let job = Job { iodepth, numjobs, limits, ..Job::new() };
            let namespace = controller.namespace(1).expect("a namespace");
            let result = workload::run(&controller, namespace, &job, &mut ()).expect("the run goes on");
            assert_eq!(result.ios(), 2000 * u64::from(numjobs), "{options}");
            assert_eq!(result.errors.failed, 0, "{options}");
            assert!(result.errors.recovered > 0, "{options}");
            let Recoveries { aborted_commands, deleted_queues, resets } = result.recoveries;
            let found = (aborted_commands, deleted_queues, resets.first().map(|reset| reset.by));
            assert_eq!(found, by, "{options}");
            assert_eq!(transport.memory().take_faults(), [], "{options}");
        }
    }
}

/// A controller that fails again after each reset is not reset for ever.
#[test]
fn a_controller_that_fails_again_and_again_is_given_up() {
    let (_, controller) = open("ideal,fault=fatal@1x1000000", 1, false);
    let job = Job { limits: Limits { ios: Some(10_000), ..Limits::default() }, ..Job::new() };
    let namespace = controller.namespace(1).expect("a namespace");
    let error = workload::run(&controller, namespace, &job, &mut ()).expect_err("it never works");
    assert!(error.is_lost(), "{error}");
}

#[test]
fn registers_that_read_all_ones_from_any_access_on_are_an_error_and_no_more() {
    for access in 1.. {
        let transport = EmulatedTransport::open(&format!("ideal,fault=all-ones@{access}x100000")).expect("options");
        match Controller::open(transport, ControllerOptions::default()) {
            Ok(controller) => {
                assert!(controller.shutdown().is_err(), "access {access}");
                assert!(access > 20, "the bring-up reads more registers than that");
                break;
            }
            Err(error) => assert!(error.is_lost(), "access {access}: {error}"),
        }
    }
}

#[test]
fn c06_a_controller_that_is_never_ready_or_fails_when_enabled_is_reported_within_its_time() {
    for (fault, within_s) in [("ready-never@1x100", 8), ("fatal-enable@1x100", 8)] {
        let transport = EmulatedTransport::open(&format!("ideal,fault={fault}")).expect("options");
        let error = Controller::open(Arc::clone(&transport) as _, ControllerOptions::default()).expect_err(fault);
        assert!(error.is_lost(), "{error}");
        let now_ns = transport.with(|emulator| emulator.now_ns());
        assert!(now_ns < within_s * SECOND, "{fault}: {now_ns}");
    }
    open("ideal,fault=ready-late@1", 1, false);
}

#[test]
fn c27_a_shutdown_that_never_ends_is_noted_and_gone_past() {
    let (transport, controller) = open("ideal,fault=shutdown-never@1", 1, false);
    let outcome = controller.shutdown().expect("that is no error");
    assert!(!outcome.complete && outcome.waited_ns <= 6 * SECOND, "{outcome:?}");
    drop(controller);
    assert_eq!(transport.memory().mapped().1, 0);
}

#[test]
fn all_kinds_of_fault_are_tried_here() {
    let tried: Vec<FaultKind> = CASES.iter().flat_map(|case| faults(case.faults)).map(|fault| fault.kind).collect();
    let elsewhere = [FaultKind::WriteError, FaultKind::ShutdownNever];
    for (kind, name, _) in FaultKind::ALL {
        assert!(tried.contains(kind) || elsewhere.contains(kind), "{name}");
    }
}
