//! The engine against the emulated drive, in virtual time: what it counts is arithmetic, and can be checked as such.
#![cfg(feature = "emulated")]
#![forbid(unsafe_code)]
#![allow(missing_docs)]

use core::ops::ControlFlow;
use std::sync::Arc;

use nvmetal_driver::Wait;
use nvmetal_driver::controller::{Admin, Controller, ControllerOptions};
use nvmetal_driver::error::DriverError;
use nvmetal_driver::transport::emulated::EmulatedTransport;
use nvmetal_driver::workload::{self, Access, EndReason, Job, Limits, Observer, RunResult, Tick};

const MS: u64 = 1_000_000;

fn open(options: &str, queues: u16) -> Arc<Controller> {
    let transport = EmulatedTransport::open(options).expect("good options");
    Controller::open(transport, ControllerOptions { io_queues: queues, ..ControllerOptions::default() })
        .expect("it opens")
}

fn run_on(controller: &Arc<Controller>, job: &Job) -> Result<RunResult, DriverError> {
    let namespace = controller.namespace(1).expect("a namespace");
    workload::run(controller, namespace, job, &mut ())
}

fn run(options: &str, job: &Job) -> RunResult {
    run_on(&open(options, job.numjobs), job).expect("it runs")
}

fn short() -> Job {
    Job { limits: Limits { runtime_ns: Some(250 * MS), ..Limits::default() }, ..Job::new() }
}

#[test]
fn the_same_job_gives_the_same_figures_each_time() {
    let job = Job { numjobs: 2, ..short() };
    let (first, second) = (run("ideal", &job), run("ideal", &job));
    assert_eq!((first.ios(), first.bytes(), first.elapsed_ns), (second.ios(), second.bytes(), second.elapsed_ns));
    assert_eq!(first.bins, second.bins);
    let classes = |result: &RunResult| result.latency().classes().collect::<Vec<_>>();
    assert_eq!(classes(&first), classes(&second));
}

#[test]
fn a_run_by_time_lasts_exactly_that_and_its_bins_add_up() {
    let result = run("ideal", &short());
    assert_eq!((result.elapsed_ns, result.end), (250 * MS, EndReason::Runtime));
    assert_eq!(result.bins.iter().map(|bin| bin.ios).sum::<u64>(), result.ios());
    assert_eq!(result.bins.iter().map(|bin| bin.bytes).sum::<u64>(), result.bytes());
    assert_eq!(result.bytes(), result.ios() * 4096);
    assert_eq!(result.latency().count(), result.ios());
    assert_eq!(result.bins.len(), 3, "two whole bins of 100 ms and a half");
    assert_eq!(result.errors.failed, 0);
}

#[test]
fn a_number_of_ios_is_exactly_that_on_each_queue() {
    for (iodepth, numjobs, ios) in [(1, 1, 1), (1, 1, 100), (32, 1, 7), (32, 3, 1000), (128, 2, 129)] {
        let limits = Limits { ios: Some(ios), ..Limits::default() };
        let result = run("ideal", &Job { iodepth, numjobs, limits, ..Job::new() });
        assert_eq!(result.ios(), ios * u64::from(numjobs), "depth {iodepth}, {numjobs} queues");
        assert_eq!(result.end, EndReason::Done);
    }
}

#[test]
fn a_number_of_bytes_is_rounded_down_to_ios() {
    let limits = Limits { bytes: Some(1_000_000), ..Limits::default() };
    assert_eq!(run("ideal", &Job { limits, ..Job::new() }).ios(), 244);
}

/// Little's law: what is in flight is rate times latency, whatever the drive does.
#[test]
fn rate_times_latency_is_the_depth() {
    for iodepth in [1, 4, 32, 200] {
        let result = run("ideal", &Job { iodepth, ..short() });
        let in_flight = result.iops() * result.latency().mean().unwrap() / 1e9;
        let expected = f64::from(iodepth);
        assert!((in_flight - expected).abs() < expected * 0.02, "depth {iodepth}: {in_flight}");
    }
}

/// E-08, E-10: an I/O beyond the controller's transfer size is split, and counts as one.
#[test]
fn e08_e10_large_ios_are_split_and_count_as_one() {
    // MDTS 1 is 8 KiB.
    for (block_bytes, commands) in [(8192, 1), (12288, 2), (65536, 8), (1 << 20, 128)] {
        let controller = open("ideal,mdts=1", 1);
        let limits = Limits { ios: Some(20), ..Limits::default() };
        let job = Job { block_bytes, access: Access::Sequential, iodepth: 2, limits, ..Job::new() };
        let result = run_on(&controller, &job).expect("it runs");
        assert_eq!((result.ios(), result.bytes()), (20, 20 * block_bytes));
        assert_eq!(result.commands_per_io, commands);
        let sent = controller.tally().sent();
        let reads = sent.iter().find(|command| !command.admin && command.name == "Read").map(|command| command.count);
        assert_eq!(reads, Some(20 * u64::from(commands)));
    }
}

#[test]
fn an_offset_and_a_size_keep_the_run_inside_their_region() {
    let blocks = 1000;
    let job = Job {
        offset_bytes: 512 * 700,
        size_bytes: Some(512 * 300),
        block_bytes: 512,
        limits: Limits { ios: Some(20_000), ..Limits::default() },
        ..Job::new()
    };
    let result = run(&format!("ideal,lba=512,blocks={blocks}"), &job);
    assert_eq!((result.ios(), result.errors.failed), (20_000, 0), "nothing reached beyond the end");
    let beyond = Job { offset_bytes: 512 * 1000, ..job };
    let refused = run_on(&open("ideal,lba=512,blocks=1000", 1), &beyond).unwrap_err();
    assert!(refused.to_string().contains("no room"), "{refused}");
}

/// E-07: a block size below the format's is refused before the run.
#[test]
fn e07_jobs_that_cannot_be_run_are_refused_with_the_reason() {
    let refused = |options: &str, job: Job| run_on(&open(options, 1), &job).unwrap_err().to_string();
    let text = refused("ideal,lba=4096", Job { block_bytes: 512, ..Job::new() });
    assert!(text.contains("512") && text.contains("4096"), "{text}");
    assert!(refused("ideal", Job { block_bytes: 0, ..Job::new() }).contains("block size"));
    assert!(refused("ideal", Job { iodepth: 0, ..Job::new() }).contains("at least 1"));
    let no_time = Limits { runtime_ns: Some(0), ..Limits::default() };
    assert!(refused("ideal", Job { limits: no_time, ..Job::new() }).contains("runtime above 0"));
    assert!(refused("ideal", Job { limits: Limits::default(), ..Job::new() }).contains("needs an end"));
    assert!(refused("ideal", Job { numjobs: 9, ..Job::new() }).contains("the drive offers 1"));
    assert!(refused("ideal", Job { iodepth: 1_000_000, ..Job::new() }).contains("queue depth"));
}

/// One bad place: the read is repeated three times, fails each time, and counts as one failed I/O.
#[test]
fn a_read_that_failed_for_good_is_counted_once_and_kept() {
    let limits = Limits { ios: Some(1000), ..Limits::default() };
    let result = run("ideal,fault=read-error@100x1", &Job { limits, ..Job::new() });
    assert_eq!((result.ios(), result.errors.failed, result.errors.recovered), (999, 1, 0));
    assert_eq!(result.errors.by_cause.values().sum::<u64>(), 4);
    assert_eq!(result.errors.first.len(), 4);
}

#[test]
fn reads_that_keep_failing_are_counted_and_do_not_stop_the_run() {
    let limits = Limits { ios: Some(1000), ..Limits::default() };
    let result = run("ideal,fault=read-error@100", &Job { limits, ..Job::new() });
    assert!(result.errors.failed > 0);
    assert_eq!(result.ios() + result.errors.failed, 1000);
    assert!(result.errors.first.len() <= 16, "only the first few are kept one by one");
}

#[test]
fn a_ramp_is_not_counted() {
    let with_ramp = run("ideal", &Job { ramp_ns: 500 * MS, ..short() });
    let without = run("ideal", &short());
    assert_eq!(with_ramp.elapsed_ns, without.elapsed_ns);
    let (a, b) = (with_ramp.ios() as f64, without.ios() as f64);
    assert!((a - b).abs() < b * 0.01, "{a} {b}");
}

#[test]
fn reads_and_writes_mix_as_asked() {
    let job = Job { read_percent: 70, limits: Limits { ios: Some(50_000), ..Limits::default() }, ..Job::new() };
    let result = run("ideal", &job);
    let share = result.read.ios as f64 / result.ios() as f64;
    assert!((share - 0.7).abs() < 0.01, "{share}");
    assert_eq!(result.ios(), 50_000);
}

fn open_with_interrupts(options: &str, queues: u16) -> Arc<Controller> {
    let transport = EmulatedTransport::open(options).expect("good options");
    let options = ControllerOptions { io_queues: queues, interrupts: true, ..ControllerOptions::default() };
    Controller::open(transport, options).expect("it opens")
}

/// Waking up takes no time on a virtual clock, so the ways of waiting differ in nothing that can be measured there.
#[test]
fn every_way_of_waiting_gives_the_same_figures_in_virtual_time() {
    for (iodepth, numjobs) in [(1, 1), (32, 1), (8, 3)] {
        let figures = |wait| {
            let job = Job { iodepth, numjobs, wait, ..short() };
            let result = run_on(&open_with_interrupts("ideal", numjobs), &job).expect("it runs");
            assert_eq!((result.wait, result.processor), (wait, None));
            (result.ios(), result.latency().percentile(50.0))
        };
        let polled = figures(Wait::Poll);
        assert_eq!(figures(Wait::Interrupt), polled, "depth {iodepth}, {numjobs} queues");
        assert_eq!(figures(Wait::Hybrid), polled, "depth {iodepth}, {numjobs} queues");
    }
}

#[test]
fn every_way_of_waiting_comes_to_an_end_in_real_time() {
    for wait in [Wait::Poll, Wait::Interrupt, Wait::Hybrid] {
        for (iodepth, numjobs) in [(1, 1), (32, 2)] {
            let limits = Limits { ios: Some(300), ..Limits::default() };
            let job = Job { iodepth, numjobs, limits, wait, ..Job::new() };
            let result = run_on(&open_with_interrupts("ideal,clock=real", numjobs), &job).expect("it runs");
            assert_eq!((result.ios(), result.wait), (300 * u64::from(numjobs), wait));
            let used = result.processor.expect("real time takes a processor");
            assert!(used.wall_ns > 0 && used.percent() > 0.0, "{used:?}");
        }
    }
}

#[test]
fn without_interrupts_every_wait_is_polling_and_the_result_says_so() {
    let result = run("ideal", &Job { wait: Wait::Hybrid, ..short() });
    assert_eq!(result.wait, Wait::Poll);
}

struct StopAt(u64, u32);

impl Observer for StopAt {
    fn interval_ns(&self) -> u64 {
        50 * MS
    }
    fn tick(&mut self, tick: Tick) -> ControlFlow<()> {
        self.1 += 1;
        if tick.elapsed_ns >= self.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn an_observer_can_end_a_run_and_what_there_is_is_the_result() {
    let controller = open("ideal", 1);
    let namespace = controller.namespace(1).expect("a namespace");
    let mut observer = StopAt(100 * MS, 0);
    let job = Job { limits: Limits { runtime_ns: Some(3_600_000 * MS), ..Limits::default() }, ..Job::new() };
    let result = workload::run(&controller, namespace, &job, &mut observer).expect("it runs");
    assert_eq!(result.end, EndReason::Interrupted);
    assert!(result.elapsed_ns >= 100 * MS && result.elapsed_ns < 200 * MS, "{}", result.elapsed_ns);
    assert_eq!(observer.1, 2);
    assert!(result.ios() > 0);
}

#[test]
fn a_drive_that_vanishes_ends_the_run_as_lost() {
    let error = run_on(&open("ideal,removed@1000", 1), &short()).unwrap_err();
    assert!(error.is_lost(), "{error}");
}
